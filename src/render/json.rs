//! Runs and steps as JSON. Times are RFC 3339 in UTC, durations nanoseconds.
//!
//! Recorded messages stand in it as they were, digit by digit (without line breaks between
//! their tokens). One that is not valid UTF-8 or not JSON stands as a string in which invalid
//! bytes became U+FFFD.

use super::time::rfc3339;
use super::{escape, row_reason};
use agent_trace_index::formats::export::raw;
use agent_trace_index::listing::Listed;
use agent_trace_index::rows::CodeTally;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{KeyKind, Session, Standing, Story};
use agent_trace_model::{Finish, Judge, Stream, Verdict};
use agent_trace_scanners::run::InRun;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// Prints a document.
pub(crate) fn document(value: &impl Serialize) -> io::Result<()> {
    print(serde_json::to_string_pretty(value)?)
}

/// Prints a document that holds recorded messages, which must not be reformatted, or one
/// object a line.
pub(crate) fn line(value: &impl Serialize) -> io::Result<()> {
    print(serde_json::to_string(value)?)
}

fn print(mut text: String) -> io::Result<()> {
    text.push('\n');
    let mut out = io::stdout().lock();
    // Another program gets the bytes as they are; a terminal nothing that steers it.
    if out.is_terminal() {
        text = escape::json(&text);
    }
    out.write_all(text.as_bytes())
}

/// Prints an object that is JSON already, on a line.
pub(crate) fn text(text: String) -> io::Result<()> {
    print(text)
}

/// A run in a listing.
#[derive(Debug, Serialize)]
pub(crate) struct RunLine<'a> {
    run: String,
    /// Ids that it also goes by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    started: String,
    duration: u64,
    /// The task that it was started for.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    clients: &'a [String],
    servers: &'a [String],
    /// `stdio`, `http`.
    transports: &'a [String],
    /// The revisions of the protocol, where they are known.
    revisions: &'a [String],
    /// What joins its sessions: `session` where there is one and nothing joins it to others.
    joined_by: &'static str,
    standing: Standing,
    /// Whether its clients only connected and listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    probe: bool,
    steps: u64,
    calls: u64,
    failed_calls: u64,
    /// Why the run counts as failed; empty where it does not.
    failures: Vec<String>,
    /// Errors of tools that a later success made good.
    recovered: u64,
    /// What was decided about it: `right`, `wrong` or `unjudged`.
    verdict: Verdict,
    /// Who decided: `person`, `check` or `eval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict_by: Option<Judge>,
    #[serde(skip_serializing_if = "str::is_empty")]
    verdict_reason: &'a str,
    gaps: u64,
    /// Records that are missing, or as far as is known parts of files that cannot be read.
    damaged: u64,
    session_ids: Vec<String>,
    /// What scans found, by code and severity.
    #[serde(skip_serializing_if = "<[CodeTally]>::is_empty")]
    findings: &'a [CodeTally],
}

impl<'a> RunLine<'a> {
    pub(crate) fn of(run: &'a Listed) -> Self {
        let row = &run.row;
        let marks = &row.tally.marks;
        let decision = run.decision.as_ref();
        let mut sessions: Vec<String> = Vec::new();
        for slice in &row.slices {
            let id = slice.session.to_string();
            if !sessions.contains(&id) {
                sessions.push(id);
            }
        }
        Self {
            run: row.id.to_string(),
            aliases: row.aliases.iter().map(ToString::to_string).collect(),
            started: rfc3339(row.started),
            duration: row.last.saturating_sub(row.started),
            task: row.task.as_deref(),
            clients: &row.clients,
            servers: &row.servers,
            transports: &row.transports,
            revisions: &row.revisions,
            joined_by: row.key.kind(),
            standing: row.standing,
            probe: row.probe,
            steps: row.tally.steps,
            calls: row.tally.calls(),
            failed_calls: row.tally.failed_calls(),
            failures: row.failures.iter().map(|f| row_reason(row, f)).collect(),
            recovered: row.recovered,
            verdict: run.verdict(),
            verdict_by: decision.map(|decision| decision.by),
            verdict_reason: decision.map_or("", |decision| &decision.reason),
            gaps: marks.gaps,
            damaged: marks.missing.max(marks.damaged + marks.unreadable),
            session_ids: sessions,
            findings: &row.tally.found,
        }
    }
}

/// A whole run, or those of its steps that were asked for.
#[derive(Debug, Serialize)]
pub(crate) struct RunDocument<'a> {
    #[serde(flatten)]
    run: RunLine<'a>,
    sessions: Vec<SessionLine<'a>>,
    steps: Vec<StepLine<'a>>,
    /// What scans found, whether flagged or not.
    #[serde(skip_serializing_if = "<[InRun]>::is_empty")]
    scan: &'a [InRun],
}

