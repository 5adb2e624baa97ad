//! What tools did over many runs.

use super::Tool;
use crate::answer::{Cut, ToolError};
use crate::ask::Asked;
use crate::scope::Scope;
use crate::text::Text;
use agent_trace_index::listing::RunsQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `tool_stats`.
pub(crate) struct ToolStats;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Only of runs that match, in the filter language (see search_steps).
    filter: Option<String>,
    /// Only of so many of the newest runs; of all unless given.
    last: Option<usize>,
    /// Only tools after so many.
    #[serde(default)]
    after: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    /// How many runs were looked at.
    runs: u64,
    /// How many of them failed.
    failed_runs: u64,
    /// The tools, those with the most failed calls first.
    tools: Vec<ToolView>,
    /// Where to go on, if there are more: pass it as `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolView {
    /// How many runs called it.
    runs: u64,
    /// How often it was called.
    calls: u64,
    /// How many calls failed.
    failed: u64,
    /// Half of the calls that were answered took no longer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<u64>,
    /// 95 of 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<u64>,
    /// 99 of 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ms: Option<u64>,
    /// Bytes of calls and answers on the wire.
    bytes: u64,
    recorded: ToolText,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolText {
    server: Text,
    tool: Text,
}

impl Tool for ToolStats {
    const NAME: &'static str = "tool_stats";
    const TITLE: &'static str = "What tools did";
    const DESCRIPTION: &'static str = "Counts calls and failed calls of each tool over many \
        runs, with the usual percentiles of their durations. Use it to see which tool fails \
        often or is slow.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let query = RunsQuery {
            last: input.last.unwrap_or(0),
            ..asked.query(input.filter.as_deref())
        };
        let mut stats = asked.stats(query).await?;
        // The names come in order, which stays the order of equals.
        stats.tools.sort_by_key(|tool| {
            (
                std::cmp::Reverse(tool.failed),
                std::cmp::Reverse(tool.calls),
            )
        });
        let in_ms = |duration: Option<u64>| duration.map(|duration| duration / 1_000_000);
        let views = stats.tools.iter().skip(input.after).map(|tool| ToolView {
            runs: tool.runs,
            calls: tool.calls,
            failed: tool.failed,
            p50_ms: in_ms(tool.p50),
            p95_ms: in_ms(tool.p95),
            p99_ms: in_ms(tool.p99),
            bytes: tool.bytes,
            recorded: ToolText {
                server: Text::name(&tool.server),
                tool: Text::name(&tool.tool),
            },
        });
        let (tools, left) = asked.budget().fill(views);
        let truncated =
            (left > 0).then(|| Cut::new(format!("{left} tools"), "ask with `after` set to `next`"));
        Ok(Output {
            runs: stats.runs,
            failed_runs: stats.failed,
            next: (left > 0).then_some(input.after + tools.len()),
            tools,
            truncated: truncated.into_iter().collect(),
        })
    }
}
