//! Findings that somebody accepted: the ones that a check or a scan is not to fail for. A
//! finding is known again by its key, which whoever finds it makes.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the file that is written.
const VERSION: u32 = 1;

/// A finding that can be accepted.
pub trait Acceptable {
    /// What tells it from others, and is the same the next time.
    fn key(&self) -> &str;

    /// It as an entry, without a reason.
    fn entry(&self) -> Entry;
}

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
    pub fn of<F: Acceptable>(findings: &[F], before: &Self) -> Self {
        let reasons: BTreeMap<&str, &String> = before
            .accepted
            .iter()
            .filter_map(|entry| Some((&entry.key[..], entry.reason.as_ref()?)))
            .collect();
        let mut known = BTreeSet::new();
        let mut accepted: Vec<Entry> = findings
            .iter()
            .filter(|finding| known.insert(finding.key()))
            .map(|finding| Entry {
                reason: reasons.get(finding.key()).map(|reason| (*reason).clone()),
                ..finding.entry()
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
    pub fn take_accepted<F: Acceptable>(&self, findings: &mut Vec<F>) -> Vec<F> {
        let keys: BTreeSet<&str> = self.accepted.iter().map(|entry| &entry.key[..]).collect();
        let (accepted, new) = std::mem::take(findings)
            .into_iter()
            .partition(|finding| keys.contains(finding.key()));
        *findings = new;
        accepted
    }

    /// The entries that none of these findings is.
    #[must_use]
    pub fn gone<F: Acceptable>(&self, accepted: &[F]) -> Vec<&Entry> {
        let there: BTreeSet<&str> = accepted.iter().map(Acceptable::key).collect();
        let gone = |entry: &&Entry| !there.contains(&entry.key[..]);
        self.accepted.iter().filter(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_is_refused() {
        let text = br#"{"version":2,"accepted":[]}"#;
        assert!(matches!(Baseline::read(text), Err(BaselineError::Newer(2))));
        assert!(matches!(Baseline::read(b"x"), Err(BaselineError::Json(_))));
    }
}
