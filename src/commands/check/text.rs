//! Findings and rules as text.

use super::Outcome;
use crate::render::words::count;
use crate::render::{escape, short};
use agent_trace_analysis::check::{Finding, Severity, rules};
use owo_colors::OwoColorize;
use std::io::{self, Write};

/// How many steps of equal findings are named.
const NAMED: usize = 5;
/// How wide the explanation of a rule is.
const WIDTH: usize = 90;

pub(super) fn print(out: &mut impl Write, outcome: &Outcome<'_>) -> io::Result<()> {
    for group in outcome.groups() {
        let Some(first) = group.first() else { continue };
        let what = escape::text(first.what.as_bytes(), 0);
        writeln!(
            out,
            "{} {} {what}{}",
            severity(first.severity),
            first.code.bold(),
            places(&group)
        )?;
        let server = escape::text(first.server.as_bytes(), 40);
        let party = first.party.as_str();
        let mut about = format!("{server}, {party}");
        if !first.quote.is_empty() {
            about.push_str(": ");
            about.push_str(&escape::text(first.quote.text.as_bytes(), 0));
            about.push_str(if first.quote.cut { "…" } else { "" });
        }
        writeln!(out, "        {}", about.dimmed())?;
    }
    let errors = how_many(outcome, Severity::Error);
    let warnings = how_many(outcome, Severity::Warning);
    let run = short(outcome.story.id);
    let steps = count(outcome.story.steps.len(), "step");
    let mut line = match (errors, warnings) {
        (0, 0) => format!("run {run}: nothing found in {steps}"),
        _ => format!(
            "run {run}: {}, {} in {steps}",
            count(errors, "error"),
            count(warnings, "warning")
        ),
    };
    if !outcome.accepted.is_empty() {
        line.push_str(&format!(", {} accepted", outcome.accepted.len()));
    }
    if outcome.story.is_live() {
        line.push_str("; it is still being recorded");
    }
    writeln!(out, "{line}")?;
    for entry in &outcome.gone {
        let tool = entry.tool.as_ref().map(|tool| format!(" {tool}"));
        let entry = format!(
            "{} {}{}: {}",
            entry.code,
            entry.server,
            tool.unwrap_or_default(),
            entry.what
        );
        let gone = "accepted, but does not occur any more:";
        writeln!(
            out,
            "{} {}",
            gone.yellow(),
            escape::text(entry.as_bytes(), 0)
        )?;
    }
    Ok(())
}

/// The rules with what they are about.
pub(super) fn list(out: &mut impl Write) -> io::Result<()> {
    for rule in rules() {
        writeln!(out, "{} {}", severity(rule.severity), rule.code.bold())?;
        for (text, of) in [(rule.about, ""), (rule.why, ""), (rule.source, "source: ")] {
            for line in wrapped(&format!("{of}{text}")) {
                writeln!(out, "        {line}")?;
            }
        }
    }
    Ok(())
}

fn severity(severity: Severity) -> String {
    match severity {
        Severity::Error => "error  ".red().to_string(),
        Severity::Warning => "warning".yellow().to_string(),
    }
}

/// Which steps equal findings are about.
fn places(group: &[&Finding]) -> String {
    let steps: Vec<String> = group
        .iter()
        .filter_map(|finding| finding.step.map(|step| step.to_string()))
        .collect();
    let named = steps[..steps.len().min(NAMED)].join(", ");
    match (steps.len(), group.len()) {
        (0, 1) => String::new(),
        (0, times) => format!(" ({times} times)"),
        (1, _) => format!(" (step {named})"),
        (all, _) if all > NAMED => format!(" (steps {named} and {} more)", all - NAMED),
        _ => format!(" (steps {named})"),
    }
}

fn how_many(outcome: &Outcome<'_>, severity: Severity) -> usize {
    let of = |finding: &&Finding| finding.severity == severity;
    outcome.found.iter().filter(of).count()
}

/// The words in lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_ascii_whitespace() {
        if lines
            .last()
            .is_some_and(|line| line.len() + word.len() >= WIDTH)
        {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
