//! Findings that are filed: of one run, and of all that was recorded.

use crate::engine::Engine;
use crate::fit::{Cut, Fit};
use crate::keys::{self, kind};
use crate::listing::Projects;
use crate::local::Local;
use crate::pins::{CHANGED, PinChange};
use crate::rows::scan::count;
use crate::rows::{
    self, CodeTally, FiledRow, FoundAt, FoundRow, ListRow, NameRow, RunRow, SeenRow,
};
use crate::rows::{SessionRow, StepAt};
use crate::runs::RunsError;
use agent_trace_model::story::Story;
use agent_trace_model::{RunId, SessionId};
use agent_trace_scanners::Finding;
use agent_trace_scanners::Severity;
use agent_trace_scanners::pin::diff;
use agent_trace_scanners::run::InRun;
use agent_trace_store::trace::Session;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// The most findings of a run that are told.
pub const MOST: usize = agent_trace_scanners::run::MOST;

/// A finding in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filed {
    /// The step in whose answer it stands.
    pub at: StepAt,
    /// What the server is called.
    pub server: String,
    /// What was found.
    pub found: FoundRow,
}

/// What is asked of all that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanQuery {
    /// The workspace.
    pub workspace: String,
    /// The project directories.
    #[serde(default)]
    pub projects: Projects,
    /// Only what is at least as bad.
    pub least: Severity,
    /// Only after so many.
    #[serde(default)]
    pub after: usize,
}

/// What was found in all that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreScan {
    /// What was found, the most severe first; what is the same in several sessions once.
    pub findings: Vec<InStore>,
    /// Where to go on; none where there are no more.
    #[serde(default)]
    pub next: Option<usize>,
    /// How many servers there are.
    pub servers: u64,
    /// How many tools they define, each form counted once.
    pub tools: u64,
    /// How many other definitions.
    pub others: u64,
}

/// A finding in what was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InStore {
    /// What identifies the server.
    pub identity: String,
    /// What it is called.
    pub server: String,
    /// What was found.
    pub found: FoundRow,
    /// In how many sessions.
    pub sessions: u64,
    /// The step in whose answer it was first seen.
    pub at: StepAt,
    /// The run that this is in.
    pub run: Option<RunId>,
    /// The number of the step in that run, where it can be told without reading it.
    pub step: Option<u64>,
    /// What changed, field by field, of a definition that did.
    #[serde(default)]
    pub fields: Vec<diff::Change>,
}

impl Cut for InStore {
    fn cut(&mut self, most: usize) -> u64 {
        let left = self.fields.len().saturating_sub(most) as u64;
        self.fields.truncate(most);
        left
    }
}

/// What changed in the definitions of servers, by the session that was told so first.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    of: HashMap<SessionId, Vec<Filed>>,
    runs: HashMap<RunId, Vec<CodeTally>>,
}

impl Changes {
    /// How many there are in a run.
    pub(crate) fn in_run(&self, run: RunId) -> &[CodeTally] {
        self.runs.get(&run).map_or(&[], |tally| tally)
    }
}

impl InStore {
    /// Something that was found, before it is counted in how many sessions.
    fn of(identity: String, server: String, found: FoundRow, at: StepAt) -> Self {
        Self {
            identity,
            server,
            found,
            sessions: 0,
            at,
            run: None,
            step: None,
            fields: Vec::new(),
        }
    }
}

impl Local {
    /// What changed in these projects of a workspace.
    pub(crate) fn changes(
        &self,
        workspace: &str,
        projects: &Projects,
    ) -> Result<Changes, RunsError> {
        let mut changes = Changes::default();
        for pin in self.all_pins(workspace, projects, false)? {
            for change in pin.changes {
                let PinChange {
                    at, called, found, ..
                } = change;
                if let Some((_, run, _)) = self.run_of(at)? {
                    let tally = changes.runs.entry(run).or_default();
                    count(tally, CHANGED, found.severity, 1);
                }
                let filed = Filed {
                    at,
                    server: called,
                    found,
                };
                changes.of.entry(at.session).or_default().push(filed);
            }
        }
        Ok(changes)
    }

