//! Reading runs back: list them, find one, open it.
//!
//! Until there is an index, this reads the journals themselves, and a run is a session:
//! what a stdio relay process recorded. [`Runs`] is what the index will take over.
//!
//! - [`run`]: everything that was recorded of one run
//! - [`step`]: from frames to steps: which answer belongs to which request, and what came of it

pub mod run;
pub mod step;

use crate::journal::header::Header;
use crate::journal::reader::{OpenError, is_locked, peek};
use crate::layout::{SegmentPath, Store};
use agent_trace_model::{ProcessId, RunId, SessionId};
use std::collections::BTreeMap;
use std::io;

pub use run::Run;
pub use step::Step;

/// The fewest digits of an id that name a run.
const SHORTEST_PREFIX: usize = 4;

/// What can be asked about recorded runs.
pub trait Runs {
    /// Every run, newest first, and what could not be read.
    ///
    /// # Errors
    /// When the data directory cannot be read.
    fn list(&self) -> io::Result<Listing>;

    /// Everything that was recorded of a run.
    ///
    /// # Errors
    /// When none of its files can be read.
    fn open(&self, run: &RunEntry) -> Result<Run, OpenError>;

    /// The one run that is meant: by `latest`, its id, or a prefix of that.
    ///
    /// # Errors
    /// When there is none, or more than one.
    fn find(&self, name: &str) -> Result<RunEntry, FindError> {
        let mut runs = self.list().map_err(FindError::Io)?.runs;
        if name == "latest" {
            return runs.into_iter().next().ok_or(FindError::Empty);
        }
        let name = name.to_ascii_lowercase().replace('-', "");
        let known = |name: String| FindError::NotFound { name };
        if name.len() < SHORTEST_PREFIX || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(known(name));
        }
        runs.retain(|run| run.id.to_string().starts_with(&name));
        match runs.len() {
            0 => Err(known(name)),
            1 => Ok(runs.remove(0)),
            count => Err(FindError::Ambiguous { name, count }),
        }
    }
}

/// Why a name means no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The data directory cannot be read.
    #[error("cannot read the store")]
    Io(#[source] io::Error),
    /// There are no runs.
    #[error("nothing has been recorded yet")]
    Empty,
    /// No run has this id.
    #[error("no run {name:?}")]
    NotFound {
        /// What was asked for.
        name: String,
    },
    /// Several runs have ids that begin so.
    #[error("{count} runs begin with {name:?}")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// How many there are.
        count: usize,
    },
}

/// All runs, and what could not be read.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest first.
    pub runs: Vec<RunEntry>,
    /// Files that are none of ours, or whose headers are lost.
    pub unreadable: Vec<OpenError>,
}

/// A run, as far as the headers of its files tell.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Its id.
    pub id: RunId,
    /// The session that it is.
    pub session: SessionId,
    /// What its first file says of itself.
    pub header: Header,
    /// Its files in their order.
    pub segments: Vec<SegmentPath>,
    /// Whether it is still being recorded.
    pub live: bool,
}

/// The id of the run that a session is.
#[must_use]
pub fn run_id(workspace: &str, session: SessionId) -> RunId {
    // Workspace, kind of key, key and first session: DESIGN's derivation, where the key of a
    // session that is a run of its own is the session itself.
    let mut hasher = blake3::Hasher::new();
    for part in [
        workspace.as_bytes(),
        b"session",
        session.to_string().as_bytes(),
    ] {
        hasher
            .update(&(part.len() as u64).to_le_bytes())
            .update(part);
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    RunId::from_digest(digest)
}

/// Whether a process still writes its journal, of which this is the last known file.
fn is_live(last: &SegmentPath) -> bool {
    let (mut path, mut number) = (last.path.clone(), last.number);
    loop {
        if is_locked(&path).unwrap_or(false) {
            return true;
        }
        // It may have gone on in a new file since the folder was read.
        number += 1;
        path.set_file_name(SegmentPath::name(last.process, number, false));
        if !path.exists() {
            return false;
        }
    }
}

impl Runs for Store {
    fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut processes: BTreeMap<ProcessId, Vec<SegmentPath>> = BTreeMap::new();
        for segment in self.segments()? {
            processes.entry(segment.process).or_default().push(segment);
        }
        for (process, segments) in processes {
            // The first file that can be read speaks for all.
            let (mut header, mut failed) = (None, Vec::new());
            for segment in &segments {
                match peek(segment) {
                    Ok(found) => {
                        header = Some(found);
                        break;
                    }
                    Err(error) => failed.push(error),
                }
            }
            listing.unreadable.append(&mut failed);
            let Some(header) = header else { continue };
            let session = SessionId {
                process,
                ordinal: 1,
            };
            let live = segments
                .last()
                .is_some_and(|last| !last.sealed && is_live(last));
            listing.runs.push(RunEntry {
                id: run_id(&header.workspace, session),
                session,
                live,
                header,
                segments,
            });
        }
        listing.runs.sort_by(|a, b| {
            let key = |run: &RunEntry| (run.header.started, run.session);
            key(b).cmp(&key(a))
        });
        Ok(listing)
    }

    fn open(&self, run: &RunEntry) -> Result<Run, OpenError> {
        Run::read(run)
    }
}
