//! Findings as JUnit XML.
//!
//! Each rule that found nothing is a test that passed; of the others each finding is a test
//! that failed (equal ones are one). What the baseline accepts, and what is not bad enough to
//! fail for, is a test that was skipped.

use super::Outcome;
use crate::render::junit::{Came, Suite};
use crate::render::short;
use agent_trace_analysis::check::{Finding, rules};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(super) fn of(outcome: &Outcome<'_>) -> String {
    let mut suite = Suite::new("check");
    let all = outcome.found.iter().chain(&outcome.accepted);
    let broken: BTreeSet<&str> = all.map(|finding| finding.code).collect();
    for rule in rules().iter().filter(|rule| !broken.contains(rule.code)) {
        suite.add(rule.code, Came::Passed);
    }
    for group in outcome.groups() {
        let Some(first) = group.first() else { continue };
        let message = &first.what;
        if outcome.counts(first) {
            let failed = Came::Failed {
                message,
                kind: first.severity.as_str(),
                text: &details(&group),
            };
            suite.add(&name(first), failed);
        } else {
            suite.add(&name(first), Came::Skipped { message });
        }
    }
    let mut known = BTreeSet::new();
    for accepted in &outcome.accepted {
        if known.insert(&accepted.key) {
            let message = &format!("accepted: {}", accepted.what);
            suite.add(&name(accepted), Came::Skipped { message });
        }
    }
    suite.document(&format!("run {}", short(outcome.story.id)))
}

/// What a finding is called: the same in each run.
fn name(finding: &Finding) -> String {
    let mut name = format!("{} {}", finding.code, finding.server);
    if let Some(tool) = &finding.tool {
        name.push(' ');
        name.push_str(tool);
    }
    format!("{name} [{}]", finding.key)
}

/// All that is known of equal findings.
fn details(group: &[&Finding]) -> String {
    let mut text = String::new();
    for finding in group {
        let step = finding.step.map(|step| format!("step {step}: "));
        let _ = writeln!(text, "{}{}", step.unwrap_or_default(), finding.what);
        if !finding.quote.is_empty() {
            let cut = if finding.quote.cut { "…" } else { "" };
            let _ = writeln!(text, "    {}{cut}", finding.quote.text);
        }
    }
    text
}
