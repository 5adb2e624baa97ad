//! Sessions as one story.

use super::session::Session;
use super::step::{Frame, Place, Step};
use crate::journal::{Bodies, Envelope, Flags, Record, header};
use agent_trace_model::step::{Framing, Message};
use agent_trace_model::story::{self, Gap, Line, Standing, Story};
use agent_trace_model::{RunId, step};
use agent_trace_wire::frame;
use std::ops::Range;

/// The story of a run that is made of these sessions.
#[must_use]
pub fn of(id: RunId, aliases: Vec<RunId>, sessions: &[&Session]) -> Story {
    let all: Vec<(&Session, &[Range<u64>])> = sessions.iter().map(|s| (*s, &ALL[..])).collect();
    of_parts(id, aliases, &all)
}

/// All of a session: a span of time, and no list of numbers.
#[allow(clippy::single_range_in_vec_init)]
const ALL: [Range<u64>; 1] = [0..u64::MAX];

/// The story of a run that is made of parts of these sessions: of each what began in one of
/// these spans of the monotonic clock of its recorder, in nanoseconds.
#[must_use]
pub fn of_parts(id: RunId, aliases: Vec<RunId>, sessions: &[(&Session, &[Range<u64>])]) -> Story {
    let mut order = sessions.to_vec();
    order.sort_by_key(|(session, _)| (session.entry.started, session.entry.session));
    let first = order.first().map(|(session, _)| &session.entry.header);
    let mut steps: Vec<step::Step> = Vec::new();
    for (position, (session, spans)) in order.iter().enumerate() {
        let told = session.steps.iter();
        let told = told.filter(|step| holds(spans, step.monotonic));
        steps.extend(told.map(|step| self::step(session, step, position)));
    }
    // Within a session the order is that of the monotonic clock, which this keeps.
    if order.len() > 1 {
        steps.sort_by_key(|step| step.wall);
    }
    for (position, step) in steps.iter_mut().enumerate() {
        step.number = position + 1;
    }
    let workspace = first.map(|header| header.workspace.clone());
    let told = |(session, spans): (&Session, &[Range<u64>])| part(session, spans);
    Story {
        id,
        aliases,
        workspace: workspace.unwrap_or_default(),
        project: first.and_then(|header| header.project.clone()),
        task: order
            .iter()
            .find_map(|(session, _)| session.opening.task.clone()),
        sessions: order.into_iter().map(told).collect(),
        turns: Vec::new(),
        steps,
    }
}

/// Whether a moment is in one of these spans. The last moment there is belongs to what is
/// open.
fn holds(spans: &[Range<u64>], moment: u64) -> bool {
    let open = |span: &Range<u64>| span.end == u64::MAX && moment >= span.start;
    spans
        .iter()
        .any(|span| span.contains(&moment) || open(span))
}

/// What a story tells of a session.
#[must_use]
pub fn session(session: &Session) -> story::Session {
    part(session, &ALL)
}

/// What it tells of parts of one.
fn part(session: &Session, spans: &[Range<u64>]) -> story::Session {
    let within = |envelope: &Envelope| holds(spans, envelope.monotonic);
    let begins = spans.iter().any(|span| span.start == 0);
    let ends = spans.iter().any(|span| span.end == u64::MAX);
    let frames = session.frames.iter().map(|frame| &frame.record.envelope);
    let walls = || frames.clone().filter(|e| within(e)).map(|e| e.wall);
    story::Session {
        id: session.entry.session,
        server: session.server().to_owned(),
        client: session.client(),
        transport: session.transport().to_owned(),
        revision: session.revision(),
        command: session.opening.command.clone(),
        listen: session.opening.listen.clone(),
        upstream: session.opening.upstream.clone(),
        key: session.key_kind(),
        user_agent: session.opening.user_agent.clone(),
        redacted: session.entry.header.redaction.on,
        digested: session.entry.header.bodies == Bodies::Digest,
        started: match begins {
            true => session.entry.started,
            false => walls().min().unwrap_or(session.entry.started),
        },
        last: match ends {
            true => session.last,
            false => walls().max().unwrap_or(session.last),
        },
        standing: match ends {
            true => session.standing(),
            false => Standing::Ended,
        },
        end: session.end.as_ref().map(|end| end.end.clone()),
        exchanges: session
            .exchanges
            .iter()
            .filter(|(_, exchange)| holds(spans, exchange.monotonic))
            .map(|(number, exchange)| (*number, exchange.clone()))
            .collect(),
        stderr: session
            .errors
            .iter()
            .filter(|record| within(&record.envelope))
            .map(line)
            .collect(),
        gaps: session
            .gaps
            .iter()
            .filter(|(envelope, _)| within(envelope))
            .map(gap)
            .collect(),
        missing: session.missing,
        damaged: session.damage.iter().map(|damage| damage.bytes).sum(),
        unreadable: session.unreadable.iter().map(ToString::to_string).collect(),
        clipped: session.is_clipped(),
    }
}

/// A line of standard error.
#[must_use]
pub fn line(record: &Record) -> Line {
    Line {
        wall: record.envelope.wall,
        text: record.payload.trim_ascii_end().to_vec(),
    }
}

/// Something that was not recorded.
#[must_use]
pub fn gap((envelope, gap): &(Envelope, header::Gap)) -> Gap {
    Gap {
        wall: envelope.wall,
        reason: gap.reason.clone(),
        frames: gap.frames,
        bytes: gap.bytes,
    }
}

/// A step of a session, which is at this position among those of its run. Its number is that
/// in the session.
#[must_use]
pub fn step(of: &Session, step: &Step, session: usize) -> step::Step {
    let message = |place: &Option<Place>| Some(message(place.as_ref()?, &of.frames));
    let id = step.id.as_deref().map(String::from_utf8_lossy);
    step::Step {
        number: step.number,
        session,
        turn: None,
        kind: step.kind,
        from: step.from,
        method: step.method.clone(),
        target: step.target.clone(),
        id: id.map(Into::into),
        request: message(&step.opened),
        response: message(&step.closed),
        exchange: step.exchange,
        status: step.status,
        finish: step.finish,
        rounds: step.rounds,
        wall: step.wall,
        duration: step.duration,
        progress: step.progress,
        cancel_sent: step.cancel_sent,
        outcome: step.outcome,
    }
}

fn message(place: &Place, frames: &[Frame]) -> Message {
    let text = place.text(frames).to_vec();
    let Some(frame) = frames.get(place.frame) else {
        return Message::default();
    };
    let envelope = &frame.record.envelope;
    let has = |flag| envelope.flags.has(flag);
    Message {
        text,
        length: envelope.length,
        wall: envelope.wall,
        frame: envelope.sequence,
        framing: framing(envelope.framing),
        exchange: envelope.exchange,
        batch: !frame.is_stray() && frame.body().trim_ascii_start().starts_with(b"["),
        cut: has(Flags::CUT),
        lossy: has(Flags::LOSSY),
        incomplete: has(Flags::INCOMPLETE),
        delivered: !has(Flags::UNDELIVERED),
        altered: has(Flags::ALTERED),
        redacted: envelope.spans.len(),
    }
}

fn framing(framing: frame::Framing) -> Framing {
    match framing {
        frame::Framing::Newline => Framing::Line,
        frame::Framing::ContentLength => Framing::ContentLength,
        frame::Framing::Event => Framing::Event,
        frame::Framing::Body => Framing::Body,
        frame::Framing::Stray => Framing::Stray,
    }
}
