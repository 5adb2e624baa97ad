//! How runs look in a terminal and as JSON.
//!
//! Everything recorded is hostile: [`escape`] stands between it and the terminal.

pub(crate) mod escape;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod story;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod time;

use agent_trace_analysis::outcomes::{self, Failure};
use agent_trace_model::{Ending, Finish, Judge, Verdict};
use agent_trace_store::journal::header::KeyKind;
use agent_trace_store::state::Decision;
use agent_trace_store::trace::session::{Session, Standing};

/// Digits of a run's id that are shown.
const SHORT_ID: usize = 8;

/// A run's id as it is shown: enough to name it.
pub(crate) fn short(id: impl std::fmt::Display) -> String {
    let mut text = id.to_string();
    text.truncate(SHORT_ID);
    text
}

/// Why a session counts as failed.
pub(crate) fn failures(run: &Session) -> Vec<Failure> {
    let story =
        agent_trace_store::trace::story::of(run.entry.id, Vec::new(), std::slice::from_ref(run));
    outcomes::failures(&story)
}

/// What was decided about a run, and by whom: `judged wrong by a check: the reason`.
pub(crate) fn verdict(decision: &Decision) -> String {
    let by = match decision.by {
        Judge::Person => "a person",
        Judge::Check => "the check command",
        Judge::Eval => "an evaluation",
    };
    let mut text = match decision.verdict {
        Verdict::Unjudged => format!("left unjudged by {by}"),
        verdict => format!("judged {verdict} by {by}"),
    };
    if !decision.reason.is_empty() {
        let reason = escape::text(decision.reason.as_bytes(), 0);
        text.push_str(&format!(": {reason}"));
    }
    text
}

/// How a run stands, in a few words.
pub(crate) fn status(run: &Session) -> String {
    let standing = match run.standing() {
        Standing::Live => "live",
        Standing::Ended => "ok",
        Standing::Crashed if ending(run) == Some(Ending::NotStarted) => "not started",
        Standing::Crashed => "crashed",
        Standing::CutOff => "cut off",
    };
    let failures = failures(run);
    let told = failures
        .iter()
        .find(|failure| !matches!(failure, Failure::Crashed { .. }));
    let mut text = match told {
        Some(failure) if standing == "ok" => format!("failed: {}", reason(failure)),
        Some(failure) => format!("{standing}; failed: {}", reason(failure)),
        None => standing.to_owned(),
    };
    if !run.gaps.is_empty() {
        text.push_str(", with gaps");
    }
    if !run.is_whole() {
        text.push_str(", damaged");
    }
    text
}

fn ending(run: &Session) -> Option<Ending> {
    run.end.as_ref().map(|end| end.end.ending)
}

/// The word for what ties HTTP exchanges together.
pub(crate) fn key_kind(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::McpSession => "mcp_session",
        KeyKind::Endpoint => "endpoint",
        KeyKind::Caller => "caller",
        KeyKind::Unknown => "unknown",
    }
}

/// How an HTTP exchange ended, in words; none where it ended well.
pub(crate) fn finish(finish: Finish) -> Option<&'static str> {
    Some(match finish {
        Finish::Complete => return None,
        Finish::ClientGone => "the client went away",
        Finish::ClientBroke => "the client's request broke off",
        Finish::ServerBroke => "the server broke off",
        Finish::Unreachable => "the server could not be reached",
        Finish::TimedOut => "the server could not be reached in time",
        Finish::Refused => "the relay did not forward it",
        Finish::Idle => "nothing moved for too long",
        Finish::RelayStopped => "the relay was stopped",
    })
}

/// Why a run failed, in a few words.
pub(crate) fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Crashed { .. } => "the server crashed".into(),
        Failure::Unanswered { step } => format!("step {step} unanswered"),
        Failure::LastCallFailed { tool, step } => {
            format!("{} (step {step})", escape::text(tool.as_bytes(), 40))
        }
        Failure::RefusedInHttp { method, step } => {
            format!(
                "{} refused (step {step})",
                escape::text(method.as_bytes(), 40)
            )
        }
        Failure::TimedOut { method, step } => {
            format!(
                "{} timed out (step {step})",
                escape::text(method.as_bytes(), 40)
            )
        }
    }
}
