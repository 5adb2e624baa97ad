//! Which runs: by filter, page by page, newest first.
//!
//! Rows decide as much as they can (`table`); only a run about which they cannot is opened.
//! Before that the word filters of its files are asked. Runs are looked at in blocks, those
//! that have to be opened on all processors.

mod cursor;

pub use cursor::{Cursor, CursorError};

use crate::filed::{self, Changes};
use crate::fit::{Fit, Warnings};
use crate::keys::{self, kind};
use crate::local::Local;
use crate::opening::{self, SessionFiles};
use crate::rows::scan::count;
use crate::rows::{self, ProcessRow, RunRow, SessionRow};
use crate::runs::RunsError;
use crate::table::{Facts, Names};
use agent_trace_analysis::filter::{Filter, Settings, Ternary};
use agent_trace_model::{ProcessId, RunId, SessionId, Verdict};
use agent_trace_store::Store;
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::search::Words;
use agent_trace_store::state::Decision;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How many runs are looked at together.
const BLOCK: usize = 256;
/// The most runs of a page.
pub const MOST: usize = 1_000;

/// Which runs are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsQuery {
    /// The workspace that they belong to.
    pub workspace: String,
    /// The project directories that they belong to.
    #[serde(default)]
    pub projects: Projects,
    /// The filter that they match; an empty one matches all.
    #[serde(default)]
    pub filter: String,
    /// The task that they are runs of, word for word; none for any.
    #[serde(default)]
    pub task: Option<String>,
    /// Now, in nanoseconds since 1970: what the times in the filter are relative to.
    pub now: u64,
    /// Seconds east of UTC, of times in the filter without a zone.
    #[serde(default)]
    pub offset: i32,
    /// From which duration on a step is slow, in nanoseconds.
    #[serde(default = "slow")]
    pub slow: u64,
    /// Only those that failed.
    #[serde(default)]
    pub failed: bool,
    /// Also those whose clients only connected and listed.
    #[serde(default)]
    pub probes: bool,
    /// How many at most, no more than [`MOST`].
    pub limit: usize,
    /// Only among so many of the newest; 0 for all.
    #[serde(default)]
    pub last: usize,
    /// Those after this one.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// After so many runs that were looked at the page ends, however few of them match; 0 for no
    /// such bound. So whoever asks can tell how far it is, or give up.
    #[serde(default)]
    pub look: usize,
    /// Tell also of files of which it cannot be read which workspace they belong to.
    #[serde(default)]
    pub unowned: bool,
}

/// Which project directories runs belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projects {
    /// Any, or none.
    #[default]
    All,
    /// This one; none: those that belong to no project.
    Only(Option<String>),
}

impl Projects {
    /// Whether runs of this project are among them.
    #[must_use]
    pub fn include(&self, project: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only.as_deref() == project,
        }
    }
}

/// Some runs, newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunsPage {
    /// The runs.
    pub runs: Vec<Listed>,
    /// Where to go on; none where there are no more.
    pub cursor: Option<Cursor>,
    /// What could not be read to answer, in one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// What is known of it.
    pub row: RunRow,
    /// What was decided about it, if anything was.
    pub decision: Option<Decision>,
    /// How many entries of its lists are left out, since it would be too large to be sent.
    #[serde(default)]
    pub left_out: u64,
}

impl Listed {
    /// Whether it failed: by what was decided about it, else by what happened.
    #[must_use]
    pub fn failed(&self) -> bool {
        match self.verdict() {
            Verdict::Right => false,
            Verdict::Wrong => true,
            Verdict::Unjudged => self.row.failed > 0,
        }
    }

    /// The verdict about it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.decision
            .as_ref()
            .map(|decision| decision.verdict)
            .unwrap_or_default()
    }
}

/// A filter with everything that answering it takes.
struct Asked<'a> {
    query: &'a RunsQuery,
    filter: Filter,
    words: Words,
    changes: Changes,
    /// Which sessions of a file hold the words, by its path: a file of HTTP has those of
    /// hundreds of runs, and is unpacked once for all of them.
    holding: Mutex<HashMap<PathBuf, Arc<Holding>>>,
}

/// For each list of words the ordinals of the sessions that hold one of them.
type Holding = Vec<BTreeSet<u32>>;

