//! All runs in memory, as much of each as filters ask for: for a process that owns the index
//! for long. Looking at a hundred thousand rows in the engine takes most of a second, here some
//! milliseconds.
//!
//! Names are kept once and meant by number. The table follows what is written to the engine:
//! see [`Watched`].

use crate::engine::{Batch, Engine, EngineError};
use crate::keys::{self, kind};
use crate::listing::Projects;
use crate::rows::{self, CodeTally, Counts, RunRow};
use agent_trace_analysis::filter::facts::{Group, Name};
use agent_trace_analysis::filter::{RunFacts, Ternary};
use agent_trace_analysis::outcomes::OutcomeSet;
use agent_trace_model::{Outcome, RunId, Verdict};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// No name.
const NONE: u32 = u32::MAX;
/// Various names, or one that is not known.
const VARIOUS: u32 = u32::MAX - 1;

/// Where a run stands in the list: by when it began, the newest first.
type Place = (u64, RunId);

/// All runs.
#[derive(Debug, Default)]
pub(crate) struct Table {
    names: Names,
    workspaces: HashMap<String, BTreeMap<Place, Entry>>,
}

/// Names by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

/// What is kept of a run.
#[derive(Debug)]
pub(crate) struct Entry {
    last: u64,
    /// Whether its clients only connected and listed.
    pub(crate) probe: bool,
    project: u32,
    task: u32,
    failed: bool,
    /// Whether any of its steps has a code, of JSON-RPC or HTTP.
    codes: bool,
    /// The codes of what scans found.
    found: Box<[u32]>,
    aliases: Box<[RunId]>,
    clients: Box<[u32]>,
    servers: Box<[u32]>,
    groups: Box<[Steps]>,
}

/// A group of steps.
#[derive(Debug)]
struct Steps {
    server: u32,
    method: u32,
    target: u32,
    outcomes: OutcomeSet,
    count: u64,
    /// How many have a duration; none where that is not known.
    timed: Option<u64>,
    shortest: u64,
    longest: u64,
}

impl Table {
    /// What all rows of an engine say.
    fn of(engine: &dyn Engine) -> Result<Self, EngineError> {
        let mut table = Self::default();
        engine.scan(&[kind::RUN], None, &mut |key, value| {
            table.put(key, value);
            true
        })?;
        Ok(table)
    }

    fn apply(&mut self, batch: &[(Vec<u8>, Option<Vec<u8>>)]) {
        let runs = batch
            .iter()
            .filter(|(key, _)| key.first() == Some(&kind::RUN));
        for (key, value) in runs {
            match value {
                Some(value) => self.put(key, value),
                None => self.remove(key),
            }
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.remove(key);
        let Some(row) = rows::decode::<RunRow>(value) else {
            return;
        };
        let entry = self.names.entry(&row);
        let runs = self.workspaces.entry(row.workspace).or_default();
        runs.insert((!row.started, row.id), entry);
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some((workspace, started, run)) = keys::run_in(key)
            && let Some(runs) = self.workspaces.get_mut(&workspace)
        {
            runs.remove(&(!started, run));
        }
    }

    /// The runs of a workspace after this place, the newest first: each with when it began.
    pub(crate) fn after(
        &self,
        workspace: &str,
        after: Option<(u64, RunId)>,
    ) -> impl Iterator<Item = (u64, RunId, &Entry)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, |(started, run)| Excluded((!started, run)));
        let runs = self.workspaces.get(workspace);
        let runs = runs
            .into_iter()
            .flat_map(move |runs| runs.range((from, Unbounded)));
        runs.map(|((started, run), entry)| (!started, *run, entry))
    }

    /// What the names of the runs are.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// What a filter is told of a run.
    pub(crate) fn facts<'a>(
        &'a self,
        (started, id, entry): (u64, RunId, &'a Entry),
        verdict: Verdict,
        changed: &'a [CodeTally],
    ) -> Facts<'a> {
        self.names.facts((started, id, entry), verdict, changed)
    }
}

