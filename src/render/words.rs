//! Words for runs and steps, in one line each. Everything recorded in them is escaped.

use super::escape::text;
use super::time::{date, seconds};
use super::{finish, short};
use agent_trace_analysis::parts::{answer, arguments};
use agent_trace_model::Outcome;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_wire::message::{member, string};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::borrow::Cow;

/// Characters of a name.
const NAME: usize = 40;

/// Clients, and servers, that are named.
const NAMED: usize = 5;

/// `run 1a2b3c4d editor → notes, 2026-11-30 12:03:01`
pub(crate) fn head(story: &Story) -> String {
    let clients = names(story.sessions.iter().map(|session| &session.client[..]));
    let servers = names(story.sessions.iter().map(|session| &session.server[..]));
    let id = short(story.id);
    let started = date(story.started());
    format!(
        "{} {} {clients} → {servers}, {started}",
        "run".dimmed(),
        id.bold()
    )
}

/// Each name once, in their order, and not too many.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if all.len() <= NAMED && !all.contains(&name) {
            all.push(name);
        }
    }
    let more = if all.len() > NAMED { ", …" } else { "" };
    let named = all.iter().take(NAMED);
    let named: Vec<String> = named.map(|name| text(name.as_bytes(), NAME)).collect();
    format!("{}{more}", named.join(", "))
}

/// Who was asked or told: the server, or of what the server says the client. What is no
/// message is told of the server.
fn asked(story: &Story, step: &Step) -> String {
    let session = story.session(step);
    let of_server = step.is_clients() || step.kind == StepKind::Stray;
    let name = session.map_or("?", |session| match of_server {
        true => &session.server,
        false => &session.client,
    });
    text(name.as_bytes(), NAME)
}

/// `notes read_note`, `notes tools/list`
pub(crate) fn label(story: &Story, step: &Step) -> String {
    let what = match (step.tool(), step.kind) {
        (Some(tool), _) => text(tool.as_bytes(), NAME),
        (None, StepKind::Stray | StepKind::Other) => "output".into(),
        (None, _) => call(step),
    };
    format!("{} {what}", asked(story, step))
}

/// `tools/call read_note`
fn call(step: &Step) -> String {
    let method = match (&step.method, step.kind) {
        (Some(method), _) => text(method.as_bytes(), NAME),
        (None, StepKind::Answer) => "answer to no known request".into(),
        (None, StepKind::Stray) => "output".into(),
        (None, _) => "?".into(),
    };
    match &step.target {
        Some(target) => format!("{method} {}", text(target.as_bytes(), 80)),
        None => method,
    }
}

/// `notes tools/call read_note({"number":7})`
pub(crate) fn asks(story: &Story, step: &Step, limit: usize) -> String {
    let (asked, call) = (asked(story, step), call(step));
    let asked = asked.cyan();
    match step.kind {
        StepKind::Http => format!("{asked} {call}"),
        StepKind::Request | StepKind::Notification => {
            let arguments = arguments(step).unwrap_or_default();
            format!("{asked} {call}({})", text(arguments, limit))
        }
        StepKind::Answer | StepKind::Other | StepKind::Stray => {
            let said = step.request.as_ref().map(|message| &message.text[..]);
            let said = said.unwrap_or_default().trim_ascii_end();
            format!("{asked} {call}: {}", text(said, limit))
        }
    }
}

/// Whether a step is answered: others are over when they have begun.
pub(crate) fn is_answered(step: &Step) -> bool {
    matches!(step.kind, StepKind::Request | StepKind::Http)
}

/// What came of it: `{"content":[…]} <0.212>`
pub(crate) fn answers(step: &Step, limit: usize) -> String {
    let result = answer(step).unwrap_or_default();
    let what = match step.outcome {
        Outcome::Ok if step.kind == StepKind::Http => status(step),
        Outcome::Ok => text(result, limit),
        Outcome::Error => format!("error {}", error(step, limit)).red().to_string(),
        Outcome::ToolError => format!("tool error {}", text(result, limit))
            .red()
            .to_string(),
        outcome => {
            let words = format!("? ({})", outcome.as_str().replace('_', " "));
            match outcome.is_failure() {
                true => words.red().to_string(),
                false => words.yellow().to_string(),
            }
        }
    };
    let broke = step
        .finish
        .filter(|_| step.outcome.is_failure())
        .and_then(finish);
    let broke = broke.map_or(String::new(), |how| format!(" ({how})"));
    let took = step.duration.map_or(String::new(), |took| {
        format!(" {}", format!("<{}>", seconds(took)).dimmed())
    });
    format!("{what}{broke}{took}")
}

fn status(step: &Step) -> String {
    step.status.map_or("?".into(), |status| status.to_string())
}

/// `-32602 "Unknown tool"`
fn error(step: &Step, limit: usize) -> String {
    let error = answer(step).unwrap_or_default();
    let code = member(error, "code").unwrap_or_default();
    match member(error, "message").and_then(string) {
        Some(message) => format!("{} \"{}\"", text(code, 20), text(message.as_bytes(), limit)),
        None if step.status.is_some_and(|status| status >= 400) => format!("HTTP {}", status(step)),
        None => text(error, limit),
    }
}

/// A step as JSON names it.
#[derive(Debug, Serialize)]
pub(crate) struct Named<'a> {
    pub(crate) step: usize,
    server: &'a str,
    from: agent_trace_model::Stream,
    kind: StepKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
}

impl<'a> Named<'a> {
    pub(crate) fn of(story: &'a Story, step: &'a Step) -> Self {
        Self {
            step: step.number,
            server: story.session(step).map_or("", |session| &session.server),
            from: step.from,
            kind: step.kind,
            method: step.method.as_deref(),
            target: step.target.as_deref(),
            outcome: step.outcome,
            duration: step.duration,
        }
    }
}

/// A text in so many columns at most.
pub(crate) fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if text.chars().count() <= columns {
        return text.into();
    }
    let cut = text.chars().take(columns.saturating_sub(1));
    Cow::Owned(cut.chain(['…']).collect())
}

/// A text in exactly so many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let text = fit(text, columns);
    let blanks = columns - text.chars().count();
    format!("{text}{}", " ".repeat(blanks))
}

/// `1 step`, `2 steps`
pub(crate) fn count(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_analysis::testing::Tale;

    #[test]
    fn steps_are_told_in_a_line_that_steers_nothing() {
        let story = Tale::new()
            .call("read", r#"{"n":7}"#)
            .tool_error("no \u{9b}")
            .call("x\u{1b}[2J", "{}")
            .error(-1, "\u{202e}")
            .prints("hello\u{7}\n")
            .asked_back("roots/list", "{}")
            .told();
        let lines = story.steps.iter().map(|step| {
            let asks = asks(&story, step, 40);
            let line = match is_answered(step) {
                true => format!("{asks} = {}", answers(step, 40)),
                false => asks,
            };
            anstream::adapter::strip_str(&line).to_string()
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        notes tools/call read({"n":7}) = tool error {"content":[{"type":"text","text":"no \u{9b}"… <0.010>
        notes tools/call x\u{1b}[2J() = error -1 "\u{202e}" <0.010>
        notes output: hello\u{7}
        editor roots/list({}) = ? (unanswered)
        "#);
    }

    #[test]
    fn texts_are_cut_to_columns() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(pad("é", 3), "é  ");
        assert_eq!(fit("abc", 0), "…");
    }
}
