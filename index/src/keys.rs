//! The keys of the index: one ordered tree, the first byte names the kind of row.
//!
//! All numbers are big-endian, so that the order of keys is the order of what they name. A
//! workspace stands with a zero byte behind it; it cannot hold one itself. Ids are their 16
//! bytes, sessions those of their process with the ordinal behind.
//!
//! ```text
//! V                                          schema version and settings that rows depend on
//! R workspace 0 !started run                 RunRow        newest first
//! A workspace 0 task(16) !started run        ()            runs of a task, newest first
//! L id                                       NameRow: its own id, and the others that it
//!                                            goes by
//! S process ordinal                          SessionRow
//! P process                                  ProcessRow
//! K workspace 0 key(16) process ordinal part KeyRow        parts of sessions by what joins them
//! M process ordinal part                     NameRow: which run a part belongs to
//! D folder                                   when it was changed when it was read
//! U process                                  why files of it cannot be read, where any cannot
//! F process ordinal                          FiledRow      what was found in results, if anything
//! I workspace 0 server(16) list(32)          ListRow       a list of definitions of a server
//! X workspace 0 !started run                 ()            runs in which something was found across servers
//! O workspace 0 server(16) list(32) view(8) wall process ordinal
//!                                            SeenRow       who was told it, and when first
//! ```

use crate::rows::GroupKey;
use agent_trace_model::{ProcessId, RunId, SessionId};
use agent_trace_scanners::pin::Hash;

/// The kinds of rows, by the first byte of their keys.
pub mod kind {
    /// What the rows were made by.
    pub const VERSION: u8 = b'V';
    /// Runs by the time when they began, newest first.
    pub const RUN: u8 = b'R';
    /// Runs of a task by the time when they began, newest first.
    pub const TASK: u8 = b'A';
    /// Other ids of runs.
    pub const ALIAS: u8 = b'L';
    /// Kinds of which the keys that are written at a time are near to each other: they are in
    /// the order of time.
    pub const IN_TIME: &[u8] = &[RUN, SESSION, PROCESS, MEMBER];
    /// Sessions.
    pub const SESSION: u8 = b'S';
    /// Processes: how far their journals were read.
    pub const PROCESS: u8 = b'P';
    /// Parts of sessions by what joins them to others.
    pub const KEY: u8 = b'K';
    /// The run that each part of a session belongs to.
    pub const MEMBER: u8 = b'M';
    /// Folders of journals: when each was changed when it was read.
    pub const FOLDER: u8 = b'D';
    /// Processes of which files cannot be read, and why.
    pub const UNREADABLE: u8 = b'U';
    /// What was found in the results of sessions.
    pub const FILED: u8 = b'F';
    /// Lists of definitions.
    pub const LIST: u8 = b'I';
    /// Runs in which something was found that only shows in several servers.
    pub const ACROSS: u8 = b'X';
    /// Sessions that were told a list.
    pub const SEEN: u8 = b'O';
}

/// The key of the row that says what the others were made by.
#[must_use]
pub fn version() -> Vec<u8> {
    vec![kind::VERSION]
}

/// The prefix of all runs of a workspace, the newest first.
#[must_use]
pub fn runs_of(workspace: &str) -> Vec<u8> {
    of_workspace(kind::RUN, workspace)
}

/// The key of a run, by the time when it began: newer ones come first. So runs are written, as
/// they are read, beside those of the same time: of an ordered tree few places change.
#[must_use]
pub fn run(workspace: &str, started: u64, run: RunId) -> Vec<u8> {
    by_time(runs_of(workspace), started, run)
}

/// The prefix of the runs of a task by time.
#[must_use]
pub fn runs_of_task(workspace: &str, task: &str) -> Vec<u8> {
    let mut key = of_workspace(kind::TASK, workspace);
    key.extend_from_slice(&blake3::hash(task.as_bytes()).as_bytes()[..16]);
    key
}

/// The key under which a run stands among those of its task: newer ones come first.
#[must_use]
pub fn run_of_task(workspace: &str, task: &str, started: u64, run: RunId) -> Vec<u8> {
    by_time(runs_of_task(workspace, task), started, run)
}

/// When a run began and which it is, by its key below such a prefix.
#[must_use]
pub fn run_below(prefix: &[u8], key: &[u8]) -> Option<(u64, RunId)> {
    let (started, run) = key.get(prefix.len()..)?.split_first_chunk::<8>()?;
    let run = RunId::from_bytes(run.try_into().ok()?);
    Some((!u64::from_be_bytes(*started), run))
}

fn by_time(mut key: Vec<u8>, started: u64, run: RunId) -> Vec<u8> {
    key.extend_from_slice(&(!started).to_be_bytes());
    key.extend_from_slice(run.as_bytes());
    key
}

