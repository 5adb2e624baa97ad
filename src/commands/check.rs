//! `check`: what is wrong in a run, for CI.
//!
//! - [`text`]: as text
//! - [`json`]: as JSON
//! - [`junit`]: as JUnit XML

mod json;
mod junit;
mod text;

use crate::baseline;
use crate::cli::check::{Check, FailOn, Report};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use agent_trace_analysis::baseline::Entry;
use agent_trace_analysis::check::{self, Finding, Party, Quote, Settings, Severity};
use agent_trace_model::story::Story;
use agent_trace_scanners::run::InRun;
use agent_trace_scanners::{Severity as Level, key};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What a check came to.
struct Outcome<'a> {
    story: &'a Story,
    /// What is new.
    found: Vec<Finding>,
    /// What the baseline accepts.
    accepted: Vec<Finding>,
    /// What the baseline accepts and does not occur any more.
    gone: Vec<&'a Entry>,
    fail_on: Severity,
}

pub(crate) fn run(args: &Check, config: &Config) -> Result<u8, CommandError> {
    let Some(name) = args.run.as_deref().filter(|_| !args.list) else {
        return list(args.format);
    };
    let opened = query::open(config, name)?;
    let story = opened.story;
    let settings = Settings {
        late: args.late_after,
    };
    let mut found = check::run(&story, settings);
    found.extend(
        opened
            .findings
            .iter()
            .filter_map(|found| scanned(&story, found)),
    );
    let baseline = baseline::read(&args.accepted)?;
    if baseline::write(&args.accepted, &found, &baseline)? {
        return Ok(exit::SUCCESS);
    }
    let accepted = baseline.take_accepted(&mut found);
    let result = Outcome {
        story: &story,
        found,
        gone: baseline.gone(&accepted),
        accepted,
        fail_on: match args.fail_on {
            FailOn::Error => Severity::Error,
            FailOn::Warning => Severity::Warning,
        },
    };
    match args.format {
        Report::Text => text::print(&mut anstream::stdout().lock(), &result)?,
        Report::Json => json::document(&result)?,
        Report::Jsonl => json::lines(&result)?,
        Report::Junit => io::stdout()
            .lock()
            .write_all(junit::of(&result).as_bytes())?,
    }
    Ok(match result.fails() {
        true => exit::FOUND,
        false => exit::SUCCESS,
    })
}

/// What a scan flagged, as a finding of a check.
fn scanned(story: &Story, found: &InRun) -> Option<Finding> {
    let InRun { step, finding } = found;
    let session = story.steps.get(step.checked_sub(1)?)?.session;
    let server = story.sessions.get(session)?.server.clone();
    let tool = finding.tool.clone();
    let of = tool.as_ref().map(|tool| format!(" of {tool}"));
    Some(Finding {
        code: finding.code,
        severity: match finding.severity {
            Level::Critical | Level::High => Severity::Error,
            Level::Medium => Severity::Warning,
            Level::Low | Level::Info => return None,
        },
        party: Party::Server,
        what: format!(
            "{}: {}{}",
            finding.title,
            finding.pointer,
            of.unwrap_or_default()
        ),
        session,
        step: Some(*step),
        key: key::key(finding),
        server,
        tool,
        quote: Quote::of(finding.quote.as_bytes()),
    })
}

impl Outcome<'_> {
    /// Whether a finding makes the check fail.
    fn counts(&self, finding: &Finding) -> bool {
        finding.severity >= self.fail_on
    }

    fn fails(&self) -> bool {
        self.found.iter().any(|finding| self.counts(finding))
    }

    /// What is new, each with all that is like it, in the order of the first of them.
    fn groups(&self) -> Vec<Vec<&Finding>> {
        let mut positions = BTreeMap::new();
        let mut groups: Vec<Vec<&Finding>> = Vec::new();
        for finding in &self.found {
            let next = groups.len();
            let position = *positions.entry(&finding.key).or_insert(next);
            match groups.get_mut(position) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        groups
    }
}

/// Prints the rules.
fn list(format: Report) -> Result<u8, CommandError> {
    match format {
        Report::Text => text::list(&mut anstream::stdout().lock())?,
        Report::Json => crate::render::json::document(&check::rules())?,
        Report::Jsonl => check::rules()
            .iter()
            .try_for_each(crate::render::json::line)?,
        Report::Junit => {
            return Err(CommandError::Usage {
                what: "rules are no test results".into(),
                hint: "--format text, json or jsonl prints the rules",
            });
        }
    }
    Ok(exit::SUCCESS)
}
