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
    // A span of time, and no list of numbers.
    #[allow(clippy::single_range_in_vec_init)]
    let parts: Vec<_> = sessions.iter().map(|s| (*s, vec![0..u64::MAX])).collect();
    of_parts(id, aliases, &parts)
}

/// The story of a run that is made of these parts of sessions: those spans of the monotonic
/// clock of the session's recorder, in nanoseconds, in which its steps began.
#[must_use]
pub fn of_parts(id: RunId, aliases: Vec<RunId>, parts: &[(&Session, Vec<Range<u64>>)]) -> Story {
    let mut order: Vec<_> = parts.iter().collect();
    order.sort_by_key(|(session, _)| (session.entry.started, session.entry.session));
    let first = order.first().map(|(session, _)| &session.entry.header);
    let mut steps: Vec<step::Step> = Vec::new();
    for (position, (session, spans)) in order.iter().enumerate() {
        let own = |step: &&Step| is_in(spans, step.monotonic);
        let told = session.steps.iter().filter(own);
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
    Story {
        id,
        aliases,
        workspace: workspace.unwrap_or_default(),
        project: first.and_then(|header| header.project.clone()),
        sessions: order
            .iter()
            .map(|(session, spans)| part(session, spans))
            .collect(),
        turns: Vec::new(),
        steps,
    }
}

fn is_in(spans: &[Range<u64>], monotonic: u64) -> bool {
    spans.iter().any(|span| span.contains(&monotonic))
}

/// What a story tells of these spans of a session.
fn part(session: &Session, spans: &[Range<u64>]) -> story::Session {
    let mut part = self::session(session);
    if spans.iter().any(|span| *span == (0..u64::MAX)) {
        return part;
    }
    let own = |envelope: &Envelope| is_in(spans, envelope.monotonic);
    let lines = session.errors.iter().filter(|r| own(&r.envelope));
    part.stderr = lines.map(line).collect();
    let gaps = session.gaps.iter().filter(|(envelope, _)| own(envelope));
    part.gaps = gaps.map(gap).collect();
    part.exchanges
        .retain(|_, exchange| is_in(spans, exchange.monotonic));
    let own = session
        .steps
        .iter()
        .filter(|step| is_in(spans, step.monotonic));
    let (mut first, mut last) = (None, None);
    for step in own {
        first.get_or_insert(step.wall);
        last = last.max(Some(step.wall.saturating_add(step.duration.unwrap_or(0))));
    }
    if !is_in(spans, 0) {
        part.started = first.unwrap_or(part.started);
    }
    if !spans.iter().any(|span| span.end == u64::MAX) {
        part.last = last.unwrap_or(part.last);
        // How the session ended is told where it did.
        part.standing = Standing::Ended;
        part.end = None;
    }
    part
}

/// What a story tells of a session.
#[must_use]
pub fn session(session: &Session) -> story::Session {
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
        started: session.entry.started,
        last: session.last,
        standing: session.standing(),
        end: session.end.as_ref().map(|end| end.end.clone()),
        exchanges: session.exchanges.clone(),
        stderr: session.errors.iter().map(line).collect(),
        gaps: session.gaps.iter().map(gap).collect(),
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
