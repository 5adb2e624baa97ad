//! A run with everything that was recorded of it, read from its journals.

use crate::digest::wire_keys::WireKeys;
use crate::engine::{Engine, EngineError};
use crate::indexer::{path, run_in};
use crate::keys;
use crate::rows::{ProcessRow, RunRow, SessionRow, decode};
use agent_trace_model::story::{Story, Turn};
use agent_trace_model::{RunId, SessionId};
use agent_trace_store::Store;
use agent_trace_store::journal::Header;
use agent_trace_store::journal::reader::peek;
use agent_trace_store::trace::{Session, SessionEntry, Sessions, run_id, story};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// The row of the run with this id, or of the one that also goes by it.
///
/// # Errors
/// When the index cannot be read.
pub fn find(engine: &dyn Engine, id: RunId) -> Result<Option<RunRow>, EngineError> {
    let Some(name) = engine.get(&keys::alias(id))? else {
        return Ok(None);
    };
    let Some((workspace, id)) = run_in(&name) else {
        return Ok(None);
    };
    row(engine, &keys::run(&workspace, id))
}

/// The run with this id, or the one that also goes by it: the parts of its sessions, with
/// their steps and turns. None where there is no such run. Journals that are gone or cannot
/// be read are missing in it.
///
/// # Errors
/// When the index cannot be read.
pub fn story(store: &Store, engine: &dyn Engine, id: RunId) -> Result<Option<Story>, EngineError> {
    let Some(run) = find(engine, id)? else {
        return Ok(None);
    };
    of(store, engine, &run).map(Some)
}

/// The run of this row.
///
/// # Errors
/// When the index cannot be read.
pub fn of(store: &Store, engine: &dyn Engine, run: &RunRow) -> Result<Story, EngineError> {
    let mut spans: BTreeMap<SessionId, Vec<Range<u64>>> = BTreeMap::new();
    for slice in &run.slices {
        let spans = spans.entry(slice.session).or_default();
        spans.push(slice.from..slice.to);
    }
    let mut entries = Vec::new();
    for session in spans.keys() {
        entries.extend(entry(store, engine, *session)?);
    }
    let mut sessions: Vec<Session> = Vec::new();
    store.open_each(&entries, &mut |_, session| sessions.extend(session.ok()));
    let parts: Vec<(&Session, &[Range<u64>])> = sessions
        .iter()
        .filter_map(|session| Some((session, &spans.get(&session.entry.session)?[..])))
        .collect();
    let mut story = story::of_parts(run.id, run.aliases.clone(), &parts);
    story.workspace.clone_from(&run.workspace);
    story.project.clone_from(&run.project);
    story.turns = turns(run);
    fill_turns(&mut story);
    Ok(story)
}

/// A session as it is opened: what its rows say of its files is enough.
fn entry(
    store: &Store,
    engine: &dyn Engine,
    session: SessionId,
) -> Result<Option<SessionEntry>, EngineError> {
    let known: Option<SessionRow> = row(engine, &keys::session(session))?;
    let process: Option<ProcessRow> = row(engine, &keys::process(session.process))?;
    let (Some(known), Some(process)) = (known, process) else {
        return Ok(None);
    };
    let (first, last) = known.files;
    let within = |number: u32| !process.http || (first..=last).contains(&number);
    let files = process.files.iter().filter(|file| within(file.number));
    let segments: Vec<_> = files
        .map(|file| path(store, session.process, file))
        .collect();
    // A journal that was sealed since: it is where the store says.
    let segments = match segments.iter().all(|segment| segment.path.exists()) {
        true => segments,
        false => files_now(store, session, within),
    };
    let header = segments.iter().find_map(|segment| peek(segment).ok());
    Ok(Some(SessionEntry {
        id: run_id(&known.workspace, session),
        session,
        http: process.http,
        started: known.started,
        header: header.unwrap_or_else(|| Header::unknown(session.process)),
        live: known.standing == agent_trace_model::story::Standing::Live,
        segments,
    }))
}

fn files_now(
    store: &Store,
    session: SessionId,
    within: impl Fn(u32) -> bool,
) -> Vec<agent_trace_store::layout::SegmentPath> {
    let all = store.files_of(session.process).unwrap_or_default();
    let all = all
        .into_iter()
        .filter_map(agent_trace_store::layout::SegmentPath::parse);
    let mut all: Vec<_> = all.filter(|file| within(file.number)).collect();
    all.sort_by_key(|file| (file.number, !file.sealed));
    all.dedup_by_key(|file| file.number);
    all
}

fn turns(run: &RunRow) -> Vec<Turn> {
    let turn = |turn: &crate::rows::TurnRow| Turn {
        id: turn.id.clone(),
        started: turn.started,
    };
    run.turns.iter().map(turn).collect()
}

/// Says of each step which prompt it belongs to: the one that its request names, else the last
/// one that had begun.
fn fill_turns(story: &mut Story) {
    if story.turns.is_empty() {
        return;
    }
    let known: HashMap<String, usize> = story
        .turns
        .iter()
        .enumerate()
        .map(|(position, turn)| (turn.id.clone(), position))
        .collect();
    for step in &mut story.steps {
        let request = step.request.as_ref().filter(|_| step.from == CLIENT);
        let named = request.and_then(|request| WireKeys::of(&request.text).turn);
        let named = named.and_then(|id| known.get(&id).copied());
        let begun = story
            .turns
            .partition_point(|turn| turn.started <= step.wall);
        step.turn = named.or_else(|| begun.checked_sub(1));
    }
}

const CLIENT: agent_trace_model::Stream = agent_trace_model::Stream::ClientToServer;

fn row<T: serde::de::DeserializeOwned>(
    engine: &dyn Engine,
    key: &[u8],
) -> Result<Option<T>, EngineError> {
    Ok(engine.get(key)?.and_then(|row| decode(&row)))
}
