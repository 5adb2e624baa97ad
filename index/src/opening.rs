//! From a run's row to its story: the files that hold its sessions are found, read, and cut to
//! the parts that belong to the run.

use crate::engine::{Engine, EngineError};
use crate::keys;
use crate::rows::{self, ProcessRow, RunRow, SessionRow};
use crate::runs::RunsError;
use crate::turns;
use agent_trace_model::SessionId;
use agent_trace_model::story::Story;
use agent_trace_store::Store;
use agent_trace_store::journal::reader::OpenError;
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::trace::{self, Session, SessionEntry, Sessions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// The folder of journals that are not sealed yet.
const LIVE: &str = "live";

/// Which files hold a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFiles {
    /// The session.
    #[serde(with = "rows::compact::session")]
    pub session: SessionId,
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// Whether it shares its files with other sessions (HTTP).
    pub http: bool,
    /// Numbers of the files, and the folders below that of the journals that they lie in.
    pub files: Vec<(u32, String)>,
}

impl SessionFiles {
    /// Where the files are.
    pub fn paths<'a>(&'a self, store: &'a Store) -> impl Iterator<Item = SegmentPath> + 'a {
        let process = self.session.process;
        self.files.iter().map(move |(number, folder)| {
            let sealed = folder != LIVE;
            let name = SegmentPath::name(process, *number, sealed);
            SegmentPath {
                path: store.journals().join(folder).join(name),
                process,
                number: *number,
                sealed,
            }
        })
    }
}

/// Which files hold the sessions of a run.
///
/// # Errors
/// When the index cannot be read.
pub fn files(engine: &dyn Engine, row: &RunRow) -> Result<Vec<SessionFiles>, EngineError> {
    let sessions: BTreeSet<SessionId> = row.slices.iter().map(|s| s.session).collect();
    let mut all = Vec::with_capacity(sessions.len());
    for session in sessions {
        let own = engine.get(&keys::session(session))?;
        let process = engine.get(&keys::process(session.process))?;
        let own: Option<SessionRow> = own.as_deref().and_then(rows::decode);
        let process: Option<ProcessRow> = process.as_deref().and_then(rows::decode);
        let (Some(own), Some(process)) = (own, process) else {
            continue;
        };
        let (first, last) = own.files;
        let within = |number: u32| !process.http || (first..=last).contains(&number);
        let files = process.files.into_iter();
        let files = files.filter(|file| within(file.number));
        all.push(SessionFiles {
            session,
            started: own.started,
            http: process.http,
            files: files.map(|file| (file.number, file.folder)).collect(),
        });
    }
    Ok(all)
}

/// The story of the run of this row.
///
/// # Errors
/// When the index or all of a session's files cannot be read.
pub fn story(store: &Store, engine: &dyn Engine, row: &RunRow) -> Result<Story, RunsError> {
    let files = files(engine, row)?;
    Ok(open(store, row, &files)?.story(row))
}

/// The sessions of a run, read from their journals.
#[derive(Debug)]
pub struct Opened {
    /// Each whole, in the order of their ids.
    pub sessions: Vec<Session>,
    /// Why others cannot be read: none of their files can.
    pub unreadable: Vec<OpenError>,
}

/// Reads the sessions of a run.
///
/// # Errors
/// When none of them can be read.
pub fn open(store: &Store, row: &RunRow, files: &[SessionFiles]) -> Result<Opened, OpenError> {
    let (mut known, mut unreadable) = (Vec::new(), Vec::new());
    for files in files {
        match entry(store, files) {
            Ok(entry) => known.push(entry),
            Err(error) => unreadable.push(error),
        }
    }
    let mut sessions: Vec<Option<Session>> = known.iter().map(|_| None).collect();
    store.open_each(&known, &mut |position, opened| match opened {
        Ok(session) => sessions[position] = Some(session),
        Err(error) => unreadable.push(error),
    });
    let sessions: Vec<Session> = sessions.into_iter().flatten().collect();
    match unreadable.pop() {
        Some(error) if sessions.is_empty() && !row.slices.is_empty() => Err(error),
        error => {
            unreadable.extend(error);
            Ok(Opened {
                sessions,
                unreadable,
            })
        }
    }
}

/// What is known of the sessions before they are read.
///
/// # Errors
/// When none of a session's files can be read.
pub fn entries(store: &Store, files: &[SessionFiles]) -> Result<Vec<SessionEntry>, OpenError> {
    files.iter().map(|files| entry(store, files)).collect()
}

fn entry(store: &Store, files: &SessionFiles) -> Result<SessionEntry, OpenError> {
    let paths = files.paths(store).collect();
    trace::entry(store, files.session, files.http, files.started, paths)
}

impl Opened {
    /// The run as one story.
    #[must_use]
    pub fn story(&self, row: &RunRow) -> Story {
        let spans = |session: &Session| {
            let id = session.entry.session;
            let own = row.slices.iter().filter(|slice| slice.session == id);
            own.map(|slice| slice.from..slice.to).collect()
        };
        let spans: Vec<Vec<Range<u64>>> = self.sessions.iter().map(spans).collect();
        let parts = self.sessions.iter().zip(&spans);
        let parts: Vec<_> = parts
            .map(|(session, spans)| (session, &spans[..]))
            .collect();
        let mut story = trace::story::of_parts(row.id, row.aliases.clone(), &parts);
        story.workspace.clone_from(&row.workspace);
        story.project.clone_from(&row.project);
        story.task.clone_from(&row.task);
        turns::fill(&mut story, row);
        story
    }
}
