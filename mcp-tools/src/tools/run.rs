//! The skeleton of a run: its sessions and its steps, without what they carried.

use super::{Tool, within};
use crate::answer::{Cut, ToolError};
use crate::ask::Asked;
use crate::scope::Scope;
use crate::view::{RunView, SessionView, StepView, moment};
use agent_trace_index::filed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps of an answer unless that is asked for.
const STEPS: usize = 50;
/// The most.
const MOST: usize = 1_000;

/// `get_run`.
pub(crate) struct GetRun;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The run's id, the beginning of it (4 digits or more), or `latest`.
    pub(crate) run: String,
    /// Only steps after the one of this number.
    #[serde(default)]
    pub(crate) after_step: usize,
    /// How many steps at most, 50 unless given, no more than 1,000.
    pub(crate) limit: Option<usize>,
    /// Only steps that match, in the filter language (see search_steps): `~e` are those that
    /// failed.
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Output {
    run: RunView,
    /// Prompts, where the client tells their ids, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    turns: Vec<TurnView>,
    /// The sessions that it is made of: each a connection of a client with a server.
    sessions: Vec<SessionView>,
    /// The steps, in the order in which they began.
    steps: Vec<StepView>,
    /// Where to go on, if there are more steps: pass it as `after_step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
    /// What was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    truncated: Vec<Cut>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct TurnView {
    /// Its number, from 1.
    turn: usize,
    /// When it began, RFC 3339 in UTC.
    started: String,
}

impl Tool for GetRun {
    const NAME: &'static str = "get_run";
    const TITLE: &'static str = "Look at a run";
    const DESCRIPTION: &'static str = "Gives the skeleton of a run: its sessions and the list of \
        its steps (requests, notifications, stray output) with outcome, time and size, without \
        what they carried. get_step has the whole of one step.";
    const SCOPE: Scope = Scope::RunsRead;
    type Input = Input;
    type Output = Output;

    async fn answer(asked: &Asked, input: Input) -> Result<Output, ToolError> {
        let filter = input.filter.as_deref().map(|text| asked.filter(text));
        let filter = filter.transpose()?;
        let opened = asked.open(&input.run).await?;
        let story = &opened.story;
        let mut budget = asked.budget();
        let run = RunView::opened(asked, &opened);
        budget.takes(&run);
        let mut truncated = Vec::new();

        // Lists of them must not leave steps without room.
        let mut for_sessions = budget.set_aside(budget.text() / 4);
        let sessions = story.sessions.iter().enumerate();
        let views = sessions.map(|(at, session)| SessionView::of(story, at, session));
        let (sessions, left) = for_sessions.fill(views);
        budget.give_back(for_sessions);
        if left > 0 {
            let what = format!("{left} of {} sessions", story.sessions.len());
            truncated.push(Cut::new(
                what,
                "get_run with a filter for a server: `~s NAME`",
            ));
        }
        let mut for_turns = budget.set_aside(budget.text() / 8);
        let turns = story.turns.iter().enumerate().map(|(at, turn)| TurnView {
            turn: at + 1,
            started: moment(turn.started),
        });
        let (turns, left) = for_turns.fill(turns);
        budget.give_back(for_turns);
        if left > 0 {
            truncated.push(Cut::new(
                format!("{left} turns"),
                "steps name the turn they are in",
            ));
        }

        let limit = within(input.limit, STEPS, MOST);
        let codes = filed::codes(&opened.findings);
        let matching: Vec<_> = match &filter {
            Some(filter) => {
                let matcher = filter.over(story, opened.run.verdict()).with(&codes);
                matcher.steps().collect()
            }
            None => story.steps.iter().collect(),
        };
        let mut wanted = matching
            .into_iter()
            .filter(|step| step.number > input.after_step);
        let page = wanted.by_ref().take(limit);
        let (steps, left) = budget.fill(page.map(|step| StepView::of(&opened, step)));
        let more = left > 0 || wanted.next().is_some();
        let last = steps.last().map(|step| step.step);
        if left > 0 {
            let what = format!("{left} of the steps that were asked for did not fit");
            truncated.push(Cut::new(what, "ask again with `after_step` set to `next`"));
        }
        Ok(Output {
            run,
            turns,
            sessions,
            next: last.filter(|_| more),
            steps,
            truncated,
        })
    }
}
