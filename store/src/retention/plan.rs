//! What goes, and why.
//!
//! The unit is what can be removed as a whole: of a process with one session all of its files,
//! of one with many (a relay of HTTP) one file after another, so that one that goes on and on
//! loses what is old. What is being written never goes.

use super::{RetentionError, remove, remove_process, remove_twins, seal};
use crate::journal::reader::peek;
use crate::journal::sealed;
use crate::layout::{SegmentPath, Store};
use crate::trace::{SessionEntry, Sessions, is_live, processes};
use agent_trace_model::{ProcessId, RunId};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What began longer ago goes; of an HTTP relay's journal, files whose last record is
    /// older.
    pub age: Option<Duration>,
    /// The oldest go until there are at most this many sessions.
    pub sessions: Option<usize>,
    /// The oldest go until all files together have at most this many bytes.
    pub bytes: Option<u64>,
}

impl Limits {
    /// Whether there is any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What to keep of all, and of each workspace: what is beyond either goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Of all workspaces together.
    pub all: Limits,
    /// Of single ones.
    pub workspaces: BTreeMap<String, Limits>,
}

impl From<Limits> for Policy {
    fn from(all: Limits) -> Self {
        Self {
            all,
            workspaces: BTreeMap::new(),
        }
    }
}

impl Policy {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.workspaces.values().all(Limits::is_empty)
    }
}

/// Why something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is too old.
    Age,
    /// There are too many sessions.
    Sessions,
    /// They take too much room.
    Bytes,
}

/// What becomes of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is kept.
    Kept,
    /// It is being written, and is kept for that.
    Live,
    /// It goes. Whether the limit is that of its workspace, or else that of all.
    Goes(Reason, bool),
}

/// Files that are removed together.
#[derive(Clone, Debug)]
pub struct Part {
    /// When they were begun, or of an HTTP relay's file when its last record was made, in
    /// nanoseconds since 1970.
    pub time: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// Their workspace.
    pub workspace: String,
    /// The sessions that go with them, newest first: those that have nothing in a later file.
    pub sessions: Vec<RunId>,
    /// What becomes of them.
    pub fate: Fate,
    files: Vec<SegmentPath>,
    /// The process, where they are all that there is of it.
    whole: Option<ProcessId>,
}

/// What goes and what stays.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Oldest first.
    pub parts: Vec<Part>,
}

impl Plan {
    /// Bytes of all files now, and when what goes is gone.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let goes = |part: &&Part| matches!(part.fate, Fate::Goes(..));
        let all = self.parts.iter().map(|part| part.bytes).sum();
        let gone: u64 = self.parts.iter().filter(goes).map(|part| part.bytes).sum();
        (all, all - gone)
    }
}

/// What applying limits did.
#[derive(Debug, Default)]
pub struct Applied {
    /// How many files were sealed.
    pub sealed: usize,
    /// The sessions that were removed.
    pub removed: Vec<SessionEntry>,
    /// Bytes of all files before and after.
    pub bytes: (u64, u64),
    /// What went wrong, file by file.
    pub failed: Vec<RetentionError>,
}

/// What would go now. What is not sealed yet will take less room once it is, so that less may
/// go for want of room than is said here.
///
/// # Errors
/// When the store cannot be listed.
pub fn plan(store: &Store, policy: &Policy) -> io::Result<Plan> {
    let runs = store.list()?.runs;
    let mut plan = Plan {
        parts: parts(store, &runs)?,
    };
    decide(&mut plan.parts, policy, now());
    Ok(plan)
}