impl Asked<'_> {
    /// Whether a run matches as far as its row tells: for sure, or not known; none where it
    /// does not.
    fn ask(&self, facts: &Facts<'_>) -> Option<bool> {
        if self.query.failed && !facts.is_failed() {
            return None;
        }
        match self.filter.maybe_run(facts) {
            Ternary::No => None,
            Ternary::Maybe => Some(false),
            Ternary::Yes => Some(true),
        }
    }

    /// Whether each list has a word that one of these sessions holds. Where that is not known
    /// they may.
    fn may_hold(&self, store: &Store, files: &[SessionFiles]) -> bool {
        let mut lacks: Vec<usize> = (0..self.words.len()).collect();
        for session in files {
            for path in session.paths(store) {
                let Some(holding) = self.holding(&path) else {
                    return true;
                };
                // A process without HTTP has one session, whatever its records say.
                let ordinal = session.session.ordinal;
                let holds = |list: &BTreeSet<u32>| match session.http {
                    true => list.contains(&ordinal),
                    false => !list.is_empty(),
                };
                lacks.retain(|list| !holding.get(*list).is_some_and(holds));
                if lacks.is_empty() {
                    return true;
                }
            }
        }
        false
    }

    fn holding(&self, path: &SegmentPath) -> Option<Arc<Holding>> {
        let known = || self.holding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holding) = known().get(&path.path) {
            return Some(Arc::clone(holding));
        }
        let holding = Arc::new(self.words.sessions_in(path).ok()?);
        known().insert(path.path.clone(), Arc::clone(&holding));
        Some(holding)
    }
}

/// A run that matches, or may match.
struct Looked {
    run: Listed,
    /// Whether it is known that it does.
    sure: bool,
}

impl Local {
    /// A page of runs.
    pub(crate) fn runs(&self, query: &RunsQuery) -> Result<RunsPage, RunsError> {
        let filter = parse(query)?;
        let wrong = |error| RunsError::Wrong(format!("cannot look for that: {error}"));
        let words = Words::new(filter.words()).map_err(wrong)?;
        let asked = Asked {
            query,
            filter,
            words,
            changes: self.changes(&query.workspace, &query.projects)?,
            holding: Mutex::default(),
        };
        let (mut page, mut warnings) = (RunsPage::default(), Warnings::default());
        if query.cursor.is_none() {
            self.unreadable(query, &mut warnings)?;
        }
        self.fill(&mut page, &asked, &mut warnings)?;
        page.warnings = warnings.lines();
        Ok(page)
    }

    fn fill(
        &self,
        page: &mut RunsPage,
        asked: &Asked<'_>,
        warnings: &mut Warnings,
    ) -> Result<(), RunsError> {
        let limit = asked.query.limit.clamp(1, MOST);
        let mut fit = Fit::default();
        let mut cursor = asked.query.cursor;
        let seen = |cursor: Option<Cursor>| cursor.map_or(0, |at| at.seen);
        let first = seen(cursor);
        loop {
            let (looked, more) = self.look(asked, &mut cursor, BLOCK.min(limit.max(16) * 2))?;
            for (at, mut run, is) in self.decide(asked, looked, warnings) {
                if !is {
                    continue;
                }
                if page.runs.len() == limit || !fit.takes(&mut run) {
                    return Ok(());
                }
                if run.left_out > 0 {
                    warnings.tell(&format!(
                        "run {}: it is too large, {} entries of its lists are left out",
                        run.row.id, run.left_out
                    ));
                }
                page.cursor = Some(at);
                for changed in asked.changes.in_run(run.row.id) {
                    let tally = &mut run.row.tally.found;
                    count(tally, &changed.code, changed.severity, changed.count);
                }
                page.runs.push(run);
            }
            if !more {
                page.cursor = None;
                return Ok(());
            }
            if asked.query.look > 0 && seen(cursor) >= first + asked.query.look {
                page.cursor = cursor;
                return Ok(());
            }
        }
    }

