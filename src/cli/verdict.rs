//! Arguments of `verdict`.

use agent_trace_model::Verdict;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Judge {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// Whether it did what it should have done
    #[arg(required_unless_present = "check")]
    pub(crate) verdict: Option<VerdictArg>,
    /// Why; secrets in it are hidden as in all that is recorded
    #[arg(long, value_name = "TEXT", requires = "verdict")]
    pub(crate) reason: Option<String>,
    /// Let the check command of the configuration judge instead
    #[arg(long, conflicts_with = "verdict")]
    pub(crate) check: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: super::Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerdictArg {
    Right,
    Wrong,
    /// Takes a verdict back
    Unjudged,
}

impl From<VerdictArg> for Verdict {
    fn from(arg: VerdictArg) -> Self {
        match arg {
            VerdictArg::Right => Self::Right,
            VerdictArg::Wrong => Self::Wrong,
            VerdictArg::Unjudged => Self::Unjudged,
        }
    }
}