/// The workspace, when it began, and which run it is, by the key of a run.
#[must_use]
pub fn run_in(key: &[u8]) -> Option<(String, u64, RunId)> {
    let (rest, run) = key.split_last_chunk::<16>()?;
    let (rest, started) = rest.split_last_chunk::<8>()?;
    let workspace = rest.strip_prefix(&[kind::RUN])?.strip_suffix(&[0])?;
    let workspace = str::from_utf8(workspace).ok()?.to_owned();
    let started = !u64::from_be_bytes(*started);
    Some((workspace, started, RunId::from_bytes(*run)))
}

/// The prefix of the ids that runs also go by, and that begin with these bytes.
#[must_use]
pub fn aliases_of(begin: &[u8]) -> Vec<u8> {
    [&[kind::ALIAS][..], begin].concat()
}

/// The key of an id that a run also goes by.
#[must_use]
pub fn alias(alias: RunId) -> Vec<u8> {
    let mut key = vec![kind::ALIAS];
    key.extend_from_slice(alias.as_bytes());
    key
}

/// The key of why files of a process cannot be read.
#[must_use]
pub fn unreadable(process: ProcessId) -> Vec<u8> {
    of_process(kind::UNREADABLE, process)
}

/// The key of a session.
#[must_use]
pub fn session(session: SessionId) -> Vec<u8> {
    of_session(kind::SESSION, session)
}

/// The key of what was found in the results of a session.
#[must_use]
pub fn filed(session: SessionId) -> Vec<u8> {
    of_session(kind::FILED, session)
}

/// The prefix of all lists that sessions of a workspace were told.
#[must_use]
pub fn seen_in(workspace: &str) -> Vec<u8> {
    of_workspace(kind::SEEN, workspace)
}

/// The prefix of the sessions that were told a list by a server.
#[must_use]
pub fn seen_of(workspace: &str, server: &str, list: &Hash) -> Vec<u8> {
    let mut key = seen_in(workspace);
    key.extend_from_slice(&server_digest(server));
    key.extend_from_slice(list);
    key
}

/// The key of a session that was told a list by a server, at this time, in nanoseconds since
/// 1970.
#[must_use]
pub fn seen(
    (workspace, server): (&str, &str),
    list: &Hash,
    view: [u8; 8],
    wall: u64,
    session: SessionId,
) -> Vec<u8> {
    let mut key = seen_of(workspace, server, list);
    key.extend_from_slice(&view);
    key.extend_from_slice(&wall.to_be_bytes());
    key.extend_from_slice(session.process.as_bytes());
    key.extend_from_slice(&session.ordinal.to_be_bytes());
    key
}

/// What a key of [`seen`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The digest of what identifies the server.
    pub server: [u8; 16],
    /// The list.
    pub list: Hash,
    /// Who was told it.
    pub view: [u8; 8],
    /// When, in nanoseconds since 1970.
    pub wall: u64,
    /// The length of what stands before that.
    pub length: usize,
}

/// What a key of [`seen`] says. `prefix`: that of the workspace.
#[must_use]
pub fn seen_at(prefix: &[u8], key: &[u8]) -> Option<Seen> {
    let rest = key.strip_prefix(prefix)?;
    let (server, rest) = rest.split_first_chunk::<16>()?;
    let (list, rest) = rest.split_first_chunk::<32>()?;
    let (view, rest) = rest.split_first_chunk::<8>()?;
    let (wall, _) = rest.split_first_chunk::<8>()?;
    Some(Seen {
        server: *server,
        list: *list,
        view: *view,
        wall: u64::from_be_bytes(*wall),
        length: key.len() - rest.len(),
    })
}

/// The key of a list of definitions of a server.
#[must_use]
pub fn list(workspace: &str, server: &str, list: &Hash) -> Vec<u8> {
    list_of(workspace, server_digest(server), list)
}

/// The same by the digest of what identifies the server.
#[must_use]
pub fn list_of(workspace: &str, server: [u8; 16], list: &Hash) -> Vec<u8> {
    let mut key = of_workspace(kind::LIST, workspace);
    key.extend_from_slice(&server);
    key.extend_from_slice(list);
    key
}

/// The prefix of all lists of a workspace.
#[must_use]
pub fn list_prefix(workspace: &str) -> Vec<u8> {
    of_workspace(kind::LIST, workspace)
}

/// The prefix of the sessions that were told the list with this key.
#[must_use]
pub fn seen_by_list(list: &[u8]) -> Vec<u8> {
    let mut key = list.to_vec();
    if let Some(first) = key.first_mut() {
        *first = kind::SEEN;
    }
    key
}

/// The prefix of the runs of a workspace in which something was found across servers.
#[must_use]
pub fn across_of(workspace: &str) -> Vec<u8> {
    of_workspace(kind::ACROSS, workspace)
}

/// The key of such a run.
#[must_use]
pub fn across(workspace: &str, started: u64, run: RunId) -> Vec<u8> {
    by_time(across_of(workspace), started, run)
}

