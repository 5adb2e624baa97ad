//! `mcp-scan --watch`: what is found in what is being recorded, as it comes.
//!
//! Whoever owns the index is asked again and again which runs went on, and of those in which
//! something more was found what that is. Where nobody owns it, it is owned here and served to
//! others.

use super::{Found, report};
use crate::cli::scan::Report;
use crate::commands::wait;
use crate::config::{Config, WORKSPACE};
use crate::error::CommandError;
use crate::query::{self, settings};
use crate::render::json;
use crate::render::time::{now, rfc3339};
use crate::serving::signals::runtime;
use agent_trace_index::filed::Filed;
use agent_trace_index::listing::{Projects, RunsQuery};
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::rows::CodeTally;
use agent_trace_index::{Access, Runs, RunsError};
use agent_trace_model::{RunId, SessionId};
use agent_trace_scanners::Severity;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::time::{Duration, Instant};

/// The least time between two questions.
const PAUSE: Duration = Duration::from_millis(150);
/// The most runs that go on at once.
const MOST: usize = 1_000;

/// What tells a finding from others: session, step, code, place.
type Key = (SessionId, u64, String, String);

/// Goes on until it is interrupted, or nobody reads any more.
pub(super) fn run(config: &Config, least: Severity, format: Report) -> Result<u8, CommandError> {
    if !matches!(format, Report::Text | Report::Jsonl) {
        return Err(CommandError::Usage {
            what: "what goes on is no document".into(),
            hint: "`--format jsonl` prints an object for each finding",
        });
    }
    let store = config.store();
    store
        .make(store.root())
        .map_err(CommandError::path(store.root()))?;
    let runtime = runtime()?;
    let access = Access::lasting(&store, settings());
    let began = now();
    let query = RunsQuery {
        probes: true,
        limit: MOST,
        ..query::runs(config, Some(&format!("~since {}", rfc3339(began))))?
    };
    let mut known: HashMap<RunId, Vec<CodeTally>> = HashMap::new();
    let mut told: HashSet<Key> = HashSet::new();
    let mut out = anstream::stdout().lock();
    loop {
        let asked = Instant::now();
        let Reply::Runs(page) = runtime.block_on(access.ask(Query::Runs(query.clone())))? else {
            return Err(RunsError::Unknown(None).into());
        };
        for run in page.runs {
            let (id, found) = (run.row.id, run.row.tally.found);
            if found.is_empty() || known.get(&id) == Some(&found) {
                continue;
            }
            known.insert(id, found);
            let one = Query::Run {
                workspace: WORKSPACE.into(),
                projects: Projects::All,
                name: id.to_string(),
            };
            let Reply::Run(run) = runtime.block_on(access.ask(one))? else {
                // It belongs to another run by now.
                continue;
            };
            let alone = run.run.row.slices.len() == 1 && run.run.row.slices[0].part == 0;
            for filed in run.findings {
                let is_new = filed.at.wall >= began && filed.found.severity >= least;
                if is_new && told.insert(key(&filed)) {
                    let Some(finding) = filed.found.finding(&filed.server) else {
                        continue;
                    };
                    let number = alone.then_some(filed.at.number);
                    let found = Found {
                        run: Some(id.to_string()),
                        step: number.and_then(|n| usize::try_from(n).ok()),
                        ..Found::from(finding)
                    };
                    match format {
                        Report::Text => report::finding(&mut out, &found)?,
                        _ => json::line(&found)?,
                    }
                }
            }
        }
        out.flush()?;
        // A store that takes long to be asked is asked less often.
        let pause = PAUSE.max(3 * asked.elapsed());
        let next = Instant::now() + pause;
        while Instant::now() < next {
            wait::a_moment()?;
        }
    }
}

fn key(filed: &Filed) -> Key {
    let found = &filed.found;
    (
        filed.at.session,
        filed.at.number,
        found.code.clone(),
        format!("{} {}", found.pointer, found.bytes.0),
    )
}