    /// What was found in a run, in the order of its steps, and how much more.
    pub(crate) fn filed(
        &self,
        run: &RunRow,
        changes: &Changes,
    ) -> Result<(Vec<Filed>, u64), RunsError> {
        let (mut all, mut more) = (Vec::new(), 0);
        let sessions: BTreeSet<SessionId> = run.slices.iter().map(|s| s.session).collect();
        let mut names = HashMap::new();
        for session in sessions {
            let slices = run.slices.iter().filter(|slice| slice.session == session);
            let slices: Vec<_> = slices.collect();
            let within = |at: &StepAt| slices.iter().any(|slice| slice.holds(at.monotonic));
            let Some(row) = self.session_row(session)? else {
                continue;
            };
            for list in row.lists.iter().filter(|list| within(&list.at)) {
                let key = keys::list(&row.workspace, &row.identity, &list.list);
                let listed: Option<ListRow> = self.decoded(&key)?;
                let listed = listed.unwrap_or_default();
                more += listed.more;
                all.extend(listed.found.into_iter().map(|found| (list.at, found)));
            }
            let filed: Option<FiledRow> = self.decoded(&keys::filed(session))?;
            let filed = filed.unwrap_or_default();
            more += filed.more;
            let found = filed.found.into_iter().filter(|found| within(&found.at));
            all.extend(found.map(|found| (found.at, found.found)));
            let changed = changes.of.get(&session).into_iter().flatten();
            let changed = changed.filter(|filed| within(&filed.at));
            all.extend(changed.map(|filed| (filed.at, filed.found.clone())));
            names.insert(session, row.server);
        }
        let across = run.across.iter();
        all.extend(across.map(|found| (found.at, found.found.clone())));
        all.sort_by_key(|(at, _)| *at);
        more += all.len().saturating_sub(MOST) as u64;
        all.truncate(MOST);
        let filed = |(at, found): (StepAt, FoundRow)| Filed {
            server: names.get(&at.session).cloned().unwrap_or_default(),
            at,
            found,
        };
        Ok((all.into_iter().map(filed).collect(), more))
    }

    /// What was found in all that was recorded.
    pub(crate) fn scanned(&self, query: &ScanQuery) -> Result<StoreScan, RunsError> {
        let mut all = Vec::new();
        let mut scan = StoreScan::default();
        self.in_lists(query, &mut scan, &mut all)?;
        self.in_results(query, &mut all)?;
        self.in_runs(query, &mut all)?;
        for pin in self.all_pins(&query.workspace, &query.projects, false)? {
            for change in pin.changes {
                if change.found.severity >= query.least {
                    all.push(InStore {
                        identity: pin.server.clone(),
                        server: change.called,
                        found: change.found,
                        sessions: 1,
                        at: change.at,
                        run: None,
                        step: None,
                        fields: change.fields,
                    });
                }
            }
        }
        let rank = |one: &InStore| (std::cmp::Reverse(one.found.severity), one.at);
        all.sort_by(|one, other| {
            let place = |one: &InStore| (one.found.code.clone(), one.found.pointer.clone());
            rank(one)
                .cmp(&rank(other))
                .then_with(|| place(one).cmp(&place(other)))
        });
        let mut fit = Fit::default();
        for (position, mut one) in all.into_iter().enumerate().skip(query.after) {
            if scan.findings.len() == MOST || !fit.takes(&mut one) {
                scan.next = Some(position);
                break;
            }
            if let Some((_, run, step)) = self.run_of(one.at)? {
                (one.run, one.step) = (Some(run), step);
            }
            scan.findings.push(one);
        }
        Ok(scan)
    }

