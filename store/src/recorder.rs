//! The recorder of a relay process: takes copies of what was relayed, decodes, redacts and
//! appends them to the journal.
//!
//! ```text
//! relay threads → queue (bounded in bytes) → one thread: decode → redact → journal
//! ```
//! - `queue`: where the relay leaves its copies; full means dropped and counted
//! - `session`: from the bytes of a stdio session to frames and lines
//! - `http`: from the exchanges of HTTP to sessions and frames
//! - `frames`, `recording`: from a frame to its record; `heads`, `events`, `bodies`: what of it
//!   is kept
//! - `sink`: what happens when the disk does not take them
//! - `worker`: the thread, in ticks
//!
//! The thread works in ticks: waking it for each chunk would cost twice the CPU. Whatever
//! goes wrong in here, the relay goes on; what was not recorded shows as a gap.

mod bodies;
mod counters;
mod events;
mod frames;
mod heads;
mod http;
mod ordinal;
mod queue;
mod recording;
mod requests;
mod session;
mod sink;
mod sync;
mod worker;

use crate::journal::Bodies;
use crate::layout::Store;
use crate::redact::UserRule;
use agent_trace_model::{End, Tap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use frames::KEPT_OF_A_FRAME;
pub use queue::QUEUE_LIMIT;
pub use recording::project;

/// What a recorder has to know, beside the bytes.
#[derive(Debug)]
pub struct Setup {
    /// Where to record.
    pub store: Store,
    /// How.
    pub options: Options,
    /// The one session of a stdio relay; none in a relay of HTTP, whose sessions begin and
    /// end by what is relayed.
    pub session: Option<StdioSession>,
}

/// What is known of an HTTP listener. Nothing in here is redacted yet.
#[derive(Clone, Debug, Default)]
pub struct HttpListener {
    /// The name that the user gave the client.
    pub client: Option<String>,
    /// The name that the user gave the server.
    pub server: Option<String>,
    /// Its address and port.
    pub listen: String,
    /// The server's URL.
    pub upstream: String,
    /// After how long without any exchange a client that sends no session id begins a new
    /// session (DESIGN: ten minutes).
    pub session_gap: Duration,
}

/// What a recorder counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames from clients, from servers, and lines of standard error.
    pub frames: [u64; 3],
    /// Bytes that were taken over for recording, likewise.
    pub bytes: [u64; 3],
    /// Gaps: how many, and how many bytes are in no record because of them.
    pub gaps: u64,
    /// See `gaps`.
    pub lost_bytes: u64,
    /// Sessions that are open.
    pub sessions_open: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Bytes that wait in the queue now.
    pub queued: u64,
    /// Whether recording goes on; false where the disk does not take it, or there is no
    /// journal at all.
    pub recording: bool,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether secrets are hidden.
    pub redact: bool,
    /// Patterns that the user added.
    pub user_rules: Vec<UserRule>,
    /// What of arguments and results is kept.
    pub bodies: Bodies,
    /// When data is forced to the disk itself.
    pub durability: Durability,
    /// The workspace that the runs belong to.
    pub workspace: String,
}

/// When data is forced to the disk itself, so that it survives a loss of power. What was
/// written survives the end of the process in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Twice a second, on a thread of its own.
    #[default]
    Timer,
    /// After each batch (at most each 5 ms).
    Always,
}

/// What is known of a stdio session when it begins. Nothing in here is redacted yet.
#[derive(Debug, Default)]
pub struct StdioSession {
    /// The name of the run that it belongs to, where one was given.
    pub run: Option<String>,
    /// The task that it was started for, where one was named.
    pub task: Option<String>,
    /// The name that the user or a wrapper gave the client.
    pub client: Option<String>,
    /// The name that the user or a wrapper gave the server.
    pub server: Option<String>,
    /// The server's command and arguments.
    pub command: Vec<OsString>,
    /// The environment that it inherits.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// The server's process id, if it was started.
    pub pid: Option<u32>,
}

/// Who is told what, on the recorder's thread.
pub struct Hooks {
    /// Told, in one line, what the user has to know.
    pub report: Box<dyn Fn(&str) + Send>,
    /// Told the last sequence number that was written, after each batch.
    pub acknowledge: Option<Box<dyn FnMut(u64) + Send>>,
    /// Given each file that records will be written to.
    pub opened: Option<Box<Opened>>,
}

/// Is given a file.
type Opened = dyn Fn(&std::fs::File) + Send;

/// A running recorder.
#[derive(Debug)]
pub struct Recorder {
    queue: Arc<queue::Queue>,
}

impl Recorder {
    /// Starts a recorder. `setup` runs on the recorder's thread, so that reading a
    /// configuration delays nobody; where it fails nothing is recorded, and the user is told
    /// why.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        setup: impl FnOnce() -> Result<Setup, String> + Send + 'static,
        hooks: Hooks,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(queue::Queue::new());
        worker::spawn(Arc::clone(&queue), setup, hooks)?;
        Ok(Self { queue })
    }

    /// Where the relay leaves its copies.
    #[must_use]
    pub fn tap(&self) -> Arc<dyn Tap> {
        Arc::clone(&self.queue) as Arc<dyn Tap>
    }

    /// Makes an HTTP listener known: what is told of this source belongs to it. Said again
    /// when its settings change.
    pub fn listener(&self, source: u32, listener: HttpListener) {
        self.queue
            .say(source, queue::What::Listener(Box::new(listener)));
    }

    /// What was counted since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.queue.counters.get(self.queue.queued())
    }

    /// Ends every session that is open (HTTP), and waits until everything is written, but
    /// not longer than `limit`. Returns whether it was.
    #[must_use]
    pub fn stop(self, limit: Duration) -> bool {
        self.queue.say(0, queue::What::Stop);
        self.queue.close_and_wait(limit)
    }

    /// Records the end of a session, and waits until everything is written, but not longer
    /// than `limit`. Returns whether it was.
    #[must_use]
    pub fn finish(self, session: u32, end: End, limit: Duration) -> bool {
        self.queue.end(session, end);
        self.queue.close_and_wait(limit)
    }
}