/// Seals what is finished, then removes what is beyond the limits.
///
/// # Errors
/// When the store cannot be listed at all.
pub fn apply(store: &Store, policy: impl Into<Policy>) -> io::Result<Applied> {
    let policy = policy.into();
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
    let runs = store.list()?.runs;
    let mut parts = parts(store, &runs)?;
    decide(&mut parts, &policy, now());
    let mut changed = false;
    for part in parts {
        if !matches!(part.fate, Fate::Goes(..)) {
            continue;
        }
        let removed = match part.whole {
            Some(process) => remove_process(store, process),
            None => part
                .files
                .iter()
                .try_for_each(|file| remove(store, &file.path).map_err(Into::into)),
        };
        match removed {
            Ok(()) => changed = true,
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

/// Decides what becomes of the parts, which are given oldest first.
fn decide(parts: &mut [Part], policy: &Policy, now: Duration) {
    let mut all = Count::default();
    let mut workspaces: BTreeMap<String, Count> = BTreeMap::new();
    for part in &*parts {
        all.add(part);
        let of = workspaces.entry(part.workspace.clone()).or_default();
        of.add(part);
    }
    for at in 0..parts.len() {
        let part = &parts[at];
        if part.fate == Fate::Live {
            continue;
        }
        let own = policy.workspaces.get(&part.workspace);
        let Some(count) = workspaces.get_mut(&part.workspace) else {
            continue;
        };
        let beyond = all.beyond(part, &policy.all, now).map(|why| (why, false));
        let own = own.and_then(|limits| count.beyond(part, limits, now));
        let Some((reason, own)) = beyond.or(own.map(|why| (why, true))) else {
            continue;
        };
        for part in with_its_beginnings(parts, at, reason) {
            part.fate = Fate::Goes(reason, own);
            all.take(part);
            count.take(part);
        }
    }
}

/// A part that goes. Where that is to have fewer sessions, those before it that stayed since
/// none of its process ends in them: what is left of sessions would be there for nothing.
fn with_its_beginnings(
    parts: &mut [Part],
    at: usize,
    reason: Reason,
) -> impl Iterator<Item = &mut Part> {
    let place = |part: &Part| part.files.first().map(|file| (file.process, file.number));
    let of = place(&parts[at]);
    parts
        .iter_mut()
        .take(at + 1)
        .enumerate()
        .filter_map(move |(other, part)| {
            let begins = || {
                let (Some((process, number)), Some(of)) = (place(part), of) else {
                    return false;
                };
                reason == Reason::Sessions
                    && part.fate == Fate::Kept
                    && (process, part.sessions.len()) == (of.0, 0)
                    && number < of.1
            };
            (other == at || begins()).then_some(part)
        })
}

/// How much there is.
#[derive(Default)]
struct Count {
    sessions: usize,
    bytes: u64,
}

impl Count {
    fn add(&mut self, part: &Part) {
        self.sessions += part.sessions.len();
        self.bytes += part.bytes;
    }

    fn take(&mut self, part: &Part) {
        self.sessions = self.sessions.saturating_sub(part.sessions.len());
        self.bytes = self.bytes.saturating_sub(part.bytes);
    }

    /// Why this part is beyond the limits, with so much being there.
    fn beyond(&self, part: &Part, limits: &Limits, now: Duration) -> Option<Reason> {
        let age = now.saturating_sub(Duration::from_nanos(part.time));
        if limits.age.is_some_and(|limit| age > limit) {
            Some(Reason::Age)
        } else if !part.sessions.is_empty()
            && limits.sessions.is_some_and(|limit| self.sessions > limit)
        {
            Some(Reason::Sessions)
        } else if limits.bytes.is_some_and(|limit| self.bytes > limit) {
            Some(Reason::Bytes)
        } else {
            None
        }
    }
}

/// All that there is, oldest first.
fn parts(store: &Store, runs: &[SessionEntry]) -> io::Result<Vec<Part>> {
    let mut by_process: BTreeMap<ProcessId, Vec<&SessionEntry>> = BTreeMap::new();
    for run in runs {
        by_process.entry(run.session.process).or_default().push(run);
    }
    let mut parts = Vec::new();
    for (process, files) in processes(store)? {
        let runs = by_process.remove(&process).unwrap_or_default();
        let live = is_live(&files);
        let header = runs.first().map(|run| run.header.clone());
        let header = header.or_else(|| files.iter().find_map(|file| peek(file).ok()));
        let workspace = header.map_or(String::new(), |header| header.workspace);
        match &runs[..] {
            [run] if !run.http => parts.push(Part {
                time: run.started,
                bytes: files.iter().map(size).sum(),
                workspace,
                sessions: vec![run.id],
                fate: if live { Fate::Live } else { Fate::Kept },
                files,
                whole: Some(process),
            }),
            _ => {
                let last_of = |run: &&SessionEntry| run.segments.last().map(|file| file.number);
                for file in files {
                    let ended = runs.iter().filter(|run| last_of(run) == Some(file.number));
                    let written = live && !file.sealed;
                    parts.push(Part {
                        // Its last records are what a file is kept for.
                        time: last_time(&file),
                        bytes: size(&file),
                        workspace: workspace.clone(),
                        sessions: ended.map(|run| run.id).collect(),
                        fate: if written { Fate::Live } else { Fate::Kept },
                        files: vec![file],
                        whole: None,
                    });
                }
            }
        }
    }
    parts.sort_by_key(|part| part.time);
    Ok(parts)
}

/// When the last record of a finished file was made.
pub(super) fn last_time(file: &SegmentPath) -> u64 {
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

pub(super) fn size(segment: &SegmentPath) -> u64 {
    fs::metadata(&segment.path).map_or(0, |file| file.len())
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(hours: u64, bytes: u64, workspace: &str) -> Part {
        Part {
            time: (100 - hours) * 3_600_000_000_000,
            bytes,
            workspace: workspace.into(),
            sessions: vec![RunId::from_digest([u8::try_from(hours).unwrap(); 16])],
            fate: Fate::Kept,
            files: Vec::new(),
            whole: None,
        }
    }

    /// What becomes of four parts: 40 hours old, 30 (of another workspace), 20 and 10.
    fn fates(policy: &Policy) -> Vec<Fate> {
        let mut parts = vec![
            part(40, 10, "a"),
            part(30, 20, "b"),
            part(20, 30, "a"),
            part(10, 40, "a"),
        ];
        parts[2].fate = Fate::Live;
        decide(&mut parts, policy, Duration::from_secs(100 * 3600));
        parts.iter().map(|part| part.fate).collect()
    }

    fn hours(hours: u64) -> Limits {
        Limits {
            age: Some(Duration::from_secs(hours * 3600)),
            ..Limits::default()
        }
    }

    #[test]
    fn the_oldest_go_first_and_what_is_written_never() {
        use Fate::{Goes, Kept, Live};
        assert_eq!(fates(&Policy::default()), [Kept, Kept, Live, Kept]);
        let age = Goes(Reason::Age, false);
        assert_eq!(fates(&hours(35).into()), [age, Kept, Live, Kept]);
        assert_eq!(fates(&hours(1).into()), [age, age, Live, age]);
        let bytes = |most| Limits {
            bytes: Some(most),
            ..Limits::default()
        };
        let room = Goes(Reason::Bytes, false);
        assert_eq!(fates(&bytes(100).into()), [Kept, Kept, Live, Kept]);
        assert_eq!(fates(&bytes(80).into()), [room, room, Live, Kept]);
        assert_eq!(fates(&bytes(0).into()), [room, room, Live, room]);
        let sessions = |most| Limits {
            sessions: Some(most),
            ..Limits::default()
        };
        let many = Goes(Reason::Sessions, false);
        assert_eq!(fates(&sessions(3).into()), [many, Kept, Live, Kept]);
        assert_eq!(fates(&sessions(0).into()), [many, many, Live, many]);
    }

    #[test]
    fn files_without_sessions_do_not_go_for_there_being_too_many() {
        use Fate::{Goes, Kept};
        let of = |process: u8, number, hours, sessions| {
            let mut part = part(hours, 1, "a");
            part.sessions.truncate(sessions);
            part.files.push(SegmentPath {
                path: "x".into(),
                process: ProcessId::new(1, [process; 10]),
                number,
                sealed: true,
            });
            part
        };
        // A file that cannot be read; one whose sessions end in the second one; a third one.
        let mut parts = vec![
            of(1, 1, 40, 0),
            of(2, 1, 30, 0),
            of(2, 2, 20, 1),
            of(2, 3, 10, 1),
        ];
        let limits = |most| {
            Policy::from(Limits {
                sessions: Some(most),
                ..Limits::default()
            })
        };
        let now = Duration::from_secs(100 * 3600);
        decide(&mut parts, &limits(2), now);
        assert!(parts.iter().all(|part| part.fate == Kept));
        decide(&mut parts, &limits(1), now);
        let many = Goes(Reason::Sessions, false);
        let fates: Vec<Fate> = parts.iter().map(|part| part.fate).collect();
        assert_eq!(fates, [Kept, many, many, Kept]);
    }

    #[test]
    fn a_workspace_has_limits_of_its_own_beside_those_of_all() {
        use Fate::{Goes, Kept, Live};
        let mut policy = Policy::from(hours(35));
        policy.workspaces.insert("b".into(), hours(25));
        assert_eq!(
            fates(&policy),
            [
                Goes(Reason::Age, false),
                Goes(Reason::Age, true),
                Live,
                Kept
            ]
        );
        let limits = Limits {
            sessions: Some(2),
            ..Limits::default()
        };
        let policy = Policy {
            all: Limits::default(),
            workspaces: [("a".to_owned(), limits)].into(),
        };
        assert_eq!(
            fates(&policy),
            [Goes(Reason::Sessions, true), Kept, Live, Kept]
        );
    }
}