impl Entry {
    /// The ids that the run also goes by.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = RunId> + '_ {
        self.aliases.iter().copied()
    }
}

impl Names {
    /// What a filter is told of a run whose names are in here.
    pub(crate) fn facts<'a>(
        &'a self,
        (started, id, entry): (u64, RunId, &'a Entry),
        verdict: Verdict,
        changed: &'a [CodeTally],
    ) -> Facts<'a> {
        Facts {
            changed,
            names: self,
            id,
            started,
            entry,
            verdict,
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(VARIOUS);
        if number >= VARIOUS {
            return VARIOUS;
        }
        let name: Arc<str> = name.into();
        self.all.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    fn get(&self, number: u32) -> Name<'_> {
        match number {
            NONE => Name::None,
            number => match self.all.get(number as usize) {
                Some(name) => Name::Is(name),
                None => Name::Various,
            },
        }
    }

    /// Whether a run belongs to one of these projects; none where that is not known.
    pub(crate) fn is_of(&self, projects: &Projects, entry: &Entry) -> Option<bool> {
        match self.get(entry.project) {
            Name::None => Some(projects.include(None)),
            Name::Is(name) => Some(projects.include(Some(name))),
            _ => None,
        }
    }

    /// What is kept of a run.
    pub(crate) fn entry(&mut self, row: &RunRow) -> Entry {
        let tally = &row.tally;
        let project = row.project.as_deref();
        let project = project.map_or(NONE, |name| self.number(name));
        let task = row.task.as_deref();
        let task = task.map_or(NONE, |name| self.number(name));
        let servers: Vec<u32> = row.servers.iter().map(|name| self.number(name)).collect();
        let server = |at: u16| servers.get(usize::from(at)).copied().unwrap_or(VARIOUS);
        let call = self.number("tools/call");
        let mut groups = Vec::with_capacity(tally.tools.len() + tally.methods.len());
        for tool in &tally.tools {
            groups.push(Steps {
                server: server(tool.server),
                method: call,
                target: self.number(&tool.tool),
                outcomes: outcomes(&tool.outcomes),
                count: tool.calls,
                timed: Some(tool.durations.len()),
                shortest: tool.shortest,
                longest: tool.longest,
            });
        }
        for method in &tally.methods {
            let name = method.method.as_deref();
            groups.push(Steps {
                server: server(method.server),
                method: name.map_or(NONE, |name| self.number(name)),
                target: VARIOUS,
                outcomes: outcomes(&method.outcomes),
                count: method.calls,
                timed: Some(method.timed),
                shortest: method.shortest,
                longest: method.longest,
            });
        }
        let apart: u64 = groups.iter().map(|group| group.count).sum();
        // There are more kinds of steps than are counted apart.
        if tally.steps > apart {
            groups.push(Steps {
                server: VARIOUS,
                method: VARIOUS,
                target: VARIOUS,
                outcomes: OutcomeSet::default(),
                count: tally.steps - apart,
                timed: None,
                shortest: 0,
                longest: 0,
            });
        }
        let clients = row.clients.iter().map(|name| self.number(name));
        let clients = clients.collect();
        Entry {
            project,
            task,
            last: row.last,
            probe: row.probe,
            failed: row.failed > 0,
            codes: !tally.codes.is_empty() || !tally.statuses.is_empty() || tally.steps > apart,
            found: tally
                .found
                .iter()
                .map(|found| self.number(&found.code))
                .collect(),
            aliases: row.aliases.clone().into(),
            clients,
            servers: servers.into(),
            groups: groups.into(),
        }
    }
}

/// The outcomes of which there are any.
fn outcomes(counts: &Counts) -> OutcomeSet {
    OutcomeSet::of(|outcome: Outcome| counts.of(outcome) > 0)
}

