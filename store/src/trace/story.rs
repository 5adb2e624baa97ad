//! Sessions as one story.

use super::session::Session;
use super::step::{Frame, Place, Step};
use crate::journal::{Bodies, Flags};
use agent_trace_model::step::Message;
use agent_trace_model::story::{self, Gap, Line, Story};
use agent_trace_model::{RunId, step};

/// The story of a run that is made of these sessions.
#[must_use]
pub fn of(id: RunId, aliases: Vec<RunId>, sessions: &[Session]) -> Story {
    let mut order: Vec<&Session> = sessions.iter().collect();
    order.sort_by_key(|session| (session.entry.started, session.entry.session));
    let first = order.first().map(|session| &session.entry.header);
    let mut steps: Vec<step::Step> = Vec::new();
    for (position, session) in order.iter().enumerate() {
        let told = session.steps.iter();
        steps.extend(told.map(|step| step_of(step, position, &session.frames)));
    }
    // Within a session the order is that of the monotonic clock, which this keeps.
    if order.len() > 1 {
        steps.sort_by_key(|step| step.wall);
    }
    for (position, step) in steps.iter_mut().enumerate() {
        step.number = position + 1;
    }
    Story {
        id,
        aliases,
        workspace: first
            .map(|header| header.workspace.clone())
            .unwrap_or_default(),
        project: first.and_then(|header| header.project.clone()),
        sessions: order.into_iter().map(session_of).collect(),
        turns: Vec::new(),
        steps,
    }
}

fn session_of(session: &Session) -> story::Session {
    let line = |record: &crate::journal::Record| Line {
        wall: record.envelope.wall,
        text: record.payload.trim_ascii_end().to_vec(),
    };
    let gap = |(envelope, gap): &(crate::journal::Envelope, crate::journal::header::Gap)| Gap {
        wall: envelope.wall,
        reason: gap.reason.clone(),
        frames: gap.frames,
        bytes: gap.bytes,
    };
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

fn step_of(step: &Step, session: usize, frames: &[Frame]) -> step::Step {
    let message = |place: &Option<Place>| Some(message(place.as_ref()?, frames));
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
        cut: has(Flags::CUT),
        lossy: has(Flags::LOSSY),
        incomplete: has(Flags::INCOMPLETE),
        delivered: !has(Flags::UNDELIVERED),
        altered: has(Flags::ALTERED),
        redacted: envelope.spans.len(),
    }
}
