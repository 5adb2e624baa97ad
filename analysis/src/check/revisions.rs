//! Rules about what a revision wants.

use super::context::{Context, Fact, MODERN, PROTOCOL_VERSION, REVISIONS, is_lossy};
use super::found::{Found, Said, other, sender};
use super::outcomes::named;
use super::rule::{Party, Rule, Severity};
use agent_trace_model::step::StepKind;
use agent_trace_model::story::KeyKind;
use agent_trace_wire::message::{member, member_at, string};
use std::collections::HashSet;

pub(super) static UNKNOWN: Rule = Rule {
    code: "revision-unknown",
    severity: Severity::Warning,
    about: "a revision of the protocol that is none",
    why: "revisions are dates: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28. It \
          may also be newer than this program",
    source: "MCP, versioning",
    look: |context, found| {
        let mut said_of = HashSet::new();
        for fact in &context.steps {
            let own = fact
                .request
                .params
                .and_then(|params| string(member_at(params, &["_meta", PROTOCOL_VERSION])?));
            let header = fact.exchange().filter(|_| fact.step.is_clients());
            let header = header.and_then(|on| on.request_header("mcp-protocol-version"));
            let agreed = fact
                .response
                .result
                .filter(|_| fact.method() == "initialize");
            let agreed = agreed.and_then(|result| string(member(result, "protocolVersion")?));
            for (revision, party) in [
                (own, Party::Client),
                (header.map(Into::into), Party::Client),
                (agreed, Party::Server),
            ] {
                let Some(revision) = revision.filter(|r| !REVISIONS.contains(&r.trim())) else {
                    continue;
                };
                if said_of.insert((fact.step.session, party, revision.clone())) {
                    let said = Said {
                        what: "a revision of the protocol that is not known".into(),
                        subject: &revision,
                        quote: revision.as_bytes(),
                    };
                    found.at(fact.step, party, said);
                }
            }
        }
    },
};

pub(super) static BATCH: Rule = Rule {
    code: "batch",
    severity: Severity::Error,
    about: "a batch in a revision that has none",
    why: "peers answer it with an error without id, or not at all",
    source: "MCP 2025-06-18, changes: batches are removed",
    look: |context, found| {
        let mut said_of = HashSet::new();
        for fact in context
            .steps
            .iter()
            .filter(|fact| fact.is_since("2025-06-18"))
        {
            for (side, (message, _)) in fact.messages().enumerate() {
                let from = sender(fact.step.from);
                let answers = side == 1 || fact.step.request.is_none();
                let party = if answers { other(from) } else { from };
                if message.batch && said_of.insert((fact.step.session, message.frame)) {
                    let said = Said {
                        what: "a batch, which this revision does not have".into(),
                        subject: party.as_str(),
                        quote: &message.text,
                    };
                    found.at(fact.step, party, said);
                }
            }
        }
    },
};

pub(super) static INITIALIZE_IN_BATCH: Rule = Rule {
    code: "initialize-in-batch",
    severity: Severity::Error,
    about: "`initialize` as a part of a batch",
    why: "whether the peer takes batches is not known before it is answered",
    source: "MCP 2025-03-26, life cycle: initialize MUST NOT be part of a batch",
    look: |context, found| {
        for fact in &context.steps {
            let batch = fact
                .step
                .request
                .as_ref()
                .is_some_and(|message| message.batch);
            if batch && fact.method() == "initialize" {
                let said = Said {
                    what: "initialize is a part of a batch".into(),
                    subject: "",
                    quote: fact.request.text,
                };
                found.at(fact.step, sender(fact.step.from), said);
            }
        }
    },
};

pub(super) static BEFORE_INITIALIZE: Rule = Rule {
    code: "before-initialize",
    severity: Severity::Error,
    about: "a request before `initialize`, in a revision that begins with it",
    why: "servers refuse it. `ping` is allowed, and so is asking for the revision",
    source: "MCP 2024-11-05 to 2025-11-25, life cycle: initialization MUST be the first \
             interaction",
    look: |context, found| {
        each_start(context, |start, early| {
            if start.initialize.is_none() && start.modern {
                return;
            }
            for fact in early {
                let said = Said {
                    what: format!("{} before initialize", named(fact)),
                    subject: fact.method(),
                    quote: &[],
                };
                found.at(fact.step, Party::Client, said);
                // Where there is none at all, once says it.
                if start.initialize.is_none() {
                    break;
                }
            }
        });
    },
};

pub(super) static BEFORE_INITIALIZED: Rule = Rule {
    code: "before-initialized",
    severity: Severity::Warning,
    about: "a request between `initialize` and `notifications/initialized`",
    why: "some servers end the session for it. `ping` is allowed",
    source: "MCP 2024-11-05 to 2025-11-25, life cycle: initialize, then \
             notifications/initialized",
    look: |context, found| before_initialized(context, found),
};

