//! How runs look in a terminal and as JSON.
//!
//! Everything recorded is hostile: [`escape`] stands between it and the terminal.

pub(crate) mod escape;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod time;

use agent_trace_model::Ending;
use agent_trace_store::trace::run::{Failure, Run, Standing};

/// Digits of a run's id that are shown.
const SHORT_ID: usize = 8;

/// A run's id as it is shown: enough to name it.
pub(crate) fn short(id: impl std::fmt::Display) -> String {
    let mut text = id.to_string();
    text.truncate(SHORT_ID);
    text
}

/// How a run stands, in a few words.
pub(crate) fn status(run: &Run) -> String {
    let standing = match run.standing() {
        Standing::Live => "live",
        Standing::Ended => "ok",
        Standing::Crashed if ending(run) == Some(Ending::NotStarted) => "not started",
        Standing::Crashed => "crashed",
        Standing::CutOff => "cut off",
    };
    let failures = run.failures();
    let told = failures
        .iter()
        .find(|failure| **failure != Failure::Crashed);
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

fn ending(run: &Run) -> Option<Ending> {
    run.end.as_ref().map(|end| end.end.ending)
}

/// Why a run failed, in a few words.
pub(crate) fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Crashed => "the server crashed".into(),
        Failure::Unanswered { step } => format!("step {step} unanswered"),
        Failure::LastCallFailed { tool, step } => {
            format!("{} (step {step})", escape::text(tool.as_bytes(), 40))
        }
    }
}
