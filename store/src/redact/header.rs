//! Credentials as HTTP writes them: `Bearer`, `Basic`, Authorization and Cookie headers.

use std::ops::Range;

use super::class::Class;
use super::judge::{Binding, is_own_name, is_plausible};
use super::mark::{Rank, is_marked};
use super::shape::after_scheme;
use super::text::Text;
use super::value::{JUDGED, quoted_end, trim};
use super::words::{is_placeholder, is_prose, is_vocabulary};

/// Schemes whose name is kept; what follows is hidden.
const SCHEMES: &[&[u8]] = &[
    b"bearer",
    b"basic",
    b"token",
    b"digest",
    b"negotiate",
    b"ntlm",
    b"apikey",
    b"api-key",
    b"key",
    b"bot",
    b"oauth",
    b"dpop",
    b"hawk",
    b"ssws",
    b"aws4-hmac-sha256",
    b"googlelogin",
    b"sharedkey",
    b"sharedaccesssignature",
    b"hoba",
    b"mutual",
    b"vapid",
    b"jwt",
    b"privatetoken",
    b"genie-key",
    b"splunk",
];

/// Offset of the credentials in the value of an Authorization header.
pub(super) fn after_any_scheme(value: &[u8]) -> usize {
    SCHEMES
        .iter()
        .find_map(|scheme| after_scheme(value, 0, scheme))
        .filter(|&at| at < value.len())
        .unwrap_or(0)
}

/// `Bearer x` anywhere. `at` is the word's place.
pub(super) fn bearer(text: &mut Text<'_>, at: usize) {
    if at < text.done {
        return;
    }
    let Some(start) = after_scheme(text.bytes, at, b"bearer") else {
        return;
    };
    let bytes = text.bytes;
    let run = bytes[start..]
        .iter()
        .take_while(|&&byte| Class::TOKEN68.has(byte) || matches!(byte, b'~' | b'|' | b':' | b'%'))
        .count();
    let mut end = start + run;
    while end > start && matches!(bytes[end - 1], b'.' | b':' | b',') {
        end -= 1;
    }
    let value = &bytes[start..end];
    // `Bearer realm="…"` is a challenge.
    let challenge = value.ends_with(b"=") && bytes.get(end) == Some(&b'"');
    if !challenge && is_credential(&value[..value.len().min(JUDGED)]) {
        text.known(start..end, "bearer-token", Rank::Structure);
    }
}

fn is_credential(value: &[u8]) -> bool {
    if is_placeholder(value) || is_vocabulary(value) || value.len() < 8 {
        return false;
    }
    if memchr::memmem::find(value, b"://").is_some() {
        return false;
    }
    let inner_capitals = value
        .windows(2)
        .any(|pair| Class::LOWER.has(pair[0]) && Class::UPPER.has(pair[1]));
    Class::DIGIT.any(value) || value.len() >= 16 && (Class::ALNUM.all(value) || inner_capitals)
}

/// `Basic x` anywhere, where x is base64 of a name, a colon and a password.
pub(super) fn basic(text: &mut Text<'_>, at: usize) {
    if at < text.done {
        return;
    }
    let Some(start) = after_scheme(text.bytes, at, b"basic") else {
        return;
    };
    let end = Class::BASE64_ANY.run(text.bytes, start);
    if is_user_and_password(&text.bytes[start..end]) {
        text.known(start..end, "basic-auth", Rank::Structure);
    }
}

/// Whether `value` is base64 of printable text with a colon.
pub(super) fn is_user_and_password(value: &[u8]) -> bool {
    let Some(decoded) = (value.len() >= 4)
        .then(|| base64(&value[..value.len().min(1024)]))
        .flatten()
    else {
        return false;
    };
    decoded.contains(&b':')
        && decoded.iter().all(|&byte| byte >= b' ' && byte != 0x7F)
        && std::str::from_utf8(&decoded).is_ok()
}

