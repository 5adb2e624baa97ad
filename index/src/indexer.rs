//! Following journals: from what is on the disk to rows, again and again.
//!
//! What a journal acknowledged is in the rows once [`Indexer::catch_up`] returns. Rows and the
//! checkpoint of the process that they come from are written in one batch, so a process that
//! dies anywhere leaves an index that is behind, never one that is wrong.
//!
//! A journal that is finished is read once; one that grows is followed from its beginning,
//! which is read again by whoever takes the index over. Either way the same code makes the
//! rows, so they are equal.
//!
//! - `files`: what is on the disk, and what of it is new
//! - `growing`: journals that are being written
//! - `write`: rows, and the runs that they make up
//! - `scan`: rows of what was found and defined
//! - [`verify`]: an index compared with one that is made anew
//! - [`events`]: waiting for something to happen

pub mod events;
mod files;
mod growing;
mod overlay;
mod scan;
pub mod verify;
mod write;

use crate::digest::Digests;
use crate::digest::scan::Scanner;
use crate::engine::{Batch, Engine, EngineError};
use crate::keys;
use crate::rows::{FileRow, ProcessRow, SCHEMA, VersionRow, decode, encode};
use agent_trace_model::ProcessId;
use agent_trace_store::Store;
use agent_trace_store::journal::reader::OpenError;
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::trace::flow::Flow;
use agent_trace_store::trace::is_live;
use files::Files;
use growing::Growing;
use scan::Across;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use write::{Update, Writer};

/// After so long a pause, in nanoseconds, a client begins a new run, unless that is set.
pub const IDLE: u64 = 600_000_000_000;
/// So many sessions are written at once.
const BATCH: usize = 256;
/// The most processes whose journals are read at once.
const MOST_WORKERS: usize = 4;
/// So old, in nanoseconds, the last change of a journal has to be before a process that holds
/// no lock counts as dead: its file may be made and not locked yet.
const SETTLED: u64 = 2_000_000_000;

/// What keeps an index equal to the journals.
pub struct Indexer {
    store: Store,
    engine: Arc<dyn Engine>,
    idle: u64,
    files: Files,
    growing: BTreeMap<ProcessId, Growing>,
    /// Remembers what it scanned.
    scanner: Arc<Scanner>,
    across: Across,
}

/// Why an index cannot be brought up to date.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The journals cannot be listed.
    #[error("cannot read the store")]
    Store(#[from] io::Error),
    /// The index cannot be read or written.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What was done to bring an index up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// Processes of which something was read or removed.
    pub processes: u64,
    /// Sessions whose rows were written.
    pub sessions: u64,
    /// Records that were read.
    pub records: u64,
    /// Processes that still write.
    pub live: u64,
}

