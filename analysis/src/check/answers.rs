//! Rules about answers: late ones, ones that nobody asked for, ones that came twice.

use super::context::{Context, Fact, is_lossy};
use super::found::{Found, Said, other, sender};
use super::outcomes::named;
use super::rule::{Rule, Severity};
use agent_trace_model::step::StepKind;
use agent_trace_model::story::KeyKind;
use agent_trace_wire::message::{MessageKind, member, stays_open};
use std::collections::HashMap;
use std::time::Duration;

/// An answer and a cancel that are closer than this may have crossed.
const CROSSING: u64 = 50_000_000;

pub(super) static LATE: Rule = Rule {
    code: "late-answer",
    severity: Severity::Warning,
    about: "an answer came when clients may have given up (--late-after)",
    why: "who asks sets a time-out; the TypeScript SDK's is 60 s",
    source: "MCP 2024-11-05 and later, life cycle: timeouts",
    look: |context, found| {
        let limit = u64::try_from(context.settings.late.as_nanos()).unwrap_or(u64::MAX);
        for fact in &context.steps {
            let step = fact.step;
            // Where input was asked for meanwhile, a person was waited for; so are requests
            // of servers to clients.
            let machines = step.is_clients() && step.rounds == 1;
            let answered = step.kind == StepKind::Request && step.response.is_some();
            let Some(took) = step.duration.filter(|took| *took > limit) else {
                continue;
            };
            if !machines || !answered || stays_open(step.method.as_deref()) {
                continue;
            }
            let said = Said {
                what: format!("{} was answered after {}", named(fact), seconds(took)),
                subject: fact.method(),
                quote: &[],
            };
            found.at(step, other(sender(step.from)), said);
        }
    },
};

pub(super) static AFTER_CANCEL: Rule = Rule {
    code: "answer-after-cancel",
    severity: Severity::Warning,
    about: "a request was answered long after it was cancelled",
    why: "the work went on although nobody wanted it; who cancelled has to ignore the answer. \
          Within 50 ms the two may have crossed, which is not reported",
    source: "MCP 2024-11-05 and later, cancellation: receivers SHOULD NOT send a response",
    look: |context, found| {
        for (position, _) in context.sessions() {
            let mut cancels = HashMap::new();
            for fact in context.of_session(position) {
                let step = fact.step;
                if fact.method() == "notifications/cancelled"
                    && let Some(id) = fact.param("requestId")
                {
                    cancels
                        .entry((step.from, id))
                        .or_insert(Vec::new())
                        .push(step.wall);
                }
            }
            if !cancels.is_empty() {
                context
                    .of_session(position)
                    .for_each(|fact| after_cancel(fact, &cancels, found));
            }
        }
    },
};

/// When each request of each side was cancelled.
type Cancels<'a> = HashMap<(agent_trace_model::Stream, &'a [u8]), Vec<u64>>;

fn after_cancel(fact: &Fact<'_>, cancels: &Cancels<'_>, found: &mut Found<'_>) {
    let step = fact.step;
    let (Some(id), Some(answer)) = (step.id.as_deref(), step.response.as_ref()) else {
        return;
    };
    let answered = matches!(
        fact.response.kind,
        MessageKind::Response | MessageKind::Error
    );
    if !step.cancel_sent || !answered {
        return;
    }
    let cancels = cancels.get(&(step.from, id.as_bytes()));
    // An id may be used again.
    let cancelled = cancels.into_iter().flatten().find(|at| **at >= step.wall);
    let Some(late) = cancelled.and_then(|at| answer.wall.checked_sub(*at)) else {
        return;
    };
    if late > CROSSING {
        let said = Said {
            what: format!(
                "{} was answered {} after its cancel",
                named(fact),
                seconds(late)
            ),
            subject: fact.method(),
            quote: &[],
        };
        found.at(step, other(sender(step.from)), said);
    }
}

pub(super) static UNASKED: Rule = Rule {
    code: "answer-unasked",
    severity: Severity::Error,
    about: "an answer to nothing that was asked",
    why: "its id is that of no request: `1`, `1.0` and `\"1\"` are three ids. Clients drop \
          such answers, and whoever asked waits",
    source: "JSON-RPC 2.0, section 5: the id MUST be that of the request",
    look: |context, found| unasked(context, found, false),
};

pub(super) static TWICE: Rule = Rule {
    code: "answer-twice",
    severity: Severity::Error,
    about: "a second answer to a request",
    why: "clients drop it, or take it for the answer to a request that reused the id",
    source: "JSON-RPC 2.0, section 5: one response object for each request",
    look: |context, found| unasked(context, found, true),
};

/// Answers that belong to no open request: those to a request that had its answer if `twice`,
/// else the others.
fn unasked(context: &Context<'_>, found: &mut Found<'_>, twice: bool) {
    for (position, session) in context.sessions() {
        // Who each id was used by last, with whether that had its answer.
        let mut answered = HashMap::new();
        let tied = session.transport != "http"
            || matches!(session.key, Some(KeyKind::McpSession | KeyKind::Endpoint));
        for fact in context.of_session(position) {
            let step = fact.step;
            let Some(id) = step.id.as_deref() else {
                continue;
            };
            let on = if tied { 0 } else { step.exchange };
            let asked = sender(step.from);
            match step.kind {
                StepKind::Request => {
                    answered.insert((asked.as_str(), on, id), fact);
                }
                StepKind::Answer => {
                    let before = answered.get(&(other(asked).as_str(), on, id));
                    let before = before.filter(|fact| fact.step.response.is_some());
                    if before.is_some() != twice || (is_lossy(session) && !twice) {
                        continue;
                    }
                    let what = match before {
                        Some(before) => format!(
                            "{} (step {}) was answered again",
                            named(before),
                            before.step.number
                        ),
                        None => "an answer that nobody asked for".into(),
                    };
                    let text = step.request.as_ref().map(|message| &message.text[..]);
                    let said = Said {
                        what,
                        subject: before.map_or("", |before| before.method()),
                        quote: text.unwrap_or_default(),
                    };
                    found.at(step, asked, said);
                }
                _ => {}
            }
        }
        if !twice && !is_lossy(session) {
            nobodys(context, position, found);
        }
    }
}

/// Errors without an id: what they are about is told by nothing.
fn nobodys(context: &Context<'_>, position: usize, found: &mut Found<'_>) {
    let of = context.of_session(position);
    for fact in of.filter(|fact| fact.step.kind == StepKind::Answer && fact.step.id.is_none()) {
        let error = fact.request.error.unwrap_or_default();
        let said = Said {
            what: "an error without the id of a request".into(),
            subject: std::str::from_utf8(member(error, "code").unwrap_or_default())
                .unwrap_or_default(),
            quote: fact.request.text,
        };
        found.at(fact.step, sender(fact.step.from), said);
    }
}

/// A span of nanoseconds in words.
fn seconds(nanoseconds: u64) -> String {
    let span = Duration::from_nanos(nanoseconds);
    format!("{:.3} s", span.as_secs_f64())
}
