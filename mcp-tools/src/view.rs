//! Runs, sessions and steps as they stand in answers.

use crate::ask::{Asked, Opened};
use crate::text::Text;
use agent_trace_analysis::outcomes::Failure;
use agent_trace_analysis::parts;
use agent_trace_index::listing::Listed;
use agent_trace_index::rows::{self, RunRow};
use agent_trace_model::Stream;
use agent_trace_model::step::Step;
use agent_trace_model::story::{Session, Standing, Story};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// Names of a kind that are told.
const NAMES: usize = 5;
/// Failures that are told.
const FAILURES: usize = 3;
const MILLISECOND: u64 = 1_000_000;

/// A run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunView {
    /// The run's id.
    run: String,
    /// When it began, RFC 3339 in UTC.
    started: String,
    /// From its beginning to the last that was recorded, in milliseconds.
    duration_ms: u64,
    /// Whether it failed: judged wrong, crashed, a request unanswered, or a tool whose last call
    /// ended in an error.
    failed: bool,
    /// What somebody decided about it: right, wrong or unjudged.
    verdict: &'static str,
    /// live, ended, crashed or `cut_off` (the recording stopped before the end).
    standing: &'static str,
    /// How many steps it has.
    steps: u64,
    /// How many of them are calls of tools.
    calls: u64,
    /// How many of these failed, made good later or not.
    failed_calls: u64,
    /// How many errors were made good later.
    recovered: u64,
    /// Whether something of it was not recorded or cannot be read.
    incomplete: bool,
    /// Whether the conversation that asks is this run. What belongs to the question itself is
    /// left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    this_conversation: bool,
    /// Why it failed, by what happened.
    failures: Vec<FailureView>,
    /// How many more reasons there are.
    #[serde(skip_serializing_if = "is_none")]
    more_failures: u64,
    recorded: RunText,
}

/// Names in a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RunText {
    clients: Vec<Text>,
    servers: Vec<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<Text>,
    /// The task that it was started for.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Text>,
    /// Why it was judged so.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict_reason: Option<Text>,
}

/// Why a run failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FailureView {
    /// `crashed`, unanswered, `last_call_failed`, `refused_in_http` or `timed_out`.
    why: &'static str,
    /// The number of the step in the run, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    recorded: FailureText,
}

/// What failed.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
struct FailureText {
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Text>,
    /// The tool or method.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<Text>,
}

impl RunView {
    /// A run as the index knows it.
    pub(crate) fn listed(asked: &Asked, run: &Listed) -> Self {
        let row = &run.row;
        let failures = row.failures.iter().take(FAILURES);
        let failures: Vec<_> = failures.map(|f| FailureView::of_row(row, f)).collect();
        let names = |names: &[String]| names.iter().take(NAMES).map(Text::name).collect();
        let decision = run.decision.as_ref();
        let reason = decision.filter(|decision| !decision.reason.is_empty());
        let marks = &row.tally.marks;
        Self {
            run: row.id.to_string(),
            started: moment(row.started),
            duration_ms: row.last.saturating_sub(row.started) / MILLISECOND,
            failed: run.failed(),
            verdict: run.verdict().as_str(),
            standing: standing(row.standing),
            steps: row.tally.steps,
            calls: row.tally.calls(),
            failed_calls: row.tally.failed_calls(),
            recovered: row.recovered,
            incomplete: marks.gaps + marks.missing + marks.damaged + marks.unreadable > 0,
            this_conversation: asked.is_asking(run),
            more_failures: row.failed.saturating_sub(failures.len() as u64),
            failures,
            recorded: RunText {
                clients: names(&row.clients),
                servers: names(&row.servers),
                project: row.project.as_ref().map(Text::name),
                task: row.task.as_ref().map(Text::name),
                verdict_reason: reason.map(|decision| Text::line(&decision.reason)),
            },
        }
    }

