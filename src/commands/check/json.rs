//! Findings as JSON.

use super::Outcome;
use crate::render::json;
use agent_trace_analysis::baseline::Entry;
use agent_trace_analysis::check::{Finding, Quote, Severity};
use serde::Serialize;
use std::io;

#[derive(Serialize)]
struct Document<'a> {
    run: String,
    steps: usize,
    /// Whether the run is still being recorded.
    live: bool,
    /// Whether a finding is as bad as what the check fails for.
    failed: bool,
    errors: usize,
    warnings: usize,
    findings: Vec<Line<'a>>,
    accepted: Vec<Line<'a>>,
    /// Entries of the baseline that do not occur any more.
    gone: &'a [&'a Entry],
}

#[derive(Serialize)]
struct Line<'a> {
    code: &'a str,
    severity: &'a str,
    party: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quote: Option<&'a Quote>,
    key: &'a str,
}

pub(super) fn document(outcome: &Outcome<'_>) -> io::Result<()> {
    let count = |severity| {
        let of = |finding: &&Finding| finding.severity == severity;
        outcome.found.iter().filter(of).count()
    };
    json::document(&Document {
        run: outcome.story.id.to_string(),
        steps: outcome.story.steps.len(),
        live: outcome.story.is_live(),
        failed: outcome.fails(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        findings: outcome.found.iter().map(|f| line(outcome, f)).collect(),
        accepted: outcome.accepted.iter().map(|f| line(outcome, f)).collect(),
        gone: &outcome.gone,
    })
}

/// What is new, one finding a line.
pub(super) fn lines(outcome: &Outcome<'_>) -> io::Result<()> {
    let mut found = outcome.found.iter();
    found.try_for_each(|finding| json::line(&line(outcome, finding)))
}

fn line<'a>(outcome: &Outcome<'a>, finding: &'a Finding) -> Line<'a> {
    let session = outcome.story.sessions.get(finding.session);
    Line {
        code: finding.code,
        severity: finding.severity.as_str(),
        party: finding.party.as_str(),
        what: &finding.what,
        session: session.map(|session| session.id.to_string()),
        server: &finding.server,
        step: finding.step,
        tool: finding.tool.as_deref(),
        quote: Some(&finding.quote).filter(|quote| !quote.is_empty()),
        key: &finding.key,
    }
}
