//! Which servers a scan may start: somebody looked at their commands and said yes.

use super::{Entry, State, StateError};
use crate::redact::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

/// A server may be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// See [`id`].
    pub id: String,
    /// Its command, redacted, for who reads the log.
    pub what: String,
    /// When, in nanoseconds since 1970.
    pub at: u64,
}

/// What stands for a server: a keyed hash over its arguments, the variables that it is given and
/// the folder that it is started in. Each of them decides what runs, and values are hidden by
/// the key.
#[must_use]
pub fn id(
    key: &Key,
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    folder: &OsStr,
) -> String {
    let mut hash = key.hasher();
    hash.update(b"agent-trace 2026 consent to start");
    let mut part = |text: &OsStr| {
        let bytes = text.as_encoded_bytes();
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let counts = format!("{} {}", argv.len(), environment.len());
    part(counts.as_ref());
    argv.iter().for_each(|word| part(word));
    for (name, value) in environment {
        part(name);
        part(value);
    }
    part(folder);
    hash.finalize().to_hex().to_string()
}

/// The servers that may be started.
#[derive(Clone, Debug, Default)]
pub struct Consents(BTreeSet<String>);

impl Consents {
    pub(super) fn read(state: &State) -> Result<Self, StateError> {
        let all = state.entries()?.all.into_iter();
        let consents = all.filter_map(|entry| match entry {
            Entry::Consent(consent) => Some(consent.id),
            _ => None,
        });
        Ok(Self(consents.collect()))
    }

    /// Whether this server may be started.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Store;

    #[test]
    fn all_that_decides_what_runs_is_in_the_id() {
        let key = Key::from_bytes([7; 32]);
        let words =
            |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
        let of = |argv: &[&str], environment: &[(&str, &str)], folder: &str| {
            let environment: Vec<_> = environment
                .iter()
                .map(|(n, v)| (n.into(), v.into()))
                .collect();
            id(&key, &words(argv), &environment, folder.as_ref())
        };
        let one = of(&["npx", "a"], &[("K", "1")], "/p");
        assert_eq!(one, of(&["npx", "a"], &[("K", "1")], "/p"));
        for other in [
            of(&["npx", "b"], &[("K", "1")], "/p"),
            of(&["npxa"], &[("K", "1")], "/p"),
            of(&["npx", "a"], &[("K", "2")], "/p"),
            of(&["npx", "a"], &[], "/p"),
            of(&["npx", "a", "K", "1"], &[], "/p"),
            of(&["npx", "a"], &[("K", "1")], "/q"),
        ] {
            assert_ne!(one, other);
        }
        let other = Key::from_bytes([8; 32]);
        assert_ne!(
            one,
            id(
                &other,
                &words(&["npx", "a"]),
                &[("K".into(), "1".into())],
                "/p".as_ref()
            )
        );
    }

    #[test]
    fn what_was_allowed_stays_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::of(&Store::at(folder.path()));
        assert!(!state.consents().unwrap().has("a"));
        let consent = Consent {
            id: "a".into(),
            what: "npx a".into(),
            at: 1,
        };
        state.append(&Entry::Consent(consent)).unwrap();
        let consents = state.consents().unwrap();
        assert!(consents.has("a") && !consents.has("b"));
    }
}
