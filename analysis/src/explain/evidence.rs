//! Quotes of steps.

use super::Quote;
use crate::outcomes::failed_in_http;
use crate::parts;
use crate::quote::head;
use agent_trace_model::Outcome;
use agent_trace_model::step::Step;
use agent_trace_wire::message::{member, string};

/// Characters of a quote.
const QUOTE: usize = 200;

/// What a step was asked with, where that is anything.
pub(super) fn arguments(step: &Step) -> Option<Quote> {
    let text = parts::arguments(step)?;
    (text != b"{}").then(|| Quote {
        step: Some(step.number),
        of: "arguments",
        text: head(text, QUOTE),
    })
}

/// What a step that failed was answered: what the error or the tool says, where it says
/// something.
pub(super) fn answer(step: &Step) -> Option<Quote> {
    let response = &step.response.as_ref()?.text[..];
    let said = said(step, response).filter(|said| !said.trim().is_empty());
    let text = match said {
        Some(said) => head(said.trim().as_bytes(), QUOTE),
        None => head(parts::answer(step).unwrap_or(response), QUOTE),
    };
    Some(Quote {
        step: Some(step.number),
        of: "answer",
        text,
    })
}

fn said(step: &Step, response: &[u8]) -> Option<String> {
    if let Some(message) = parts::error(step).and_then(|error| member(error, "message")) {
        return string(message).map(Into::into);
    }
    if step.outcome != Outcome::ToolError {
        return None;
    }
    let content = member(member(response, "result")?, "content")?;
    // The first block that is text.
    let mut text = None;
    crate::scalars::each(content, &mut |spot, value| {
        let is_text = text.is_none() && spot.name().is_some_and(|name| name == b"text");
        if is_text && spot.place().inside.is_none() {
            text = Some(String::from_utf8_lossy(value.content()).into_owned());
        }
    });
    text
}

/// How a step failed, in a few words.
pub(super) fn how(step: &Step) -> String {
    let status = step.status.filter(|status| *status >= 400);
    match (step.outcome, status) {
        (_, Some(status)) if failed_in_http(step) => format!("HTTP {status}"),
        (Outcome::Error, _) => match parts::error(step).and_then(|error| member(error, "code")) {
            Some(code) => format!("error {}", head(code, 20)),
            None => "an error".into(),
        },
        (Outcome::ToolError, _) => "the tool reported a failure".into(),
        (Outcome::Timeout, _) => "it took too long".into(),
        (Outcome::Denied, _) => "it was denied".into(),
        (Outcome::Crashed, _) => "the server crashed".into(),
        (Outcome::Unanswered, _) => "it was not answered".into(),
        (outcome, _) => outcome.to_string(),
    }
}
