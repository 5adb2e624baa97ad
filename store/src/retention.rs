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
use crate::state::{State, StateError};
use crate::trace::{SessionEntry, is_live, processes};
use crate::verify;
use agent_trace_model::{ProcessId, RunId};
use extract::Extract;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
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
    /// What was decided about runs cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
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
            if is_old(&path.path) {
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

/// Removes the sessions of a run, and what was decided about runs with these ids: their files,
/// or where other runs of a process have records in these, their records.
///
/// # Errors
/// When the run is still being recorded, or a file of it; nothing is removed then. When a file
/// cannot be changed.
pub fn forget(
    store: &Store,
    sessions: &[SessionEntry],
    ids: &[RunId],
) -> Result<(), RetentionError> {
    let _lock = store.lock()?;
    if sessions.iter().any(|session| session.live) {
        return Err(RetentionError::Live);
    }
    let mut of: BTreeMap<ProcessId, (bool, HashSet<u32>)> = BTreeMap::new();
    for entry in sessions {
        let (http, ordinals) = of.entry(entry.session.process).or_default();
        *http |= entry.http;
        ordinals.insert(entry.session.ordinal);
    }
    // All that can fail for want of room is done before the first file is changed.
    let mut removals = Vec::new();
    for (process, (http, ordinals)) in of {
        removals.push(match http {
            true => some_of_many(store, process, &ordinals)?,
            false => Removal::Process(process),
        });
    }
    // What else is known of a run goes first: who is interrupted finds the run to try again.
    State::of(store).forget(ids)?;
    for removal in removals {
        removal.carry_out(store)?;
    }
    Ok(())
}

/// What is to be removed of a process.
enum Removal {
    /// All of it.
    Process(ProcessId),
    /// Some records: files, and what they are going to be.
    Records(Vec<(SegmentPath, Aside)>),
}

impl Removal {
    fn carry_out(self, store: &Store) -> Result<(), RetentionError> {
        let changed = match self {
            Self::Process(process) => return remove_process(store, process),
            Self::Records(changed) => changed,
        };
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
}

/// How the records of some sessions are removed from the files of their process.
fn some_of_many(
    store: &Store,
    process: ProcessId,
    ordinals: &HashSet<u32>,
) -> Result<Removal, RetentionError> {
    let files = processes(store)?.remove(&process).unwrap_or_default();
    let key = key::load_or_create(store)?;
    let (mut changed, mut others) = (Vec::new(), false);
    for path in &files {
        let segment = Segment::open(path)?;
        let (mut holds, mut shared) = (false, false);
        for view in segment.views().flatten() {
            let of = view.envelope.session;
            holds |= ordinals.contains(&of);
            shared |= of > 0 && !ordinals.contains(&of);
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
        extract.add(&segment, &checked, |envelope| {
            !ordinals.contains(&envelope.session)
        })?;
        let folder = match path.path.parent() {
            Some(folder) if path.sealed => folder.to_owned(),
            _ => store.day(&day(segment.header().started)),
        };
        store.make(&folder)?;
        let name = SegmentPath::name(process, path.number, true);
        let aside = Aside::write(&folder.join(name), &extract.finish()?)?;
        changed.push((path.clone(), aside));
    }
    // One that goes on writes on, be it in a file that was not there a moment ago.
    if !others && !is_live(&files) {
        return Ok(Removal::Process(process));
    }
    Ok(Removal::Records(changed))
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
    if !name.ends_with(BEGUN) || is_locked(path).unwrap_or(true) || !is_old(path) {
        return Ok(());
    }
    fs::remove_file(path)
}

/// Whether nothing was written to a file for so long that nobody begins it any more.
fn is_old(path: &Path) -> bool {
    age_of(path).is_some_and(|age| age > HEADERLESS)
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
    let age = age_of(&last_time_file(store));
    if age.is_some_and(|age| age < after) {
        return Ok(false);
    }
    note(store, "")?;
    Ok(true)
}

/// How looking after the limits went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was begun, and has not come to its end.
    Begun,
    /// Nothing is left to do.
    Done,
    /// Something could not be done, and why.
    Failed(String),
}

/// How long ago limits were last looked after, and how that went; none where that was not done
/// yet.
#[must_use]
pub fn last_time(store: &Store) -> Option<(Duration, Outcome)> {
    let path = last_time_file(store);
    let text = fs::read_to_string(&path).ok()?;
    let outcome = match text.trim() {
        "" => Outcome::Begun,
        DONE => Outcome::Done,
        why => Outcome::Failed(why.to_owned()),
    };
    Some((age_of(&path).unwrap_or_default(), outcome))
}

/// How long ago a file was written; none where that is not known, or in the future.
fn age_of(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

/// Says how looking after the limits went: what failed, if anything did.
///
/// # Errors
/// When the data directory cannot be written.
pub fn note_outcome(store: &Store, failed: Option<&str>) -> io::Result<()> {
    note(store, failed.unwrap_or(DONE))
}

const DONE: &str = "done";

fn last_time_file(store: &Store) -> PathBuf {
    store.journals().join("retention")
}

fn note(store: &Store, text: &str) -> io::Result<()> {
    store.make(&store.journals())?;
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(last_time_file(store))?;
    io::Write::write_all(&mut file, format!("{text}\n").as_bytes())
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