impl<'a> RunDocument<'a> {
    pub(crate) fn of(
        run: &'a Listed,
        story: &'a Story,
        steps: Vec<StepLine<'a>>,
        scan: &'a [InRun],
    ) -> Self {
        Self {
            scan,
            run: RunLine::of(run),
            sessions: story.sessions.iter().map(SessionLine::of).collect(),
            steps,
        }
    }
}

/// A session of a run.
#[derive(Debug, Serialize)]
struct SessionLine<'a> {
    session: String,
    started: String,
    duration: u64,
    client: &'a str,
    server: &'a str,
    transport: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    /// What ties its HTTP exchanges together.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_key: Option<KeyKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    /// How many HTTP exchanges there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchanges: Option<usize>,
    standing: Standing,
    redacted: bool,
    gaps: usize,
    missing: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    command: &'a [String],
    stderr: Vec<Cow<'a, str>>,
}

impl<'a> SessionLine<'a> {
    fn of(session: &'a Session) -> Self {
        let end = session.end.as_ref();
        let http = session.transport == "http";
        let lines = session.stderr.iter();
        Self {
            session: session.id.to_string(),
            started: rfc3339(session.started),
            duration: session.last.saturating_sub(session.started),
            client: &session.client,
            server: &session.server,
            transport: &session.transport,
            revision: session.revision.as_deref(),
            listen: session.listen.as_deref(),
            upstream: session.upstream.as_deref(),
            session_key: session.key,
            user_agent: session.user_agent.as_deref(),
            exchanges: http.then_some(session.exchanges.len()),
            standing: session.standing,
            redacted: session.redacted,
            gaps: session.gaps.len(),
            missing: session.missing,
            exit_code: end.and_then(|end| end.exit_code),
            signal: end.and_then(|end| end.signal),
            command: &session.command,
            stderr: lines
                .map(|line| String::from_utf8_lossy(&line.text))
                .collect(),
        }
    }
}

/// A step of a run.
#[derive(Debug, Serialize)]
pub(crate) struct StepLine<'a> {
    step: usize,
    /// The session that it is in.
    session: String,
    server: &'a str,
    time: String,
    from: Stream,
    kind: StepKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    progress: u32,
    /// How many requests it took, where the server asked for input.
    #[serde(skip_serializing_if = "is_one")]
    rounds: u32,
    /// Number of the HTTP exchange that it began in.
    #[serde(skip_serializing_if = "is_zero")]
    exchange: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    /// How the HTTP exchange ended, where that has a say in the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<Finish>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Cow<'a, RawValue>>,
    /// Number of the frame that it was in, for `show --frame`.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_frame: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_frame: Option<u64>,
}

impl<'a> StepLine<'a> {
    pub(crate) fn of(story: &'a Story, step: &'a Step) -> Self {
        match story.session(step) {
            Some(session) => Self::in_session(session.id.to_string(), &session.server, step),
            None => Self::in_session(String::new(), "", step),
        }
    }

    /// A step of a session.
    pub(crate) fn in_session(session: String, server: &'a str, step: &'a Step) -> Self {
        Self {
            step: step.number,
            session,
            server,
            time: rfc3339(step.wall),
            from: step.from,
            kind: step.kind,
            method: step.method.as_deref(),
            target: step.target.as_deref(),
            outcome: step.outcome.as_str(),
            duration: step.duration,
            progress: step.progress,
            rounds: step.rounds,
            exchange: step.exchange,
            http_status: step.status,
            finish: step.finish,
            request: step.request.as_ref().and_then(|m| raw(&m.text)),
            request_frame: step.request.as_ref().map(|m| m.frame),
            response: step.response.as_ref().and_then(|m| raw(&m.text)),
            response_frame: step.response.as_ref().map(|m| m.frame),
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w22_recorded_numbers_keep_every_digit() {
        let text =
            br#"{"n":9007199254740993,"m":18446744073709551615,"f":1.0,"e":1e400,"k":1,"k":2}"#;
        let json = serde_json::to_string(&raw(text)).unwrap();
        assert_eq!(json.as_bytes(), text);
    }

    #[test]
    fn a_body_over_several_lines_becomes_one() {
        let text = b"{\r\n  \"a\" : \"b\\nc\"\n}";
        let json = serde_json::to_string(&raw(text)).unwrap();
        assert_eq!(json, "{  \"a\" : \"b\\nc\"}");
    }

    #[test]
    fn w21_what_is_no_utf8_is_a_string() {
        let json = serde_json::to_string(&raw(b"{\"a\":\"\xff\"}")).unwrap();
        assert_eq!(json, "\"{\\\"a\\\":\\\"\u{fffd}\\\"}\"");
        let lone = br#"{"a":"\ud800"}"#;
        assert_eq!(serde_json::to_string(&raw(lone)).unwrap().as_bytes(), lone);
    }
}
