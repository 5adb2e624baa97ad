//! What becomes of finished files: sealing, forgetting, expiry.

use crate::journal::reader::{OpenError, Segment, is_locked};
use crate::journal::{header::HeaderError, sealed};
use crate::key;
use crate::layout::{SegmentPath, Store, write_new};
use crate::trace::{RunEntry, Runs};
use std::fs;
use std::io;
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
    let bytes = sealed::seal(&segment, key::load_or_create(store)?.hasher())?;
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

/// Removes a run's files.
///
/// # Errors
/// When the run is still being recorded, or a file cannot be removed.
pub fn forget(store: &Store, run: &RunEntry) -> Result<(), RetentionError> {
    let _lock = store.lock()?;
    forget_locked(store, run)
}

fn forget_locked(store: &Store, run: &RunEntry) -> Result<(), RetentionError> {
    if run.live {
        return Err(RetentionError::Live);
    }
    // By the process's name, so that what sealing left behind goes too.
    for path in store.files_of(run.session.process)? {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        // A day's folder that is empty now; one that is not stays.
        if let Some(folder) = path.parent().filter(|folder| *folder != store.live()) {
            let _ = fs::remove_dir(folder);
        }
    }
    Ok(())
}

/// What to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs that began longer ago are removed.
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
    pub removed: Vec<RunEntry>,
    /// Bytes of all files before and after.
    pub bytes: (u64, u64),
    /// What went wrong, file by file.
    pub failed: Vec<RetentionError>,
}

/// Seals what is finished, then removes what is beyond the limits.
///
/// # Errors
/// When the store cannot be listed at all.
pub fn apply(store: &Store, limits: Limits) -> io::Result<Applied> {
    let mut applied = Applied::default();
    let _lock = store.lock()?;
    applied.bytes.0 = store.segments()?.iter().map(size).sum();
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
    // Oldest first.
    for run in store.list()?.runs.into_iter().rev().filter(|run| !run.live) {
        let age = now.saturating_sub(Duration::from_nanos(run.started));
        let too_old = limits.age.is_some_and(|limit| age > limit);
        let too_much = limits.bytes.is_some_and(|limit| left > limit);
        if !too_old && !too_much {
            continue;
        }
        let bytes: u64 = run.segments.iter().map(size).sum();
        match forget_locked(store, &run) {
            Ok(()) => {
                left = left.saturating_sub(bytes);
                applied.removed.push(run);
            }
            Err(error) => applied.failed.push(error),
        }
    }
    applied.bytes.1 = store.segments()?.iter().map(size).sum();
    Ok(applied)
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
