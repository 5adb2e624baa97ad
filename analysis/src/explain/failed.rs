//! What failed and what became of it, and what to look at next.

use super::{Look, Points, Quote, Topic, evidence, name, times, what};
use crate::diff::{Change, changes};
use crate::outcomes::{self, Failure, Recovered};
use crate::parts::arguments;
use crate::quote::head;
use crate::timeline::Timeline;
use agent_trace_model::Outcome;
use agent_trace_model::id::SHORT_ID;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{Session, Story};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Lines of standard error that are quoted.
const LINES: usize = 3;

pub(super) fn tell(story: &Story, line: &Timeline, points: &mut Points) {
    for failure in outcomes::failures(story) {
        failed(story, &failure, points);
    }
    let recovered = outcomes::recovered(story);
    loops(story, line, &recovered, points);
    made_good(story, &recovered, points);
    unsettled(story, points);
    if !points.has(Topic::Failed) && !points.has(Topic::Unanswered) {
        let text = "Nothing failed that was not made good.";
        points.say(Topic::Failed, text, [], Vec::new());
    }
}

fn failed(story: &Story, failure: &Failure, points: &mut Points) {
    let step = failure.step().and_then(|number| story.step(number));
    let of = |step: &Step| story.session(step).map_or("?".into(), |s| name(&s.server));
    match (failure, step) {
        (Failure::Crashed { session }, _) => {
            if let Some(session) = story.sessions.get(*session) {
                crashed(session, points);
            }
        }
        (Failure::Unanswered { .. }, Some(step)) => {
            let asked = if step.is_clients() {
                of(step)
            } else {
                "The client".into()
            };
            let text = format!("{asked} was asked for {} and did not answer.", what(step));
            let quotes = evidence::arguments(step).into_iter().collect();
            points.say(Topic::Unanswered, text, [step.number], quotes);
        }
        (Failure::LastCallFailed { tool, .. }, Some(step)) => {
            // Counting its calls takes a look at all steps.
            if points.is_full(Topic::Failed) {
                return;
            }
            let same = |other: &&Step| other.tool() == Some(tool) && of(other) == of(step);
            let calls = || story.steps.iter().filter(same);
            let bad = || calls().filter(|call| call.outcome.is_failure());
            let often = match (bad().count(), calls().count()) {
                (1, 1) => "It was its only call".to_owned(),
                (bad, all) => format!("{bad} of its {all} calls failed"),
            };
            let (server, how) = (of(step), evidence::how(step));
            let text = format!(
                "The last call of {} on {server} failed: {how}. {often}.",
                name(tool)
            );
            points.say(Topic::Failed, text, bad().map(|s| s.number), quotes(step));
        }
        (Failure::RefusedInHttp { .. } | Failure::TimedOut { .. }, Some(step)) => {
            let (server, how) = (of(step), evidence::how(step));
            let text = format!("The last {} on {server} failed: {how}.", what(step));
            points.say(Topic::Failed, text, [step.number], quotes(step));
        }
        (_, None) => {}
    }
}

fn crashed(session: &Session, points: &mut Points) {
    let server = name(&session.server);
    let end = session.end.as_ref();
    let text = match end.map(|end| (end.error.as_deref(), end.exit_code, end.signal)) {
        Some((Some(error), _, _)) => format!("{server} could not be started: {}.", name(error)),
        Some((None, Some(code), _)) => {
            format!("{server} ended by itself with exit status {code}.")
        }
        Some((None, None, Some(signal))) => format!("{server} was ended by signal {signal}."),
        _ => format!("{server} crashed."),
    };
    points.say(Topic::Failed, text, [], last_lines(session));
}

/// The last lines that a server wrote to standard error.
fn last_lines(session: &Session) -> Vec<Quote> {
    let from = session.stderr.len().saturating_sub(LINES);
    let lines = session.stderr[from..].iter();
    let quote = |text: &[u8]| Quote {
        step: None,
        of: "stderr",
        text: head(text, 200),
    };
    lines.map(|line| quote(&line.text)).collect()
}

fn quotes(step: &Step) -> Vec<Quote> {
    let quotes = [evidence::arguments(step), evidence::answer(step)];
    quotes.into_iter().flatten().collect()
}

