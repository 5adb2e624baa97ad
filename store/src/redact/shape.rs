//! Secrets that are structures: JWTs, PEM blocks, keys of AWS, Azure and Telegram.

use std::ops::Range;

use memchr::memmem;

use super::class::{Class, has_folded, starts_word};
use super::entropy::looks_random;
use super::prefix::after_colour;

/// The most that a private key without an end hides. The longest RSA keys in use take 13 KB.
pub(super) const MAX_PEM: usize = 16 * 1024;

/// A JWT or JWE whose first part starts at `at`: base64url of `{"`, two dots or more.
pub(super) fn jwt(text: &[u8], at: usize) -> Option<Range<usize>> {
    if at > 0 && Class::TOKEN.has(text[at - 1]) && !after_colour(text, at) {
        return None;
    }
    let header = Class::TOKEN.run(text, at);
    if header - at < 10 || text.get(header) != Some(&b'.') {
        return None;
    }
    let claims = Class::TOKEN.run(text, header + 1);
    let signed = text.get(claims) == Some(&b'.');
    let signature = if signed {
        Class::TOKEN.run(text, claims + 1)
    } else {
        claims
    };
    let claims_len = claims - header - 1;
    let nested = text[header + 1..claims].starts_with(b"eyJ");
    // Detached content and direct encryption leave the second part empty.
    let whole = signed && signature - claims > 8 && (claims_len == 0 || claims_len >= 8);
    // Unsigned, or cut.
    let part = nested && claims_len >= 8;
    if !(whole || part) {
        return None;
    }
    let mut end = Class::DOTTED.run(text, signature);
    while text[end - 1] == b'.' {
        end -= 1;
    }
    Some(at..end)
}

/// A PEM block of a private key, from its first dash to its last, and whether its end is
/// missing.
pub(super) fn pem(text: &[u8], at: usize) -> Option<(Range<usize>, bool)> {
    const CLOSE: &[u8] = b"-----";
    let label = &text[at + CLOSE.len()..text.len().min(at + 80)];
    let close = memmem::find(label, CLOSE).unwrap_or(label.len());
    let label = &label[..close];
    let label = &label[..label
        .iter()
        .position(|byte| matches!(byte, b'\n' | b'\r' | b'\\'))
        .unwrap_or(label.len())];
    memmem::find(label, b"PRIVATE KEY")?;
    let (range, open) = block(text, at, b"-----END", |rest| {
        memmem::find(rest, CLOSE).map(|found| found + CLOSE.len())
    });
    // An error that speaks of the first line is no key, nor is code that looks for it.
    let body = text
        .get(at + 2 * CLOSE.len() + close..range.end)
        .unwrap_or_default();
    let longest = || {
        body.split(|&byte| !Class::BASE64_CORE.has(byte))
            .map(<[u8]>::len)
            .max()
    };
    (is_key_start(body, open) || !open && longest() >= Some(24)).then_some((range, open))
}

/// Whether what follows a first line is a key's.
fn is_key_start(body: &[u8], open: bool) -> bool {
    let start = body
        .iter()
        .position(|byte| !matches!(byte, 0..=b' ' | b'\\' | b'n' | b'r'));
    let Some(body) = start.map(|start| body[start..].trim_ascii_end()) else {
        return true;
    };
    let run = Class::BASE64_CORE.run(body, 0);
    run >= if open { 12 } else { 1 }
        || run == body.len()
        || body.starts_with(b"Proc-Type")
        || body.starts_with(b"Version:")
        || body.starts_with(b"Comment:")
}

/// Whether a line can be one of a private key that an earlier line began: base64, a header
/// of it or its end, perhaps behind a label of the log.
pub(super) fn is_key_line(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let last = line
        .rsplit(|&byte| byte == b' ' || byte == b'\t')
        .next()
        .unwrap_or_default();
    let whole = last.len() == line.len();
    let base64 = Class::BASE64_ANY.all(last) && (whole || last.len() >= 32);
    base64
        || memmem::find(line, b"-----END").is_some()
        || line.starts_with(b"Proc-Type:")
        || line.starts_with(b"DEK-Info:")
}

/// A PuTTY key file; it ends with the digits of its MAC.
pub(super) fn putty(text: &[u8], at: usize) -> (Range<usize>, bool) {
    block(text, at, b"Private-MAC: ", |rest| {
        Some(
            rest.iter()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count(),
        )
    })
}

