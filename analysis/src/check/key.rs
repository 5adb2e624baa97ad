//! What tells a finding from others and is the same in another run: a hash over the rule, the
//! server, the tool and what shows it, in which numbers, ids, moments and markers of secrets do
//! not count.

use super::finding::Finding;
use crate::baseline::{Acceptable, Entry};

/// How many bytes of a quote are looked at for its key.
const LOOKED_AT: usize = 4096;
/// How many of what is left of them count.
const COUNTED: usize = 256;

impl Acceptable for Finding {
    fn key(&self) -> &str {
        &self.key
    }

    fn entry(&self) -> Entry {
        Entry {
            key: self.key.clone(),
            code: self.code.to_owned(),
            server: self.server.clone(),
            tool: self.tool.clone(),
            what: self.what.clone(),
            reason: None,
        }
    }
}

/// What tells a finding from others and is the same in another run: 16 hexadecimal digits.
pub(super) fn key(
    code: &str,
    server: &str,
    tool: Option<&str>,
    subject: &str,
    quote: &[u8],
) -> String {
    let quote = normal(&quote[..quote.len().min(LOOKED_AT)]);
    let mut hash = Fnv::default();
    for part in [code, server, tool.unwrap_or_default(), subject] {
        hash.add(&(part.len() as u64).to_le_bytes());
        hash.add(part.as_bytes());
    }
    hash.add(&quote);
    format!("{:016x}", hash.0)
}

/// A text without what differs from run to run: words with digits in them are one `#`,
/// blanks are one blank.
fn normal(text: &[u8]) -> Vec<u8> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
    let mut out = Vec::with_capacity(text.len().min(COUNTED));
    let mut rest = text;
    while let Some(first) = rest.first().filter(|_| out.len() < COUNTED) {
        let word = rest.iter().take_while(|byte| is_word(byte)).count();
        let (taken, after) = rest.split_at(word.max(1));
        rest = after;
        if word == 0 {
            let mark = if first.is_ascii_whitespace() {
                b' '
            } else {
                *first
            };
            // Of two numbers with a dot, a dash or a colon between them one is left.
            if mark != b' ' || out.last() != Some(&b' ') {
                out.push(mark);
            }
        } else if !taken.iter().any(u8::is_ascii_digit) && !is_hexadecimal(taken) {
            out.extend_from_slice(taken);
        } else if !continues(&mut out) {
            out.push(b'#');
        }
    }
    out.truncate(COUNTED);
    out
}

/// Whether a number goes on with one: then it is what joins them that goes.
fn continues(out: &mut Vec<u8>) -> bool {
    let joined = matches!(out[..], [.., b'#', b'-' | b'.' | b':' | b'_']);
    if joined {
        out.pop();
    }
    joined || out.last() == Some(&b'#')
}

/// Whether a word without digits may be a part of an id all the same.
fn is_hexadecimal(word: &[u8]) -> bool {
    matches!(word.len(), 4 | 8 | 12 | 16 | 32) && word.iter().all(u8::is_ascii_hexdigit)
}

/// Fowler, Noll and Vo, FNV-1a with 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>):
/// the same on every machine, and nothing secret depends on it.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(quote: &str) -> String {
        key("code", "server", Some("tool"), "subject", quote.as_bytes())
    }

    #[test]
    fn a_finding_has_the_same_key_in_another_run() {
        for (one, other) in [
            ("request 7 failed", "request 1234 failed"),
            ("at 2026-11-30T12:00:01.5Z", "at 2027-01-02T03:04:05Z"),
            (
                "no 0b7c9a52-11aa-4bcd-9e11-aabbccddeeff here",
                "no deadbeef-cafe-4bcd-9e11-aabbccddeeff here",
            ),
            (
                "key [REDACTED:token:0a0b0c0d]",
                "key [REDACTED:token:deadbeef]",
            ),
            ("a  b\n", "a b "),
            ("pid=12 tmp/x81f", "pid=4711 tmp/y3"),
        ] {
            assert_eq!(of(one), of(other), "{one} / {other}");
        }
    }

    #[test]
    fn other_findings_have_other_keys() {
        assert_ne!(of("file not found"), of("file not readable"));
        assert_ne!(of("x"), key("code", "server", None, "subject", b"x"));
        assert_ne!(of("x"), key("code", "server", Some("tool"), "-32000", b"x"));
        assert_ne!(of("x"), key("code", "other", Some("tool"), "subject", b"x"));
        assert_ne!(key("a", "bc", None, "", b""), key("ab", "c", None, "", b""));
    }

    #[test]
    fn what_is_looked_at_is_bounded() {
        let long = "word ".repeat(100_000);
        assert!(normal(long.as_bytes()).len() <= COUNTED);
        assert_eq!(of(&long), of(&(long.clone() + "end")));
    }
}