/// The session in the key of one.
#[must_use]
pub fn session_in(key: &[u8]) -> Option<SessionId> {
    let ordinal = key.get(17..)?.first_chunk::<4>()?;
    Some(SessionId {
        process: process_in(key)?,
        ordinal: u32::from_be_bytes(*ordinal),
    })
}

/// What stands in keys for what identifies a server.
#[must_use]
pub fn server_digest(server: &str) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(server.as_bytes()).as_bytes()[..16]);
    digest
}

/// The key of a folder of journals.
#[must_use]
pub fn folder(name: &str) -> Vec<u8> {
    let mut key = vec![kind::FOLDER];
    key.extend_from_slice(name.as_bytes());
    key
}

/// The key of a process.
#[must_use]
pub fn process(process: ProcessId) -> Vec<u8> {
    of_process(kind::PROCESS, process)
}

/// The prefix of all parts that a key joins.
#[must_use]
pub fn joined_by(workspace: &str, joined_by: &GroupKey) -> Vec<u8> {
    let mut key = of_workspace(kind::KEY, workspace);
    key.extend_from_slice(&joined_by.digest());
    key
}

/// The key of a part among those that a key joins.
#[must_use]
pub fn joined(workspace: &str, by: &GroupKey, session: SessionId, part: u32) -> Vec<u8> {
    let mut key = joined_by(workspace, by);
    key.extend_from_slice(session.process.as_bytes());
    key.extend_from_slice(&session.ordinal.to_be_bytes());
    key.extend_from_slice(&part.to_be_bytes());
    key
}

/// The prefix of the runs that a session's parts belong to.
#[must_use]
pub fn members_of(session: SessionId) -> Vec<u8> {
    of_session(kind::MEMBER, session)
}

/// The key of the run that a part of a session belongs to.
#[must_use]
pub fn member(session: SessionId, part: u32) -> Vec<u8> {
    let mut key = members_of(session);
    key.extend_from_slice(&part.to_be_bytes());
    key
}

/// The session and the part at the end of a key of [`joined`] or [`member`].
#[must_use]
pub fn part_at_end(key: &[u8]) -> Option<(SessionId, u32)> {
    let (rest, part) = key.split_last_chunk::<4>()?;
    let (rest, ordinal) = rest.split_last_chunk::<4>()?;
    let (_, process) = rest.split_last_chunk::<16>()?;
    let session = SessionId {
        process: ProcessId::from_bytes(*process),
        ordinal: u32::from_be_bytes(*ordinal),
    };
    Some((session, u32::from_be_bytes(*part)))
}

/// The process, and the ordinal where there is one, in the key of a session or a process.
#[must_use]
pub fn process_in(key: &[u8]) -> Option<ProcessId> {
    let id = key.get(1..)?.first_chunk::<16>()?;
    Some(ProcessId::from_bytes(*id))
}

/// The run at the end of a key of [`run`].
#[must_use]
pub fn run_at_end(key: &[u8]) -> Option<RunId> {
    let (_, id) = key.split_last_chunk::<16>()?;
    Some(RunId::from_bytes(*id))
}

fn of_workspace(kind: u8, workspace: &str) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend(workspace.bytes().map(|byte| byte.max(1)));
    key.push(0);
    key
}

fn of_process(kind: u8, process: ProcessId) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(process.as_bytes());
    key
}

fn of_session(kind: u8, session: SessionId) -> Vec<u8> {
    let mut key = of_process(kind, session.process);
    key.extend_from_slice(&session.ordinal.to_be_bytes());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_runs_come_first_and_workspaces_do_not_mix() {
        let id = RunId::from_bytes([7; 16]);
        assert!(run("a", 2, id) < run("a", 1, id));
        assert!(!run("ab", 2, id).starts_with(&runs_of("a")));
        assert_eq!(run_at_end(&run("a", 2, id)), Some(id));
        assert_eq!(run_in(&run("a", 2, id)), Some(("a".into(), 2, id)));
    }

    #[test]
    fn tasks_do_not_mix() {
        let run = RunId::from_bytes([7; 16]);
        let prefix = runs_of_task("w", "a");
        let key = run_of_task("w", "a", 5, run);
        assert_eq!(run_below(&prefix, &key), Some((5, run)));
        assert!(!run_of_task("w", "b", 5, run).starts_with(&prefix));
        assert!(!run_of_task("v", "a", 5, run).starts_with(&prefix));
    }

    #[test]
    fn a_part_is_found_at_the_end_of_its_keys() {
        let session = SessionId {
            process: ProcessId::from_bytes([3; 16]),
            ordinal: 9,
        };
        let by = GroupKey::Trace("x".into());
        for key in [member(session, 4), joined("w", &by, session, 4)] {
            assert_eq!(part_at_end(&key), Some((session, 4)));
        }
        assert_eq!(process_in(&super::session(session)), Some(session.process));
    }
}