    /// A run that was read: its failures have the numbers of steps.
    pub(crate) fn opened(asked: &Asked, opened: &Opened) -> Self {
        let story = &opened.story;
        let told = opened.failures.iter().take(FAILURES);
        let calls = || story.steps.iter().filter(|step| step.tool().is_some());
        let failed = calls().filter(|step| step.outcome.is_failure());
        let mut run = opened.run.clone();
        run.row.failed = opened.failures.len() as u64;
        let listed = Self::listed(asked, &run);
        Self {
            steps: story.steps.len() as u64,
            calls: calls().count() as u64,
            failed_calls: failed.count() as u64,
            incomplete: listed.incomplete || !opened.unreadable.is_empty(),
            failures: told.map(|f| FailureView::of_story(story, f)).collect(),
            more_failures: opened.failures.len().saturating_sub(FAILURES) as u64,
            ..listed
        }
    }
}

impl FailureView {
    fn of_row(row: &RunRow, failure: &rows::Failure) -> Self {
        use rows::Failure;
        let server = |at: &u16| row.servers.get(usize::from(*at)).map(Text::name);
        let (why, server, what) = match failure {
            Failure::Crashed { server: at, .. } => ("crashed", server(at), None),
            Failure::Unanswered { .. } => ("unanswered", None, None),
            Failure::LastCallFailed {
                server: at, tool, ..
            } => ("last_call_failed", server(at), Some(tool)),
            Failure::RefusedInHttp {
                server: at, method, ..
            } => ("refused_in_http", server(at), Some(method)),
            Failure::TimedOut {
                server: at, method, ..
            } => ("timed_out", server(at), Some(method)),
        };
        // In a run of several sessions only the journals tell the number that a step has.
        let is_alone = matches!(&row.slices[..], [only] if only.part == 0);
        let at = match failure {
            Failure::Crashed { .. } => None,
            Failure::Unanswered { at }
            | Failure::LastCallFailed { at, .. }
            | Failure::RefusedInHttp { at, .. }
            | Failure::TimedOut { at, .. } => Some(at.number),
        };
        let step = at.filter(|_| is_alone);
        Self {
            why,
            step: step.and_then(|number| number.try_into().ok()),
            recorded: FailureText {
                server,
                what: what.map(Text::name),
            },
        }
    }

    fn of_story(story: &Story, failure: &Failure) -> Self {
        let (why, what) = match failure {
            Failure::Crashed { .. } => ("crashed", None),
            Failure::Unanswered { .. } => ("unanswered", None),
            Failure::LastCallFailed { tool, .. } => ("last_call_failed", Some(tool)),
            Failure::RefusedInHttp { method, .. } => ("refused_in_http", Some(method)),
            Failure::TimedOut { method, .. } => ("timed_out", Some(method)),
        };
        let number = failure.step();
        let step = number.and_then(|number| story.step(number));
        let session = match failure {
            Failure::Crashed { session } => story.sessions.get(*session),
            _ => step.and_then(|step| story.session(step)),
        };
        let of_step = || step.and_then(|step| step.target.as_ref().or(step.method.as_ref()));
        Self {
            why,
            step: number,
            recorded: FailureText {
                server: session.map(|session| Text::name(&session.server)),
                what: what.or_else(of_step).map(Text::name),
            },
        }
    }
}

/// A session of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SessionView {
    /// Its number in the run, from 1.
    session: usize,
    /// live, ended, crashed or `cut_off`.
    standing: &'static str,
    /// When it began, RFC 3339 in UTC.
    started: String,
    /// How many steps it has in this run.
    steps: usize,
    /// The exit status of the server's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// How often something was not recorded.
    #[serde(skip_serializing_if = "crate::answer::is_zero")]
    gaps: usize,
    recorded: SessionText,
}

/// What a session says of itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SessionText {
    server: Text,
    client: Text,
    transport: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Text>,
    /// The last lines of the server's standard error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stderr: Vec<Text>,
}

/// Lines of standard error that are told.
const STDERR: usize = 3;

