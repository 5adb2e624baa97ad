//! Words for runs and steps, in one line each. Everything recorded in them is escaped.

use super::escape::text;
use super::time::{bytes, date, seconds};
use super::{finish, short};
use agent_trace_analysis::filter::Filter;
use agent_trace_analysis::parts::{self, answer, arguments};
use agent_trace_analysis::quote::around;
pub(crate) use agent_trace_analysis::words::count;
use agent_trace_model::exchange::Exchange;
use agent_trace_model::step::{Message, Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_model::{Outcome, Stream};
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
        (None, StepKind::Answer) => "answer".into(),
        (None, _) => call(step),
    };
    format!("{} {what}", asked(story, step))
}

/// `tools/call read_note`
fn call(step: &Step) -> String {
    let method = text(step.method.as_deref().unwrap_or("?").as_bytes(), NAME);
    match &step.target {
        Some(target) => format!("{method} {}", text(target.as_bytes(), 80)),
        None => method,
    }
}

/// How much is shown of what a step was given and answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut<'a> {
    /// Characters; 0 is all.
    pub(crate) limit: usize,
    /// Of a text in which this is found the piece around it, not the beginning.
    pub(crate) around: Option<&'a Filter>,
}

impl From<usize> for Cut<'_> {
    fn from(limit: usize) -> Self {
        Self {
            limit,
            around: None,
        }
    }
}

impl Cut<'_> {
    fn text(self, bytes: &[u8]) -> String {
        let found = self.around.filter(|_| self.limit > 0);
        match found.and_then(|filter| filter.place(bytes)) {
            Some(place) => text(around(bytes, place, self.limit).as_bytes(), 0),
            None => text(bytes, self.limit),
        }
    }
}

/// `notes tools/call read_note({"number":7})`
pub(crate) fn asks<'c>(story: &Story, step: &Step, cut: impl Into<Cut<'c>>) -> String {
    asked_of(&asked(story, step), step, cut.into())
}

/// The same, where it is known who was asked.
pub(crate) fn asked_of(who: &str, step: &Step, cut: Cut<'_>) -> String {
    let who = who.cyan();
    let shown = || cut.text(parts::text(step.request.as_ref()).trim_ascii_end());
    let flaws = || flaws(step.request.as_ref()).yellow().to_string();
    match step.kind {
        StepKind::Http => format!("{who} {}", bold_call(step)),
        StepKind::Request | StepKind::Notification => {
            let arguments = cut.text(arguments(step).unwrap_or_default());
            format!("{who} {}({arguments})", bold_call(step))
        }
        StepKind::Answer => format!("{who} answer to no known request: {}", shown().yellow()),
        StepKind::Other => format!("{who} not a message: {}{}", flaws(), shown()),
        StepKind::Stray => {
            let stream = match step.from {
                _ if step.exchange > 0 => "event",
                Stream::ClientToServer => "stdin",
                Stream::ServerToClient | Stream::Stderr => "stdout",
            };
            format!("{who} {stream}: {}{}", flaws(), shown())
        }
    }
}

fn bold_call(step: &Step) -> String {
    let method = text(step.method.as_deref().unwrap_or("?").as_bytes(), 80);
    match &step.target {
        Some(target) => format!("{method} {}", text(target.as_bytes(), 80).bold()),
        None => method.bold().to_string(),
    }
}

/// Whether it is told what came of a step: others are over when they have begun.
pub(crate) fn is_answered(step: &Step) -> bool {
    match step.kind {
        StepKind::Request | StepKind::Http => true,
        // One that got through says no more than that.
        StepKind::Notification => step.outcome.is_failure(),
        StepKind::Answer | StepKind::Other | StepKind::Stray => false,
    }
}

/// What came of it: `{"content":[…]} <0.212>`
pub(crate) fn answers<'c>(story: &Story, step: &Step, cut: impl Into<Cut<'c>>) -> String {
    let session = story.session(step);
    let exchange = session.and_then(|session| session.exchanges.get(&step.exchange));
    answered(step, exchange, cut.into())
}

/// The same, where the exchange that it was in is known.
pub(crate) fn answered(step: &Step, exchange: Option<&Exchange>, cut: Cut<'_>) -> String {
    let what = match step.kind {
        StepKind::Http => http(step, exchange),
        _ => message(step, cut),
    };
    format!("{what}{}", remarks(step, exchange))
}

