//! One step a line; the members are described in `docs/formats.md`.

use super::error::FormatError;
use super::export::{Export, Left, recorded};
use super::time::to_rfc3339;
use agent_trace_model::step::{Message, Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_model::{Finish, Stream};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Write;

/// Changes when a member changes its meaning; new ones may come at any time.
const SCHEMA: u32 = 1;

pub(super) struct Jsonl<W> {
    out: W,
}

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    run: String,
    session: String,
    client: &'a str,
    server: &'a str,
    transport: &'a str,
    step: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<&'a str>,
    time: String,
    from: Stream,
    kind: StepKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, RawValue>>,
    outcome: &'static str,
    /// In nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    progress: u32,
    rounds: u32,
    cancel_sent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<Finish>,
    /// Bytes of both messages on the wire.
    bytes: u64,
    /// How many secrets were hidden.
    redacted: usize,
    /// Whether all of both messages is here.
    whole: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Cow<'a, RawValue>>,
}

impl<W: Write> Jsonl<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out }
    }

    fn line(&mut self, story: &Story, step: &Step) -> std::io::Result<()> {
        let session = story.session(step);
        let messages = || [&step.request, &step.response].into_iter().flatten();
        let turn = step.turn.and_then(|turn| story.turns.get(turn));
        let line = Line {
            schema: SCHEMA,
            run: story.id.to_string(),
            session: session.map(|s| s.id.to_string()).unwrap_or_default(),
            client: session.map_or("", |s| &s.client),
            server: session.map_or("", |s| &s.server),
            transport: session.map_or("", |s| &s.transport),
            step: step.number,
            turn: turn.map(|turn| &turn.id[..]),
            time: to_rfc3339(step.wall),
            from: step.from,
            kind: step.kind,
            method: step.method.as_deref(),
            target: step.target.as_deref(),
            id: step
                .id
                .as_deref()
                .and_then(|id| serde_json::from_str(id).ok())
                .map(Cow::Borrowed),
            outcome: step.outcome.as_str(),
            duration: step.duration,
            progress: step.progress,
            rounds: step.rounds,
            cancel_sent: step.cancel_sent,
            exchange: Some(step.exchange).filter(|exchange| *exchange > 0),
            http_status: step.status,
            finish: step.finish,
            bytes: step.bytes(),
            redacted: messages().map(|message| message.redacted).sum(),
            whole: messages().all(Message::is_whole),
            request: step.request.as_ref().and_then(recorded),
            response: step.response.as_ref().and_then(recorded),
        };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Export for Jsonl<W> {
    fn add(&mut self, story: &Story) -> Result<(), FormatError> {
        let mut steps = story.steps.iter();
        steps
            .try_for_each(|step| self.line(story, step))
            .map_err(FormatError::Output)
    }

    fn finish(&mut self) -> Result<Left, FormatError> {
        self.out.flush().map_err(FormatError::Output)?;
        Ok(Left::new())
    }
}
