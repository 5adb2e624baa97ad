//! Arguments of what finds faults in a run.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing was found, 1 something was, 2 it could not be checked.\n\
                  `check --list` prints the rules, with where each is written."
)]
pub(crate) struct Check {
    /// The run: `latest`, its id, or the beginning of that
    #[arg(required_unless_present = "list")]
    pub(crate) run: Option<String>,
    /// Print the rules instead
    #[arg(long, conflicts_with_all = ["run", "baseline"])]
    pub(crate) list: bool,
    /// From which severity on a finding makes the check fail
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    pub(crate) fail_on: FailOn,
    #[command(flatten)]
    pub(crate) accepted: Accepted,
    /// After how long an answer counts as late
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration, default_value = "60s")]
    pub(crate) late_after: Duration,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Report,
}

/// What was accepted before.
#[derive(Debug, Args)]
pub(crate) struct Accepted {
    /// A file of accepted findings, for which it does not fail
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Accept what is found from now on: write it to the baseline
    #[arg(long, requires = "baseline")]
    pub(crate) write_baseline: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Errors only
    Error,
    /// Errors and warnings
    #[default]
    Warning,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Report {
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One JSON object a line: a finding
    Jsonl,
    /// JUnit XML: one test case for each rule, and one for each finding
    Junit,
}