/// What a message said.
fn message(step: &Step, cut: Cut<'_>) -> String {
    let json = answer(step).unwrap_or_default();
    let shown = || cut.text(json);
    let late = step.response.is_some();
    match step.outcome {
        Outcome::Ok => shown(),
        Outcome::Error => format!("error {}", error_of(step, json, cut))
            .red()
            .to_string(),
        Outcome::ToolError => format!("tool error {}", shown()).red().to_string(),
        Outcome::Denied => format!("denied {}", shown()).red().to_string(),
        Outcome::Crashed => "? (the server crashed)".red().to_string(),
        Outcome::Unanswered => "? (unanswered)".red().to_string(),
        Outcome::Cancelled if late && step.duration.is_some() => {
            format!("? (cancelled; late: {})", shown())
                .yellow()
                .to_string()
        }
        Outcome::Timeout if late && step.cancel_sent => {
            format!("? (timeout; late: {})", shown()).red().to_string()
        }
        Outcome::Timeout if late || step.status.is_some() => {
            format!("timeout {}", error_of(step, json, cut))
                .red()
                .to_string()
        }
        Outcome::Timeout => "? (timeout)".red().to_string(),
        Outcome::Cancelled => "? (cancelled)".yellow().to_string(),
        Outcome::NotRecorded => "? (not recorded)".yellow().to_string(),
        Outcome::Pending => "? (pending)".yellow().to_string(),
    }
}

/// What HTTP said to an exchange that is a step itself.
fn http(step: &Step, exchange: Option<&Exchange>) -> String {
    let mut what = match step.status {
        Some(status) => format!("{status}"),
        None => "?".into(),
    };
    if let Some(media) = exchange.and_then(Exchange::content_type) {
        what.push(' ');
        what.push_str(&text(media.as_bytes(), 60));
    }
    match step.outcome {
        outcome if outcome.is_failure() => what.red().to_string(),
        Outcome::Pending => format!("{what} {}", "(open)".yellow()),
        _ => what,
    }
}

/// What is said after an answer: how it went, and how long it took.
fn remarks(step: &Step, exchange: Option<&Exchange>) -> String {
    let mut remarks = String::new();
    if step.rounds > 1 {
        remarks.push_str(&format!(" ({} rounds)", step.rounds));
    }
    // That a stream was closed by the one who opened it is how streams end.
    let told = step.outcome.is_failure() || step.kind != StepKind::Http;
    if let Some(finish) = step.finish.filter(|_| told).and_then(finish) {
        remarks.push_str(&format!(" ({finish})").yellow().to_string());
    }
    let mut flaws = String::new();
    for message in [&step.request, &step.response] {
        flaws.push_str(&self::flaws(message.as_ref()));
    }
    for (_, what) in exchange.iter().flat_map(|e| &e.not_decoded) {
        let (coding, reason) = (what.coding.as_bytes(), what.reason.as_bytes());
        let (coding, reason) = (text(coding, 20), text(reason, 20));
        flaws.push_str(&format!("[{coding} body not decoded: {reason}] "));
    }
    if !flaws.is_empty() {
        remarks.push_str(&format!(" {}", flaws.trim_end().yellow()));
    }
    if let Some(duration) = step.duration {
        remarks.push_str(&format!(" {}", format!("<{}>", seconds(duration)).dimmed()));
    }
    remarks
}

/// `HTTP 404 -32602 "Unknown tool"`
fn error_of(step: &Step, json: &[u8], cut: Cut<'_>) -> String {
    let status = step.status.filter(|status| *status >= 400);
    let mut what = match status {
        Some(status) => format!("HTTP {status}"),
        None => String::new(),
    };
    let code = member(json, "code").unwrap_or_default();
    let said = match member(json, "message").and_then(string) {
        Some(message) => format!("{} \"{}\"", text(code, 20), cut.text(message.as_bytes())),
        // What HTTP said is no error of the protocol.
        None if code.is_empty() && status.is_some() => {
            let body = parts::text(step.response.as_ref());
            cut.text(body.trim_ascii())
        }
        None => cut.text(json),
    };
    if !what.is_empty() && !said.is_empty() {
        what.push(' ');
    }
    what.push_str(&said);
    what
}

/// What is wrong with the frame of a message, in words.
fn flaws(message: Option<&Message>) -> String {
    let Some(message) = message else {
        return String::new();
    };
    let mut flaws = String::new();
    if message.cut {
        flaws.push_str(&format!("[{} in all] ", bytes(message.length)));
    }
    let marks = [
        (message.lossy, "[recorded with a loss] "),
        (message.incomplete, "[incomplete] "),
        (!message.delivered, "[not delivered] "),
        (message.altered, "[altered by the relay] "),
    ];
    for (_, mark) in marks.into_iter().filter(|(is, _)| *is) {
        flaws.push_str(mark);
    }
    flaws
}

/// A step as JSON names it.
#[derive(Debug, Serialize)]
pub(crate) struct Named<'a> {
    pub(crate) step: usize,
    server: &'a str,
    from: Stream,
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
                true => format!("{asks} = {}", answers(&story, step, 40)),
                false => asks,
            };
            anstream::adapter::strip_str(&line).to_string()
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        notes tools/call read({"n":7}) = tool error {"content":[{"type":"text","text":"no \u{9b}"… <0.010>
        notes tools/call x\u{1b}[2J() = error -1 "\u{202e}" <0.010>
        notes stdout: hello\u{7}
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
