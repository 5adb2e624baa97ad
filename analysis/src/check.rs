//! What is wrong in a run, rule by rule: for CI, and for who writes a server or a client.
//!
//! - [`rule`]: what a rule is, and the list of them
//! - `context`: the run as rules see it, each message taken apart once
//! - `found`: how a rule reports
//! - [`finding`]: what is reported: rule, place, exact quote
//! - `key`: what tells a finding from others, in any run
//! - `outcomes`, `answers`, `frames`, `headers`, `content`, `revisions`, `retired`, `ids`,
//!   `recording`: the rules
//!
//! What was not recorded is reported as just that. It is nobody's fault but ours, and a rule
//! that would need to see it says nothing.

mod answers;
mod content;
mod context;
pub mod finding;
mod found;
mod frames;
mod headers;
mod ids;
mod key;
mod outcomes;
mod recording;
mod retired;
mod revisions;
pub mod rule;

pub use finding::{Finding, Quote};
pub use rule::{Party, Rule, Severity, rules};

use agent_trace_model::story::Story;
use context::Context;
use found::Found;
use std::time::Duration;

/// After how long an answer counts as late, unless that is set: that is when clients of the
/// TypeScript SDK give up (`DEFAULT_REQUEST_TIMEOUT_MSEC`, 60 s).
pub const LATE: Duration = Duration::from_secs(60);

/// What rules can be told.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// After how long an answer counts as late.
    pub late: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { late: LATE }
    }
}

/// Everything that is wrong in a run, in the order of its steps; what is wrong with a session
/// as a whole comes first.
#[must_use]
pub fn run(story: &Story, settings: Settings) -> Vec<Finding> {
    let context = Context::of(story, settings);
    let mut findings = Vec::new();
    for rule in rules() {
        let mut found = Found::new(rule, story);
        (rule.look)(&context, &mut found);
        findings.append(&mut found.findings);
    }
    // Within a step the order of the rules stays.
    findings.sort_by_key(|finding| (finding.step, finding.session));
    findings
}

#[cfg(test)]
mod examples;
