//! Writing rows, and the runs that they make up, in one batch.
//!
//! What a changed session may change is found by the keys that its parts have, and had: all
//! parts that may be in one run with one of them are grouped anew.

use super::overlay::Overlay;
use super::scan::{self, Across};
use crate::digest::Digested;
use crate::digest::scan::Scanned;
use crate::engine::{Engine, EngineError};
use crate::group::{Atom, group};
use crate::keys;
use crate::merge;
use crate::rows::{FileRow, KeyRow, NameRow, ProcessRow, RunRow, SessionRow, Tally};
use crate::rows::{decode, encode};
use agent_trace_model::{ProcessId, RunId, SessionId};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What is new of a process.
#[derive(Debug)]
pub(super) enum Update {
    /// Its files are gone.
    Gone(ProcessId),
    /// What its rows say is right still.
    Same(ProcessRow),
    /// Rows of sessions.
    Rows {
        /// The process.
        process: ProcessRow,
        /// The sessions that are new or not as they were.
        sessions: Vec<Digested>,
        /// Whether these are all of them: others are gone.
        all: bool,
    },
}

impl Update {
    /// How many records were read for it.
    pub(super) fn records(&self) -> u64 {
        match self {
            Self::Rows { process, .. } => process.records,
            _ => 0,
        }
    }

    /// The files that were read.
    pub(super) fn files(&self) -> Vec<FileRow> {
        match self {
            Self::Rows { process, .. } | Self::Same(process) => process.files.clone(),
            Self::Gone(_) => Vec::new(),
        }
    }

    /// The same of a process that may still go on.
    pub(super) fn unfinished(mut self) -> Self {
        if let Self::Rows { process, .. } = &mut self {
            process.finished = false;
        }
        self
    }
}

/// A part of a session.
type Part = (SessionId, u32);
/// A key by which parts are found, in its workspace.
type Found = (String, [u8; 16]);

/// Gathers updates and writes them.
pub(super) struct Writer<'a> {
    engine: &'a dyn Engine,
    idle: u64,
    across: &'a mut Across,
    updates: Vec<Update>,
    waiting: usize,
    sessions: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(engine: &'a dyn Engine, idle: u64, across: &'a mut Across) -> Self {
        Self {
            engine,
            idle,
            across,
            updates: Vec::new(),
            waiting: 0,
            sessions: 0,
        }
    }

    /// How many sessions wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many sessions were written.
    pub(super) fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Takes an update; a later one of the same process counts.
    pub(super) fn add(&mut self, update: Update) {
        if let Update::Rows { sessions, .. } = &update {
            self.waiting += sessions.len().max(1);
        }
        self.updates.push(update);
    }

    /// Writes what waits.
    pub(super) fn commit(&mut self) -> Result<(), EngineError> {
        let updates = std::mem::take(&mut self.updates);
        if updates.is_empty() {
            return Ok(());
        }
        self.sessions += self.waiting as u64;
        self.waiting = 0;
        let mut change = Change::new(self.engine);
        for update in updates {
            change.take(update)?;
        }
        change.regroup(self.idle, self.across)?;
        self.engine.apply(change.rows.batch())
    }
}

/// One batch while it is made.
struct Change<'a> {
    rows: Overlay<'a>,
    /// Sessions that were read or are new; none where there is no such session.
    sessions: HashMap<SessionId, Option<SessionRow>>,
    /// Runs that may not be as they were.
    runs: BTreeMap<RunId, Option<RunRow>>,
    /// Parts that are to be grouped anew.
    parts: HashMap<Part, Option<Atom>>,
    /// Of these, those whose relations were not looked at.
    queue: Vec<Part>,
    clusters: HashMap<Found, Clusters>,
}

/// The parts with one key: between those of one cluster there is no pause.
struct Clusters {
    of: HashMap<Part, usize>,
    all: Vec<Vec<Part>>,
    seen: HashSet<usize>,
}

impl<'a> Change<'a> {
    fn new(engine: &'a dyn Engine) -> Self {
        Self {
            rows: Overlay::new(engine),
            sessions: HashMap::new(),
            runs: BTreeMap::new(),
            parts: HashMap::new(),
            queue: Vec::new(),
            clusters: HashMap::new(),
        }
    }

