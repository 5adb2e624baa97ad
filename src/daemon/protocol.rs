//! What a daemon answers when it is told to do something: see [`agent_trace_index::protocol`]
//! for how it is asked.
//!
//! ```text
//! {"version":1,"command":"status"}
//! {"version":1,"status":{...}}            or {"version":1,"error":"..."}
//! ```
//! A later version may add members, which an older one passes over.

use crate::serving::Totals;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) version: u32,
    #[serde(flatten)]
    pub(super) said: Said,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    Status(Box<Status>),
    Stopping(Stopping),
    Reloaded(Reloaded),
    Error(String),
}

/// How a daemon does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    /// Its version of this program.
    pub(crate) program: String,
    pub(crate) pid: u32,
    /// Since when, as RFC 3339.
    pub(crate) since: String,
    /// It was told to end.
    pub(crate) stopping: bool,
    pub(crate) store: PathBuf,
    /// The configuration file, if there is one.
    pub(crate) config: Option<PathBuf>,
    /// Where it tells how it does, or why it does not.
    pub(crate) admin: Place,
    pub(crate) recording: Recorded,
    pub(crate) relays: Vec<Relayed>,
}

/// An address that is listened on, or why it is not; neither where nobody wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    pub(crate) address: Option<String>,
    pub(crate) error: Option<String>,
}

/// Whether what is relayed is recorded, and how much was.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Recorded {
    pub(crate) on: bool,
    /// Why not.
    pub(crate) why: Option<String>,
    pub(crate) frames: u64,
    pub(crate) sessions: u64,
    pub(crate) gaps: u64,
    pub(crate) lost_bytes: u64,
}

/// One listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Relayed {
    pub(crate) name: Option<String>,
    pub(crate) client: Option<String>,
    /// The address that it listens on.
    pub(crate) listen: String,
    /// What clients have to be told: that address with the path of the server's URL.
    pub(crate) url: String,
    /// The server's URL.
    pub(crate) to: String,
    /// Why it does not listen, if it does not.
    pub(crate) error: Option<String>,
    #[serde(flatten)]
    pub(crate) totals: Totals,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Stopping {
    /// How long it takes at most.
    pub(super) drain_ms: u64,
}

/// What reading the configuration again changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reloaded {
    pub(crate) changes: Vec<String>,
    /// What could not be done, or will be at the next start only.
    pub(crate) problems: Vec<String>,
}