    /// What was found in definitions.
    fn in_lists(
        &self,
        query: &ScanQuery,
        scan: &mut StoreScan,
        all: &mut Vec<InStore>,
    ) -> Result<(), RunsError> {
        let mut lists: Vec<(Vec<u8>, ListRow)> = Vec::new();
        let prefix = keys::list_prefix(&query.workspace);
        self.engine().scan(&prefix, None, &mut |key, row| {
            lists.extend(rows::decode(row).map(|row| (key.to_vec(), row)));
            true
        })?;
        let mut definitions = BTreeSet::new();
        let mut servers = BTreeSet::new();
        for (key, row) in lists {
            let seen = keys::seen_by_list(&key);
            let is_bad = |found: &FoundRow| found.severity >= query.least;
            let is_found = row.found.iter().any(is_bad);
            let (mut sessions, mut first) = (0, None::<SeenRow>);
            self.engine().scan(&seen, None, &mut |_, seen| {
                let seen = rows::decode::<SeenRow>(seen);
                let own = seen.filter(|seen| query.projects.include(seen.project.as_deref()));
                if let Some(seen) = own {
                    sessions += 1;
                    if first.as_ref().is_none_or(|first| seen.at < first.at) {
                        first = Some(seen);
                    }
                }
                // How many there are is told with what was found.
                is_found || first.is_none()
            })?;
            let Some(first) = first else { continue };
            servers.insert(row.identity.clone());
            for one in &row.definitions {
                definitions.insert((row.identity.clone(), one.kind, one.hash));
            }
            for found in row.found.into_iter().filter(is_bad) {
                all.push(InStore {
                    identity: row.identity.clone(),
                    server: first.server.clone(),
                    found,
                    sessions,
                    at: first.at,
                    run: None,
                    step: None,
                    fields: Vec::new(),
                });
            }
        }
        let tools = definitions.iter();
        let tools = tools.filter(|(_, kind, _)| *kind == agent_trace_scanners::pin::Kind::Tool);
        scan.tools = tools.count() as u64;
        scan.others = definitions.len() as u64 - scan.tools;
        scan.servers = servers.len() as u64;
        Ok(())
    }

    /// What was found in results.
    fn in_results(&self, query: &ScanQuery, all: &mut Vec<InStore>) -> Result<(), RunsError> {
        let mut filed: Vec<(SessionId, Vec<FoundAt>)> = Vec::new();
        self.engine().scan(&[kind::FILED], None, &mut |key, row| {
            let row = rows::decode::<FiledRow>(row).unwrap_or_default();
            let found = row.found.into_iter();
            let found: Vec<FoundAt> = found
                .filter(|found| found.found.severity >= query.least)
                .collect();
            if let Some(first) = keys::session_in(key).filter(|_| !found.is_empty()) {
                filed.push((first, found));
            }
            true
        })?;
        type Same = (String, String, Option<String>, String, String);
        let mut same: BTreeMap<Same, InStore> = BTreeMap::new();
        for (session, found) in filed {
            let Some(row) = self.session_row(session)? else {
                continue;
            };
            if row.workspace != query.workspace || !query.projects.include(row.project.as_deref()) {
                continue;
            }
            let mut here = BTreeSet::new();
            for FoundAt { at, found } in found {
                let key = (
                    found.code.clone(),
                    row.identity.clone(),
                    found.tool.clone(),
                    found.pointer.clone(),
                    found.quote.clone(),
                );
                let is_new = here.insert(key.clone());
                let known = same.entry(key).or_insert_with(|| {
                    InStore::of(row.identity.clone(), row.server.clone(), found, at)
                });
                known.at = known.at.min(at);
                known.sessions += u64::from(is_new);
            }
        }
        all.extend(same.into_values());
        Ok(())
    }

