//! A run as one file, out of a store and into another.
//!
//! The file is a sealed segment: what is on disk anyway, so what was redacted stays redacted.
//! Importing the same file twice changes nothing.

use crate::journal::reader::{OpenError, Segment};
use crate::journal::sealed::{MOST_FILE, Sealer};
use crate::key;
use crate::layout::{SegmentPath, Store, write_new};
use crate::retention::day;
use crate::trace::{RunEntry, Runs, run_id};
use agent_trace_model::{RunId, SessionId};
use std::io;

/// Why a run cannot be exported or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortableError {
    /// A file of the run cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store's files cannot be read or written.
    #[error("cannot use the store")]
    Io(#[from] io::Error),
    /// The file is no recording.
    #[error("not a recording that this version can read")]
    Foreign(#[source] crate::journal::header::HeaderError),
    /// A part of the file is damaged; nothing was imported.
    #[error("damaged at byte {at}")]
    Damaged {
        /// Where.
        at: u64,
    },
    /// Another run of the same recording process is there; nothing was imported.
    #[error("the store holds another run of the same recording process")]
    Conflict,
    /// The run is larger than a file may be.
    #[error("the run holds {bytes} bytes, and a recording can hold {most}")]
    TooLarge {
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        most: usize,
    },
    /// The file ends before it should; nothing was imported.
    #[error("incomplete: the end is missing")]
    Incomplete,
}

/// The run as the bytes of one file.
///
/// # Errors
/// When a file of the run cannot be read, or the store has no key.
pub fn export(store: &Store, run: &RunEntry) -> Result<Vec<u8>, PortableError> {
    let chain = key::load(store)?.hasher();
    let mut header = run.header.clone();
    header.segment = 1;
    let mut sealer = Sealer::new(&header, chain).map_err(io::Error::from)?;
    let mut bytes = 0;
    for path in &run.segments {
        let segment = Segment::open(path)?;
        for (record, raw) in segment.raw_records().flatten() {
            bytes += raw.len() as u64;
            sealer.add(&record, raw)?;
        }
        if bytes > MOST_FILE as u64 {
            let most = MOST_FILE;
            return Err(PortableError::TooLarge { bytes, most });
        }
    }
    Ok(sealer.finish()?)
}

/// What importing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The run.
    pub run: RunId,
    /// Whether it was there before.
    pub known: bool,
}

/// Takes a run from the bytes of a file.
///
/// # Errors
/// When they are no whole recording, or the store cannot be written.
pub fn import(store: &Store, file: Vec<u8>) -> Result<Imported, PortableError> {
    if crate::journal::sealed::footer(&file).is_none() {
        // Tell a cut-off recording from something else.
        let opened = Segment::from_bytes(file, true, false).map_err(PortableError::Foreign)?;
        drop(opened);
        return Err(PortableError::Incomplete);
    }
    let segment = Segment::from_bytes(file.clone(), true, false).map_err(PortableError::Foreign)?;
    if let Some(damage) = segment.records().find_map(Result::err) {
        return Err(PortableError::Damaged { at: damage.at });
    }
    let header = segment.header();
    let session = SessionId {
        process: header.process,
        ordinal: 1,
    };
    let run = run_id(&header.workspace, session);
    let _lock = store.lock()?;
    if store.list()?.runs.iter().any(|known| known.id == run) {
        return Ok(Imported { run, known: true });
    }
    if !store.files_of(header.process)?.is_empty() {
        return Err(PortableError::Conflict);
    }
    // Before the first file, so that the next reader has one to make chains with.
    key::load_or_create(store)?;
    let folder = store.day(&day(header.started));
    store.make(&folder)?;
    write_new(
        &folder.join(SegmentPath::name(header.process, 1, true)),
        &file,
    )?;
    Ok(Imported { run, known: false })
}

/// Writes an exported run to a file that must not exist yet, for its owner alone: it holds
/// what the tools did.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn write(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    write_new(path, bytes)
}
