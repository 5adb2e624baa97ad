//! Rules about what an HTTP message says its body is, and what it is.

use super::context::Fact;
use super::found::{Found, Said, other, sender};
use super::outcomes::named;
use super::rule::{Party, Rule, Severity};
use agent_trace_model::exchange::Exchange;
use agent_trace_model::step::{Framing, Message};
use agent_trace_wire::message::{self, MessageKind};

pub(super) static NOT_JSON: Rule = Rule {
    code: "content-not-json",
    severity: Severity::Error,
    about: "a body that is declared as JSON and is none",
    why: "whoever gets it fails to read it; mostly it is an error page of something in between",
    source: "RFC 9110, section 8.3; MCP, Streamable HTTP: application/json",
    look: |context, found| {
        for fact in &context.steps {
            for (message, party, _) in bodies(fact) {
                let judged = message.is_whole() && !message.incomplete;
                let stray = message.framing == Framing::Stray && !message.text.is_empty();
                if !judged || !stray {
                    continue;
                }
                if let Some(declared) = declared(fact, message, party).filter(|t| is_json(t)) {
                    report(found, fact, party, message, &declared, "is no JSON");
                }
            }
        }
    },
};

pub(super) static UNDECLARED: Rule = Rule {
    code: "content-type",
    severity: Severity::Error,
    about: "a message of the protocol in a body that is declared as something else",
    why: "clients decide by the type whether to read JSON or an event stream, and drop the rest",
    source: "MCP 2025-03-26 and later, Streamable HTTP: application/json or text/event-stream",
    look: |context, found| {
        for fact in &context.steps {
            for (message, party, parsed) in bodies(fact) {
                let spoken = !matches!(parsed.kind, MessageKind::Other);
                if message.framing != Framing::Body || !spoken {
                    continue;
                }
                if let Some(declared) = declared(fact, message, party).filter(|t| !is_json(t)) {
                    report(found, fact, party, message, &declared, "is a message");
                }
            }
        }
    },
};

/// The messages of a step that came over HTTP, with who sent them.
fn bodies<'f, 'a>(
    fact: &'f Fact<'a>,
) -> impl Iterator<Item = (&'a Message, Party, &'f message::Message<'a>)> {
    let step = fact.step;
    let sent = step.request.as_ref();
    let sent = sent.map(|m| (m, sender(step.from), &fact.request));
    let back = step.response.as_ref();
    let back = back.map(|m| (m, other(sender(step.from)), &fact.response));
    sent.into_iter()
        .chain(back)
        .filter(|(message, ..)| message.exchange > 0)
}

/// What its sender says that the body is: empty where nothing is said; none where the head was
/// not recorded.
fn declared(fact: &Fact<'_>, message: &Message, party: Party) -> Option<String> {
    let exchange: &Exchange = fact.session.exchanges.get(&message.exchange)?;
    let headers = match party {
        Party::Client => {
            &exchange
                .request
                .as_ref()
                .filter(|r| !r.method.is_empty())?
                .headers
        }
        _ => &exchange.response.as_ref()?.headers,
    };
    let mut all = headers.iter();
    let value = all.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let value = value.map_or("", |(_, value)| &value[..]);
    let media = value.split(';').next().unwrap_or_default();
    Some(media.trim().to_ascii_lowercase())
}

fn is_json(media: &str) -> bool {
    media == "application/json" || media.ends_with("+json")
}

fn report(
    found: &mut Found<'_>,
    fact: &Fact<'_>,
    party: Party,
    message: &Message,
    declared: &str,
    is: &str,
) {
    let declared = if declared.is_empty() {
        "nothing"
    } else {
        declared
    };
    let said = Said {
        what: format!("{}: a body declared as {declared} {is}", named(fact)),
        subject: &format!("{} {declared}", party.as_str()),
        quote: &message.text,
    };
    found.at(fact.step, party, said);
}