/// A block that starts at `at` and ends with a line that starts with `mark`; `tail` gives how
/// much of what follows the mark belongs to it.
fn block(
    text: &[u8],
    at: usize,
    mark: &[u8],
    tail: impl Fn(&[u8]) -> Option<usize>,
) -> (Range<usize>, bool) {
    let within = &text[at..text.len().min(at + MAX_PEM)];
    let Some(found) = memmem::find(within, mark) else {
        return (at..at + within.trim_ascii_end().len(), true);
    };
    let after = at + found + mark.len();
    let rest = &text[after..text.len().min(after + 96)];
    (at..after + tail(rest).unwrap_or(rest.len()), false)
}

/// An access key id of AWS (`AKIA` for users, `ASIA` for sessions, …) and its run.
pub(super) fn aws_id(text: &[u8], at: usize) -> Option<Range<usize>> {
    if !starts_word(text, at) && !after_colour(text, at) {
        return None;
    }
    let end = Class::CAPITAL.run(text, at);
    let lower = text.get(end).is_some_and(|&byte| Class::LOWER.has(byte));
    (end - at >= 16 && !lower).then_some(at..end)
}

/// How secret access keys of AWS are recognised, which have no mark of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwsSecrets {
    /// They must look like chance, and like nothing else.
    Lone,
    /// An access key id was seen: the length is enough.
    Near,
}

/// Secret access keys of AWS: 40 bytes of base64.
pub(super) fn aws_secrets(text: &[u8], sure: AwsSecrets) -> impl Iterator<Item = Range<usize>> {
    const LEN: usize = 40;
    let mut at = 0;
    std::iter::from_fn(move || {
        // Each run of 40 has a byte at a multiple of 40.
        while at < text.len() {
            if !Class::BASE64_CORE.has(text[at]) {
                at += LEN;
                continue;
            }
            let end = base64_run(text, at);
            let start = Class::BASE64_CORE.run_back(text, at, LEN + 1);
            at = (end + 1).next_multiple_of(LEN);
            if end - start == LEN && is_aws_secret(text, start..end, sure) {
                return Some(start..end);
            }
        }
        None
    })
}

fn is_aws_secret(text: &[u8], range: Range<usize>, sure: AwsSecrets) -> bool {
    let secret = &text[range.clone()];
    let mixed = Class::LOWER.any(secret) && Class::UPPER.any(secret);
    let part_of_more = matches!(text.get(range.end), Some(b'=' | b'-' | b'_' | b'.' | b'~'));
    // The last line of wrapped base64.
    let before = text[..range.start].strip_suffix(b"\n");
    let wrapped = before.is_some_and(|before| {
        before
            .last()
            .is_some_and(|&byte| Class::BASE64_CORE.has(byte))
    });
    // Padding and tables of numbers have runs of one digit.
    let runs = secret
        .windows(3)
        .any(|three| three[0] == three[1] && three[1] == three[2]);
    let random = looks_random(secret) && !runs;
    let symbols = secret
        .iter()
        .filter(|byte| matches!(byte, b'/' | b'+'))
        .count();
    mixed
        && !part_of_more
        && match sure {
            AwsSecrets::Near => random || !secret.starts_with(b"/"),
            AwsSecrets::Lone => {
                random && !wrapped && Class::DIGIT.any(secret) && (1..=4).contains(&symbols)
            }
        }
}

/// Offset after the run of base64 at `at`: blobs take no longer than they must.
fn base64_run(text: &[u8], mut at: usize) -> usize {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/');
    while let Some(chunk) = text[at..].first_chunk::<32>()
        && chunk.iter().fold(true, |all, &byte| all & plain(byte))
    {
        at += 32;
    }
    Class::BASE64_CORE.run(text, at)
}

/// A client secret of Azure (Entra): three bytes, a digit, `Q~`, some thirty bytes. `at` is
/// the digit's place.
pub(super) fn azure_client(text: &[u8], at: usize) -> Option<Range<usize>> {
    let secret = |byte: u8| Class::DOTTED.has(byte) || byte == b'~';
    let start = at
        - text[..at]
            .iter()
            .rev()
            .take(5)
            .take_while(|&&byte| secret(byte))
            .count();
    let end = at + text[at..].iter().take_while(|&&byte| secret(byte)).count();
    (at - start >= 3 && end - at >= 24).then_some(start..end)
}

/// A key of Azure with a signature at its place near the end (`AZDO`, `+ASt`, …), from
/// https://github.com/microsoft/security-utilities. `at` is the signature's place.
pub(super) fn azure_key(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = Class::BASE64_CORE.run_back(text, at, 100);
    let core = Class::BASE64_CORE.run(&text[..text.len().min(at + 100)], at);
    let end = core
        + text[core..]
            .iter()
            .take(2)
            .take_while(|&&byte| byte == b'=')
            .count();
    let before = at - start;
    let known = match end - start {
        84 => matches!(before, 52 | 76),
        88 => matches!(before, 76 | 80),
        52 => before == 42,
        56 => matches!(before, 40..=44),
        44 => before == 33,
        _ => false,
    };
    known.then_some(start..end)
}