    /// What only shows in several servers of a run.
    fn in_runs(&self, query: &ScanQuery, all: &mut Vec<InStore>) -> Result<(), RunsError> {
        let prefix = keys::across_of(&query.workspace);
        let mut runs = Vec::new();
        self.engine().scan(&prefix, None, &mut |key, _| {
            runs.extend(keys::run_below(&prefix, key));
            true
        })?;
        let mut same: BTreeMap<(String, String, Option<String>, String), InStore> = BTreeMap::new();
        for (started, run) in runs {
            let row: Option<RunRow> = self.decoded(&keys::run(&query.workspace, started, run))?;
            let Some(row) = row.filter(|row| query.projects.include(row.project.as_deref())) else {
                continue;
            };
            for FoundAt { at, found } in row.across {
                if found.severity < query.least {
                    continue;
                }
                let session = self.session_row(at.session)?;
                let (identity, server) = session
                    .map(|session| (session.identity, session.server))
                    .unwrap_or_default();
                let key = (
                    found.code.clone(),
                    identity.clone(),
                    found.tool.clone(),
                    found.decoded.clone().unwrap_or_default(),
                );
                let known = same
                    .entry(key)
                    .or_insert_with(|| InStore::of(identity, server, found, at));
                known.at = known.at.min(at);
                known.sessions += 1;
            }
        }
        all.extend(same.into_values());
        Ok(())
    }

    fn session_row(&self, session: SessionId) -> Result<Option<SessionRow>, RunsError> {
        self.decoded(&keys::session(session))
    }

    fn decoded<T: serde::de::DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, RunsError> {
        Ok(self.engine().get(key)?.as_deref().and_then(rows::decode))
    }

    /// The run that a step belongs to, with its workspace, and the step's number in it where
    /// that is the one in its session.
    fn run_of(&self, at: StepAt) -> Result<Option<(String, RunId, Option<u64>)>, RunsError> {
        run_of(&**self.engine(), at)
    }
}

fn run_of(
    engine: &dyn Engine,
    at: StepAt,
) -> Result<Option<(String, RunId, Option<u64>)>, RunsError> {
    let row = engine.get(&keys::session(at.session))?;
    let Some(row) = row.as_deref().and_then(rows::decode::<SessionRow>) else {
        return Ok(None);
    };
    let after = row.parts.partition_point(|part| part.from <= at.monotonic);
    let part = u32::try_from(after.saturating_sub(1)).unwrap_or(u32::MAX);
    let member = engine.get(&keys::member(at.session, part))?;
    let Some(name) = member.as_deref().and_then(rows::decode::<NameRow>) else {
        return Ok(None);
    };
    let row = engine.get(&name.key())?;
    let row: Option<RunRow> = row.as_deref().and_then(rows::decode);
    let alone = row.is_some_and(|row| row.slices.len() == 1) && part == 0;
    Ok(Some((name.workspace, name.run, alone.then_some(at.number))))
}

/// The findings of a run with the numbers of its steps in its story, which was made of these
/// sessions. Those whose step it does not have are left out.
#[must_use]
pub fn in_story(story: &Story, row: &RunRow, sessions: &[Session], filed: &[Filed]) -> Vec<InRun> {
    if filed.is_empty() {
        return Vec::new();
    }
    let mut steps: HashMap<(SessionId, u64), usize> = HashMap::new();
    for (position, told) in story.sessions.iter().enumerate() {
        let Some(session) = sessions.iter().find(|s| s.entry.session == told.id) else {
            continue;
        };
        let slices = row.slices.iter().filter(|slice| slice.session == told.id);
        let slices: Vec<_> = slices.collect();
        // Requests that are read together began at the same time; their order is kept.
        let mut numbers: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
        for step in story.steps.iter().filter(|step| step.session == position) {
            numbers.entry(step.wall).or_default().push_back(step.number);
        }
        for step in session.steps.iter() {
            if slices.iter().any(|slice| slice.holds(step.monotonic))
                && let Some(number) = numbers.get_mut(&step.wall).and_then(VecDeque::pop_front)
            {
                steps.insert((told.id, step.number as u64), number);
            }
        }
    }
    let found = filed.iter().filter_map(|one| {
        let step = *steps.get(&(one.at.session, one.at.number))?;
        let finding: Finding = one.found.finding(&one.server)?;
        Some(InRun { step, finding })
    });
    let mut found: Vec<InRun> = found.collect();
    found.sort_by_key(|found| found.step);
    found
}

/// The codes of findings, with the numbers of their steps.
#[must_use]
pub fn codes(found: &[InRun]) -> Vec<(usize, String)> {
    let codes = found.iter();
    codes
        .map(|found| (found.step, found.finding.code.to_owned()))
        .collect()
}
