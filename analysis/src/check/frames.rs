//! Rules about what is no message: stray bytes, broken JSON, frames that were not ended.

use super::found::{Said, sender};
use super::rule::{Party, Rule, Severity};
use agent_trace_model::Stream;
use agent_trace_model::step::{Framing, Message, Step, StepKind};
use std::collections::HashSet;

pub(super) static STRAY_OUTPUT: Rule = Rule {
    code: "stray-output",
    severity: Severity::Error,
    about: "the server wrote something to its output that is no message",
    why: "a banner or a log line: some clients end the session for it. It belongs to standard \
          error",
    source: "MCP 2024-11-05 and later, stdio: the server MUST NOT write anything to its stdout \
             that is not a valid MCP message",
    look: |context, found| {
        let steps = context.steps.iter().map(|fact| fact.step);
        for (step, message) in strays(steps, Stream::ServerToClient) {
            if !looks_like_json(&message.text) {
                let said = Said {
                    what: "output that is no message".into(),
                    subject: "",
                    quote: &message.text,
                };
                found.at(step, Party::Server, said);
            }
        }
    },
};

pub(super) static STRAY_INPUT: Rule = Rule {
    code: "stray-input",
    severity: Severity::Warning,
    about: "the client wrote something to the server's input that is no message",
    why: "servers drop it, or end",
    source: "MCP 2024-11-05 and later, stdio: the client MUST NOT write anything to the \
             server's stdin that is not a valid MCP message",
    look: |context, found| {
        let steps = context.steps.iter().map(|fact| fact.step);
        for (step, message) in strays(steps, Stream::ClientToServer) {
            if !looks_like_json(&message.text) {
                let said = Said {
                    what: "input that is no message".into(),
                    subject: "",
                    quote: &message.text,
                };
                found.at(step, Party::Client, said);
            }
        }
    },
};

pub(super) static BROKEN_JSON: Rule = Rule {
    code: "broken-json",
    severity: Severity::Error,
    about: "a message that is no valid JSON",
    why: "whoever gets it can't tell what it was to be; what it answers stays open",
    source: "JSON-RPC 2.0, section 4; MCP, messages: UTF-8 encoded JSON-RPC",
    look: |context, found| {
        let steps = || context.steps.iter().map(|fact| fact.step);
        let sides = [Stream::ClientToServer, Stream::ServerToClient];
        for (step, message) in sides.into_iter().flat_map(|side| strays(steps(), side)) {
            if looks_like_json(&message.text) {
                let said = Said {
                    what: "a message that is no valid JSON".into(),
                    subject: "",
                    quote: &message.text,
                };
                found.at(step, sender(step.from), said);
            }
        }
    },
};

pub(super) static INCOMPLETE: Rule = Rule {
    code: "incomplete-frame",
    severity: Severity::Error,
    about: "a stream ended inside a message",
    why: "its sender died, or announced more than it sent",
    source: "MCP, stdio: messages are ended by newlines; HTTP, RFC 9112, section 8",
    look: |context, found| {
        for fact in &context.steps {
            let step = fact.step;
            let ends = [
                (step.request.as_ref(), sender(step.from)),
                (
                    step.response.as_ref(),
                    super::found::other(sender(step.from)),
                ),
            ];
            for (message, party) in ends {
                let Some(message) = message.filter(|m| m.incomplete && !m.lossy) else {
                    continue;
                };
                let said = Said {
                    what: "a message without its end".into(),
                    subject: step.method.as_deref().unwrap_or_default(),
                    quote: &message.text,
                };
                found.at(step, party, said);
            }
        }
    },
};

pub(super) static NOT_JSON_RPC: Rule = Rule {
    code: "not-json-rpc",
    severity: Severity::Error,
    about: "JSON that is no request, notification or answer, or an empty batch",
    why: "nobody can do anything with it",
    source: "JSON-RPC 2.0, sections 4 to 6",
    look: |context, found| {
        for fact in &context.steps {
            let step = fact.step;
            let message = step
                .request
                .as_ref()
                .filter(|m| m.is_whole() && !m.incomplete);
            let Some(message) = message.filter(|_| step.kind == StepKind::Other) else {
                continue;
            };
            let said = Said {
                what: match message.batch && message.text.trim_ascii_start().starts_with(b"[") {
                    true => "an empty batch".into(),
                    false => "JSON that is no JSON-RPC".into(),
                },
                subject: "",
                quote: &message.text,
            };
            found.at(step, sender(step.from), said);
        }
    },
};

pub(super) static CONTENT_LENGTH: Rule = Rule {
    code: "content-length",
    severity: Severity::Warning,
    about: "messages are announced by Content-Length",
    why: "no revision of MCP defines that framing: most peers read lines, and hang",
    source: "MCP 2024-11-05 and later, stdio: messages are delimited by newlines",
    look: |context, found| {
        // Once for each side.
        let mut said_of = HashSet::new();
        for fact in &context.steps {
            let step = fact.step;
            let announced = |m: &&Message| m.framing == Framing::ContentLength;
            let ends = [
                (step.request.as_ref(), sender(step.from)),
                (
                    step.response.as_ref(),
                    super::found::other(sender(step.from)),
                ),
            ];
            for (message, party) in ends {
                let Some(message) = message.filter(announced) else {
                    continue;
                };
                if said_of.insert((step.session, party)) {
                    let said = Said {
                        what: "messages are announced by Content-Length".into(),
                        subject: party.as_str(),
                        quote: &message.text,
                    };
                    found.at(step, party, said);
                }
            }
        }
    },
};

/// Stray bytes of a side that are neither blank nor the rest of something that was lost.
fn strays<'a>(
    steps: impl Iterator<Item = &'a Step>,
    of: Stream,
) -> impl Iterator<Item = (&'a Step, &'a Message)> {
    steps.filter_map(move |step| {
        let message = step.request.as_ref()?;
        let stray = step.kind == StepKind::Stray && step.from == of;
        let whole = message.is_whole() && !message.incomplete;
        let blank = message.text.trim_ascii().is_empty();
        (stray && whole && !blank).then_some((step, message))
    })
}

/// Whether somebody meant it to be a message.
fn looks_like_json(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let text = text.trim_ascii_start();
    // A log line may begin with `[`.
    text.starts_with(b"{\"") || text.starts_with(b"[{")
}
