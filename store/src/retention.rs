//! What becomes of finished files: sealing, forgetting, expiry.

pub(crate) mod extract;

use crate::journal::reader::{OpenError, Segment, is_locked};
use crate::journal::{header::HeaderError, sealed};
use crate::key;
use crate::layout::{Aside, SegmentPath, Store, write_new};
use crate::trace::{SessionEntry, Sessions, is_live, processes};
use agent_trace_model::{ProcessId, RunId, SessionId};
use extract::Extract;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why a file could not be dealt with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetentionError {
    /// The file cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store's files cannot be read or written.
    #[error("cannot change the store")]
    Io(#[from] io::Error),
    /// The run is still being recorded.
    #[error("the run is still being recorded")]
    Live,
    /// The run has ended, but a file that holds a part of it is still being written.
    #[error("a file that holds a part of the run is still being written")]
    StillWritten,
}

/// A file without a whole header that is older than this is nobody's any more.
const HEADERLESS: Duration = Duration::from_secs(60);

/// Seals a process's journal file whose process has ended: compresses it, checks that it
/// reads alike, and only then removes the original. A torn end and what else cannot be read
/// does not survive this, but the numbers of what is missing tell. A file that ends inside
/// its header holds nothing and is removed. False where there is nothing to seal.
///
/// The store must be locked.
fn seal(store: &Store, path: &SegmentPath) -> Result<bool, RetentionError> {
    if path.sealed || !path.path.exists() || is_locked(&path.path)? {
        return Ok(false);
    }
    let segment = match Segment::open(path) {
        Ok(segment) => segment,
        Err(OpenError::Header {
            source: HeaderError::Torn,
            ..
        }) => {
            let age = fs::metadata(&path.path)?.modified()?.elapsed();
            if age.is_ok_and(|age| age > HEADERLESS) {
                fs::remove_file(&path.path)?;
            }
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let bytes = sealed::seal(&segment, key::load_or_create(store)?.chain())?;
    let check = Segment::from_bytes(bytes.clone(), true, false).map_err(io::Error::other)?;
    if !check.records().eq(segment.records().filter(Result::is_ok)) {
        return Err(io::Error::other("the sealed file does not read like its original").into());
    }
    let folder = store.day(&day(segment.header().started));
    store.make(&folder)?;
    write_new(
        &folder.join(SegmentPath::name(path.process, path.number, true)),
        &bytes,
    )?;
    fs::remove_file(&path.path)?;
    Ok(true)
}

/// Removes a run: its files, or if other runs of its process have records in them, its
/// records.
///
/// # Errors
/// When the run is still being recorded, or a file of it, or a file cannot be changed.
pub fn forget(store: &Store, run: &SessionEntry) -> Result<(), RetentionError> {
    let _lock = store.lock()?;
    if run.live {
        return Err(RetentionError::Live);
    }
    if run.http {
        forget_one_of_many(store, run)
    } else {
        remove_process(store, run.session.process)
    }
}

/// Removes the records of a run from the files of its process. All that can fail for want of
/// room is done before the first file is changed.
fn forget_one_of_many(store: &Store, run: &SessionEntry) -> Result<(), RetentionError> {
    let SessionId { process, ordinal } = run.session;
    let files = processes(store)?.remove(&process).unwrap_or_default();
    let key = key::load_or_create(store)?;
    let (mut changed, mut others) = (Vec::new(), false);
    for path in &files {
        let segment = Segment::open(path)?;
        let (mut holds, mut shared) = (false, false);
        for view in segment.views().flatten() {
            holds |= view.envelope.session == ordinal;
            shared |= ![0, ordinal].contains(&view.envelope.session);
        }
        others |= shared;
        if !holds {
            continue;
        }
        if segment.is_live() {
            return Err(RetentionError::StillWritten);
        }
        let mut extract = Extract::of(&segment, path, &key)?;
        extract.add(&segment, |envelope| envelope.session != ordinal)?;
        let folder = match path.path.parent() {
            Some(folder) if path.sealed => folder.to_owned(),
            _ => store.day(&day(segment.header().started)),
        };
        store.make(&folder)?;
        let name = SegmentPath::name(process, path.number, true);
        changed.push((path, Aside::write(&folder.join(name), &extract.finish()?)?));
    }
    // One that goes on writes on, be it in a file that was not there a moment ago.
    if !others && !is_live(&files) {
        drop(changed);
        return remove_process(store, process);
    }
    for (path, aside) in changed {
        if path.sealed {
            aside.replace()?;
        } else {
            aside.publish()?;
            fs::remove_file(&path.path)?;
        }
    }
    Ok(())
}

/// Removes the files of a process that has ended.
fn remove_process(store: &Store, process: ProcessId) -> Result<(), RetentionError> {
    // By the process's name, so that what sealing left behind goes too.
    for path in store.files_of(process)? {
        remove(store, &path)?;
    }
    Ok(())
}

fn remove(store: &Store, path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // A day's folder that is empty now; one that is not stays.
    if let Some(folder) = path.parent().filter(|folder| *folder != store.live()) {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

/// What to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs that began longer ago are removed; of an HTTP relay's journal, files whose last
    /// record is older.
    pub age: Option<Duration>,
    /// The oldest runs are removed until all files together have at most this many bytes.
    pub bytes: Option<u64>,
}

/// What applying limits did.
#[derive(Debug, Default)]
pub struct Applied {
    /// How many files were sealed.
    pub sealed: usize,
    /// The runs that were removed.
    pub removed: Vec<SessionEntry>,
    /// Bytes of all files before and after.
    pub bytes: (u64, u64),
    /// What went wrong, file by file.
    pub failed: Vec<RetentionError>,
}

/// Seals what is finished, then removes what is beyond the limits: of a process with one run
/// all of its files, of one with many file after file, so that one that goes on and on loses
/// what is old.
///
/// # Errors
/// When the store cannot be listed at all.
pub fn apply(store: &Store, limits: Limits) -> io::Result<Applied> {
    let mut applied = Applied::default();
    let _lock = store.lock()?;
    applied.bytes.0 = store.segments()?.iter().map(size).sum();
    remove_twins(store)?;
    for segment in store.segments()? {
        match seal(store, &segment) {
            Ok(sealed) => applied.sealed += usize::from(sealed),
            Err(error) => applied.failed.push(error),
        }
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut left: u64 = store.segments()?.iter().map(size).sum();
    let runs = store.list()?.runs;
    let mut changed = false;
    for part in parts(store, &runs)? {
        let age = now.saturating_sub(Duration::from_nanos(part.time));
        let too_old = limits.age.is_some_and(|limit| age > limit);
        let too_much = limits.bytes.is_some_and(|limit| left > limit);
        if !too_old && !too_much {
            continue;
        }
        let bytes: u64 = part.files.iter().map(size).sum();
        let removed = match part.whole {
            Some(process) => remove_process(store, process),
            None => part
                .files
                .iter()
                .try_for_each(|file| remove(store, &file.path).map_err(Into::into)),
        };
        match removed {
            Ok(()) => {
                left = left.saturating_sub(bytes);
                changed = true;
            }
            Err(error) => applied.failed.push(error),
        }
    }
    if changed {
        let kept: HashSet<RunId> = store.list()?.runs.into_iter().map(|run| run.id).collect();
        let gone = runs.into_iter().rev().filter(|run| !kept.contains(&run.id));
        applied.removed = gone.collect();
    }
    applied.bytes.1 = store.segments()?.iter().map(size).sum();
    Ok(applied)
}

/// Files that are removed together.
struct Part {
    /// When they were written, in nanoseconds since 1970.
    time: u64,
    files: Vec<SegmentPath>,
    /// The process, where they are all that there is of it.
    whole: Option<ProcessId>,
}

/// What can be removed, oldest first.
fn parts(store: &Store, runs: &[SessionEntry]) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for (process, files) in processes(store)? {
        let runs: Vec<&SessionEntry> = runs
            .iter()
            .filter(|run| run.session.process == process)
            .collect();
        let live = is_live(&files);
        match &runs[..] {
            [run] if !run.http => {
                if !live {
                    parts.push(Part {
                        time: run.started,
                        files,
                        whole: Some(process),
                    });
                }
            }
            _ => {
                // Its last records are what a file is kept for.
                let finished = files.iter().filter(|file| file.sealed || !live);
                parts.extend(finished.map(|file| Part {
                    time: last_time(file),
                    files: vec![file.clone()],
                    whole: None,
                }));
            }
        }
    }
    parts.sort_by_key(|part| part.time);
    Ok(parts)
}

/// When the last record of a finished file was made.
fn last_time(file: &SegmentPath) -> u64 {
    let of_footer = || {
        let bytes = fs::read(&file.path).ok()?;
        let time = sealed::footer(&bytes)?.time.1;
        Some(time).filter(|time| *time > 0)
    };
    let of_file = || {
        let changed = fs::metadata(&file.path).ok()?.modified().ok()?;
        let since = changed.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok()
    };
    of_footer().or_else(of_file).unwrap_or_default()
}

/// Removes journals whose sealed form is there: what sealed them, or took a run out of them,
/// was interrupted.
fn remove_twins(store: &Store) -> io::Result<()> {
    let sealed: HashSet<(ProcessId, u32)> = store
        .segments()?
        .into_iter()
        .filter(|file| file.sealed)
        .map(|file| (file.process, file.number))
        .collect();
    let journals = match store.live().read_dir() {
        Ok(journals) => journals,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for journal in journals {
        let Some(file) = SegmentPath::parse(journal?.path()) else {
            continue;
        };
        if sealed.contains(&(file.process, file.number)) && !is_locked(&file.path)? {
            fs::remove_file(&file.path)?;
        }
    }
    Ok(())
}

fn size(segment: &SegmentPath) -> u64 {
    fs::metadata(&segment.path).map_or(0, |file| file.len())
}

/// The day (`yyyy-mm-dd`, UTC) of a moment in nanoseconds since 1970.
///
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": civil from days.
pub(crate) fn day(nanoseconds: u64) -> String {
    let days = nanoseconds / 86_400_000_000_000 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_from_nanoseconds() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_796_040_000, "2026-11-30"),
        ] {
            assert_eq!(day(seconds * 1_000_000_000), expected);
        }
    }
}
