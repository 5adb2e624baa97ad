//! Judging runs: what is recorded of a verdict, and the check command of the configuration.
//!
//! The command is the user's own, declared in their configuration file, and gets nothing of a
//! recording as an argument: the run on its standard input, as `show --format json` prints it,
//! and its id in `AGENT_TRACE_CHECKED_RUN`. It runs in the folder of the configuration file, and may
//! take a set time. What it starts is not recorded: it would be judged in turn. Exit status 0
//! means right, 1 wrong; anything else is a fault of the check, which leaves the run unjudged.
//!
//! - [`mod@command`]: running it within its bounds

mod command;

use crate::config::{Check, Config};
use crate::error::CommandError;
use crate::query::Opened;
use crate::render::json::{RunDocument, StepLine};
use agent_trace_model::{Judge, RunId, Verdict};
use agent_trace_store::state::{Decision, Entry, State};
use agent_trace_store::{key, redact::Redactor};
use command::Ended;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

/// Bytes of a reason that are kept.
const MOST_REASON: usize = 4 << 10;

/// Judges a run by the check command and records the verdict. To be called when a run has
/// ended; `at` is when that was, in nanoseconds since 1970, before it was read.
pub(crate) fn check(
    config: &Config,
    check: &Check,
    opened: &Opened,
    at: u64,
) -> Result<Decision, CommandError> {
    let decided = check_until(config, check, opened, at, &AtomicBool::new(false))?;
    decided.ok_or_else(|| CommandError::Output(io::ErrorKind::Interrupted.into()))
}

/// The same, unless this says to stop: then the command is ended, and nothing is recorded.
pub(crate) fn check_until(
    config: &Config,
    check: &Check,
    opened: &Opened,
    at: u64,
    stop: &AtomicBool,
) -> Result<Option<Decision>, CommandError> {
    let (run, story) = (&opened.run, &opened.story);
    let steps = story.steps.iter().map(|step| StepLine::of(story, step));
    let document = RunDocument::of(run, story, steps.collect(), &opened.findings);
    let json = serde_json::to_vec(&document).map_err(|error| CommandError::Output(error.into()))?;
    let root = config.store().root().to_owned();
    // The command runs in another folder.
    let root = std::path::absolute(&root).unwrap_or(root);
    let (verdict, what, said) = match command::run(check, &root, story.id, json, stop) {
        Ok(Ended::Stopped) => return Ok(None),
        Ok(Ended::Exit { code: 0, said }) => (Verdict::Right, None, said),
        Ok(Ended::Exit { code: 1, said }) => (Verdict::Wrong, None, said),
        Ok(Ended::Exit { code, said }) => fault(format!("exit status {code}"), said),
        Ok(Ended::Signal { number, said }) => fault(format!("ended by signal {number}"), said),
        Ok(Ended::TooLong { said }) => fault("it took too long".into(), said),
        Err(error) => fault("it could not be started".into(), error.to_string()),
    };
    // All of it is looked at: half a secret could not be recognised.
    let said = command::reason(&redacted(config, &said)?);
    let reason = match what {
        None => said,
        Some(what) if said.is_empty() => format!("check error: {what}"),
        Some(what) => format!("check error: {what}: {said}"),
    };
    append(config, story.id, (verdict, reason), Judge::Check, at).map(Some)
}

fn fault(what: String, said: String) -> (Verdict, Option<String>, String) {
    (Verdict::Unjudged, Some(what), said)
}

/// Records a verdict, without the secrets that its reason may hold.
pub(crate) fn record(
    config: &Config,
    run: RunId,
    verdict: Verdict,
    reason: &str,
    by: Judge,
) -> Result<Decision, CommandError> {
    let reason = redacted(config, reason.trim())?;
    let reason = cut(&reason).to_owned();
    append(config, run, (verdict, reason), by, now())
}

/// Records a verdict; there are no secrets in its reason any more.
fn append(
    config: &Config,
    run: RunId,
    (verdict, reason): (Verdict, String),
    by: Judge,
    at: u64,
) -> Result<Decision, CommandError> {
    let decision = Decision {
        run,
        verdict,
        reason,
        by,
        at,
    };
    let state = State::of(&config.store());
    state.append(&Entry::Verdict(decision.clone()))?;
    Ok(decision)
}

/// Now, in nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// A text as it may be stored: redacted, unless recording is set not to be.
fn redacted(config: &Config, text: &str) -> Result<String, CommandError> {
    if text.is_empty() || !config.redact().0 {
        return Ok(text.to_owned());
    }
    let store = config.store();
    let key = key::load_or_create(&store).map_err(CommandError::path(&store.key_file()))?;
    let mut redactor = Redactor::new(key, &config.file.redact.rule)?;
    redactor.add_own_environment();
    Ok(redactor.text(text))
}

/// As much of a reason as is kept.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(MOST_REASON);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