    /// The next runs that match or may match, and whether there are more to look at.
    fn look(
        &self,
        asked: &Asked<'_>,
        cursor: &mut Option<Cursor>,
        block: usize,
    ) -> Result<(Vec<(Cursor, Looked)>, bool), RunsError> {
        let (query, mut looked) = (asked.query, Vec::new());
        let is_enough = |seen| query.last > 0 && seen >= query.last;
        let mut more = true;
        // Runs of one task are found by their keys, in memory or not.
        let in_memory = query.task.is_none().then(|| self.watched().table());
        if let Some(Some(table)) = in_memory.as_deref() {
            let after = cursor.map(|at| (at.started, at.run));
            let mut runs = table.after(&query.workspace, after);
            while looked.len() < block {
                let seen = cursor.map_or(0, |at| at.seen);
                let next = runs.next().filter(|_| !is_enough(seen));
                let Some((started, run, entry)) = next else {
                    more = false;
                    break;
                };
                let of_these = table.names().is_of(&query.projects, entry);
                let of_these = match of_these {
                    Some(of_these) => of_these,
                    // More names than are kept.
                    None => self
                        .row(&query.workspace, started, run)?
                        .is_some_and(|row| query.projects.include(row.project.as_deref())),
                };
                let counts = of_these && (query.probes || !entry.probe);
                let seen = seen + usize::from(counts);
                let at = Cursor { started, run, seen };
                *cursor = Some(at);
                if !counts {
                    continue;
                }
                let verdict = self.verdict([run].into_iter().chain(entry.aliases()));
                let changed = asked.changes.in_run(run);
                let facts = table.facts((started, run, entry), verdict, changed);
                if let Some(sure) = asked.ask(&facts)
                    && let Some(row) = self.row(&query.workspace, started, run)?
                {
                    looked.push((
                        at,
                        Looked {
                            run: self.listed(row),
                            sure,
                        },
                    ));
                }
            }
            return Ok((looked, more));
        }
        let mut names = Names::default();
        for (started, run, row) in self.block(query, *cursor, block, &mut more)? {
            let seen = cursor.map_or(0, |at| at.seen);
            if is_enough(seen) {
                more = false;
                break;
            }
            let mut at = Cursor { started, run, seen };
            let row = row.filter(|row| query.probes || !row.probe);
            let of_these = |row: &RunRow| query.projects.include(row.project.as_deref());
            if let Some(row) = row.filter(of_these) {
                at.seen += 1;
                let entry = names.entry(&row);
                let run = self.listed(row);
                let changed = asked.changes.in_run(run.row.id);
                let facts = names.facts((started, run.row.id, &entry), run.verdict(), changed);
                let sure = asked.ask(&facts);
                looked.extend(sure.map(|sure| (at, Looked { run, sure })));
            }
            *cursor = Some(at);
        }
        Ok((looked, more))
    }

    /// Why files cannot be read, of those whose runs may be among what is asked for.
    fn unreadable(&self, query: &RunsQuery, warnings: &mut Warnings) -> Result<(), RunsError> {
        let mut all = Vec::new();
        self.engine()
            .scan(&[kind::UNREADABLE], None, &mut |key, why| {
                let why = rows::decode::<Vec<String>>(why).unwrap_or_default();
                all.extend(keys::process_in(key).map(|process| (process, why)));
                true
            })?;
        for (process, why) in all {
            if self.is_asked_for(query, process)? {
                why.iter().for_each(|why| warnings.tell(why));
            }
        }
        Ok(())
    }

