//! Rules about what later revisions removed or will remove.

use super::context::{Fact, MODERN, is_since};
use super::found::{Found, Said, sender};
use super::outcomes::named;
use super::rule::{Party, Rule, Severity};
use agent_trace_model::exchange::Exchange;
use agent_trace_model::step::StepKind;
use agent_trace_model::story::KeyKind;
use agent_trace_wire::message::{member, member_at, string};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};

/// What 2026-07-28 has not got any more.
const REMOVED: [&str; 8] = [
    "logging/setLevel",
    "notifications/elicitation/complete",
    "notifications/roots/list_changed",
    "ping",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
];

pub(super) static METHOD: Rule = Rule {
    code: "method-removed",
    severity: Severity::Error,
    about: "a method that 2026-07-28 removed, in a session of it",
    why: "peers answer that there is no such method",
    source: "MCP 2026-07-28, changes: ping, logging/setLevel, resources/(un)subscribe, \
             roots/list_changed, elicitation/complete; tasks/list and tasks/result",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| fact.is_since(MODERN)) {
            if REMOVED.contains(&fact.method()) && fact.step.kind != StepKind::Http {
                let said = Said {
                    what: format!("{} is no part of 2026-07-28", named(fact)),
                    subject: fact.method(),
                    quote: &[],
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static SERVER_REQUEST: Rule = Rule {
    code: "server-request",
    severity: Severity::Error,
    about: "a request of the server to the client, in 2026-07-28",
    why: "clients do not answer it; input is asked for in a result (`input_required`)",
    source: "MCP 2026-07-28: a server must not send requests",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| fact.is_since(MODERN)) {
            let asks = fact.step.kind == StepKind::Request;
            if asks && !fact.step.is_clients() && !REMOVED.contains(&fact.method()) {
                let said = Said {
                    what: format!("the server asks {}", named(fact)),
                    subject: fact.method(),
                    quote: fact.request.text,
                };
                found.at(fact.step, Party::Server, said);
            }
        }
    },
};

pub(super) static SESSION: Rule = Rule {
    code: "session-removed",
    severity: Severity::Warning,
    about: "a session id, Last-Event-ID, GET or DELETE, in 2026-07-28",
    why: "there are no sessions and no streams to resume: servers ignore the headers and answer \
          other methods than POST with 405",
    source: "MCP 2026-07-28, Streamable HTTP: POST only",
    look: |context, found| {
        for (position, session) in context.sessions() {
            // Once for each kind of it.
            let mut said_of = HashSet::new();
            for exchange in session.exchanges.values() {
                let version = exchange.request_header("mcp-protocol-version");
                if !version.is_some_and(|version| is_since(version.trim(), MODERN)) {
                    continue;
                }
                for (what, party) in uses_of_session(exchange) {
                    if said_of.insert(what) {
                        let said = Said {
                            what: format!("{what} in exchange {}", exchange.number),
                            subject: what,
                            quote: &[],
                        };
                        found.in_session(position, party, said);
                    }
                }
            }
        }
    },
};

pub(super) static ERROR_CODE: Rule = Rule {
    code: "error-code-removed",
    severity: Severity::Warning,
    about: "the error -32002 for a resource that is missing, in 2026-07-28",
    why: "that revision has -32602 for it",
    source: "MCP 2026-07-28, changes: resource not found",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| fact.is_since(MODERN)) {
            let error = fact.response.error.unwrap_or_default();
            if fact.method() == "resources/read" && member(error, "code") == Some(b"-32002") {
                let said = Said {
                    what: format!("{} was answered with error -32002", named(fact)),
                    subject: "",
                    quote: error,
                };
                found.at(fact.step, Party::Server, said);
            }
        }
    },
};

