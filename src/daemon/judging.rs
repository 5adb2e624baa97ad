//! The check command of the configuration, run by the daemon for each run that ends.

use super::Daemon;
use crate::config::WORKSPACE;
use crate::error::{CommandError, in_one_line};
use crate::judge;
use crate::query::Opened;
use agent_trace_analysis::outcomes;
use agent_trace_index::filed;
use agent_trace_index::finding::Found;
use agent_trace_index::listing::{Listed, MOST, Projects, RunsQuery};
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::{Local, RunsError, opening};
use agent_trace_model::story::Standing;
use agent_trace_model::{Judge, RunId};
use agent_trace_store::state::{State, Verdicts};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often it is looked whether a run has ended.
const INTERVAL: Duration = Duration::from_secs(1);
/// How soon it is noticed that nothing is to be judged any more.
const GLANCE: Duration = Duration::from_millis(50);
/// How long nothing more must have been recorded of a run, in nanoseconds: its servers do not
/// all end in the same moment.
const QUIET: u64 = 3_000_000_000;
/// So long, in nanoseconds, what was recorded may take to be seen here.
const LATE: u64 = 60_000_000_000;
/// After how long a run that could not be judged is tried again; twice as long each time.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_AT_MOST: Duration = Duration::from_secs(3600);

/// Judges runs that end from now on, until this says to stop; blocks meanwhile.
pub(super) fn follow(daemon: &Daemon, stop: &AtomicBool) {
    let mut judging = Judging {
        daemon,
        stop,
        from: judge::now(),
        verdicts: Verdicts::default(),
        failed: Failed::default(),
    };
    while !judging.rests() {
        if let Err(error) = judging.look() {
            tracing::warn!("no run is judged: {}", in_one_line(&error));
        }
    }
}

struct Judging<'a> {
    daemon: &'a Daemon,
    stop: &'a AtomicBool,
    /// What went on before this moment and not after it has nothing to do with us.
    from: u64,
    verdicts: Verdicts,
    failed: Failed,
}

impl Judging<'_> {
    /// Waits for the next look. True once there is to be none.
    fn rests(&self) -> bool {
        let until = Instant::now() + INTERVAL;
        while !self.stops() && Instant::now() < until {
            std::thread::sleep(GLANCE);
        }
        self.stops()
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The index, while it is ours. Nobody else can have it while it is held, so that it is
    /// held to ask and not while a check runs.
    fn index(&self) -> Option<Local> {
        let answering = self.daemon.index.answering()?;
        Some(answering.local().clone())
    }

    fn look(&mut self) -> Result<(), CommandError> {
        let config = self.daemon.config();
        let (Some(check), Some(index)) = (config.check(), self.index()) else {
            return Ok(());
        };
        self.verdicts.refresh(&State::of(&self.daemon.store))?;
        let ended = self.ended(&index)?;
        drop(index);
        for (id, last) in ended {
            if self.stops() {
                return Ok(());
            }
            if !self.failed.may_try(id, last, Instant::now()) {
                continue;
            }
            // What comes from now on is not what is judged.
            let at = judge::now();
            let opened = match self.open(id) {
                Ok(Some(opened)) => opened,
                // It goes on, or is gone.
                Ok(None) => continue,
                Err(error) => {
                    self.fails(id, last, &error);
                    continue;
                }
            };
            match judge::check_until(&config, &check, &opened, at, self.stop) {
                Ok(Some(_)) => self.failed.forget(id),
                Ok(None) => return Ok(()),
                Err(error) => self.fails(id, last, &error),
            }
        }
        Ok(())
    }

    fn fails(&mut self, id: RunId, last: u64, error: &CommandError) {
        let again = self.failed.note(id, last, Instant::now());
        tracing::warn!(
            "run {id} is not judged, and tried again in {} s: {}",
            again.as_secs(),
            in_one_line(error)
        );
    }

    fn open(&self, id: RunId) -> Result<Option<Opened>, CommandError> {
        let query = Query::Run {
            workspace: WORKSPACE.into(),
            projects: Projects::All,
            name: id.to_string(),
        };
        let Some(index) = self.index() else {
            return Ok(None);
        };
        match index.answer(&query)? {
            Reply::Run(found) if is_over(&found.run, judge::now()) => {
                drop(index);
                let Found {
                    run,
                    files,
                    findings,
                    more_findings,
                } = *found;
                let opened = opening::open(&self.daemon.store, &run.row, &files)?;
                let story = opened.story(&run.row);
                Ok(Some(Opened {
                    findings: filed::in_story(&story, &run.row, &opened.sessions, &findings),
                    more_findings,
                    story,
                    sessions: opened.sessions,
                    run,
                }))
            }
            _ => Ok(None),
        }
    }

    /// The runs that went on from that moment on, have ended, and were not judged since: each
    /// with when the last of it was recorded.
    fn ended(&mut self, index: &Local) -> Result<Vec<(RunId, u64)>, RunsError> {
        let now = judge::now();
        let mut query = RunsQuery {
            workspace: WORKSPACE.into(),
            projects: Projects::All,
            task: None,
            // Before now, which is that moment.
            filter: "~since 0s".into(),
            now: self.from,
            offset: 0,
            slow: outcomes::SLOW,
            failed: false,
            probes: false,
            limit: MOST,
            last: 0,
            cursor: None,
            look: 0,
            unowned: false,
        };
        let (mut ended, mut next) = (Vec::new(), now.saturating_sub(LATE));
        loop {
            let Reply::Runs(page) = index.answer(&Query::Runs(query.clone()))? else {
                return Ok(Vec::new());
            };
            for run in &page.runs {
                let row = &run.row;
                let ids = [row.id].into_iter().chain(row.aliases.iter().copied());
                let judged = self.verdicts.judged_at(Judge::Check, ids);
                if judged.is_some_and(|at| at >= row.last) {
                    continue;
                }
                next = next.min(row.last);
                if is_over(run, now) {
                    ended.push((row.id, row.last));
                }
            }
            match page.cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => break,
            }
        }
        self.failed.keep(&ended);
        // Those before it were judged, so that what is looked at does not grow for ever.
        self.from = self.from.max(next);
        Ok(ended)
    }
}