    fn is_asked_for(&self, query: &RunsQuery, process: ProcessId) -> Result<bool, RunsError> {
        let row = self.engine().get(&keys::process(process))?;
        let row: Option<ProcessRow> = row.as_deref().and_then(rows::decode);
        let Some(row) = row.filter(|row| !row.workspace.is_empty()) else {
            return Ok(query.unowned);
        };
        if row.workspace != query.workspace || query.projects == Projects::All {
            return Ok(row.workspace == query.workspace);
        }
        for ordinal in row.sessions {
            let session = self
                .engine()
                .get(&keys::session(SessionId { process, ordinal }))?;
            let session: Option<SessionRow> = session.as_deref().and_then(rows::decode);
            if session.is_some_and(|own| query.projects.include(own.project.as_deref())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next runs, each with its place, and whether there may be more.
    fn block(
        &self,
        query: &RunsQuery,
        after: Option<Cursor>,
        most: usize,
        more: &mut bool,
    ) -> Result<Vec<(u64, RunId, Option<RunRow>)>, RunsError> {
        let workspace = &query.workspace;
        let mut found = Vec::with_capacity(most);
        if let Some(task) = &query.task {
            let prefix = keys::runs_of_task(workspace, task);
            let after = after.map(|at| keys::run_of_task(workspace, task, at.started, at.run));
            let mut places = Vec::new();
            self.engine()
                .scan(&prefix, after.as_deref(), &mut |key, _| {
                    places.extend(keys::run_below(&prefix, key));
                    places.len() < most
                })?;
            for (started, run) in places {
                found.push((started, run, self.row(workspace, started, run)?));
            }
        } else {
            let prefix = keys::runs_of(workspace);
            let after = after.map(|at| keys::run(workspace, at.started, at.run));
            self.engine()
                .scan(&prefix, after.as_deref(), &mut |key, row| {
                    let place = keys::run_in(key);
                    found.extend(place.map(|(_, started, run)| (started, run, rows::decode(row))));
                    found.len() < most
                })?;
        }
        *more = found.len() == most;
        Ok(found)
    }

    fn row(&self, workspace: &str, started: u64, run: RunId) -> Result<Option<RunRow>, RunsError> {
        let row = self.engine().get(&keys::run(workspace, started, run))?;
        Ok(row.as_deref().and_then(rows::decode))
    }

    /// Opens the runs that may match.
    fn decide(
        &self,
        asked: &Asked<'_>,
        looked: Vec<(Cursor, Looked)>,
        warnings: &mut Warnings,
    ) -> Vec<(Cursor, Listed, bool)> {
        let threads = std::thread::available_parallelism().map_or(1, Into::into);
        let open = looked.iter().filter(|(_, looked)| !looked.sure);
        let threads = threads.min(open.count()).max(1);
        let decide = |(at, Looked { run, sure }): (Cursor, Looked)| {
            let is = if sure {
                Ok(true)
            } else {
                self.matches(asked, &run)
            };
            (at, run, is)
        };
        let decided: Vec<_> = if threads == 1 {
            looked.into_iter().map(decide).collect()
        } else {
            in_parallel(looked, threads, &decide)
        };
        let told = decided.into_iter().map(|(at, run, is)| {
            let is = is.unwrap_or_else(|error| {
                warnings.tell(&format!("run {}: {error}", run.row.id));
                false
            });
            (at, run, is)
        });
        told.collect()
    }

    /// Whether a run matches, by its journal.
    fn matches(&self, asked: &Asked<'_>, run: &Listed) -> Result<bool, RunsError> {
        let files = opening::files(&**self.engine(), &run.row)?;
        let paths = files.iter().flat_map(|files| files.paths(self.store()));
        let paths: Vec<_> = paths.collect();
        if !asked.words.is_empty() {
            let in_none = matches!(asked.words.may_be_in(&paths), Ok(false));
            if in_none || !asked.may_hold(self.store(), &files) {
                return Ok(false);
            }
        }
        let opened = opening::open(self.store(), &run.row, &files)?;
        let story = opened.story(&run.row);
        let found =
            match run.row.tally.found.is_empty() && asked.changes.in_run(run.row.id).is_empty() {
                true => Vec::new(),
                false => {
                    let (filed, _) = self.filed(&run.row, &asked.changes)?;
                    let found = filed::in_story(&story, &run.row, &opened.sessions, &filed);
                    filed::codes(&found)
                }
            };
        let matcher = asked.filter.over(&story, run.verdict()).with(&found);
        Ok(matcher.run())
    }
}

fn slow() -> u64 {
    agent_trace_analysis::outcomes::SLOW
}

/// The filter of a query.
pub(crate) fn parse(query: &RunsQuery) -> Result<Filter, RunsError> {
    let settings = Settings {
        now: query.now,
        offset: query.offset,
        slow: query.slow,
    };
    Filter::parse_with(&query.filter, &settings)
        .map_err(|error| RunsError::Wrong(error.to_string()))
}

/// Does the same with each on several threads, and keeps their order.
fn in_parallel<T: Send, U: Send>(
    all: Vec<T>,
    threads: usize,
    each: &(impl Fn(T) -> U + Sync),
) -> Vec<U> {
    let mut piles: Vec<Vec<(usize, T)>> = (0..threads).map(|_| Vec::new()).collect();
    for (position, one) in all.into_iter().enumerate() {
        piles[position % threads].push((position, one));
    }
    let mut done: Vec<(usize, U)> = std::thread::scope(|scope| {
        let work = |pile: Vec<(usize, T)>| {
            move || {
                let done = pile
                    .into_iter()
                    .map(|(position, one)| (position, each(one)));
                done.collect::<Vec<_>>()
            }
        };
        let workers: Vec<_> = piles
            .into_iter()
            .map(|pile| scope.spawn(work(pile)))
            .collect();
        let results = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        results
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_in_parallel_keeps_its_order() {
        let all: Vec<u32> = (0..1000).collect();
        let doubled = in_parallel(all.clone(), 3, &|n| n * 2);
        assert!(doubled.into_iter().eq(all.into_iter().map(|n| n * 2)));
    }
}