    /// What cannot be read has rows of its own, so that it can be told with each list.
    fn unreadable(&mut self, process: ProcessId, why: &[String]) {
        let key = keys::unreadable(process);
        if why.is_empty() {
            self.rows.remove(key);
        } else {
            self.rows.put(key, encode(&why));
        }
    }

    fn take(&mut self, update: Update) -> Result<(), EngineError> {
        let (process, rows, all) = match update {
            Update::Same(row) => {
                self.rows.put(keys::process(row.process), encode(&row));
                return Ok(());
            }
            Update::Gone(process) => (process, Vec::new(), true),
            Update::Rows {
                process,
                sessions,
                all,
            } => {
                let id = process.process;
                if all {
                    self.drop_others(id, &process.sessions)?;
                }
                self.rows.put(keys::process(id), encode(&process));
                self.unreadable(id, &process.unreadable);
                (id, sessions, false)
            }
        };
        if all {
            self.drop_others(process, &[])?;
            self.rows.remove(keys::process(process));
            self.unreadable(process, &[]);
        }
        for Digested { row, scanned } in rows {
            self.session(row.id, Some(row), &scanned)?;
        }
        Ok(())
    }

    fn drop_others(&mut self, process: ProcessId, kept: &[u32]) -> Result<(), EngineError> {
        let Some(row) = self.rows.row::<ProcessRow>(&keys::process(process))? else {
            return Ok(());
        };
        for ordinal in row.sessions {
            if kept.binary_search(&ordinal).is_err() {
                let session = SessionId { process, ordinal };
                self.session(session, None, &Scanned::default())?;
            }
        }
        Ok(())
    }

    /// Puts the row of a session in place of the one that there was. Only parts that are not as
    /// they were can change runs: of a long session that is the last one.
    fn session(
        &mut self,
        id: SessionId,
        mut row: Option<SessionRow>,
        scanned: &Scanned,
    ) -> Result<(), EngineError> {
        let before = self.load(id)?.cloned();
        if let (Some(before), Some(row)) = (&before, &mut row) {
            for (part, before) in row.parts.iter_mut().zip(&before.parts) {
                part.in_run = before.in_run;
            }
        }
        scan::write(&mut self.rows, id, before.as_ref(), row.as_ref(), scanned)?;
        let is_same = |part| match (&before, &row) {
            (Some(before), Some(row)) => is_same(before, row, part),
            _ => false,
        };
        if let Some(before) = &before {
            for (part, atom) in atoms(before).filter(|(part, _)| !is_same(*part)) {
                let run = self.rows.row(&keys::member(id, part))?;
                self.touch(run)?;
                for key in atom.keys() {
                    self.rows
                        .remove(keys::joined(&before.workspace, key, id, part));
                }
                self.seed((id, part));
            }
        }
        match &row {
            None => self.rows.remove(keys::session(id)),
            Some(row) => {
                for (part, atom) in atoms(row).filter(|(part, _)| !is_same(*part)) {
                    let value = encode(&KeyRow {
                        started: atom.started,
                        active: atom.active,
                    });
                    for key in atom.keys() {
                        let key = keys::joined(&row.workspace, key, id, part);
                        self.rows.put(key, value.clone());
                    }
                    self.seed((id, part));
                }
            }
        }
        self.sessions.insert(id, row);
        Ok(())
    }

    fn load(&mut self, id: SessionId) -> Result<Option<&SessionRow>, EngineError> {
        if !self.sessions.contains_key(&id) {
            let mut row: Option<SessionRow> = self.rows.row(&keys::session(id))?;
            let parts = row.iter_mut().flat_map(|row| &mut row.parts);
            for (number, part) in (0..).zip(parts) {
                if part.in_run {
                    part.tally = self.tally_of(id, number)?;
                }
            }
            self.sessions.insert(id, row);
        }
        Ok(self.sessions.get(&id).and_then(Option::as_ref))
    }