impl SessionView {
    pub(crate) fn of(story: &Story, position: usize, session: &Session) -> Self {
        let steps = story.steps.iter().filter(|step| step.session == position);
        let end = session.end.as_ref();
        let from = session.stderr.len().saturating_sub(STDERR);
        Self {
            session: position + 1,
            standing: standing(session.standing),
            started: moment(session.started),
            steps: steps.count(),
            exit_code: end.and_then(|end| end.exit_code),
            signal: end.and_then(|end| end.signal),
            gaps: session.gaps.len(),
            recorded: SessionText {
                server: Text::name(&session.server),
                client: Text::name(&session.client),
                transport: Text::name(&session.transport),
                revision: session.revision.as_ref().map(Text::name),
                stderr: session.stderr[from..]
                    .iter()
                    .map(|line| Text::line(&line.text))
                    .collect(),
            },
        }
    }
}

/// A step, without what it carried.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StepView {
    /// Its number in the run, from 1.
    pub(crate) step: usize,
    /// The number of its session.
    session: usize,
    /// The number of the prompt that it belongs to, from 1, where the client tells its prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<usize>,
    /// request, notification, answer (to nothing that was seen), other, stray or http.
    kind: &'static str,
    /// Who began it: client or server.
    from: &'static str,
    /// ok, error, `tool_error`, denied, timeout, cancelled, crashed, unanswered, `not_recorded`
    /// or pending.
    outcome: &'static str,
    /// When it began, in milliseconds since the run did.
    at_ms: u64,
    /// How long its answer took.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// Bytes of its request on the wire.
    request_bytes: u64,
    /// Bytes of its answer on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_bytes: Option<u64>,
    /// Whether a scan found in its answer what is meant to steer a model to harm: `mcp_scan` has
    /// the findings, and the answer is not shown unasked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flagged: bool,
    recorded: StepText,
}

/// What a step says that it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct StepText {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<Text>,
    /// The tool, prompt or resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Text>,
    /// The beginning of its arguments, as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Text>,
    /// The beginning of its error, as JSON text; of a tool's own error that of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Text>,
}

/// Bytes of arguments in a list of steps.
const ARGUMENTS: usize = 100;
/// Bytes of an error there.
const ERROR: usize = 200;

impl StepView {
    pub(crate) fn of(opened: &Opened, step: &Step) -> Self {
        let story = &opened.story;
        let length = |m: &Option<agent_trace_model::step::Message>| m.as_ref().map(|m| m.length);
        let error = step.outcome.is_failure().then(|| {
            let told = parts::error(step).or_else(|| parts::answer(step));
            told.map(|text| opened.text(Some(step.number), Text::of(text, ERROR)))
        });
        Self {
            step: step.number,
            session: step.session + 1,
            turn: step.turn.map(|turn| turn + 1),
            kind: step.kind.as_str(),
            from: from(step.from),
            outcome: step.outcome.as_str(),
            at_ms: step.wall.saturating_sub(story.started()) / MILLISECOND,
            duration_ms: step.duration.map(|duration| duration / MILLISECOND),
            request_bytes: length(&step.request).unwrap_or(0),
            response_bytes: length(&step.response),
            flagged: opened.flagged.contains(&step.number),
            recorded: StepText {
                server: story
                    .session(step)
                    .map(|session| Text::name(&session.server)),
                method: step.method.as_ref().map(Text::name),
                target: step.target.as_ref().map(Text::name),
                arguments: parts::arguments(step).map(|text| Text::of(text, ARGUMENTS)),
                error: error.flatten(),
            },
        }
    }
}

/// Who began a step.
fn from(stream: Stream) -> &'static str {
    match stream {
        Stream::ClientToServer => "client",
        _ => "server",
    }
}

/// The word for how a session or a run stands.
fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Live => "live",
        Standing::Ended => "ended",
        Standing::Crashed => "crashed",
        Standing::CutOff => "cut_off",
    }
}

/// RFC 3339 in UTC, to the millisecond.
pub(crate) fn moment(nanoseconds: u64) -> String {
    let moment = Timestamp::from_nanosecond(i128::from(nanoseconds)).unwrap_or_default();
    format!("{moment:.3}")
}

fn is_none(number: &u64) -> bool {
    *number == 0
}
