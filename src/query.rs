//! Asking what was recorded, and opening the run that a command is about.

use crate::config::{Config, WORKSPACE};
use crate::error::{CommandError, discreet, in_one_line};
use crate::render::escape;
use crate::render::time::{now, utc_offset};
use crate::serving::signals::runtime;
use agent_trace_analysis::filter::{Filter, Settings as FilterSettings};
use agent_trace_index::filed::{self, StoreScan};
use agent_trace_index::finding::Found;
use agent_trace_index::listing::{Cursor, Listed, MOST, Projects, RunsPage, RunsQuery};
use agent_trace_index::pins::PinsPage;
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::stats::Stats;
use agent_trace_index::{Access, Runs, RunsError, Settings, opening};
use agent_trace_model::RunId;
use agent_trace_model::story::Story;
use agent_trace_scanners::run::InRun;
use agent_trace_store::Store;
use agent_trace_store::trace::{Session, SessionEntry};
use owo_colors::OwoColorize;
use std::io::Write;
use tokio::runtime::Runtime;

/// The index of a store, asked by a command: that of whoever owns it, else it is opened here and
/// held until this is dropped. Others wait meanwhile, so it is not held while something is
/// printed.
pub(crate) struct Index {
    store: Store,
    runtime: Runtime,
    access: Access,
}

impl Index {
    pub(crate) fn of(store: Store) -> Result<Self, CommandError> {
        Ok(Self {
            runtime: runtime()?,
            access: Access::brief(&store, settings()),
            store,
        })
    }

    pub(crate) fn ask(&self, query: Query) -> Result<Reply, CommandError> {
        // Asking makes nothing: without a store there is nothing to be found.
        if !self.store.root().is_dir() {
            return match query {
                Query::Runs(_) => Ok(Reply::Runs(RunsPage::default())),
                Query::Stats(_) => Ok(Reply::Stats(Stats::default())),
                Query::Scan(_) => Ok(Reply::Scanned(StoreScan::default())),
                Query::Pins(_) => Ok(Reply::Pins(PinsPage::default())),
                Query::Run { .. } => Err(RunsError::Empty.into()),
                _ => Err(RunsError::NoStore(self.store.root().to_owned()).into()),
            };
        }
        match self.runtime.block_on(self.access.ask(query))? {
            Reply::Wrong(wrong) => Err(RunsError::from(wrong).into()),
            reply => Ok(reply),
        }
    }

    /// As many runs as are wanted, 0 for all, over as many pages as that takes.
    pub(crate) fn runs(
        &self,
        mut query: RunsQuery,
        limit: usize,
    ) -> Result<RunsPage, CommandError> {
        let mut all = RunsPage::default();
        loop {
            let left = match limit {
                0 => MOST,
                limit => limit - all.runs.len(),
            };
            query.limit = left.min(MOST);
            let Reply::Runs(page) = self.ask(Query::Runs(query.clone()))? else {
                return Err(RunsError::Unknown(None).into());
            };
            all.runs.extend(page.runs);
            all.warnings.extend(page.warnings);
            all.cursor = page.cursor;
            if all.cursor.is_none() || (limit > 0 && all.runs.len() >= limit) {
                return Ok(all);
            }
            query.cursor = all.cursor;
        }
    }

    /// The run of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Found, CommandError> {
        let query = Query::Run {
            workspace: WORKSPACE.into(),
            projects: Projects::All,
            name: name.to_owned(),
        };
        match self.ask(query)? {
            Reply::Run(found) => Ok(*found),
            _ => Err(RunsError::Unknown(None).into()),
        }
    }

    /// The runs that go by these ids; none for one that is not there.
    pub(crate) fn find_all(&self, ids: &[RunId]) -> Result<Vec<Option<Found>>, CommandError> {
        let find = |id: &RunId| match self.find(&id.to_string()) {
            Ok(found) => Ok(Some(found)),
            Err(CommandError::Runs(RunsError::NotFound(_) | RunsError::Empty)) => Ok(None),
            Err(error) => Err(error),
        };
        ids.iter().map(find).collect()
    }
}

/// Asks one question.
pub(crate) fn ask(config: &Config, query: Query) -> Result<Reply, CommandError> {
    Index::of(config.store())?.ask(query)
}

/// How a command has the index.
pub(crate) fn settings() -> Settings {
    Settings::new(env!("CARGO_PKG_VERSION"), |line| {
        let line = escape::text(discreet(line).as_bytes(), 0);
        let _ = writeln!(anstream::stderr(), "{} {line}", "warning:".yellow());
    })
}

