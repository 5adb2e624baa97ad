//! What is kept for each run, session and process: enough to list, filter and count without
//! opening a journal.
//!
//! Rows are written by postcard, which has no names and no versions: [`SCHEMA`] is part of the
//! index, and one of another version is made anew.
//!
//! A session is cut into *parts* where it was idle; a run is made of parts. What counts for a
//! part ([`Tally`]) is summed up for a run, so the order in which sessions become known does
//! not matter.
//!
//! - [`key`]: what joins parts to runs
//! - [`tally`]: what is counted, per tool and in all
//! - [`scan`]: what scans found, and what servers were seen to define
//! - [`sketch`]: durations, as many as there are, in little room

pub mod compact;
pub mod key;
pub mod scan;
pub mod sketch;
pub mod tally;

use agent_trace_model::story::Standing;
use agent_trace_model::{End, ProcessId, RunId, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use key::GroupKey;
pub use scan::{CodeTally, DefinitionRow, FiledRow, FoundAt, FoundRow, ListRow, ListedAt, SeenRow};
pub use sketch::Sketch;
pub use tally::{Call, Counts, Failed, Failure, Marks, MethodTally, PostTally, StepAt, Tally};
pub use tally::{ToolTally, Tries};

/// Changes whenever a row or a key does, or what they are derived from.
pub const SCHEMA: u32 = 4;

/// A run: all that listing and filtering need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    #[serde(with = "compact::run")]
    pub id: RunId,
    /// The ids that it would have if less were known of what joins its sessions, and so may
    /// have had before.
    #[serde(with = "compact::runs")]
    pub aliases: Vec<RunId>,
    /// The workspace that it belongs to.
    pub workspace: String,
    /// The project directory of the first session that has one.
    pub project: Option<String>,
    /// The task of the first session that names one.
    pub task: Option<String>,
    /// What joins its sessions.
    pub key: GroupKey,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// When the last of it was recorded, in nanoseconds since 1970.
    pub last: u64,
    /// How it stands: live while any of its sessions is (of those that it holds the end of),
    /// else crashed or cut off where any of them is.
    pub standing: Standing,
    /// Whether a server of it could not even be started.
    pub not_started: bool,
    /// Whether its clients only connected and listed: not shown unless asked for.
    pub probe: bool,
    /// What to call its clients, sorted, each once.
    pub clients: Vec<String>,
    /// What to call its servers, sorted, each once. Tallies name them by position.
    pub servers: Vec<String>,
    /// How its clients reached its servers (`stdio`, `http`), sorted, each once.
    pub transports: Vec<String>,
    /// The revisions of the protocol that were spoken, sorted, each once.
    pub revisions: Vec<String>,
    /// The parts of sessions that it is made of, in the order in which they began.
    pub slices: Vec<Slice>,
    /// Its prompts, where their ids are known, in the order in which they began.
    pub turns: Vec<TurnRow>,
    /// What is counted in it.
    pub tally: Tally,
    /// Why it counts as failed; at most [`tally::MOST_NAMED`], [`RunRow::failed`] has the
    /// number of all.
    pub failures: Vec<Failure>,
    /// How many failures there are. One that has any is failed.
    pub failed: u64,
    /// Errors that a later success of the same tool, method or target made good.
    pub recovered: u64,
    /// What only shows in the definitions of several of its servers; at most
    /// [`scan::MOST_ACROSS`].
    pub across: Vec<FoundAt>,
}

/// A part of a session that belongs to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// The session.
    #[serde(with = "compact::session")]
    pub session: SessionId,
    /// Which of its parts this is, from 0.
    pub part: u32,
    /// The steps that it holds are those that began from this moment on, on the monotonic
    /// clock of the session's recorder, in nanoseconds …
    pub from: u64,
    /// … and before this one.
    pub to: u64,
}

