//! Rules about ids of requests, and what JSON-RPC wants of every message.

use super::context::{Fact, is_lossy};
use super::found::{Said, sender};
use super::outcomes::named;
use super::rule::{Rule, Severity};
use agent_trace_model::Outcome;
use agent_trace_model::step::StepKind;
use agent_trace_model::story::KeyKind;
use agent_trace_wire::message::{MessageKind, member};
use std::collections::{HashMap, HashSet};

/// Methods that are answered.
const ASKING: [&str; 22] = [
    "completion/complete",
    "elicitation/create",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
];

pub(super) static NULL: Rule = Rule {
    code: "id-null",
    severity: Severity::Error,
    about: "a request with the id null",
    why: "an answer to it can't be told from an error that is about no request",
    source: "MCP 2024-11-05 and later, base protocol: the ID MUST NOT be null",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| is_request(fact)) {
            if fact.step.id.as_deref() == Some("null") {
                let said = Said {
                    what: format!("{} with the id null", named(fact)),
                    subject: fact.method(),
                    quote: fact.request.text,
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static TYPE: Rule = Rule {
    code: "id-type",
    severity: Severity::Error,
    about: "a request with an id that is no string and no number",
    why: "most peers can't answer it",
    source: "JSON-RPC 2.0, section 4; MCP, base protocol: a string or integer ID",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| is_request(fact)) {
            let id = fact.step.id.as_deref().unwrap_or("null");
            let begins = id.as_bytes().first();
            let allowed = begins.is_some_and(|b| matches!(b, b'"' | b'-' | b'0'..=b'9'));
            if id != "null" && !allowed {
                let said = Said {
                    what: format!("{} with an id that is no string and no number", named(fact)),
                    subject: fact.method(),
                    quote: id.as_bytes(),
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static FRACTIONAL: Rule = Rule {
    code: "id-fractional",
    severity: Severity::Warning,
    about: "a request with a number as its id that is not written as an integer",
    why: "peers give it back in another spelling (`1` for `1.0`), and it is not recognised",
    source: "JSON-RPC 2.0, section 4: SHOULD NOT contain fractional parts; MCP: integer",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| is_request(fact)) {
            let id = fact.step.id.as_deref().unwrap_or_default();
            let number = id.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if number && id.contains(['.', 'e', 'E']) {
                let said = Said {
                    what: format!("{} with an id that is no integer", named(fact)),
                    subject: fact.method(),
                    quote: id.as_bytes(),
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static REUSED: Rule = Rule {
    code: "id-reused",
    severity: Severity::Error,
    about: "an id that is used again while its first request is open",
    why: "which of the two an answer belongs to can't be told",
    source: "MCP 2024-11-05 and later, base protocol: the ID MUST NOT have been previously used \
             by the requestor in the session",
    look: |context, found| {
        for (position, session) in context.sessions() {
            // Where nothing ties HTTP exchanges together, two clients may use the same id.
            let tied = session.transport != "http"
                || matches!(session.key, Some(KeyKind::McpSession | KeyKind::Endpoint));
            if !tied || is_lossy(session) {
                continue;
            }
            let mut open: HashMap<_, &Fact<'_>> = HashMap::new();
            for fact in context.of_session(position).filter(|fact| is_request(fact)) {
                let Some(id) = fact.step.id.as_deref() else {
                    continue;
                };
                let Some(before) = open.insert((fact.step.from, id), fact) else {
                    continue;
                };
                if !is_open(before, fact.step.wall) {
                    continue;
                }
                let said = Said {
                    what: format!(
                        "{} has the id of step {}, which is open",
                        named(fact),
                        before.step.number
                    ),
                    subject: fact.method(),
                    quote: id.as_bytes(),
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static ON_NOTIFICATION: Rule = Rule {
    code: "notification-with-id",
    severity: Severity::Error,
    about: "a notification with an id",
    why: "with an id it is a request, and who gets it answers that there is no such method",
    source: "JSON-RPC 2.0, section 4.1; MCP: notifications MUST NOT include an ID",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| is_request(fact)) {
            if fact.method().starts_with("notifications/") {
                let said = Said {
                    what: format!("{} with an id", named(fact)),
                    subject: fact.method(),
                    quote: fact.request.text,
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static MISSING: Rule = Rule {
    code: "request-without-id",
    severity: Severity::Error,
    about: "a request without an id",
    why: "without an id it is a notification, and there will be no answer",
    source: "JSON-RPC 2.0, section 4.1; MCP: requests MUST include an ID",
    look: |context, found| {
        for fact in &context.steps {
            let silent = fact.step.kind == StepKind::Notification;
            if silent && ASKING.contains(&fact.method()) {
                let said = Said {
                    what: format!("{} without an id", named(fact)),
                    subject: fact.method(),
                    quote: fact.request.text,
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static JSONRPC: Rule = Rule {
    code: "jsonrpc-version",
    severity: Severity::Warning,
    about: "messages without `\"jsonrpc\": \"2.0\"`",
    why: "strict peers refuse them",
    source: "JSON-RPC 2.0, sections 4 and 5: MUST be exactly \"2.0\"",
    look: |context, found| {
        // Once for each side of a session.
        let mut said_of = HashSet::new();
        for fact in &context.steps {
            let from = sender(fact.step.from);
            let sides = [from, super::found::other(from)];
            let all = [&fact.request, &fact.response];
            for (message, party) in all.into_iter().zip(sides) {
                let spoken = !matches!(message.kind, MessageKind::Other);
                let right = member(message.text, "jsonrpc") == Some(b"\"2.0\"");
                if spoken && !right && said_of.insert((fact.step.session, party)) {
                    let said = Said {
                        what: "a message without \"jsonrpc\": \"2.0\"".into(),
                        subject: party.as_str(),
                        quote: message.text,
                    };
                    found.at(fact.step, party, said);
                }
            }
        }
    },
};

fn is_request(fact: &Fact<'_>) -> bool {
    fact.step.kind == StepKind::Request
}

/// Whether a request was open at this moment.
fn is_open(fact: &Fact<'_>, at: u64) -> bool {
    let step = fact.step;
    match (&step.response, step.outcome) {
        (Some(answer), _) => answer.wall > at,
        (None, outcome) => matches!(outcome, Outcome::Unanswered | Outcome::Pending),
    }
}
