//! Keys that were handed out to those who ask through our MCP server. A key itself is nowhere
//! kept, only a hash of it.

use super::{Entry, Stamp, State, StateError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A key, without what makes it one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Its id: the part of it that is no secret.
    pub id: String,
    /// BLAKE3 of the whole key, 64 hexadecimal digits. It has 256 random bits, so that nothing
    /// slower is needed.
    pub hash: String,
    /// What it is called.
    pub name: String,
    /// What it opens. Words that this version does not know open nothing.
    pub scopes: Vec<String>,
    /// The workspace that it belongs to.
    pub workspace: String,
    /// Who has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// When it was made, in nanoseconds since 1970.
    pub created: u64,
    /// From when on it no longer counts, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// How many calls in how many seconds it has.
    pub limit: (u32, u32),
}

/// A key counts no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// The key's id.
    pub id: String,
    /// When, in nanoseconds since 1970.
    pub at: u64,
}

/// All keys, in the order of their ids.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Each with when it was revoked.
    of: BTreeMap<String, (Key, Option<u64>)>,
    stamp: Stamp,
}

impl Keys {
    pub(super) fn read(state: &State) -> Result<Self, StateError> {
        // Taken before: what comes in between is then read once more.
        let stamp = Stamp::of(&state.path())?;
        let mut keys = Self {
            stamp,
            ..Self::default()
        };
        for entry in state.entries()?.all {
            match entry {
                Entry::Key(key) => drop(keys.of.insert(key.id.clone(), (key, None))),
                Entry::Revoked(Revoked { id, at }) => {
                    if let Some((_, revoked)) = keys.of.get_mut(&id) {
                        revoked.get_or_insert(at);
                    }
                }
                _ => {}
            }
        }
        Ok(keys)
    }

    /// Reads them again if the log has changed.
    ///
    /// # Errors
    /// When it cannot be read; they are then as they were.
    pub fn refresh(&mut self, state: &State) -> Result<(), StateError> {
        if Stamp::of(&state.path())? != self.stamp {
            *self = Self::read(state)?;
        }
        Ok(())
    }

    /// The key with this id, and when it was revoked.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<(&Key, Option<u64>)> {
        self.of.get(id).map(|(key, revoked)| (key, *revoked))
    }

    /// All keys, each with when it was revoked.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, Option<u64>)> {
        self.of.values().map(|(key, revoked)| (key, *revoked))
    }
}
