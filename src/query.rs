//! Asking what was recorded, and opening the run that a command is about.

use crate::config::{Config, WORKSPACE};
use crate::error::{CommandError, discreet};
use crate::render::escape;
use crate::render::time::{now, utc_offset};
use crate::serving::signals::runtime;
use agent_trace_analysis::filter::{Filter, Settings as FilterSettings};
use agent_trace_index::finding::Found;
use agent_trace_index::listing::{Cursor, Listed, RunsPage, RunsQuery};
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::stats::Stats;
use agent_trace_index::{Access, Runs, RunsError, Settings, opening};
use agent_trace_model::RunId;
use agent_trace_model::story::Story;
use agent_trace_store::Store;
use agent_trace_store::trace::{Session, SessionEntry};
use owo_colors::OwoColorize;
use std::io::Write;

/// Asks whoever owns the index; this process, if nobody else does.
pub(crate) fn ask(config: &Config, query: Query) -> Result<Reply, CommandError> {
    ask_in(&config.store(), query)
}

fn ask_in(store: &Store, query: Query) -> Result<Reply, CommandError> {
    // Asking makes nothing: without a store there is nothing to be found.
    if !store.root().is_dir() {
        return match query {
            Query::Runs(_) => Ok(Reply::Runs(RunsPage::default())),
            Query::Stats(_) => Ok(Reply::Stats(Stats::default())),
            Query::Run { .. } => Err(RunsError::Empty.into()),
            _ => Err(RunsError::NoStore(store.root().to_owned()).into()),
        };
    }
    let access = Access::brief(store, settings());
    match runtime()?.block_on(access.ask(query))? {
        Reply::Wrong(wrong) => Err(RunsError::from(wrong).into()),
        reply => Ok(reply),
    }
}

/// How a command has the index.
fn settings() -> Settings {
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
        filter: filter
            .map(|filter| filter.text().to_owned())
            .unwrap_or_default(),
        now: now(),
        offset: utc_offset(),
        slow: slow(config),
        failed: false,
        probes: false,
        limit: 0,
        last: 0,
        cursor: None,
    })
}

/// A page of runs.
pub(crate) fn page(config: &Config, query: RunsQuery) -> Result<RunsPage, CommandError> {
    match ask(config, Query::Runs(query))? {
        Reply::Runs(page) => Ok(page),
        _ => Err(RunsError::Unknown(None).into()),
    }
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
            hint: "`--format json` prints it as `cursor`, and a list that goes on says it below",
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
    find_in(&config.store(), name)
}

fn find_in(store: &Store, name: &str) -> Result<Found, CommandError> {
    let query = Query::Run {
        workspace: WORKSPACE.into(),
        name: name.to_owned(),
    };
    match ask_in(store, query)? {
        Reply::Run(found) => Ok(*found),
        _ => Err(RunsError::Unknown(None).into()),
    }
}

/// What is found under each of these ids. The index is opened once for all of them.
fn find_all(store: &Store, ids: &[RunId]) -> Result<Vec<Option<Found>>, CommandError> {
    let access = Access::brief(store, settings());
    runtime()?.block_on(async {
        let mut all = Vec::with_capacity(ids.len());
        for id in ids {
            let query = Query::Run {
                workspace: WORKSPACE.into(),
                name: id.to_string(),
            };
            all.push(match access.ask(query).await {
                Ok(Reply::Run(found)) => Some(*found),
                _ => None,
            });
        }
        Ok(all)
    })
}

/// The ids under which runs are listed that go by these. One that is not found stays as it is:
/// it names the run all the same.
pub(crate) fn listed_ids(config: &Config, ids: &[RunId]) -> Result<Vec<RunId>, CommandError> {
    let found = find_all(&config.store(), ids)?;
    let listed = ids.iter().zip(found);
    Ok(listed
        .map(|(id, found)| found.map_or(*id, |found| found.run.row.id))
        .collect())
}

/// Opens these runs one after another; those that have gone meanwhile are passed over.
pub(crate) fn open_each(
    config: &Config,
    ids: &[RunId],
    mut each: impl FnMut(Opened) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let store = config.store();
    for found in find_all(&store, ids)?.into_iter().flatten() {
        if let Ok(opened) = read(&store, found) {
            each(opened)?;
        }
    }
    Ok(())
}

/// A run, read from its journals.
pub(crate) struct Opened {
    /// What the index says of it.
    pub(crate) run: Listed,
    /// The run as one story.
    pub(crate) story: Story,
    /// Its sessions with all that was recorded of them.
    pub(crate) sessions: Vec<Session>,
}

/// Opens the run of this name.
pub(crate) fn open(config: &Config, name: &str) -> Result<Opened, CommandError> {
    open_in(&config.store(), name)
}

/// Opens the run of this name in another store.
pub(crate) fn open_in(store: &Store, name: &str) -> Result<Opened, CommandError> {
    read(store, find_in(store, name)?)
}

fn read(store: &Store, found: Found) -> Result<Opened, CommandError> {
    let Found { run, files } = found;
    let opened = opening::open(store, &run.row, &files)?;
    Ok(Opened {
        story: opened.story(&run.row),
        sessions: opened.sessions,
        run,
    })
}

/// The story of the run of this name.
pub(crate) fn story(config: &Config, name: &str) -> Result<Story, CommandError> {
    Ok(open(config, name)?.story)
}

/// The sessions of the run of this name, before they are read.
pub(crate) fn entries(
    config: &Config,
    name: &str,
) -> Result<(RunId, Vec<SessionEntry>), CommandError> {
    let Found { run, files } = find(config, name)?;
    Ok((run.row.id, opening::entries(&config.store(), &files)?))
}

/// From which duration on a step is slow, in nanoseconds.
fn slow(config: &Config) -> u64 {
    u64::try_from(config.slow().0.as_nanos()).unwrap_or(u64::MAX)
}