pub(super) static FEATURE: Rule = Rule {
    code: "feature-deprecated",
    severity: Severity::Warning,
    about: "roots, sampling or logging, in 2026-07-28",
    why: "they are deprecated and will be removed, not before 2027-07-28",
    source: "MCP 2026-07-28, changes: deprecated features",
    look: |context, found| {
        // Once for each feature and side of a session.
        let mut said_of = HashSet::new();
        for fact in context.steps.iter().filter(|fact| fact.is_since(MODERN)) {
            features(fact, |feature, party, quote| {
                if said_of.insert((fact.step.session, feature, party)) {
                    report(found, fact, feature, party, quote);
                }
            });
        }
    },
};

pub(super) static TRANSPORT: Rule = Rule {
    code: "transport-deprecated",
    severity: Severity::Warning,
    about: "HTTP with an event stream beside it (HTTP+SSE), the transport of 2024-11-05",
    why: "Streamable HTTP took its place; clients drop it one after another",
    source: "MCP 2025-03-26, changes: HTTP+SSE is replaced; 2026-07-28: deprecated",
    look: |context, found| {
        for (position, session) in context.sessions() {
            if session.key == Some(KeyKind::Endpoint) {
                let said = Said {
                    what: "HTTP+SSE, the transport of 2024-11-05".into(),
                    subject: "",
                    quote: &[],
                };
                found.in_session(position, Party::Server, said);
            }
        }
    },
};

/// What an exchange has that is about sessions.
fn uses_of_session(exchange: &Exchange) -> impl Iterator<Item = (&'static str, Party)> {
    let method = exchange.request.as_ref().map(|request| &request.method[..]);
    let uses = [
        (
            "the client sends Mcp-Session-Id",
            Party::Client,
            exchange.request_header("mcp-session-id").is_some(),
        ),
        (
            "the client sends Last-Event-ID",
            Party::Client,
            exchange.request_header("last-event-id").is_some(),
        ),
        ("the client sends GET", Party::Client, method == Some("GET")),
        (
            "the client sends DELETE",
            Party::Client,
            method == Some("DELETE"),
        ),
        (
            "the server sends Mcp-Session-Id",
            Party::Server,
            exchange.response_header("mcp-session-id").is_some(),
        ),
    ];
    uses.into_iter()
        .filter(|(_, _, used)| *used)
        .map(|(what, party, _)| (what, party))
}

/// Hands out each use of a deprecated feature in a step, with what shows it.
fn features<'a>(fact: &Fact<'a>, mut each: impl FnMut(&'static str, Party, &'a [u8])) {
    if let Some(meta) = fact.param("_meta") {
        let capabilities = member(meta, "io.modelcontextprotocol/clientCapabilities");
        for feature in ["roots", "sampling"] {
            if let Some(declared) = capabilities.and_then(|all| member(all, feature)) {
                each(feature, Party::Client, declared);
            }
        }
        if let Some(level) = member(meta, "io.modelcontextprotocol/logLevel") {
            each("logging", Party::Client, level);
        }
    }
    if fact.method() == "notifications/message" {
        each("logging", Party::Server, fact.request.text);
    }
    let Some(result) = fact.response.result else {
        return;
    };
    if let Some(logging) = member_at(result, &["capabilities", "logging"]) {
        each("logging", Party::Server, logging);
    }
    let asked = member(result, "inputRequests");
    let asked: BTreeMap<String, &RawValue> = asked
        .and_then(|asked| serde_json::from_slice(asked).ok())
        .unwrap_or_default();
    for request in asked.values() {
        let text = request.get().as_bytes();
        let method = member(text, "method").and_then(string);
        match method.as_deref() {
            Some("roots/list") => each("roots", Party::Server, text),
            Some("sampling/createMessage") => each("sampling", Party::Server, text),
            _ => {}
        }
    }
}

fn report(found: &mut Found<'_>, fact: &Fact<'_>, feature: &str, party: Party, quote: &[u8]) {
    let said = Said {
        what: format!("{} uses {feature}, which is deprecated", named(fact)),
        subject: feature,
        quote,
    };
    found.at(fact.step, party, said);
}