/// Decodes base64 of either alphabet, with or without padding.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let core = text.len() - text.iter().rev().take_while(|&&byte| byte == b'=').count();
    if core % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(core * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for &byte in &text[..core] {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

/// The value of an Authorization or Cookie header, which reaches to the end of its line or to
/// the quote that encloses the header. `start` is the value's place, `quote` the quote before
/// the header's name.
pub(super) fn header(text: &mut Text<'_>, start: usize, quote: Option<u8>, kind: &'static str) {
    let end = line_end(text.bytes, start, quote, JUDGED);
    let value = &text.bytes[start..end];
    let skip = if kind == "authorization" {
        after_any_scheme(value)
    } else {
        0
    };
    let credentials = value[skip..].trim_ascii();
    let accepted = match kind {
        _ if credentials.is_empty()
            || is_marked(credentials)
            || is_placeholder(credentials)
            || is_prose(credentials) =>
        {
            false
        }
        "cookie" => is_cookie(credentials) || is_lone_value(credentials),
        _ if skip > 0 => {
            let word = credentials
                .split(u8::is_ascii_whitespace)
                .next()
                .unwrap_or_default();
            let alone = word.len() == credentials.len();
            !is_vocabulary(word)
                && !is_own_name(word)
                && (alone && word.len() >= 6 || Class::DIGIT.any(credentials))
        }
        _ => {
            let last = credentials
                .split(u8::is_ascii_whitespace)
                .next_back()
                .unwrap_or_default();
            let words = credentials.split(u8::is_ascii_whitespace).count();
            words <= 2 && is_plausible(last, Binding::Colon, false)
        }
    };
    if accepted {
        let end = line_end(text.bytes, start, quote, usize::MAX);
        text.known(trim(text.bytes, start + skip..end), kind, Rank::Name);
    }
}

/// Whether `value` is one word that looks like a value.
fn is_lone_value(value: &[u8]) -> bool {
    !value.iter().any(u8::is_ascii_whitespace) && is_plausible(value, Binding::Colon, false)
}

/// Whether `value` starts with a cookie: `name=value` without blanks.
fn is_cookie(value: &[u8]) -> bool {
    let first = value.split(|&byte| byte == b';').next().unwrap_or_default();
    let name = first.iter().position(|&byte| byte == b'=');
    let blank = first.iter().any(u8::is_ascii_whitespace);
    name.is_some_and(|name| name > 0 && first.len() > name + 1 && first[name + 1] != b'=') && !blank
}

/// The end of a header's value, looking at `most` bytes.
fn line_end(text: &[u8], start: usize, quote: Option<u8>, most: usize) -> usize {
    let limit = text.len().min(start.saturating_add(most));
    if let Some(quote) = quote {
        return quoted_end(text, start, quote, 0, most).0;
    }
    let mut within = None;
    for at in start..limit {
        match (text[at], within) {
            (b'\r' | b'\n', _) => return at,
            (byte, Some(open)) if byte == open => within = None,
            (b'"' | b'\'' | b'`', None) => {
                // `response="…"` is a parameter, any other quote is around the header.
                if at == start || text[at - 1] != b'=' {
                    return at;
                }
                within = Some(text[at]);
            }
            _ => {}
        }
    }
    limit
}

/// The part of an Authorization, Cookie or other header's JSON value that is secret.
pub(super) fn secret_part(value: &[u8], kind: &str) -> Range<usize> {
    let skip = if kind == "authorization" || kind == "token" {
        after_any_scheme(value)
    } else {
        0
    };
    skip..value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_follow_their_scheme() {
        assert_eq!(after_any_scheme(b"Bearer x"), 7);
        assert_eq!(after_any_scheme(b"bearer%20x"), 9);
        assert_eq!(after_any_scheme(b"Token  x"), 7);
        assert_eq!(after_any_scheme(b"Bearer "), 0);
        assert_eq!(after_any_scheme(b"abc"), 0);
    }

    #[test]
    fn basic_is_a_name_and_a_password() {
        assert!(is_user_and_password(b"dXNlcjpwYXNz"));
        assert!(is_user_and_password(b"dXNlcjpwYXNzMQ=="));
        assert!(!is_user_and_password(b"authentication"));
        assert!(!is_user_and_password(b"auth"));
        assert!(!is_user_and_password(b"AAAA"));
    }

    #[test]
    fn credentials_are_no_words() {
        for value in [
            "abc12345",
            "abcdefghijklmnop",
            "aB.cDefghijklmnop",
            "1|abcdefgh",
        ] {
            assert!(is_credential(value.as_bytes()), "{value}");
        }
        for value in [
            "token",
            "authentication",
            "token-based",
            "authorization",
            "<token>",
            "$TOKEN",
            "short1",
        ] {
            assert!(!is_credential(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn header_values_reach_to_the_end_of_the_line_or_the_quote() {
        for (text, quote, end) in [
            ("a=b; c=d\r\nx", None, 8),
            ("a=b; c=d", None, 8),
            ("a=b' -v", Some(b'\''), 3),
            ("a=b' -v", None, 3),
            ("Digest u=\"x\", r=\"y\"\n", None, 19),
        ] {
            assert_eq!(
                line_end(text.as_bytes(), 0, quote, usize::MAX),
                end,
                "{text}"
            );
        }
    }
}