    /// What is counted in a part that is all of its run.
    fn tally_of(&self, id: SessionId, part: u32) -> Result<Tally, EngineError> {
        let run: Option<NameRow> = self.rows.row(&keys::member(id, part))?;
        let run: Option<RunRow> = match run {
            Some(run) => self.rows.row(&run.key())?,
            None => None,
        };
        Ok(run.map(|run| run.tally.of_only_part()).unwrap_or_default())
    }

    fn seed(&mut self, part: Part) {
        if let Entry::Vacant(place) = self.parts.entry(part) {
            place.insert(None);
            self.queue.push(part);
        }
    }

    /// This run may change, and with it where its parts belong.
    fn touch(&mut self, run: Option<NameRow>) -> Result<(), EngineError> {
        let Some(name) = run else {
            return Ok(());
        };
        if self.runs.contains_key(&name.run) {
            return Ok(());
        }
        let row: Option<RunRow> = self.rows.row(&name.key())?;
        for slice in row.iter().flat_map(|row| &row.slices) {
            self.seed((slice.session, slice.part));
        }
        self.runs.insert(name.run, row);
        Ok(())
    }

    /// Finds all parts that may be in one run with those that changed, and groups them.
    fn regroup(&mut self, idle: u64, across: &mut Across) -> Result<(), EngineError> {
        while let Some(part) = self.queue.pop() {
            let (id, number) = part;
            let Some(row) = self.load(id)? else {
                continue;
            };
            let Some(of) = row.parts.get(number as usize) else {
                continue;
            };
            let workspace = row.workspace.clone();
            let atom = Atom::of(row, number, of);
            let member = self.rows.row(&keys::member(id, number))?;
            self.touch(member)?;
            for key in atom.keys() {
                self.relatives(&workspace, key, part, idle)?;
            }
            self.parts.insert(part, Some(atom));
        }
        self.write_runs(idle, across)
    }

    fn relatives(
        &mut self,
        workspace: &str,
        key: &crate::rows::GroupKey,
        part: Part,
        idle: u64,
    ) -> Result<(), EngineError> {
        let found = (workspace.to_owned(), key.digest());
        if !self.clusters.contains_key(&found) {
            // A pause does not end what names the conversation.
            let idle = if key.is_explicit() { u64::MAX } else { idle };
            let mut parts = Vec::new();
            self.rows
                .scan(&keys::joined_by(workspace, key), |key, row| {
                    if let (Some(part), Some(row)) = (keys::part_at_end(key), decode::<KeyRow>(row))
                    {
                        parts.push((row.started, part, row.active));
                    }
                })?;
            self.clusters
                .insert(found.clone(), Clusters::of(parts, idle));
        }
        let clusters = self.clusters.get_mut(&found);
        let mut new = Vec::new();
        if let Some(clusters) = clusters
            && let Some(cluster) = clusters.of.get(&part)
            && clusters.seen.insert(*cluster)
        {
            new.clone_from(&clusters.all[*cluster]);
        }
        for part in new {
            self.seed(part);
        }
        Ok(())
    }

    fn write_runs(&mut self, idle: u64, across: &mut Across) -> Result<(), EngineError> {
        let mut workspaces: BTreeMap<String, Vec<Atom>> = BTreeMap::new();
        for ((id, _), atom) in std::mem::take(&mut self.parts) {
            if let (Some(atom), Some(Some(row))) = (atom, self.sessions.get(&id)) {
                let workspace = row.workspace.clone();
                workspaces.entry(workspace).or_default().push(atom);
            }
        }
        let mut sessions: HashMap<SessionId, SessionRow> = std::mem::take(&mut self.sessions)
            .into_iter()
            .filter_map(|(id, row)| Some((id, row?)))
            .collect();
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        for run in std::mem::take(&mut self.runs).values().flatten() {
            before.extend(rows_of(run));
        }
        for (workspace, atoms) in workspaces {
            for group in group(&workspace, &atoms, idle) {
                let mut row = merge::run(&workspace, &group, &atoms, &sessions);
                across.look(&self.rows, &sessions, &mut row)?;
                after.extend(rows_of(&row));
                leave_in_run(&row, &mut sessions);
            }
        }
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            self.rows.remove(key.clone());
        }
        for (id, row) in sessions {
            let (key, value) = (keys::session(id), encode(&without_tallies(row)));
            if self.rows.get(&key)?.as_ref() != Some(&value) {
                self.rows.put(key, value);
            }
        }
        // Most names of a run that goes on stay as they are.
        for (key, value) in after {
            if before.get(&key) != Some(&value) {
                self.rows.put(key, value);
            }
        }
        Ok(())
    }
}