/// All runs that match a filter, newest first.
pub(crate) fn runs(config: &Config, filter: Option<&str>) -> Result<RunsQuery, CommandError> {
    // A mistake in it is told here, where the place can be pointed at.
    let filter = self::filter(config, filter)?;
    Ok(RunsQuery {
        workspace: WORKSPACE.into(),
        projects: Projects::All,
        filter: filter
            .map(|filter| filter.text().to_owned())
            .unwrap_or_default(),
        task: None,
        now: now(),
        offset: utc_offset(),
        slow: slow(config),
        failed: false,
        probes: false,
        limit: 0,
        last: 0,
        cursor: None,
        look: 0,
        unowned: true,
    })
}

/// What tools did.
pub(crate) fn stats(config: &Config, query: RunsQuery) -> Result<Stats, CommandError> {
    match ask(config, Query::Stats(query))? {
        Reply::Stats(stats) => Ok(stats),
        _ => Err(RunsError::Unknown(None).into()),
    }
}

/// The place that a page ended at, from the command line.
pub(crate) fn cursor(text: Option<&str>) -> Result<Option<Cursor>, CommandError> {
    text.map(str::parse)
        .transpose()
        .map_err(|_| CommandError::Usage {
            what: "--after is not what a page ended with".into(),
            hint: "a list that goes on says it on standard error: `more: --after …`",
        })
}

/// A filter from the command line.
pub(crate) fn filter(config: &Config, text: Option<&str>) -> Result<Option<Filter>, CommandError> {
    let settings = FilterSettings {
        now: now(),
        offset: utc_offset(),
        slow: slow(config),
    };
    let parse = |text| Filter::parse_with(text, &settings);
    Ok(text.map(parse).transpose()?)
}

/// The run that is meant by `latest`, an id or a prefix of one.
pub(crate) fn find(config: &Config, name: &str) -> Result<Found, CommandError> {
    Index::of(config.store())?.find(name)
}

/// A run, read from its journals.
pub(crate) struct Opened {
    /// What the index says of it.
    pub(crate) run: Listed,
    /// The run as one story.
    pub(crate) story: Story,
    /// Its sessions with all that was recorded of them.
    pub(crate) sessions: Vec<Session>,
    /// What scans found in it, and how much more.
    pub(crate) findings: Vec<InRun>,
    pub(crate) more_findings: u64,
}

/// Opens the run of this name.
pub(crate) fn open(config: &Config, name: &str) -> Result<Opened, CommandError> {
    open_in(&config.store(), name)
}

/// Opens the run of this name in another store.
pub(crate) fn open_in(store: &Store, name: &str) -> Result<Opened, CommandError> {
    read(store, Index::of(store.clone())?.find(name)?)
}

/// Reads a run that was found. What of it cannot be read is told.
pub(crate) fn read(store: &Store, found: Found) -> Result<Opened, CommandError> {
    let Found {
        run,
        files,
        findings,
        more_findings,
    } = found;
    let opened = opening::open(store, &run.row, &files)?;
    if run.left_out > 0 {
        let _ = writeln!(
            anstream::stderr(),
            "{} the run is too large to be read as a whole, a part of it is left out",
            "warning:".yellow(),
        );
    }
    for error in &opened.unreadable {
        let _ = writeln!(
            anstream::stderr(),
            "{} {}",
            "warning:".yellow(),
            in_one_line(error)
        );
    }
    let story = opened.story(&run.row);
    Ok(Opened {
        findings: filed::in_story(&story, &run.row, &opened.sessions, &findings),
        more_findings,
        story,
        sessions: opened.sessions,
        run,
    })
}

/// The story of the run of this name.
pub(crate) fn story(config: &Config, name: &str) -> Result<Story, CommandError> {
    Ok(open(config, name)?.story)
}

/// The run of this name and its sessions, before they are read.
pub(crate) fn entries(
    config: &Config,
    name: &str,
) -> Result<(Listed, Vec<SessionEntry>), CommandError> {
    let Found { run, files, .. } = find(config, name)?;
    let entries = opening::entries(&config.store(), &files)?;
    Ok((run, entries))
}

/// From which duration on a step is slow, in nanoseconds.
pub(crate) fn slow(config: &Config) -> u64 {
    u64::try_from(config.slow().0.as_nanos()).unwrap_or(u64::MAX)
}
