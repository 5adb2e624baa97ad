//! The check command of the configuration, run by the daemon for each run that ends.

use super::Daemon;
use crate::config::WORKSPACE;
use crate::error::in_one_line;
use crate::judge;
use crate::query::Opened;
use agent_trace_analysis::outcomes;
use agent_trace_index::listing::{Listed, MOST, RunsQuery};
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::{Local, RunsError, opening};
use agent_trace_model::Judge;
use agent_trace_model::story::Standing;
use agent_trace_store::state::{State, Verdicts};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// How often it is looked whether a run has ended.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long nothing more must have been recorded of a run, in nanoseconds: its servers do not
/// all end in the same moment.
const QUIET: u64 = 3_000_000_000;

/// Judges runs that end from now on, until this says to stop; blocks meanwhile.
pub(super) fn follow(daemon: &Daemon, index: &Local, stop: &AtomicBool) {
    let begun = now();
    let mut verdicts = Verdicts::default();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(INTERVAL);
        let config = daemon.config();
        let Some(check) = config.check() else {
            continue;
        };
        if let Err(error) = verdicts.refresh(&State::of(index.store())) {
            tracing::warn!("no run is judged: {}", in_one_line(&error));
            continue;
        }
        let ended = match ended(index, begun, &verdicts) {
            Ok(ended) => ended,
            Err(error) => {
                tracing::debug!("no run is judged: {error}");
                continue;
            }
        };
        for run in ended {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let id = run.row.id;
            let judged = opened(index, run).map_err(Into::into);
            let judged = judged.and_then(|opened| judge::check(&config, &check, &opened));
            if let Err(error) = judged {
                tracing::warn!("run {id} is not judged: {}", in_one_line(&error));
            }
        }
    }
}

fn opened(index: &Local, run: Listed) -> Result<Opened, RunsError> {
    let files = opening::files(&**index.engine(), &run.row)?;
    let opened = opening::open(index.store(), &run.row, &files)?;
    Ok(Opened {
        story: opened.story(&run.row),
        sessions: opened.sessions,
        run,
    })
}

/// The runs that went on after this moment, have ended, and were not judged since.
fn ended(index: &Local, begun: u64, verdicts: &Verdicts) -> Result<Vec<Listed>, RunsError> {
    let now = now();
    let query = RunsQuery {
        workspace: WORKSPACE.into(),
        filter: String::new(),
        now,
        offset: 0,
        slow: outcomes::SLOW,
        failed: false,
        probes: false,
        limit: MOST,
        last: MOST,
        cursor: None,
    };
    let Reply::Runs(page) = index.answer(&Query::Runs(query))? else {
        return Ok(Vec::new());
    };
    let mut runs = page.runs;
    runs.retain(|run| {
        let row = &run.row;
        let ids = [row.id].into_iter().chain(row.aliases.iter().copied());
        let over = row.standing != Standing::Live && row.last.saturating_add(QUIET) < now;
        let judged = verdicts.judged_at(Judge::Check, ids);
        over && row.last >= begun && judged.is_none_or(|at| at < row.last)
    });
    Ok(runs)
}

fn now() -> u64 {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