/// Calls that were made again and again although they failed each time. Those that were made
/// good in the end are told as such.
fn loops(story: &Story, line: &Timeline, recovered: &[Recovered], points: &mut Points) {
    let good: HashSet<usize> = recovered.iter().map(|recovered| recovered.step).collect();
    let bars = line.phases.iter().flat_map(|phase| &phase.bars);
    let mut rows: BTreeMap<usize, Vec<&Step>> = BTreeMap::new();
    for bar in bars {
        let step = &story.steps[bar.step];
        if let Some(retry) = bar.retry.filter(|_| step.outcome.is_failure()) {
            let first = || story.step(retry.of).into_iter().collect();
            rows.entry(retry.of).or_insert_with(first).push(step);
        }
    }
    let is_good = |row: &[&Step]| row.last().is_some_and(|step| good.contains(&step.number));
    for row in rows.into_values().filter(|row| !is_good(row)) {
        let count = times(row.len());
        let text = format!(
            "{} was called {count} with the same arguments, and failed each time.",
            what(row[0])
        );
        points.say(
            Topic::Failed,
            text,
            row.iter().map(|step| step.number),
            Vec::new(),
        );
    }
}

/// What was made good, each success with what failed before it.
fn made_good(story: &Story, recovered: &[Recovered], points: &mut Points) {
    let mut rows: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for Recovered { step, by } in recovered {
        rows.entry(*by).or_default().push(*step);
    }
    for (by, failed) in rows {
        let (Some(good), Some(bad)) = (
            story.step(by),
            failed.last().and_then(|number| story.step(*number)),
        ) else {
            continue;
        };
        let often = match failed.len() {
            1 => String::new(),
            count => format!(" {}", times(count)),
        };
        let differences = changes(
            arguments(bad).unwrap_or_default(),
            arguments(good).unwrap_or_default(),
        );
        let with = match &differences.told[..] {
            [] => "with the same arguments".to_owned(),
            [one] if differences.more == 0 => format!("with other arguments ({})", change(one)),
            more => {
                let count = more.len() + differences.more;
                format!(
                    "with other arguments ({}, and {} more)",
                    change(&more[0]),
                    count - 1
                )
            }
        };
        let how = evidence::how(bad);
        let text = format!(
            "{} failed{often} ({how}) and then went well {with}.",
            what(bad)
        );
        let steps = failed.iter().copied().chain([by]);
        points.say(Topic::Recovered, text, steps, quotes(bad));
    }
}

fn change(change: &Change) -> String {
    let side = |side: &Option<String>| match side {
        Some(text) => head(text.as_bytes(), 40),
        None => "nothing".into(),
    };
    format!(
        "{}: {} → {}",
        change.at,
        side(&change.before),
        side(&change.after)
    )
}

/// Requests whose end is another one.
fn unsettled(story: &Story, points: &mut Points) {
    for (outcome, text) in [
        (
            Outcome::Cancelled,
            "were cancelled before they were answered",
        ),
        (Outcome::Pending, "are still open: the run goes on"),
        (
            Outcome::NotRecorded,
            "may have been answered, but that was not recorded",
        ),
    ] {
        let steps = || {
            let steps = story.steps.iter();
            steps.filter(move |s| s.outcome == outcome && s.kind == StepKind::Request)
        };
        let count = steps().count();
        if count == 0 {
            continue;
        }
        let text = match count {
            1 => format!("1 request {}.", one(text)),
            _ => format!("{count} requests {text}."),
        };
        let quotes = steps().take(2).filter_map(evidence::arguments).collect();
        points.say(
            Topic::Unanswered,
            text,
            steps().map(|step| step.number),
            quotes,
        );
    }
}

/// The same of one.
fn one(text: &str) -> String {
    let text = text.replacen("were ", "was ", 1).replacen("are ", "is ", 1);
    text.replace("they were", "it was")
}

/// What to look at next.
pub(super) fn look(story: &Story, line: &Timeline) -> Vec<Look> {
    let mut run = story.id.to_string();
    run.truncate(SHORT_ID);
    let mut look = Vec::new();
    let mut add = |command: String, because: &str| {
        let because = because.to_owned();
        look.push(Look { command, because });
    };
    let failures = outcomes::failures(story);
    let steps: BTreeSet<usize> = failures.iter().filter_map(Failure::step).collect();
    let has_arguments = |number: &&usize| {
        let step = story.step(**number);
        step.is_some_and(|step| evidence::arguments(step).is_some())
    };
    for step in steps.iter().filter(has_arguments).take(3) {
        add(format!("why {run} {step}"), "where its arguments came from");
    }
    if story
        .sessions
        .iter()
        .any(|session| !session.stderr.is_empty())
    {
        add(
            format!("show {run} -n --stderr"),
            "all steps, with what servers wrote to standard error",
        );
    } else {
        add(format!("show {run} -n"), "all steps");
    }
    let bars = || line.phases.iter().flat_map(|phase| &phase.bars);
    let is_odd = bars().any(|bar| bar.retry.is_some() || bar.slow.is_some());
    if is_odd || !line.idle.is_empty() {
        add(
            format!("timeline {run}"),
            "slow steps, retries and idleness",
        );
    }
    if story
        .sessions
        .iter()
        .any(|session| !session.gaps.is_empty())
    {
        add("doctor".into(), "why something was not recorded");
    }
    look
}
