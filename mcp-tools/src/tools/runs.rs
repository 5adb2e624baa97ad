//! Which runs there are, and which failed.

use super::{Tool, within};
use crate::answer::{Cut, ToolError};
use crate::ask::{Asked, cursor};
use crate::scope::Scope;
use crate::view::RunView;
use agent_trace_index::listing::{Cursor, RunsQuery};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs of an answer unless that is asked for.
const RUNS: usize = 10;
/// The most.
const MOST: usize = 100;

/// `list_failed_runs`.
pub(crate) struct ListFailedRuns;

/// `list_runs`.
pub(crate) struct ListRuns;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailedInput {
    /// How many runs at most, 10 unless given, no more than 100.
    limit: Option<usize>,
    /// Go on from here: `next` of the answer before.
    after: Option<String>,
    /// Only those that match, in the filter language (see search_steps).
    filter: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsInput {
    /// How many runs at most, 10 unless given, no more than 100.
    limit: Option<usize>,
    /// Go on from here: `next` of the answer before.
    after: Option<String>,
    /// Only those that match, in the filter language (see search_steps).
    filter: Option<String>,
    /// Also runs whose clients only connected and listed what there is.
    #[serde(default)]
    probes: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunsOutput {
    /// The runs, newest first.
    runs: Vec<RunView>,
    /// Where to go on, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

impl Tool for ListFailedRuns {
    const NAME: &'static str = "list_failed_runs";
    const TITLE: &'static str = "List failed runs";
    const DESCRIPTION: &'static str = "Lists recorded runs that failed, newest first, with the \
        reason and the step of each failure. A run is one conversation of an assistant with its \
        MCP servers. Use this first when asked why something failed or went wrong; then \
        rank_suspects or explain_run with the id of a run.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = FailedInput;
    type Output = RunsOutput;

    async fn answer(asked: &Asked, input: FailedInput) -> Result<RunsOutput, ToolError> {
        let query = RunsQuery {
            failed: true,
            ..asked.query(input.filter.as_deref())
        };
        list(asked, query, input.limit, input.after.as_deref()).await
    }
}

impl Tool for ListRuns {
    const NAME: &'static str = "list_runs";
    const TITLE: &'static str = "List runs";
    const DESCRIPTION: &'static str = "Lists recorded runs, failed or not, newest first, each \
        with its counts of steps, calls and errors. Use it to find a run by time, tool, server, \
        client or text; list_failed_runs has only those that failed.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = RunsInput;
    type Output = RunsOutput;

    async fn answer(asked: &Asked, input: RunsInput) -> Result<RunsOutput, ToolError> {
        let query = RunsQuery {
            probes: input.probes,
            ..asked.query(input.filter.as_deref())
        };
        list(asked, query, input.limit, input.after.as_deref()).await
    }
}

async fn list(
    asked: &Asked,
    query: RunsQuery,
    limit: Option<usize>,
    after: Option<&str>,
) -> Result<RunsOutput, ToolError> {
    let limit = within(limit, RUNS, MOST);
    let query = RunsQuery {
        limit,
        cursor: cursor(after)?,
        ..query
    };
    let page = asked.runs(query).await?;
    let mut budget = asked.budget();
    let views = page.runs.iter().map(|run| match page.cut.get(&run.row.id) {
        Some(opened) => RunView::opened(asked, opened),
        None => RunView::listed(asked, run),
    });
    let (runs, left) = budget.fill(views);
    let mut truncated = Vec::new();
    let mut next = page.cursor;
    if left > 0 {
        // It goes on after the last that is told.
        let last = page.runs.get(runs.len().saturating_sub(1));
        next = last.map(|run| Cursor {
            started: run.row.started,
            run: run.row.id,
            seen: 0,
        });
        truncated.push(Cut::new(
            format!("{left} of {limit} runs did not fit"),
            "ask again with `after` set to `next`",
        ));
    }
    Ok(RunsOutput {
        runs,
        next: next.map(|next| next.to_string()),
        truncated,
    })
}