fn is_over(run: &Listed, now: u64) -> bool {
    run.row.standing != Standing::Live && run.row.last.saturating_add(QUIET) < now
}

/// Runs that could not be judged as they were then.
#[derive(Debug, Default)]
struct Failed(HashMap<RunId, Tried>);

#[derive(Debug)]
struct Tried {
    /// When the last of the run had been recorded.
    last: u64,
    wait: Duration,
    at: Instant,
}

impl Failed {
    fn may_try(&self, run: RunId, last: u64, now: Instant) -> bool {
        let tried = self.0.get(&run).filter(|tried| tried.last == last);
        tried.is_none_or(|tried| now.saturating_duration_since(tried.at) >= tried.wait)
    }

    /// Takes note of one more failure, and says after how long it may be tried again.
    fn note(&mut self, run: RunId, last: u64, at: Instant) -> Duration {
        let before = self.0.get(&run).filter(|tried| tried.last == last);
        let wait = before.map_or(AGAIN, |tried| (tried.wait * 2).min(AGAIN_AT_MOST));
        self.0.insert(run, Tried { last, wait, at });
        wait
    }

    fn forget(&mut self, run: RunId) {
        self.0.remove(&run);
    }

    /// Only these are still to be judged.
    fn keep(&mut self, runs: &[(RunId, u64)]) {
        if !self.0.is_empty() {
            let kept: std::collections::HashSet<RunId> = runs.iter().map(|(id, _)| *id).collect();
            self.0.retain(|run, _| kept.contains(run));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_judged_is_tried_again_later_and_later() {
        let (run, mut failed, start) = (
            RunId::from_digest([1; 16]),
            Failed::default(),
            Instant::now(),
        );
        assert!(failed.may_try(run, 5, start));
        assert_eq!(failed.note(run, 5, start), AGAIN);
        assert!(!failed.may_try(run, 5, start + AGAIN / 2));
        assert!(failed.may_try(run, 5, start + AGAIN));
        assert_eq!(failed.note(run, 5, start), AGAIN * 2);
        for _ in 0..20 {
            failed.note(run, 5, start);
        }
        assert_eq!(failed.note(run, 5, start), AGAIN_AT_MOST);
        // It went on: that is another run to judge.
        assert!(failed.may_try(run, 6, start));
        assert_eq!(failed.note(run, 6, start), AGAIN);
        failed.keep(&[]);
        assert!(failed.may_try(run, 6, start));
    }
}