impl std::fmt::Debug for Indexer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexer")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Indexer {
    /// What brings this index of this store up to date. A client that does nothing for `idle`
    /// nanoseconds begins a new run. An index that was made by another version, or with
    /// another pause, is emptied.
    ///
    /// # Errors
    /// When the index cannot be read or written.
    pub fn new(store: &Store, engine: Arc<dyn Engine>, idle: u64) -> Result<Self, IndexError> {
        let version = VersionRow {
            schema: SCHEMA,
            idle,
            rules: agent_trace_scanners::RULES,
        };
        let known = engine.get(&keys::version())?;
        if known.and_then(|row| decode(&row)) != Some(version) {
            empty(&*engine)?;
            let mut batch = Batch::default();
            batch.put(keys::version(), encode(&version));
            engine.apply(batch)?;
        }
        let files = Files::load(&*engine)?;
        Ok(Self {
            store: store.clone(),
            engine,
            idle,
            files,
            growing: BTreeMap::new(),
            scanner: Arc::default(),
            across: Across::default(),
        })
    }

    /// Brings the index up to date. Cheap where nothing has changed.
    ///
    /// # Errors
    /// When the journals cannot be listed, or the index cannot be read or written. Journals
    /// that cannot be read cost themselves.
    pub fn catch_up(&mut self) -> Result<Progress, IndexError> {
        let mut progress = Progress::default();
        let engine = Arc::clone(&self.engine);
        let mut across = std::mem::take(&mut self.across);
        let mut writer = Writer::new(&*engine, self.idle, &mut across);
        let mut finished = Vec::new();
        for process in self.files.look(&self.store)? {
            let files = self.files.of(process);
            if files.is_empty() {
                self.growing.remove(&process);
                progress.processes += 1;
                writer.add(Update::Gone(process));
                self.files.done(process, Vec::new(), true);
                continue;
            }
            if self.growing.contains_key(&process) || is_live(&files.paths(&self.store, process)) {
                if let Some(update) = self.grow(process, &mut progress)? {
                    writer.add(update);
                }
                continue;
            }
            finished.push(process);
        }
        self.read_finished(&finished, &mut writer, &mut progress)?;
        writer.commit()?;
        progress.sessions = writer.sessions();
        drop(writer);
        self.across = across;
        progress.live = self.growing.len() as u64;
        self.files.settle(&*engine)?;
        Ok(progress)
    }

    /// Makes the index anew.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub fn rebuild(&mut self) -> Result<Progress, IndexError> {
        empty(&*self.engine)?;
        *self = Self::new(&self.store, Arc::clone(&self.engine), self.idle)?;
        self.catch_up()
    }

    /// Reads what is new of a journal that is written.
    fn grow(
        &mut self,
        process: ProcessId,
        progress: &mut Progress,
    ) -> Result<Option<Update>, IndexError> {
        let files = self.files.of(process);
        let states = files.states(&self.store, process);
        if let Some(growing) = self.growing.get(&process)
            && files.are_others_before(growing.file(), |before, now| {
                growing.still_has(&self.store, before, now)
            })
        {
            // What was read of them is taken back by reading what is left.
            self.growing.remove(&process);
        }
        let known = self.growing.contains_key(&process);
        if !known && files.unchanged(&states) {
            return Ok(None);
        }
        let first = states.first().map_or(1, |file| file.number);
        let begin = || Growing::new(&self.store, process, first, self.idle, &self.scanner);
        let growing = self.growing.entry(process).or_insert_with(begin);
        let before = growing.records();
        let polled = growing.poll();
        progress.records += growing.records() - before;
        if let Err(error) = polled {
            // What can be read of it is read as if it were finished.
            tracing::debug!("{process}: {error}");
            self.growing.remove(&process);
            let row = known_row(&*self.engine, process)?;
            if row.is_some() && files.unchanged(&states) {
                return Ok(None);
            }
            let update = read(&self.store, process, states, self.idle, &self.scanner);
            progress.records += update.records();
            self.files.done(process, update.files(), false);
            progress.processes += 1;
            return Ok(Some(update.unfinished()));
        }
        let over = growing.is_over();
        let states = if over {
            files_now(&self.store, process)?
        } else {
            states
        };
        let update = growing.update(states);
        if over {
            self.growing.remove(&process);
        }
        if let Some(update) = &update {
            progress.processes += 1;
            self.files.done(process, update.files(), over);
        }
        Ok(update)
    }

    /// Reads journals that are finished, several at once.
    fn read_finished(
        &mut self,
        processes: &[ProcessId],
        writer: &mut Writer<'_>,
        progress: &mut Progress,
    ) -> Result<(), IndexError> {
        let mut work = Vec::new();
        for process in processes {
            let files = self.files.of(*process);
            let states = files.states(&self.store, *process);
            let settled = self.files.are_settled(&states);
            let row = known_row(&*self.engine, *process)?;
            if let Some(row) = row
                && let Some(row) = still_right(row, &states, settled)
            {
                self.files.done(*process, states, settled);
                writer.add(Update::Same(row));
                continue;
            }
            work.push((*process, states, settled));
        }
        let (next, store, idle) = (AtomicUsize::new(0), &self.store, self.idle);
        let scanner = &self.scanner;
        let count = std::thread::available_parallelism().map_or(1, NonZero::get);
        let count = count.min(MOST_WORKERS).min(work.len());
        std::thread::scope(|scope| {
            let (done, updates) = sync_channel(2 * MOST_WORKERS);
            for _ in 0..count {
                let (done, work, next) = (done.clone(), &work, &next);
                scope.spawn(move || {
                    while let Some((process, states, settled)) =
                        work.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let update = read(store, *process, states.clone(), idle, scanner);
                        let update = if *settled {
                            update
                        } else {
                            update.unfinished()
                        };
                        if done.send((*process, *settled, update)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(done);
            for (process, settled, update) in updates {
                progress.processes += 1;
                progress.records += update.records();
                self.files.done(process, update.files(), settled);
                writer.add(update);
                if writer.waiting() >= BATCH {
                    writer.commit()?;
                }
            }
            Ok(())
        })
    }
}

fn known_row(engine: &dyn Engine, process: ProcessId) -> Result<Option<ProcessRow>, EngineError> {
    let row = engine.get(&keys::process(process))?;
    Ok(row.and_then(|row| decode(&row)))
}

/// The row of a finished process, if what was read of it holds for its files as they are now:
/// nothing changed, or they were sealed and no more.
fn still_right(mut row: ProcessRow, now: &[FileRow], settled: bool) -> Option<ProcessRow> {
    let numbers = |files: &[FileRow]| files.iter().map(|file| file.number).collect::<Vec<_>>();
    // A sealed file does not have what was damaged; of many sessions some may be left out.
    let sealed =
        !row.http
            && row.finished
            && row.damaged == 0
            && row.unreadable.is_empty()
            && numbers(&row.files) == numbers(now)
            && row.files.iter().zip(now).all(|(before, after)| {
                before == after || (before.is_journal() && !after.is_journal())
            });
    // One that was live has no end yet.
    let same = row.files == now && row.ended;
    if !sealed && !same {
        return None;
    }
    row.files = now.to_vec();
    row.finished = settled;
    Some(row)
}

/// A finished journal, read from its beginning to its end. Of files that are not where they
/// were found, since they were sealed meanwhile, it is looked once more where they are.
fn read(
    store: &Store,
    process: ProcessId,
    files: Vec<FileRow>,
    idle: u64,
    scanner: &Arc<Scanner>,
) -> Update {
    let (update, is_moved) = read_there(store, process, files, idle, scanner);
    match is_moved.then(|| files_now(store, process)) {
        Some(Ok(files)) if files.is_empty() => Update::Gone(process),
        Some(Ok(files)) => read_there(store, process, files, idle, scanner).0,
        _ => update,
    }
}

/// Reads a journal in these files, and says whether any of them is not there.
fn read_there(
    store: &Store,
    process: ProcessId,
    files: Vec<FileRow>,
    idle: u64,
    scanner: &Arc<Scanner>,
) -> (Update, bool) {
    let mut flow = Flow::new(process, false);
    let mut digests = Digests::new(idle, scanner);
    let mut unreadable = Vec::new();
    let mut is_moved = false;
    let mut rows = Vec::new();
    for file in &files {
        let path = files::path(store, process, file);
        if let Err(error) = flow.read(&path, &mut digests) {
            is_moved |= is_not_there(&error);
            unreadable.push(why(&error));
        }
        rows.append(&mut digests.take_done());
    }
    flow.finish(&mut digests);
    rows.append(&mut digests.take_done());
    let sessions: BTreeSet<u32> = rows.iter().map(|one| one.row.id.ordinal).collect();
    let (records, damaged) = flow.counts();
    let header = flow.header();
    let process = ProcessRow {
        process,
        workspace: header.map_or_else(String::new, |header| header.workspace.clone()),
        files,
        finished: true,
        ended: true,
        http: flow.is_http(),
        records,
        damaged,
        unreadable,
        sessions: sessions.into_iter().collect(),
    };
    let update = Update::Rows {
        process,
        sessions: rows,
        all: true,
    };
    (update, is_moved)
}

/// Why a file cannot be read, in one line.
fn why(error: &OpenError) -> String {
    let cause = std::error::Error::source(error);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}

fn is_not_there(error: &OpenError) -> bool {
    matches!(error, OpenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// The files of a process as they are now.
fn files_now(store: &Store, process: ProcessId) -> io::Result<Vec<FileRow>> {
    let all = store.files_of(process)?;
    let segments = all.into_iter().filter_map(SegmentPath::parse);
    Ok(files::rows(segments))
}

/// Removes all rows. What says that they are right goes first, and for sure: whoever is
/// interrupted leaves an index that the next one empties.
fn empty(engine: &dyn Engine) -> Result<(), EngineError> {
    let mut batch = Batch::default();
    batch.remove(keys::version());
    engine.apply(batch)?;
    engine.flush()?;
    loop {
        let mut batch = Batch::default();
        engine.scan(&[], None, &mut |key, _| {
            batch.remove(key.to_vec());
            batch.changes.len() < 10_000
        })?;
        if batch.changes.is_empty() {
            return Ok(());
        }
        engine.apply(batch)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_store::journal::Header;
    use agent_trace_store::journal::writer::Writer;
    use std::fs;

    #[test]
    fn a_file_that_was_sealed_since_it_was_listed_is_read_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let process = ProcessId::from_bytes([7; 16]);
        drop(Writer::create(&store, Header::unknown(process)).unwrap());
        let listed = files_now(&store, process).unwrap();
        // Both forms begin with the same header; that is all that is read here.
        let name = SegmentPath::name(process, 1, false);
        let day = store.day("2026-11-30");
        store.make(&day).unwrap();
        let sealed = day.join(SegmentPath::name(process, 1, true));
        fs::rename(store.live().join(name), &sealed).unwrap();
        let scanner = Arc::default();
        let update = read(&store, process, listed.clone(), IDLE, &scanner);
        assert_eq!(update.files()[0].folder, "2026-11-30");
        fs::remove_file(sealed).unwrap();
        let update = read(&store, process, listed, IDLE, &scanner);
        assert!(matches!(update, Update::Gone(gone) if gone == process));
    }
}
