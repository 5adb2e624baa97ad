//! Definitions of servers that someone approved.
//!
//! What was seen of a server is derived from journals, and goes with them. What was approved
//! cannot be derived and outlasts them, so that it is kept with its text: it is what later
//! definitions are compared with.

use super::{Entry, Stamp, State, StateError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A definition that someone approved. A later one of the same takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The workspace in which.
    pub workspace: String,
    /// The server's identity.
    pub server: String,
    /// What is defined, as a word: `tool`, `prompt`, ….
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What it may be: one form, or several where clients are told different ones. None: it is
    /// no longer approved.
    pub forms: Vec<Form>,
    /// When, in nanoseconds since 1970.
    pub at: u64,
}

/// A form that a definition may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The hash of the canonical form, 64 hexadecimal digits.
    pub hash: String,
    /// The canonical form, redacted; empty where it is too long to be kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Who is told so, 16 hexadecimal digits each.
    #[serde(default)]
    pub views: Vec<String>,
}

/// What an approval is about: workspace, server, kind and name.
type About = (String, String, String, String);

impl Approval {
    pub(super) fn about(&self) -> About {
        let Self {
            workspace,
            server,
            kind,
            name,
            ..
        } = self;
        (
            workspace.clone(),
            server.clone(),
            kind.clone(),
            name.clone(),
        )
    }
}

/// The approvals that count.
#[derive(Clone, Debug, Default)]
pub struct Approvals {
    of: BTreeMap<About, Approval>,
    stamp: Stamp,
}

impl Approvals {
    pub(super) fn read(state: &State) -> Result<Self, StateError> {
        // Taken before: what comes in between is then read once more.
        let stamp = Stamp::of(&state.path())?;
        let mut of = BTreeMap::new();
        for entry in state.entries()?.all {
            if let Entry::Approval(approval) = entry {
                of.insert(approval.about(), approval);
            }
        }
        Ok(Self { of, stamp })
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

    /// Those of a workspace, sorted by server, kind and name.
    pub fn of<'a>(&'a self, workspace: &'a str) -> impl Iterator<Item = &'a Approval> {
        let all = self.of.values();
        all.filter(move |one| one.workspace == workspace && !one.forms.is_empty())
    }
}
