//! Does a value look like chance? Asked only where a name gives reason to ask.
//!
//! Two measures, since each alone fails: Shannon's entropy takes `user_profile_settings_2024`
//! for chance, and counting changes between letters and digits misses alphabets in order.

use super::class::Class;

/// Shorter values are not judged.
const LEAST: usize = 16;
/// Longer values are judged by their beginning.
const MOST: usize = 256;

/// Whether `value` is one token that looks random, and no digest, UUID or number.
pub(super) fn looks_random(value: &[u8]) -> bool {
    let value = &value[..value.len().min(MOST)];
    if value.len() < LEAST || !value.iter().all(|&byte| is_token_byte(byte)) || is_digest(value) {
        return false;
    }
    if !Class::LETTER.any(value) || !(Class::DIGIT.any(value) || is_mixed(value)) {
        return false;
    }
    let changes = changes(value);
    let separators = value
        .iter()
        .filter(|&&byte| !Class::ALNUM.has(byte))
        .count();
    let random_mix = changes * 5 >= 2 * value.len() && changes >= 8 && bits_per_byte(value) >= 3.0;
    let wide = value.len() >= 20
        && separators * 12 <= value.len()
        && Class::DIGIT.any(value)
        && bits_per_byte(value) >= 4.2;
    random_mix || wide
}

fn is_token_byte(byte: u8) -> bool {
    Class::TOKEN68.has(byte)
        || matches!(
            byte,
            b'~' | b'%' | b'|' | b':' | b'!' | b'$' | b'@' | b'*' | b'^'
        )
}

fn is_mixed(value: &[u8]) -> bool {
    Class::LOWER.any(value) && Class::UPPER.any(value)
}

/// A digest (hex, perhaps with its algorithm, or `sha512-` and base64), a UUID or a number.
pub(super) fn is_digest(value: &[u8]) -> bool {
    let (algorithm, rest) = match value
        .iter()
        .position(|byte| matches!(byte, b':' | b'-' | b'='))
    {
        Some(at) if value.len() > 16 => (&value[..at], &value[at + 1..]),
        _ => (&value[..0], value),
    };
    let named = algorithm.len() <= 9
        && [&b"sha"[..], b"md5", b"blake"].iter().any(|name| {
            algorithm.len() >= name.len() && algorithm[..name.len()].eq_ignore_ascii_case(name)
        });
    if named && Class::BASE64_ANY.all(rest) {
        return true;
    }
    let hex = value.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    let dashes = value
        .iter()
        .filter(|&&byte| byte == b'-' || byte == b':')
        .count();
    // A UUID has four dashes, a colon-separated fingerprint one every two digits.
    hex + dashes == value.len() && (dashes <= 4 || dashes * 3 <= value.len())
}

/// How often neighbours within a word are of different classes, times two; a capital at the
/// start of a camel-case word does not count, or half if words are of one or two letters.
fn changes(value: &[u8]) -> usize {
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'0'..=b'9' => 3,
        _ => 0,
    };
    let mut count = 0;
    let mut run = 0;
    for (at, pair) in value.windows(2).enumerate() {
        let (a, b) = (class(pair[0]), class(pair[1]));
        if a == b {
            run += 1;
            continue;
        }
        let next = value.get(at + 2).map_or(0, |&byte| class(byte));
        // `fooBar`: a hump between runs of small letters.
        let hump = a == 1 && b == 2 && next == 1;
        let after_hump = a == 2 && b == 1;
        count += match (hump, after_hump) {
            _ if a == 0 || b == 0 => 0,
            (true, _) => usize::from(run == 0),
            (_, true) => usize::from(next != 1),
            _ => 2,
        };
        run = 0;
    }
    count
}

/// Shannon's entropy of the bytes.
fn bits_per_byte(value: &[u8]) -> f32 {
    let mut counts = [0u16; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let total = value.len() as f32;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = f32::from(count) / total;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens() {
        for value in [
            "aB3dE5fG7hI9jK1lM3nO5pQ7",
            "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==",
            "k3v9x1q7z0b2n8m4",
            "abcdefghijklmnopqrstuvwxyz012345",
            "4/0AX4XfWhQ9Zk2mB7tYpL3sVdE8rUcNf",
            "SplxlOBeZQQYbYS6WxSbIA12",
        ] {
            assert!(looks_random(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn words_numbers_and_digests() {
        for value in [
            "user_profile_settings_2024",
            "getUserByIdAndName2",
            "organization/repository-name",
            "9b74c9897bac770ffc029102a200c5de",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "123e4567-e89b-12d3-a456-426614174000",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "1234567890123456789",
            "2024-01-01T00:00:00Z",
            "short1A",
            "const x = 1;",
            "ENOENT_NO_SUCH_FILE",
            "application/vnd.api+json",
            "src/components/UserTable.tsx",
            "de:ad:be:ef:00:11:22:33:44:55:66:77:88:99:aa:bb",
        ] {
            assert!(!looks_random(value.as_bytes()), "{value}");
        }
    }
}
