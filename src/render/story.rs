//! A whole run as JSON, of however many sessions: what a check command reads.

use super::json::Recorded;
use super::reason;
use super::time::rfc3339;
use agent_trace_analysis::outcomes;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{Session, Standing, Story};
use agent_trace_model::{End, Outcome, Stream};
use serde::Serialize;

/// The document, as JSON text.
pub(crate) fn document(story: &Story) -> Vec<u8> {
    let document = Document {
        run: story.id.to_string(),
        aliases: story.aliases.iter().map(ToString::to_string).collect(),
        workspace: &story.workspace,
        project: story.project.as_deref(),
        started: rfc3339(story.started()),
        last: rfc3339(story.last()),
        failures: outcomes::failures(story).iter().map(reason).collect(),
        recovered: outcomes::recovered(story).iter().map(|r| r.step).collect(),
        sessions: story.sessions.iter().map(SessionPart::of).collect(),
        steps: story.steps.iter().map(StepPart::of).collect(),
    };
    serde_json::to_vec(&document).unwrap_or_default()
}

#[derive(Serialize)]
struct Document<'a> {
    run: String,
    aliases: Vec<String>,
    workspace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    started: String,
    last: String,
    /// Why the run counts as failed; empty where it does not.
    failures: Vec<String>,
    /// Numbers of the steps whose errors were made good later.
    recovered: Vec<usize>,
    sessions: Vec<SessionPart<'a>>,
    steps: Vec<StepPart<'a>>,
}

#[derive(Serialize)]
struct SessionPart<'a> {
    session: String,
    client: &'a str,
    server: &'a str,
    transport: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'a End>,
    gaps: usize,
}

impl<'a> SessionPart<'a> {
    fn of(session: &'a Session) -> Self {
        Self {
            session: session.id.to_string(),
            client: &session.client,
            server: &session.server,
            transport: &session.transport,
            revision: session.revision.as_deref(),
            standing: session.standing,
            end: session.end.as_ref(),
            gaps: session.gaps.len(),
        }
    }
}

#[derive(Serialize)]
struct StepPart<'a> {
    step: usize,
    /// Position of its session in the list, from 0.
    session: usize,
    time: String,
    from: Stream,
    kind: StepKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    outcome: Outcome,
    /// Nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Recorded<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Recorded<'a>>,
}

impl<'a> StepPart<'a> {
    fn of(step: &'a Step) -> Self {
        Self {
            step: step.number,
            session: step.session,
            time: rfc3339(step.wall),
            from: step.from,
            kind: step.kind,
            method: step.method.as_deref(),
            target: step.target.as_deref(),
            outcome: step.outcome,
            duration: step.duration,
            http_status: step.status,
            request: step.request.as_ref().map(|m| Recorded::of(&m.text)),
            response: step.response.as_ref().map(|m| Recorded::of(&m.text)),
        }
    }
}