/// What a filter is told of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    names: &'a Names,
    id: RunId,
    started: u64,
    entry: &'a Entry,
    verdict: Verdict,
    /// What changed in it, which no row tells.
    changed: &'a [CodeTally],
}

impl Facts<'_> {
    /// Whether it failed: by what was decided about it, else by what happened.
    pub(crate) fn is_failed(&self) -> bool {
        match self.verdict {
            Verdict::Right => false,
            Verdict::Wrong => true,
            Verdict::Unjudged => self.entry.failed,
        }
    }

    fn names(&self, numbers: &[u32]) -> impl Iterator<Item = &str> {
        numbers
            .iter()
            .filter_map(|number| match self.names.get(*number) {
                Name::Is(name) => Some(name),
                _ => None,
            })
    }
}

impl RunFacts for Facts<'_> {
    fn id(&self) -> RunId {
        self.id
    }

    fn aliases(&self) -> Cow<'_, [RunId]> {
        Cow::Borrowed(&self.entry.aliases)
    }

    fn started(&self) -> u64 {
        self.started
    }

    fn last(&self) -> u64 {
        self.entry.last
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn failed(&self) -> Ternary {
        self.is_failed().into()
    }

    fn task(&self) -> Name<'_> {
        self.names.get(self.entry.task)
    }

    fn found(&self, code: &str) -> Ternary {
        let is = |number: &u32| match self.names.get(*number) {
            Name::Is(name) => name == code,
            // More names than are kept.
            _ => true,
        };
        let changed = self.changed.iter().any(|changed| changed.code == code);
        match changed || self.entry.found.iter().any(is) {
            true => Ternary::Maybe,
            false => Ternary::No,
        }
    }

    fn clients(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.names(&self.entry.clients))
    }

    fn servers(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.names(&self.entry.servers))
    }

    fn groups(&self) -> Box<dyn Iterator<Item = Group<'_>> + '_> {
        Box::new(self.entry.groups.iter().map(|steps| {
            Group {
                count: steps.count,
                server: self.names.get(steps.server),
                method: self.names.get(steps.method),
                target: self.names.get(steps.target),
                outcomes: steps.outcomes,
                timed: steps.timed,
                duration: (steps.timed.is_some_and(|timed| timed > 0))
                    .then_some((steps.shortest, steps.longest)),
                bytes: None,
                // Codes are counted for the run: of a group only that it has none is known.
                codes: Cow::Borrowed(&[]),
                all_codes: !self.entry.codes,
            }
        }))
    }
}

/// An engine whose runs are in memory, too, once somebody wants them there.
pub(crate) struct Watched {
    engine: Arc<dyn Engine>,
    table: RwLock<Option<Table>>,
}

impl Watched {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            table: RwLock::new(None),
        }
    }

    /// Reads all runs, if that was not done before.
    pub(crate) fn load(&self) -> Result<(), EngineError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.is_none() {
            *table = Some(Table::of(&*self.engine)?);
        }
        Ok(())
    }

    /// The table, where it was loaded.
    pub(crate) fn table(&self) -> RwLockReadGuard<'_, Option<Table>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Watched {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.engine.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError> {
        self.engine.scan(prefix, after, each)
    }

    fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = &mut *table else {
            drop(table);
            return self.engine.apply(batch);
        };
        let runs = |change: &&(Vec<u8>, Option<Vec<u8>>)| change.0.first() == Some(&kind::RUN);
        let changed: Vec<_> = batch.changes.iter().filter(runs).cloned().collect();
        match self.engine.apply(batch) {
            Ok(()) => known.apply(&changed),
            // Whether the rows were changed is not known: they are read anew.
            Err(error) => {
                *table = None;
                return Err(error);
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.engine.flush()
    }

    fn disk(&self) -> Result<u64, EngineError> {
        self.engine.disk()
    }

    fn rows(&self) -> Result<u64, EngineError> {
        self.engine.rows()
    }
}
