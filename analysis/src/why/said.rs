//! What was said in a run, piece by piece, in the order in which it was said.

use crate::parts::{arguments, error, params};
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_wire::message::member;
use serde::Serialize;

/// An answer counts as said this much earlier, in nanoseconds: clocks are not so exact that it
/// is sure to stand before what was asked right after it.
const INEXACT: u64 = 1_000_000;

/// What of a step a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What the client asked with, or told: the assistant's or the user's.
    Arguments,
    /// What the server answered.
    Result,
    /// That it failed, as the server told it.
    Error,
    /// What the server notified of.
    Notification,
    /// What the server asked.
    Question,
    /// What the client answered to that: the assistant's or the user's.
    Answer,
    /// What the server says of itself: its tools, prompts, instructions.
    Definition,
    /// What the server printed beside the protocol.
    Output,
}

impl Part {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Arguments => "arguments",
            Self::Result => "result",
            Self::Error => "error",
            Self::Notification => "notification",
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Definition => "definition",
            Self::Output => "output",
        }
    }

    /// Whether its values are asked for: they came from somewhere.
    pub(super) fn is_taken(self) -> bool {
        matches!(self, Self::Arguments | Self::Question | Self::Answer)
    }

    /// Whether the step's own arguments led to it.
    pub(super) fn is_given(self) -> bool {
        matches!(self, Self::Result | Self::Error)
    }
}

/// A piece of what was said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    /// Position of the step.
    pub(super) step: usize,
    /// What of it.
    pub(super) part: Part,
    /// JSON text, or text.
    pub(super) text: &'a [u8],
}

/// Everything that was said, in order.
pub(super) fn all(story: &Story) -> Vec<Said<'_>> {
    let mut said: Vec<(u64, Said<'_>)> = Vec::new();
    // A clock that is set back does not change the order of steps.
    let mut now = 0;
    for (position, step) in story.steps.iter().enumerate() {
        now = now.max(step.wall);
        let mut say = |when, part, text: Option<_>| {
            let text = text.filter(|text: &&[u8]| !text.is_empty());
            let step = position;
            said.extend(text.map(|text| (when, Said { step, part, text })));
        };
        let (part, text) = begun(step);
        say(now, part, text);
        if let Some(answer) = &step.response {
            let after = answer.wall.saturating_sub(step.wall);
            let took = step.duration.unwrap_or(after);
            let when = now.saturating_add(took.saturating_sub(INEXACT));
            say(when, answered(step), error(step));
            match member(&answer.text, "result") {
                Some(result) => say(when, answered(step), Some(result)),
                // The body of an HTTP answer.
                None if error(step).is_none() => say(when, Part::Output, Some(&answer.text)),
                None => {}
            }
        }
    }
    // What began is before what was said at the same moment: a stable sort keeps the order.
    said.sort_by_key(|(when, _)| *when);
    said.into_iter().map(|(_, said)| said).collect()
}

/// What the message that began a step says.
fn begun(step: &Step) -> (Part, Option<&[u8]>) {
    let text = step.request.as_ref().map(|message| &message.text[..]);
    let by_client = step.is_clients();
    match step.kind {
        StepKind::Request | StepKind::Notification if by_client => {
            (Part::Arguments, arguments(step))
        }
        StepKind::Request => (Part::Question, params(step)),
        StepKind::Notification => (Part::Notification, params(step)),
        _ if by_client => (Part::Arguments, text),
        StepKind::Answer => (Part::Result, text),
        _ => (Part::Output, text),
    }
}

/// What its answer is.
fn answered(step: &Step) -> Part {
    let definitions = [
        "initialize",
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/templates/list",
    ];
    match step.method.as_deref() {
        _ if !step.is_clients() => Part::Answer,
        _ if error(step).is_some() => Part::Error,
        Some(method) if definitions.contains(&method) => Part::Definition,
        _ => Part::Result,
    }
}
