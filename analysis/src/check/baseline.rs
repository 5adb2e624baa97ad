//! Findings that somebody accepted: the ones that a check is not to fail for.
//!
//! A finding is known again in another run by its key: a hash over the rule, the server, the
//! tool and what shows it, in which numbers, ids, moments and markers of secrets do not count.

use super::finding::Finding;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the file that is written.
const VERSION: u32 = 1;
/// How many bytes of a quote are looked at for its key.
const LOOKED_AT: usize = 4096;
/// How many of what is left of them count.
const COUNTED: usize = 256;

/// A file of accepted findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Version of the file's form.
    pub version: u32,
    /// What is accepted.
    pub accepted: Vec<Entry>,
}

/// One accepted finding. Only the key decides; the rest is for who reads the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// The rule.
    #[serde(default)]
    pub code: String,
    /// The server.
    #[serde(default)]
    pub server: String,
    /// The tool, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What was wrong, in a line.
    #[serde(default)]
    pub what: String,
    /// Why it is accepted, if somebody wrote that down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a text is no baseline.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// It is not what is written here.
    #[error("not a baseline of accepted findings")]
    Json(#[from] serde_json::Error),
    /// A later version wrote it.
    #[error("written in form {0}, and this version reads form {VERSION}")]
    Newer(u32),
}

impl Baseline {
    /// A baseline that accepts these. Reasons that `before` gives are kept.
    #[must_use]
    pub fn of(findings: &[Finding], before: &Self) -> Self {
        let reasons: BTreeMap<&str, &String> = before
            .accepted
            .iter()
            .filter_map(|entry| Some((&entry.key[..], entry.reason.as_ref()?)))
            .collect();
        let mut known = BTreeSet::new();
        let mut accepted: Vec<Entry> = findings
            .iter()
            .filter(|finding| known.insert(&finding.key))
            .map(|finding| Entry {
                key: finding.key.clone(),
                code: finding.code.to_owned(),
                server: finding.server.clone(),
                tool: finding.tool.clone(),
                what: finding.what.clone(),
                reason: reasons
                    .get(&finding.key[..])
                    .map(|reason| (*reason).clone()),
            })
            .collect();
        // A file under version control changes only where something changed.
        accepted.sort_by(|a, b| (&a.code, &a.key).cmp(&(&b.code, &b.key)));
        Self {
            version: VERSION,
            accepted,
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is none, or one of a later version.
    pub fn read(text: &[u8]) -> Result<Self, BaselineError> {
        let baseline: Self = serde_json::from_slice(text)?;
        match baseline.version {
            0..=VERSION => Ok(baseline),
            newer => Err(BaselineError::Newer(newer)),
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// When it cannot be written as JSON, which does not happen.
    pub fn write(&self) -> Result<String, BaselineError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Takes the accepted findings out, and returns them. What is left is new.
    pub fn take_accepted(&self, findings: &mut Vec<Finding>) -> Vec<Finding> {
        let keys: BTreeSet<&str> = self.accepted.iter().map(|entry| &entry.key[..]).collect();
        let (accepted, new) = std::mem::take(findings)
            .into_iter()
            .partition(|finding| keys.contains(&finding.key[..]));
        *findings = new;
        accepted
    }

    /// The entries that none of these findings is.
    #[must_use]
    pub fn gone(&self, accepted: &[Finding]) -> Vec<&Entry> {
        let there: BTreeSet<&str> = accepted.iter().map(|finding| &finding.key[..]).collect();
        let gone = |entry: &&Entry| !there.contains(&entry.key[..]);
        self.accepted.iter().filter(gone).collect()
    }
}

/// What tells a finding from others and is the same in another run: 16 hexadecimal digits.
#[must_use]
pub fn key(code: &str, server: &str, tool: Option<&str>, subject: &str, quote: &[u8]) -> String {
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

    #[test]
    fn a_later_version_is_refused() {
        let text = br#"{"version":2,"accepted":[]}"#;
        assert!(matches!(Baseline::read(text), Err(BaselineError::Newer(2))));
        assert!(matches!(Baseline::read(b"x"), Err(BaselineError::Json(_))));
    }
}
