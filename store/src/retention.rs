//! What becomes of finished files: sealing, forgetting, expiry.
//!
//! - `plan`: what goes, and why
//! - `usage`: what the disk is used for

pub(crate) mod extract;
mod plan;
mod usage;

use crate::journal::reader::{OpenError, Segment, is_locked};
use crate::journal::writer::BEGUN;
use crate::journal::{header::HeaderError, sealed};
use crate::key;
use crate::layout::{Aside, SegmentPath, Store, remove_if_there, write_new};
use crate::trace::{SessionEntry, is_live, processes};
use crate::verify;
use agent_trace_model::{ProcessId, SessionId};
use extract::Extract;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

pub use plan::{Applied, Fate, Limits, Part, Plan, Policy, Reason, apply, plan};
pub use usage::{Usage, usage};

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
            if is_old(&path.path)? {
                fs::remove_file(&path.path)?;
            }
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let key = key::load_or_create(store)?;
    // What is wrong with it has to be known afterwards, too.
    let flawed = verify::file(&segment, path, &key).is_flawed();
    let bytes = sealed::seal_as(&segment, flawed, key.chain())?;
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
        let checked = verify::file(&segment, path, &key);
        let mut extract = Extract::of(&segment, &checked, &key)?;
        extract.add(&segment, &checked, |envelope| envelope.session != ordinal)?;
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
    remove_if_there(path)?;
    // A day's folder that is empty now; one that is not stays.
    if let Some(folder) = path.parent().filter(|folder| *folder != store.live()) {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

/// Removes a journal of which the beginning was interrupted.
fn remove_unbegun(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(BEGUN) || is_locked(path).unwrap_or(true) || !is_old(path).unwrap_or(false) {
        return Ok(());
    }
    fs::remove_file(path)
}

/// Whether nothing was written to a file for so long that nobody begins it any more.
fn is_old(path: &Path) -> io::Result<bool> {
    let age = fs::metadata(path)?.modified()?.elapsed();
    Ok(age.is_ok_and(|age| age > HEADERLESS))
}

/// Removes journals whose sealed form is there (what sealed them, or took a run out of them,
/// was interrupted), and those that were never begun to their end.
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
        let path = journal?.path();
        let Some(file) = SegmentPath::parse(path.clone()) else {
            remove_unbegun(&path)?;
            continue;
        };
        if sealed.contains(&(file.process, file.number)) && !is_locked(&file.path)? {
            fs::remove_file(&file.path)?;
        }
    }
    Ok(())
}

/// Says that limits are being looked after, unless that was done less than this ago: so that
/// of many who think of it one does it. What is seen of it is a file's time, which takes no
/// lock.
///
/// # Errors
/// When the data directory cannot be written.
pub fn is_due(store: &Store, after: Duration) -> io::Result<bool> {
    let journal = store.root().join("journal");
    store.make(&journal)?;
    let path = journal.join("retention");
    let age = fs::metadata(&path).and_then(|file| file.modified());
    let age = age.ok().and_then(|at| at.elapsed().ok());
    if age.is_some_and(|age| age < after) {
        return Ok(false);
    }
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(&path)?, b"\n")?;
    Ok(true)
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