impl Slice {
    /// Whether a step that began at this moment of that clock is in it. The last moment there
    /// is belongs to what is open.
    #[must_use]
    pub fn holds(&self, monotonic: u64) -> bool {
        self.from <= monotonic && (monotonic < self.to || self.to == u64::MAX)
    }
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRow {
    /// The id that the assistant gave it.
    pub id: String,
    /// When its first step began, in nanoseconds since 1970.
    pub started: u64,
}

/// A session: one connection between a client and a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Its id.
    #[serde(with = "compact::session")]
    pub id: SessionId,
    /// The workspace that it belongs to.
    pub workspace: String,
    /// The project directory, where there is one.
    pub project: Option<String>,
    /// The task that it was started for, where one was named.
    pub task: Option<String>,
    /// Whether the server is our own, which answers assistants: how that goes is no failure.
    pub own: bool,
    /// What to call the server.
    pub server: String,
    /// What to call the client; empty where nothing is known.
    pub client: String,
    /// How the client reaches the server: `stdio` or `http`.
    pub transport: String,
    /// The revision of the protocol, where a message or a header tells it.
    pub revision: Option<String>,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// When its last record was written, in nanoseconds since 1970.
    pub last: u64,
    /// How it stands.
    pub standing: Standing,
    /// How it ended, if it did and that was recorded.
    #[serde(with = "compact::end")]
    pub end: Option<End>,
    /// Whether its beginning was removed because it was too old.
    pub clipped: bool,
    /// What was not recorded of it, and what cannot be read. A session that has several parts
    /// has this in all of its runs.
    pub marks: Marks,
    /// The client's process (with machine and start of the machine), or what else joins it to
    /// others from its beginning on.
    pub keys: Vec<GroupKey>,
    /// The numbers of the first and the last file of its process that hold records of it.
    pub files: (u32, u32),
    /// What identifies the server ([`agent_trace_scanners::pin::identity`]).
    pub identity: String,
    /// Who asks ([`agent_trace_scanners::pin::history`]).
    pub view: [u8; 8],
    /// The lists of definitions that it was told, each once; at most [`scan::MOST_LISTS`].
    pub lists: Vec<ListedAt>,
    /// What it is cut into; never empty.
    pub parts: Vec<PartRow>,
}

/// What a session did without a long pause, and under one key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartRow {
    /// When it began, on the monotonic clock of the session's recorder, in nanoseconds. 0 for
    /// one that begins with the session.
    pub from: u64,
    /// When the client first did something, in nanoseconds since 1970; of the first part when
    /// the session began.
    pub started: u64,
    /// When the client last did something, or got an answer, in nanoseconds since 1970.
    pub active: u64,
    /// When its last record was written, in nanoseconds since 1970.
    pub last: u64,
    /// The conversation that the client says it belongs to.
    pub conversation: Option<GroupKey>,
    /// Traces that its requests belong to.
    pub traces: Vec<GroupKey>,
    /// Its prompts, where their ids are known.
    pub turns: Vec<TurnRow>,
    /// What is counted in it. It has one server.
    pub tally: Tally,
    /// Whether that is kept in the row of its run alone, which has no other part: the same is
    /// not kept twice.
    pub in_run: bool,
}

/// How far the journal of a process was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// The process.
    #[serde(with = "compact::process")]
    pub process: ProcessId,
    /// The workspace in the headers of its files.
    pub workspace: String,
    /// Its files in their order.
    pub files: Vec<FileRow>,
    /// Whether it is sure that its files are no longer written.
    pub finished: bool,
    /// Whether its rows say that it has ended.
    pub ended: bool,
    /// Whether it relays HTTP, so that it may have many sessions.
    pub http: bool,
    /// How many records were read.
    pub records: u64,
    /// Bytes that cannot be read.
    pub damaged: u64,
    /// Files that cannot be read at all, and why.
    pub unreadable: Vec<String>,
    /// The ordinals of its sessions.
    pub sessions: Vec<u32>,
}

/// A file of a journal as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Which part of the journal it is, from 1.
    pub number: u32,
    /// Its folder below that of the journals: `live`, or the day of a sealed file.
    pub folder: String,
    /// Its length in bytes.
    pub length: u64,
    /// When it was changed, in nanoseconds since 1970; 0 where that is not known.
    pub changed: u64,
}

/// Where the row of a run is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NameRow {
    /// Its workspace.
    pub workspace: String,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// Its id.
    #[serde(with = "compact::run")]
    pub run: RunId,
}

impl NameRow {
    /// The key of the run.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        crate::keys::run(&self.workspace, self.started, self.run)
    }
}

/// A part among those that a key joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// As [`PartRow::started`].
    pub started: u64,
    /// As [`PartRow::active`].
    pub active: u64,
}

/// What the rows were made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRow {
    /// [`SCHEMA`].
    pub schema: u32,
    /// After so long a pause, in nanoseconds, a client begins a new run.
    pub idle: u64,
    /// [`agent_trace_scanners::RULES`].
    pub rules: u32,
}

/// A row as bytes.
#[must_use]
pub fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    // Fails for sequences of unknown length only, which no row has.
    postcard::to_stdvec(row).unwrap_or_default()
}

/// The row that these bytes are; none where they are none of this version.
#[must_use]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}