/// All rows of a run.
fn rows_of(run: &RunRow) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let name = NameRow {
        workspace: run.workspace.clone(),
        started: run.started,
        run: run.id,
    };
    let row = (name.key(), encode(run));
    let name = encode(&name);
    let task = run.task.as_deref().map(|task| {
        let key = keys::run_of_task(&run.workspace, task, run.started, run.id);
        (key, Vec::new())
    });
    let across = (!run.across.is_empty()).then(|| {
        let key = keys::across(&run.workspace, run.started, run.id);
        (key, Vec::new())
    });
    let ids = run.aliases.iter().chain([&run.id]);
    let ids = ids.map(|id| keys::alias(*id));
    let slices = run.slices.iter();
    let members = slices.map(|slice| keys::member(slice.session, slice.part));
    let names = ids.chain(members).map(move |key| (key, name.clone()));
    let rows = [row].into_iter().chain(task).chain(across);
    rows.chain(names)
}

/// Says of the parts of a run whether the run's row tells what is counted in them.
fn leave_in_run(run: &RunRow, sessions: &mut HashMap<SessionId, SessionRow>) {
    for slice in &run.slices {
        let row = sessions.get_mut(&slice.session);
        if let Some(part) = row.and_then(|row| row.parts.get_mut(slice.part as usize)) {
            part.in_run = run.slices.len() == 1 && run.tally.clone().of_only_part() == part.tally;
        }
    }
}

/// The row of a session as it is kept.
fn without_tallies(mut row: SessionRow) -> SessionRow {
    for part in row.parts.iter_mut().filter(|part| part.in_run) {
        part.tally = Tally::default();
    }
    row
}

/// The parts of a session.
fn atoms(row: &SessionRow) -> impl Iterator<Item = (u32, Atom)> {
    let parts = (0..).zip(&row.parts);
    parts.map(|(number, part)| (number, Atom::of(row, number, part)))
}

/// Whether a part of a session gives its run what it gave before: itself, the moment at which
/// the next one begins, and what all runs of the session have of it.
fn is_same(before: &SessionRow, now: &SessionRow, part: u32) -> bool {
    let at = part as usize;
    let next = |row: &SessionRow| row.parts.get(at + 1).map(|part| part.from);
    let SessionRow {
        id: _,
        workspace,
        project,
        task,
        own,
        server,
        client,
        transport,
        revision,
        started,
        last: _,
        standing,
        end,
        clipped,
        marks,
        keys,
        files: _,
        identity,
        view: _,
        lists,
        parts,
    } = before;
    parts.get(at) == now.parts.get(at)
        && next(before) == next(now)
        && (workspace, project) == (&now.workspace, &now.project)
        && (task, own) == (&now.task, &now.own)
        && (server, client) == (&now.server, &now.client)
        && (transport, revision) == (&now.transport, &now.revision)
        && (started, clipped) == (&now.started, &now.clipped)
        && (standing, end) == (&now.standing, &now.end)
        && (marks, keys) == (&now.marks, &now.keys)
        && (identity, lists) == (&now.identity, &now.lists)
}

impl Clusters {
    fn of(mut parts: Vec<(u64, Part, u64)>, idle: u64) -> Self {
        parts.sort_unstable();
        let mut clusters = Self {
            of: HashMap::with_capacity(parts.len()),
            all: Vec::new(),
            seen: HashSet::new(),
        };
        let mut until = 0;
        for (started, part, active) in parts {
            if clusters.all.is_empty() || started.saturating_sub(until) >= idle {
                clusters.all.push(Vec::new());
                until = active;
            }
            until = active.max(until);
            let last = clusters.all.len() - 1;
            clusters.all[last].push(part);
            clusters.of.insert(part, last);
        }
        clusters
    }
}
