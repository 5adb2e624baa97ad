//! A run as one story: the sessions that belong together, and their steps as one list.
//!
//! This is what everything that thinks about runs works on; it does not know where a step came
//! from.

use crate::end::End;
use crate::exchange::Exchanges;
use crate::id::{RunId, SessionId};
use crate::step::Step;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A run in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// Its id.
    pub id: RunId,
    /// Ids that it also goes by: a key that became known later joined them.
    pub aliases: Vec<RunId>,
    /// The workspace that it belongs to.
    pub workspace: String,
    /// The project directory, where there is one.
    pub project: Option<String>,
    /// The task that whoever started it named: runs of one task can be compared.
    pub task: Option<String>,
    /// The sessions that it is made of, in the order in which they began.
    pub sessions: Vec<Session>,
    /// Prompts, where their ids are known, in the order in which they began.
    pub turns: Vec<Turn>,
    /// What happened, in the order in which it began.
    pub steps: Vec<Step>,
}

/// A session of a run: one connection between a client and a server. Of a session that lasted
/// longer than the run this is the part that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// What to call the server.
    pub server: String,
    /// What to call the client; empty where nothing is known.
    pub client: String,
    /// How the client reaches the server: `stdio` or `http`.
    pub transport: String,
    /// The revision of the protocol, where a message or a header tells it.
    pub revision: Option<String>,
    /// The server's command and arguments (stdio), redacted.
    pub command: Vec<String>,
    /// Where the client reaches the relay (HTTP): address and port.
    pub listen: Option<String>,
    /// The server's URL (HTTP), redacted.
    pub upstream: Option<String>,
    /// What ties its exchanges together (HTTP), where that is known.
    pub key: Option<KeyKind>,
    /// The client's `User-Agent` (HTTP), redacted.
    pub user_agent: Option<String>,
    /// Whether secrets were hidden.
    pub redacted: bool,
    /// Whether only digests of arguments and results were kept.
    pub digested: bool,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// When its last record was written, in nanoseconds since 1970.
    pub last: u64,
    /// How it stands.
    pub standing: Standing,
    /// How it ended, if it did and that was recorded.
    pub end: Option<End>,
    /// Its HTTP exchanges by their numbers.
    pub exchanges: Exchanges,
    /// Lines of the server's standard error.
    pub stderr: Vec<Line>,
    /// What was not recorded.
    pub gaps: Vec<Gap>,
    /// How many records are missing between those that can be read.
    pub missing: u64,
    /// Bytes that were recorded and cannot be read.
    pub damaged: u64,
    /// Why files of it cannot be read at all.
    pub unreadable: Vec<String>,
    /// Whether its beginning was removed because it was too old.
    pub clipped: bool,
}

/// One prompt of a run with everything up to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The id that the assistant gave it.
    pub id: String,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
}

/// A line of a server's standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was read, in nanoseconds since 1970.
    pub wall: u64,
    /// Its bytes, redacted, without the line end.
    pub text: Vec<u8>,
}

/// Something was not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When the loss was noted, in nanoseconds since 1970.
    pub wall: u64,
    /// Why.
    pub reason: String,
    /// Frames that were decoded but not written.
    pub frames: u64,
    /// Bytes that were relayed and are in no record.
    pub bytes: u64,
}

/// What ties the HTTP exchanges of a session together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// The `Mcp-Session-Id` (2025-03-26 to 2025-11-25). Answers may come on any stream of the
    /// session.
    McpSession,
    /// The URI of the legacy `endpoint` event (2024-11-05). Likewise.
    Endpoint,
    /// Nothing but who called (2026-07-28, and older servers without sessions). Each exchange
    /// stands for itself.
    Caller,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is being recorded.
    Live,
    /// It ended.
    Ended,
    /// The server ended it by failing: it did not start, or exited by itself with an error.
    Crashed,
    /// Its end was not recorded: the recording process was killed, or the disk was full.
    CutOff,
}

impl Story {
    /// When it began, in nanoseconds since 1970.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.sessions.iter().map(|s| s.started).min().unwrap_or(0)
    }

    /// When the last of it was recorded, in nanoseconds since 1970.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.sessions.iter().map(|s| s.last).max().unwrap_or(0)
    }

    /// Whether any of its sessions is being recorded.
    #[must_use]
    pub fn is_live(&self) -> bool {
        let live = |session: &Session| session.standing == Standing::Live;
        self.sessions.iter().any(live)
    }

    /// Whether everything that was recorded can be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.sessions.iter().all(Session::is_whole)
    }

    /// The step of this number. Numbers are those of the whole run: where steps are left out, they
    /// keep theirs.
    #[must_use]
    pub fn step(&self, number: usize) -> Option<&Step> {
        self.steps.get(self.position(number)?)
    }

    /// Where the step of this number stands among the steps.
    #[must_use]
    pub fn position(&self, number: usize) -> Option<usize> {
        self.steps
            .binary_search_by_key(&number, |step| step.number)
            .ok()
    }

    /// The session that a step belongs to.
    #[must_use]
    pub fn session(&self, step: &Step) -> Option<&Session> {
        self.sessions.get(step.session)
    }
}

/// Whether this command starts our own server, which answers assistants about what was recorded.
/// What is asked there is not what a run was about.
#[must_use]
pub fn is_own(command: &[String]) -> bool {
    let mut words = command.iter();
    let program = words.next().map(Path::new).and_then(Path::file_stem);
    program.is_some_and(|name| name == "agent-trace") && words.any(|word| word == "mcp")
}

impl Session {
    /// Whether the server is our own, which answers assistants.
    #[must_use]
    pub fn is_own(&self) -> bool {
        is_own(&self.command)
    }

    /// Whether everything that was recorded can be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing == 0 && self.damaged == 0 && self.unreadable.is_empty()
    }
}