/// A bot's token of Telegram: digits, `:AA`, 32 bytes or more. `at` is the colon's place.
pub(super) fn telegram(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = Class::DIGIT.run_back(text, at, 12);
    let end = Class::TOKEN.run(text, at + 1);
    ((8..=11).contains(&(at - start)) && end - at > 30).then_some(start..end)
}

/// The end of a scheme's name and its blanks (`Bearer `, `Basic%20`) at `at`.
pub(super) fn after_scheme(text: &[u8], at: usize, scheme: &[u8]) -> Option<usize> {
    if !has_folded(text, at, scheme) || !(starts_word(text, at) || after_colour(text, at)) {
        return None;
    }
    let at = at + scheme.len();
    match text.get(at)? {
        b' ' | b'\t' => Some(super::class::skip_blanks(text, at)),
        b'+' => Some(at + 1),
        b'%' if has_folded(text, at, b"%20") => Some(at + 3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jwts() {
        for (text, found) in [
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                Some(49),
            ),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl. And",
                Some(49),
            ),
            ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", Some(35)),
            ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxI", Some(33)),
            ("eyJhbGciOiJkaXIifQ..aXZpdml2aXY.Y2lwaGVy.dGFn", Some(45)),
            ("eyJwYWdlIjoyLCJ4IjoxfQ", None),
            ("eyJwYWdlIjoyLCJ4IjoxfQ==", None),
            ("eyJwYWdlIjoyLCJ4IjoxfQ.json", None),
            ("eyJ.a.b", None),
        ] {
            assert_eq!(
                jwt(text.as_bytes(), 0).map(|range| range.end),
                found,
                "{text}"
            );
        }
        assert_eq!(jwt(b"aeyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.", 1), None);
    }

    #[test]
    fn pem_blocks() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest";
        assert_eq!(pem(key.as_bytes(), 0), Some((0..key.len() - 5, false)));
        let open = "x -----BEGIN OPENSSH PRIVATE KEY-----\nMIIE\n";
        assert_eq!(pem(open.as_bytes(), 2), Some((2..open.len() - 1, true)));
        let cut = b"-----BEGIN PRIVATE KEY\n";
        assert_eq!(pem(cut, 0), Some((0..cut.len() - 1, true)));
        assert_eq!(pem(b"-----BEGIN CERTIFICATE-----\nMIIE", 0), None);
        assert_eq!(pem(b"-----BEGIN CERTIFICATE-----\nPRIVATE KEY", 0), None);
        let long = format!("-----BEGIN PRIVATE KEY-----{}", "A".repeat(100_000));
        assert_eq!(pem(long.as_bytes(), 0), Some((0..MAX_PEM, true)));
    }

    #[test]
    fn keys_of_clouds() {
        assert_eq!(
            aws_id(concat!("AK", "IAIOSFODNN7EXAMPLE!").as_bytes(), 0),
            Some(0..20)
        );
        assert_eq!(aws_id(b"AKIAlabama", 0), None);
        assert_eq!(aws_id(b"XAKIAIOSFODNN7EXAMPLE", 1), None);
        let text = concat!(
            "say wJalrXUtnFEMI/K7MDENG",
            "/bPxRfiCYEXAMPLEKEY, or da39a3ee5e6b4b0d3255bfef95601890afd80709"
        );
        let secrets = |text: &str, sure| aws_secrets(text.as_bytes(), sure).collect::<Vec<_>>();
        for sure in [AwsSecrets::Near, AwsSecrets::Lone] {
            assert_eq!(secrets(text, sure), [Range { start: 4, end: 44 }]);
            assert!(secrets(&"aB".repeat(100_000), sure).is_empty());
        }
        let path = "github/Somebody/Repository/Source/Main/X";
        assert_eq!(path.len(), 40);
        assert_eq!(secrets(path, AwsSecrets::Near).len(), 1);
        assert!(secrets(path, AwsSecrets::Lone).is_empty());
        let azure = concat!("abc8", "Q~abcdefghijklmnopqrstuvwxyz0123456");
        assert_eq!(azure_client(azure.as_bytes(), 3), Some(0..azure.len()));
        let bot = concat!("bot123456789:", "AAabcdefghijklmnopqrstuvwxyz012345/getMe");
        assert_eq!(telegram(bot.as_bytes(), 12), Some(3..47));
        assert_eq!(telegram(b"12:AA", 2), None);
    }
}
