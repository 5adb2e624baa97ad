//! Rules about what came of requests.

use super::context::{Fact, is_lossy};
use super::found::{Said, other, sender};
use super::rule::{Party, Rule, Severity};
use agent_trace_model::step::StepKind;
use agent_trace_model::story::Standing;
use agent_trace_model::{Ending, Finish, Outcome};
use agent_trace_wire::message::member;
use std::str::from_utf8;

pub(super) static ERROR: Rule = Rule {
    code: "error",
    severity: Severity::Error,
    about: "a request was answered with a JSON-RPC error",
    why: "the caller did not get what it asked for; the error says why. Errors with which \
          client and server find a common revision do not count",
    source: "JSON-RPC 2.0, section 5.1; MCP 2026-07-28, -32020 and -32022 in negotiation",
    look: |context, found| {
        for fact in &context.steps {
            let Some(error) = fact.response.error else {
                continue;
            };
            if fact.step.kind != StepKind::Request || fact.step.outcome != Outcome::Error {
                continue;
            }
            let code = member(error, "code").unwrap_or_default();
            let code = from_utf8(code).unwrap_or_default();
            let said = Said {
                what: format!("{} was answered with error {code}", named(fact)),
                subject: &format!("{} {code}", fact.method()),
                quote: error,
            };
            found.at(fact.step, other(sender(fact.step.from)), said);
        }
    },
};

pub(super) static TOOL_ERROR: Rule = Rule {
    code: "tool-error",
    severity: Severity::Error,
    about: "a tool reported a failure (`isError`)",
    why: "the call was understood, and what it was to do failed; the result says why",
    source: "MCP 2024-11-05 and later, tools: `isError`",
    look: |context, found| {
        let failed = |fact: &&Fact<'_>| fact.step.outcome == Outcome::ToolError;
        for fact in context.steps.iter().filter(failed) {
            let said = Said {
                what: format!("{} reported a failure", named(fact)),
                subject: "",
                quote: fact.response.result.unwrap_or_default(),
            };
            found.at(fact.step, Party::Server, said);
        }
    },
};

pub(super) static HTTP_ERROR: Rule = Rule {
    code: "http-error",
    severity: Severity::Error,
    about: "HTTP refused a request, or broke off before its answer",
    why: "a status from 400 on, or no answer at all. The 405 with which a server declines an \
          event stream does not count, nor does what a probe for the revision gets",
    source: "MCP 2025-03-26 and later, transports",
    look: |context, found| {
        for fact in &context.steps {
            let step = fact.step;
            let told = fact.response.error.is_some() && step.kind == StepKind::Request;
            if step.outcome != Outcome::Error || told || step.exchange == 0 {
                continue;
            }
            let how = match (step.status, step.finish) {
                (Some(status), _) if status >= 400 => format!("was refused with status {status}"),
                (_, Some(Finish::Unreachable)) => "did not reach the server".into(),
                (_, Some(Finish::TimedOut)) => "did not reach the server in time".into(),
                (_, Some(Finish::ServerBroke)) => "has an answer that broke off".into(),
                _ => continue,
            };
            let quote = step.response.as_ref().map(|message| &message.text[..]);
            let said = Said {
                what: format!("{} {how}", named(fact)),
                subject: &format!("{} {how}", fact.method()),
                quote: quote.unwrap_or_default(),
            };
            found.at(step, Party::Server, said);
        }
    },
};

pub(super) static TIMEOUT: Rule = Rule {
    code: "timeout",
    severity: Severity::Error,
    about: "who asked gave up because it took too long",
    why: "the cancel, the error or the status says so; the work may have been done all the same",
    source: "MCP 2024-11-05 and later, life cycle: timeouts",
    look: |context, found| {
        let given_up = |fact: &&Fact<'_>| fact.step.outcome == Outcome::Timeout;
        for fact in context.steps.iter().filter(given_up) {
            let step = fact.step;
            let waited = match (step.cancel_sent, step.status) {
                (true, _) => "the client cancelled it".to_owned(),
                (_, Some(status)) if status >= 400 => format!("status {status}"),
                _ => "it was answered so".to_owned(),
            };
            let answer = step.response.as_ref().map(|message| &message.text[..]);
            let said = Said {
                what: format!("{} took too long: {waited}", named(fact)),
                subject: fact.method(),
                quote: fact.response.error.or(answer).unwrap_or_default(),
            };
            found.at(step, other(sender(step.from)), said);
        }
    },
};

pub(super) static UNANSWERED: Rule = Rule {
    code: "unanswered",
    severity: Severity::Error,
    about: "a request was never answered",
    why: "the session, or the exchange, ended first. Who asked waits until it gives up",
    source: "JSON-RPC 2.0, section 5: the server MUST reply to all but notifications",
    look: |context, found| {
        for fact in &context.steps {
            let step = fact.step;
            // An id on a notification is reported as that.
            let wrong = fact.method().starts_with("notifications/");
            let unanswered = matches!(step.outcome, Outcome::Unanswered | Outcome::Crashed);
            if !unanswered || wrong || step.kind != StepKind::Request {
                continue;
            }
            let party = other(sender(step.from));
            let delivered = step
                .request
                .as_ref()
                .is_none_or(|request| request.delivered);
            let ending = fact.session.end.as_ref().map(|end| end.ending);
            let (party, why) = match ending {
                _ if !delivered => (party, "it could not be delivered"),
                _ if step.outcome == Outcome::Crashed => (Party::Server, "the server crashed"),
                Some(Ending::ServerExited) => (Party::Server, "the server exited first"),
                Some(Ending::NotStarted) => (Party::Server, "the server did not start"),
                Some(Ending::ClientClosed | Ending::ClientDied | Ending::ClientStoppedReading) => {
                    (Party::Client, "the client ended the session first")
                }
                _ => (party, "no answer came"),
            };
            let said = Said {
                what: format!("{} was not answered: {why}", named(fact)),
                subject: fact.method(),
                quote: &[],
            };
            found.at(step, party, said);
        }
    },
};

pub(super) static CRASHED: Rule = Rule {
    code: "server-crashed",
    severity: Severity::Error,
    about: "the server did not start, or exited by itself with an error",
    why: "the session ended before the client wanted it to; the lines on standard error \
          mostly say why",
    source: "MCP 2024-11-05 and later, life cycle: shutdown is the client's",
    look: |context, found| {
        for (position, session) in context.sessions() {
            if session.standing != Standing::Crashed {
                continue;
            }
            let end = session.end.as_ref();
            let how = match end.map(|end| (end.ending, end.exit_code, end.signal)) {
                Some((Ending::NotStarted, ..)) => "the server could not be started".to_owned(),
                Some((_, Some(code), _)) => format!("the server exited with status {code}"),
                Some((_, _, Some(signal))) => format!("the server was ended by signal {signal}"),
                _ => "the server ended by itself".to_owned(),
            };
            // Its last words.
            let last = session.stderr.last().filter(|_| !is_lossy(session));
            let error = end.and_then(|end| end.error.as_deref()).map(str::as_bytes);
            let quote = error.or_else(|| last.map(|line| &line.text[..]));
            let said = Said {
                subject: &how.clone(),
                what: how,
                quote: quote.unwrap_or_default(),
            };
            found.in_session(position, Party::Server, said);
        }
    },
};

/// A step in a line: method and what it is about.
pub(super) fn named(fact: &Fact<'_>) -> String {
    let method = match fact.method() {
        "" => "a message",
        method => method,
    };
    match fact.step.target.as_deref() {
        Some(target) => format!("{method} {target}"),
        None => method.to_owned(),
    }
}
