//! Calls, errors, times and bytes of each tool over many runs.

use crate::fit::{Fit, Warnings};
use crate::listing::{MOST, RunsQuery};
use crate::local::Local;
use crate::rows::Sketch;
use crate::runs::RunsError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most tools that are told apart.
const MOST_TOOLS: usize = 10_000;

/// What tools did in the runs that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// How many runs.
    pub runs: u64,
    /// How many of them failed.
    pub failed: u64,
    /// By tool, sorted by server and name.
    pub tools: Vec<ToolStats>,
    /// What could not be read to answer, in one line each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// What a tool did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolStats {
    /// The server that has it.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// How many runs called it.
    pub runs: u64,
    /// How often it was called.
    pub calls: u64,
    /// How many calls failed.
    pub failed: u64,
    /// Percentiles of the calls that were answered, in nanoseconds, off by one per cent at
    /// most ([`crate::rows::sketch`]).
    pub p50: Option<u64>,
    /// Likewise.
    pub p95: Option<u64>,
    /// Likewise.
    pub p99: Option<u64>,
    /// The longest call, in nanoseconds.
    pub max: Option<u64>,
    /// Bytes of calls and answers on the wire.
    pub bytes: u64,
}

impl Local {
    /// What tools did in all runs that match; page size and cursor do not count.
    pub(crate) fn stats(&self, query: &RunsQuery) -> Result<Stats, RunsError> {
        let (mut stats, mut warnings) = (Stats::default(), Warnings::default());
        let mut beyond = 0;
        let mut tools: BTreeMap<(String, String), (ToolStats, Sketch)> = BTreeMap::new();
        let mut query = RunsQuery {
            limit: MOST,
            cursor: None,
            look: 0,
            ..query.clone()
        };
        loop {
            let page = self.runs(&query)?;
            page.warnings.iter().for_each(|line| warnings.tell(line));
            for run in &page.runs {
                stats.runs += 1;
                stats.failed += u64::from(run.failed());
                for tool in &run.row.tally.tools {
                    let server = run.row.servers.get(usize::from(tool.server));
                    let key = (server.cloned().unwrap_or_default(), tool.tool.clone());
                    if tools.len() >= MOST_TOOLS && !tools.contains_key(&key) {
                        beyond += tool.calls;
                        continue;
                    }
                    let (told, sketch) = tools.entry(key).or_default();
                    told.runs += 1;
                    told.calls += tool.calls;
                    told.failed += tool.outcomes.failures();
                    told.bytes += tool.bytes;
                    told.max = told
                        .max
                        .max((!tool.durations.is_empty()).then_some(tool.longest));
                    sketch.merge(&tool.durations);
                }
            }
            match page.cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => break,
            }
        }
        let told = tools
            .into_iter()
            .map(|((server, tool), (told, sketch))| ToolStats {
                server,
                tool,
                p50: sketch.quantile(0.5),
                p95: sketch.quantile(0.95),
                p99: sketch.quantile(0.99),
                ..told
            });
        let mut fit = Fit::default();
        for mut tool in told {
            if fit.takes(&mut tool) {
                stats.tools.push(tool);
            } else {
                beyond += tool.calls;
            }
        }
        if beyond > 0 {
            let told = stats.tools.len();
            warnings.tell(&format!(
                "{beyond} calls are of other tools than these {told}: a filter leaves fewer"
            ));
        }
        stats.warnings = warnings.lines();
        Ok(stats)
    }
}