pub(super) static META_MISSING: Rule = Rule {
    code: "meta-missing",
    severity: Severity::Error,
    about: "a request of 2026-07-28 without revision or capabilities in `_meta`",
    why: "servers refuse it with -32602",
    source: "MCP 2026-07-28, requests: protocolVersion and clientCapabilities are required",
    look: |context, found| {
        for fact in context.steps.iter().filter(|fact| is_modern_request(fact)) {
            if fact.session.digested || fact.request.text.is_empty() {
                continue;
            }
            let meta = fact.param("_meta").unwrap_or_default();
            let missing: Vec<&str> = [
                PROTOCOL_VERSION,
                "io.modelcontextprotocol/clientCapabilities",
            ]
            .into_iter()
            .filter(|name| member(meta, name).is_none())
            .collect();
            if !missing.is_empty() {
                let missing = missing.join(", ");
                let said = Said {
                    what: format!("{} without {missing} in _meta", named(fact)),
                    subject: &format!("{} {missing}", fact.method()),
                    quote: meta,
                };
                found.at(fact.step, Party::Client, said);
            }
        }
    },
};

pub(super) static RESULT_TYPE: Rule = Rule {
    code: "result-type-missing",
    severity: Severity::Warning,
    about: "results of 2026-07-28 without `resultType`",
    why: "it is required; clients take such a result for a complete one",
    source: "MCP 2026-07-28, results",
    look: |context, found| {
        // Once for each method of a session.
        let mut said_of = HashSet::new();
        for fact in context.steps.iter().filter(|fact| is_modern_request(fact)) {
            let result = fact.response.result.filter(|_| !fact.session.digested);
            let Some(result) = result.filter(|r| member(r, "resultType").is_none()) else {
                continue;
            };
            if said_of.insert((fact.step.session, fact.method())) {
                let said = Said {
                    what: format!("{}: a result without resultType", named(fact)),
                    subject: fact.method(),
                    quote: result,
                };
                found.at(fact.step, Party::Server, said);
            }
        }
    },
};

/// A request of a client that is of 2026-07-28 or later.
fn is_modern_request(fact: &Fact<'_>) -> bool {
    let asks = fact.step.kind == StepKind::Request && fact.step.is_clients();
    // Which a client of both eras may go on with.
    asks && fact.method() != "initialize" && fact.is_since(MODERN)
}

/// How a session begins.
struct Start {
    /// Position of `initialize` among its steps.
    initialize: Option<usize>,
    /// Something in it is of 2026-07-28 or later.
    modern: bool,
}

/// Hands out each session of which the beginning is known, with the client's requests that
/// stand before `initialize` and should not.
fn each_start<'a>(
    context: &Context<'a>,
    mut each: impl FnMut(&Start, &mut dyn Iterator<Item = &Fact<'a>>),
) {
    for (position, session) in context.sessions() {
        // Where nothing ties HTTP exchanges together, a session is what one caller asked.
        let tied = session.transport != "http"
            || matches!(session.key, Some(KeyKind::McpSession | KeyKind::Endpoint));
        if !tied || is_lossy(session) {
            continue;
        }
        let mut steps = context.of_session(position);
        let start = Start {
            initialize: steps.position(|fact| fact.method() == "initialize"),
            modern: context
                .of_session(position)
                .any(|fact| fact.is_since(MODERN)),
        };
        let until = start.initialize.unwrap_or(usize::MAX);
        let early = context.of_session(position).take(until);
        each(&start, &mut early.filter(|fact| needs_session(fact)));
    }
}

fn before_initialized(context: &Context<'_>, found: &mut Found<'_>) {
    for (position, session) in context.sessions() {
        let tied = session.transport != "http"
            || matches!(session.key, Some(KeyKind::McpSession | KeyKind::Endpoint));
        if !tied || is_lossy(session) {
            continue;
        }
        let steps = || context.of_session(position);
        let Some(begins) = steps().position(|fact| fact.method() == "initialize") else {
            continue;
        };
        let ends = steps().position(|fact| fact.method() == "notifications/initialized");
        let between = steps().take(ends.unwrap_or(usize::MAX)).skip(begins + 1);
        for fact in between.filter(|fact| needs_session(fact)) {
            let said = Said {
                what: format!("{} before notifications/initialized", named(fact)),
                subject: fact.method(),
                quote: &[],
            };
            found.at(fact.step, Party::Client, said);
            if ends.is_none() {
                break;
            }
        }
    }
}

/// Whether it is a request of a client that is answered only after the beginning.
fn needs_session(fact: &Fact<'_>) -> bool {
    let allowed = ["initialize", "ping", "server/discover"];
    let asks = fact.step.kind == StepKind::Request && fact.step.is_clients();
    let own = fact.request.params;
    let own = own.and_then(|params| member_at(params, &["_meta", PROTOCOL_VERSION]));
    asks && !allowed.contains(&fact.method()) && own.is_none()
}
