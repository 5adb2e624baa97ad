//! What is asked of whoever owns the index, and what is answered.
//!
//! Over the control socket that is one line of JSON each way, then it is closed:
//!
//! ```text
//! {"version":1,"query":"status"}
//! {"version":1,"program":"0.1.0","reply":{"status":{...}}}      or {"version":1,"error":"..."}
//! ```
//! A daemon is told what to do in the same way, by `"command":"stop"` in place of a query. A
//! later program may add queries, and members to replies, within the same version: what does
//! not know a query says so, and what does not know a member passes over it.
//!
//! What a user asked wrongly (there is no such run, the filter has an error) is a reply, too,
//! and no error: it then looks the same wherever it was found out.

use crate::filed::{ScanQuery, StoreScan};
use crate::finding::Found;
use crate::indexer::Progress;
use crate::indexer::verify::Difference;
use crate::listing::{Projects, RunsPage, RunsQuery};
use crate::pins::{PinsPage, PinsQuery};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version that is spoken here. Raised when a process of another version would
/// misunderstand what it is told.
pub const VERSION: u32 = 1;
/// No request is longer, in bytes.
pub const MOST_ASKED: u64 = 256 << 10;
/// No answer is longer, in bytes. What is longer is cut: pages end sooner, and of a run that is larger
/// by itself entries are left out ([`crate::listing::Listed::left_out`]).
pub const MOST_ANSWERED: u64 = 4 << 20;

/// A question. Each is answered by one function of [`crate::local`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Query {
    /// Who owns the index, and how large it is. Counts every row.
    Status,
    /// A page of runs.
    Runs(RunsQuery),
    /// One run, by its name.
    Run {
        /// The workspace that it belongs to.
        workspace: String,
        /// The project directories that it may belong to.
        #[serde(default)]
        projects: Projects,
        /// `latest`, an id, or the beginning of one.
        name: String,
    },
    /// What tools did in the runs that match.
    Stats(RunsQuery),
    /// What scans found in all that was recorded.
    Scan(ScanQuery),
    /// What servers define, and what changed.
    Pins(PinsQuery),
    /// Make the index anew.
    Rebuild,
    /// Compare the index with one that is made anew.
    Verify,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reply {
    /// To [`Query::Status`].
    Status(Status),
    /// To [`Query::Runs`].
    Runs(RunsPage),
    /// To [`Query::Run`].
    Run(Box<Found>),
    /// To [`Query::Stats`].
    Stats(Stats),
    /// To [`Query::Scan`].
    Scanned(StoreScan),
    /// To [`Query::Pins`].
    Pins(PinsPage),
    /// To [`Query::Rebuild`].
    Rebuilt(Progress),
    /// To [`Query::Verify`].
    Verified(Vec<Difference>),
    /// To any: the user asked for something that cannot be.
    Wrong(Wrong),
}

/// What is wrong with what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wrong {
    /// There are no runs.
    Empty,
    /// No run has this name.
    NotFound(String),
    /// Several runs have ids that begin so.
    Ambiguous {
        /// What was asked for.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// In words.
    Other(String),
}

/// Who owns the index, and how large it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The number of the process.
    pub pid: u32,
    /// Its version of this program.
    pub program: String,
    /// Since when it owns the index, in nanoseconds since 1970.
    pub since: u64,
    /// Where the index lies; none where it is in memory, since it could not be written.
    pub path: Option<String>,
    /// What it takes on the disk.
    pub bytes: u64,
    /// How many rows it has.
    pub rows: u64,
}

/// A line that asks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) query: Option<Box<RawValue>>,
}

/// The version of a line, whatever else stands in it.
#[derive(Debug, Deserialize)]
pub(crate) struct Version {
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) program: Option<String>,
}

/// A line that answers a query.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) program: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_replies_look_as_described() {
        let query = serde_json::to_string(&Query::Status).unwrap();
        assert_eq!(query, r#""status""#);
        let reply: Reply = serde_json::from_str(r#"{"status":{"pid":7,"later":1}}"#).unwrap();
        let status = Status {
            pid: 7,
            ..Status::default()
        };
        assert_eq!(reply, Reply::Status(status));
    }
}
