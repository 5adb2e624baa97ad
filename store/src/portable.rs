//! A run as one file, out of a store and into another.
//!
//! The file is a sealed segment: what is on disk anyway, so what was redacted stays redacted.
//! Of a run of an HTTP relay it holds the records of that run, and those that are about all of
//! its process. Importing the same file twice changes nothing.

use crate::journal::reader::{OpenError, Segment};
use crate::journal::sealed::MOST_FILE;
use crate::key;
use crate::layout::{SegmentPath, Store, write_new};
use crate::retention::day;
use crate::retention::extract::Extract;
use crate::trace::{Scan, SessionEntry, Sessions, is_live, processes, run_id};
use crate::verify;
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
pub fn export(store: &Store, run: &SessionEntry) -> Result<Vec<u8>, PortableError> {
    let key = key::load(store)?;
    let mut header = run.header.clone();
    header.segment = run.segments.first().map_or(1, |file| file.number);
    // All of them first: whether one proves nothing has to be known from the beginning.
    let mut checked = Vec::new();
    for path in &run.segments {
        checked.push(verify::file(&Segment::open(path)?, path, &key));
    }
    let mut extract = Extract::new(&header, &checked, &key)?;
    let ours = |session: u32| !run.http || session == 0 || session == run.session.ordinal;
    for (path, checked) in run.segments.iter().zip(&checked) {
        extract.add(&Segment::open(path)?, checked, |envelope| {
            ours(envelope.session)
        })?;
        if extract.bytes > MOST_FILE as u64 {
            let (bytes, most) = (extract.bytes, MOST_FILE);
            return Err(PortableError::TooLarge { bytes, most });
        }
    }
    Ok(extract.finish()?)
}

/// What importing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The run.
    pub run: RunId,
    /// Whether it was there before.
    pub known: bool,
}

/// Takes the runs in the bytes of a file: mostly one.
///
/// # Errors
/// When they are no whole recording, or the store cannot be written.
pub fn import(store: &Store, file: Vec<u8>) -> Result<Vec<Imported>, PortableError> {
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
    let mut scan = Scan::default();
    scan.add(&segment, 0);
    let ordinals: Vec<u32> = match scan.http {
        true => scan.sessions.into_keys().collect(),
        false => vec![1],
    };
    let process = header.process;
    let run = |ordinal: u32| run_id(&header.workspace, SessionId { process, ordinal });
    let _lock = store.lock()?;
    let listed = store.list()?.runs;
    let known = |ordinal: &u32| listed.iter().any(|known| known.id == run(*ordinal));
    let there = ordinals.iter().filter(|ordinal| known(ordinal)).count();
    let imported = |known| {
        let one = |ordinal| Imported {
            run: run(ordinal),
            known,
        };
        ordinals.iter().copied().map(one).collect()
    };
    if there == ordinals.len() {
        return Ok(imported(true));
    }
    // Runs of an HTTP relay share a process, and come one by one.
    let files = processes(store)?.remove(&process).unwrap_or_default();
    let alone = files.is_empty() && store.files_of(process)?.is_empty();
    if !alone && (there > 0 || !scan.http || is_live(&files)) {
        return Err(PortableError::Conflict);
    }
    let number = files.last().map_or(0, |last| last.number);
    let number = number.checked_add(1).ok_or(PortableError::Conflict)?;
    // Before the first file, so that the next reader has one to make chains with.
    key::load_or_create(store)?;
    let folder = store.day(&day(header.started));
    store.make(&folder)?;
    write_new(
        &folder.join(SegmentPath::name(process, number, true)),
        &file,
    )?;
    Ok(imported(false))
}

/// Writes an exported run to a file that must not exist yet, for its owner alone: it holds
/// what the tools did.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn write(path: &std::path::Path, bytes: &[u8]) -> io::Result<()> {
    write_new(path, bytes)
}
