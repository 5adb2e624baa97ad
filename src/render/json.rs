//! Runs and steps as JSON. Times are RFC 3339 in UTC, durations nanoseconds.
//!
//! Recorded messages stand in it as they were, digit by digit (without line breaks between
//! their tokens). One that is not valid UTF-8 or not JSON stands as a string in which invalid
//! bytes became U+FFFD.

use super::time::rfc3339;
use super::{escape, failures, key_kind, reason};
use agent_trace_model::{Finish, Judge, Stream, Verdict};
use agent_trace_store::state::Decision;
use agent_trace_store::trace::session::{Session, Standing};
use agent_trace_store::trace::step::{Place, Step, StepKind};
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

/// A run in a listing.
#[derive(Debug, Serialize)]
pub(crate) struct RunLine {
    pub(crate) run: String,
    session: String,
    started: String,
    duration: u64,
    client: String,
    server: String,
    /// `stdio` or `http`.
    transport: String,
    /// The revision of the protocol, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// What ties its HTTP exchanges together: `mcp_session`, `endpoint` or `caller`.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_key: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
    /// How many HTTP exchanges there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchanges: Option<usize>,
    standing: &'static str,
    calls: usize,
    failed_calls: usize,
    /// Why the run counts as failed; empty where it does not.
    failures: Vec<String>,
    /// What was decided about it: `right`, `wrong` or `unjudged`.
    verdict: Verdict,
    /// Who decided: `person`, `check` or `eval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict_by: Option<Judge>,
    #[serde(skip_serializing_if = "String::is_empty")]
    verdict_reason: String,
    gaps: usize,
    /// Records that are missing, or as far as is known parts of files that cannot be read.
    damaged: u64,
    redacted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    command: Vec<String>,
}

impl RunLine {
    pub(crate) fn of(run: &Session) -> Self {
        let header = &run.entry.header;
        let calls = || run.steps.iter().filter(|step| step.tool().is_some());
        let end = run.end.as_ref().map(|end| &end.end);
        Self {
            run: run.entry.id.to_string(),
            session: run.entry.session.to_string(),
            started: rfc3339(run.entry.started),
            duration: run.last.saturating_sub(run.entry.started),
            client: run.client(),
            server: run.server().to_owned(),
            transport: run.transport().to_owned(),
            revision: run.revision(),
            listen: run.opening.listen.clone(),
            upstream: run.opening.upstream.clone(),
            session_key: run.key_kind().map(key_kind),
            user_agent: run.opening.user_agent.clone(),
            exchanges: run.entry.http.then_some(run.exchanges.len()),
            standing: match run.standing() {
                Standing::Live => "live",
                Standing::Ended => "ended",
                Standing::Crashed => "crashed",
                Standing::CutOff => "cut_off",
            },
            calls: calls().count(),
            failed_calls: calls().filter(|step| step.outcome.is_failure()).count(),
            failures: failures(run).iter().map(reason).collect(),
            verdict: Verdict::Unjudged,
            verdict_by: None,
            verdict_reason: String::new(),
            gaps: run.gaps.len(),
            damaged: run
                .missing
                .max((run.damage.len() + run.unreadable.len()) as u64),
            redacted: header.redaction.on,
            exit_code: end.and_then(|end| end.exit_code),
            signal: end.and_then(|end| end.signal),
            command: run.opening.command.clone(),
        }
    }

    /// The same with what was decided about the run.
    pub(crate) fn judged(self, decision: Option<&Decision>) -> Self {
        let Some(decision) = decision else {
            return self;
        };
        Self {
            verdict: decision.verdict,
            verdict_by: Some(decision.by),
            verdict_reason: decision.reason.clone(),
            ..self
        }
    }
}

/// A step of a run.
#[derive(Debug, Serialize)]
pub(crate) struct StepLine<'a> {
    step: usize,
    time: String,
    from: Stream,
    kind: &'static str,
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
    request: Option<Recorded<'a>>,
    /// Number of the frame that it was in, for `show --frame`.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_frame: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Recorded<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_frame: Option<u64>,
}

/// A message as it was recorded.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Recorded<'a> {
    Json(&'a RawValue),
    Joined(Box<RawValue>),
    Text(Cow<'a, str>),
}

impl<'a> Recorded<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        let json: Option<&RawValue> = std::str::from_utf8(text)
            .ok()
            .and_then(|text| serde_json::from_str(text).ok());
        match json {
            // A Content-Length body may be spread over lines.
            Some(json) if json.get().contains(['\n', '\r']) => {
                let joined = json.get().replace(['\n', '\r'], "");
                RawValue::from_string(joined).map_or(Self::Json(json), Self::Joined)
            }
            Some(json) => Self::Json(json),
            None => Self::Text(String::from_utf8_lossy(text)),
        }
    }
}

impl<'a> StepLine<'a> {
    pub(crate) fn of(run: &'a Session, step: &'a Step) -> Self {
        let number = |place: &Place| {
            let frame = run.frames.get(place.frame)?;
            Some(frame.record.envelope.sequence)
        };
        Self {
            step: step.number,
            time: rfc3339(step.wall),
            from: step.from,
            kind: match step.kind {
                StepKind::Request => "request",
                StepKind::Notification => "notification",
                StepKind::Answer => "answer",
                StepKind::Other => "other",
                StepKind::Stray => "stray",
                StepKind::Http => "http",
            },
            method: step.method.as_deref(),
            target: step.target.as_deref(),
            outcome: step.outcome.as_str(),
            duration: step.duration,
            progress: step.progress,
            rounds: step.rounds,
            exchange: step.exchange,
            http_status: step.status,
            finish: step.finish,
            request: (step.opened.as_ref()).map(|place| Recorded::of(place.text(&run.frames))),
            request_frame: step.opened.as_ref().and_then(number),
            response: step.response(&run.frames).map(Recorded::of),
            response_frame: step.closed.as_ref().and_then(number),
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
        let json = serde_json::to_string(&Recorded::of(text)).unwrap();
        assert_eq!(json.as_bytes(), text);
    }

    #[test]
    fn a_body_over_several_lines_becomes_one() {
        let text = b"{\r\n  \"a\" : \"b\\nc\"\n}";
        let json = serde_json::to_string(&Recorded::of(text)).unwrap();
        assert_eq!(json, "{  \"a\" : \"b\\nc\"}");
    }

    #[test]
    fn w21_what_is_no_utf8_is_a_string() {
        let json = serde_json::to_string(&Recorded::of(b"{\"a\":\"\xff\"}")).unwrap();
        assert_eq!(json, "\"{\\\"a\\\":\\\"\u{fffd}\\\"}\"");
        let lone = br#"{"a":"\ud800"}"#;
        assert_eq!(
            serde_json::to_string(&Recorded::of(lone))
                .unwrap()
                .as_bytes(),
            lone
        );
    }
}
