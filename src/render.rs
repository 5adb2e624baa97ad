//! How runs look in a terminal and as JSON.
//!
//! Everything recorded is hostile: [`escape`] stands between it and the terminal.

pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod lines;

pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod words;

pub(crate) use agent_trace_analysis::escape;
use agent_trace_analysis::outcomes::Failure;
use agent_trace_index::listing::Listed;
use agent_trace_index::rows::{self, RunRow, StepAt};
use agent_trace_model::id::SHORT_ID;
use agent_trace_model::story::{Session, Standing, Story};
use agent_trace_model::{Ending, Finish, Judge, Verdict};
use agent_trace_scanners::Severity;
use agent_trace_store::state::Decision;
use std::io::{BufWriter, Write};

/// Standard output, for text of many lines: without a buffer each line is a call of the system.
/// It must be flushed: an error at the end would not be seen otherwise.
pub(crate) fn out() -> BufWriter<impl Write> {
    BufWriter::new(anstream::stdout().lock())
}

/// A run's id as it is shown: enough to name it.
pub(crate) fn short(id: impl std::fmt::Display) -> String {
    let mut text = id.to_string();
    text.truncate(SHORT_ID);
    text
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
pub(crate) fn status(story: &Story, failures: &[Failure]) -> String {
    let gaps = story
        .sessions
        .iter()
        .any(|session| !session.gaps.is_empty());
    let standing = standing_of(story);
    let mut told = failures.iter();
    let told = told.find(|failure| !matches!(failure, Failure::Crashed { .. }));
    in_words(
        standing,
        told.map(reason).as_deref(),
        gaps,
        !story.is_whole(),
    )
}

fn in_words(standing: &str, failed: Option<&str>, gaps: bool, damaged: bool) -> String {
    let mut text = match failed {
        Some(reason) if standing == "ok" => format!("failed: {reason}"),
        Some(reason) => format!("{standing}; failed: {reason}"),
        None => standing.to_owned(),
    };
    if gaps {
        text.push_str(", with gaps");
    }
    if damaged {
        text.push_str(", damaged");
    }
    text
}

/// How a run stands: as the one of its sessions of which there is most to say.
fn standing_of(story: &Story) -> &'static str {
    let words = ["live", "not started", "crashed", "cut off"];
    let of = |word: &&&str| story.sessions.iter().any(|s| standing(s) == **word);
    words.iter().find(of).copied().unwrap_or("ok")
}

/// How a session stands, in a word.
pub(crate) fn standing(session: &Session) -> &'static str {
    let ending = session.end.as_ref().map(|end| end.ending);
    standing_word(session.standing, ending == Some(Ending::NotStarted))
}

fn standing_word(standing: Standing, not_started: bool) -> &'static str {
    match standing {
        Standing::Live => "live",
        Standing::Ended => "ok",
        Standing::Crashed if not_started => "not started",
        Standing::Crashed => "crashed",
        Standing::CutOff => "cut off",
    }
}

/// How a session ended, in brackets after a blank; empty where that is not known.
pub(crate) fn ending(session: &Session) -> String {
    let Some(end) = &session.end else {
        return String::new();
    };
    let how = match end.ending {
        Ending::ServerExited => "the server ended by itself",
        Ending::ClientClosed => "the client closed the session",
        Ending::GraceExpired => "the server did not end when the client closed, and was ended",
        Ending::ClientStoppedReading => "the client stopped reading",
        Ending::Signalled => "a signal ended it",
        Ending::ClientDied => "the client died",
        Ending::NotStarted => "the server could not be started",
        Ending::Idle => "nothing was heard of the client for a long time",
        Ending::ServerForgot => "the server does not know the session any more",
        Ending::RelayStopped => "the relay was stopped",
    };
    let status = match (end.exit_code, end.signal) {
        (Some(code), _) => format!(", exit status {code}"),
        (None, Some(signal)) => format!(", ended by signal {signal}"),
        (None, None) => String::new(),
    };
    let error = end
        .error
        .as_deref()
        .map(|error| format!(": {}", escape::text(error.as_bytes(), 0)));
    format!(" ({how}{status}{})", error.unwrap_or_default())
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
    let name = |name: &str| escape::text(name.as_bytes(), 40);
    match failure {
        Failure::Crashed { .. } => "the server crashed".into(),
        Failure::Unanswered { step } => format!("step {step} unanswered"),
        Failure::LastCallFailed { tool, step } => format!("{} (step {step})", name(tool)),
        Failure::RefusedInHttp { method, step } => {
            format!("{} refused (step {step})", name(method))
        }
        Failure::TimedOut { method, step } => format!("{} timed out (step {step})", name(method)),
    }
}

/// The same of what the index knows.
pub(crate) fn row_reason(row: &RunRow, failure: &rows::Failure) -> String {
    let name = |name: &str| escape::text(name.as_bytes(), 40);
    // Of several sessions the number is that in the session, and not known here for the run.
    let step = |at: &StepAt| match &row.slices[..] {
        [only] if only.part == 0 => format!(" (step {})", at.number),
        _ => String::new(),
    };
    match failure {
        rows::Failure::Crashed { .. } => "the server crashed".into(),
        rows::Failure::Unanswered { at } => match &step(at)[..] {
            "" => "a request unanswered".into(),
            step => format!("{} unanswered", step.trim_matches([' ', '(', ')'])),
        },
        rows::Failure::LastCallFailed { tool, at, .. } => format!("{}{}", name(tool), step(at)),
        rows::Failure::TimedOut { method, at, .. } => {
            format!("{} timed out{}", name(method), step(at))
        }
        rows::Failure::RefusedInHttp { method, at, .. } => {
            format!("{} refused{}", name(method), step(at))
        }
    }
}

/// How a run stands by what the index knows, in a few words.
pub(crate) fn row_status(run: &Listed) -> String {
    let row = &run.row;
    let marks = &row.tally.marks;
    let standing = standing_word(row.standing, row.not_started);
    let told = row.failures.iter();
    let mut told = told.filter(|failure| !matches!(failure, rows::Failure::Crashed { .. }));
    let reason = told.next().map(|failure| row_reason(row, failure));
    let damaged = marks.missing + marks.damaged + marks.unreadable > 0;
    let mut text = in_words(standing, reason.as_deref(), marks.gaps > 0, damaged);
    let verdict = run.verdict();
    if verdict != Verdict::Unjudged {
        text.push_str(&format!(", judged {verdict}"));
    }
    text.push_str(&flagged(&row.tally.found));
    text
}

/// What scans flagged, after a comma: how much, and the worst of it.
fn flagged(found: &[rows::CodeTally]) -> String {
    let flagged = found
        .iter()
        .filter(|found| found.severity >= Severity::Medium);
    let worst = flagged.clone().map(|found| found.severity).max();
    let Some(worst) = worst else {
        return String::new();
    };
    let many = flagged.map(|found| found.count).sum::<u64>();
    let many = words::count(usize::try_from(many).unwrap_or(usize::MAX), "finding");
    format!(", {many} ({})", worst.as_str())
}
