//! Reading sessions back: list them, open one.
//!
//! A session is the one of a stdio relay process, or one of many that an HTTP relay process
//! recorded. Which sessions make up a run is the index's matter.
//!
//! - [`flow`]: the sessions of a process record by record, in bounded memory
//! - `listing`: which sessions there are
//! - `read`: the sessions of a process, in one pass over its files
//! - [`session`]: everything that was recorded of one
//! - [`exchange`]: its HTTP exchanges
//! - [`step`]: its frames, and the steps that they make up
//! - [`steps`]: which answer belongs to which request, and what came of it
//! - [`story`]: sessions as the one list of steps that everything else works on
//! - [`tail`], [`follow`]: what is recorded right now

pub mod exchange;
pub mod flow;
pub mod follow;

mod listing;
mod read;
pub mod session;
pub mod step;
pub mod steps;
pub mod story;
pub mod tail;

use crate::journal::header::Header;
use crate::journal::reader::{OpenError, peek};
use crate::layout::{SegmentPath, Store};
use agent_trace_model::{ProcessId, RunId, SessionId};
use std::collections::BTreeMap;
use std::io;

pub use exchange::Exchange;
pub use listing::is_live;
pub(crate) use listing::{Scan, processes};
pub(crate) use read::removed;
pub use session::Session;
pub use step::Step;
pub use steps::Steps;

/// What can be asked about recorded sessions.
pub trait Sessions {
    /// Every session, newest first, and what could not be read.
    ///
    /// # Errors
    /// When the data directory cannot be read.
    fn list(&self) -> io::Result<Listing>;

    /// Everything that was recorded of a session.
    ///
    /// # Errors
    /// When none of its files can be read.
    fn open(&self, run: &SessionEntry) -> Result<Session, OpenError>;

    /// Opens these sessions one after another and hands out each with its position among them.
    /// The files of a process are read once for all of its sessions; so it may be in another
    /// order.
    fn open_each(
        &self,
        runs: &[SessionEntry],
        each: &mut dyn FnMut(usize, Result<Session, OpenError>),
    ) {
        for (position, run) in runs.iter().enumerate() {
            each(position, self.open(run));
        }
    }
}

/// All sessions, and what could not be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest first.
    pub runs: Vec<SessionEntry>,
    /// Files that are none of ours, or whose headers are lost.
    pub unreadable: Vec<OpenError>,
}

/// A session, as far as is known without reading all of it.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    /// Its id.
    pub id: RunId,
    /// The session that it is.
    pub session: SessionId,
    /// Whether it is one of the sessions of an HTTP relay, with which it shares its files.
    pub http: bool,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// What the first file of its process says of itself.
    pub header: Header,
    /// Its files in their order.
    pub segments: Vec<SegmentPath>,
    /// Whether it is still being recorded.
    pub live: bool,
}

/// The id of the run that a session is by itself.
#[must_use]
pub fn run_id(workspace: &str, session: SessionId) -> RunId {
    run_id_of([workspace, "session", &session.to_string()])
}

/// The id of the run that is made up by what these parts say: the workspace, what kind of key
/// joins its sessions, that key, and what tells the run from others with the same key.
#[must_use]
pub fn run_id_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> RunId {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher
            .update(&(part.len() as u64).to_le_bytes())
            .update(part.as_bytes());
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    RunId::from_digest(digest)
}

/// What is known of a session whose files are known. Where one was sealed meanwhile, or
/// removed, they are looked for.
///
/// # Errors
/// When none of them can be read.
pub fn entry(
    store: &Store,
    session: SessionId,
    http: bool,
    started: u64,
    paths: Vec<SegmentPath>,
) -> Result<SessionEntry, OpenError> {
    let mut segments = paths;
    if segments.iter().any(|segment| !segment.path.exists()) {
        let numbers: Vec<u32> = segments.iter().map(|segment| segment.number).collect();
        let all = store.segments().map_err(|source| OpenError::Io {
            path: store.journals(),
            source,
        })?;
        segments = all;
        segments.retain(|s| s.process == session.process && numbers.contains(&s.number));
    }
    let mut failed = None;
    let mut header = None;
    for segment in &segments {
        match peek(segment) {
            Ok(found) => {
                header = Some(found);
                break;
            }
            Err(error) => failed = Some(error),
        }
    }
    let Some(header) = header else {
        return Err(failed.unwrap_or_else(|| OpenError::Io {
            path: store.journals(),
            source: io::ErrorKind::NotFound.into(),
        }));
    };
    Ok(SessionEntry {
        id: run_id(&header.workspace, session),
        session,
        http,
        started,
        live: is_live(&segments),
        header,
        segments,
    })
}

impl Sessions for Store {
    fn list(&self) -> io::Result<Listing> {
        listing::list(self)
    }

    fn open(&self, run: &SessionEntry) -> Result<Session, OpenError> {
        read::one(run)
    }

    fn open_each(
        &self,
        runs: &[SessionEntry],
        each: &mut dyn FnMut(usize, Result<Session, OpenError>),
    ) {
        let mut processes: BTreeMap<ProcessId, Vec<usize>> = BTreeMap::new();
        for (position, run) in runs.iter().enumerate() {
            let process = run.session.process;
            processes.entry(process).or_default().push(position);
        }
        for positions in processes.values().rev() {
            let entries: Vec<&SessionEntry> = positions.iter().map(|at| &runs[*at]).collect();
            for (run, position) in read::all(&entries).into_iter().zip(positions) {
                each(*position, run);
            }
        }
    }
}
