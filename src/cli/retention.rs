//! Arguments of what keeps the store small.

use super::Format;
use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Limits are those given here, else those of [retention] in the configuration. A session\n\
                  is one connection of a client to a server; of an HTTP relay's journal whole files\n\
                  go. What is being written never goes.\n\n\
                  With limits in the configuration, each relay looks after them from time to time: a\n\
                  process in the background does it, which the relay does not wait for."
)]
pub(crate) struct Retention {
    #[command(subcommand)]
    action: Option<Action>,
    /// The same as `apply`
    #[command(flatten)]
    apply: Apply,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show what would go, and why; nothing is changed
    Plan(Plan),
    /// Seal finished journals, and remove what is beyond the limits
    Apply(Apply),
    /// Show what the disk is used for, by server and month
    Usage(Usage),
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Limits {
    /// Remove what began longer ago, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) max_age: Option<Duration>,
    /// Remove the oldest until all take no more than this, such as 10GB
    #[arg(long, value_name = "SIZE", value_parser = crate::units::bytes)]
    pub(crate) max_bytes: Option<u64>,
    /// Remove the oldest until there are no more sessions than this
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_sessions: Option<usize>,
    /// Let these limits count for one workspace only
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// List what is kept, too
    #[arg(long)]
    pub(crate) all: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Stay out of the way: only if nobody did it lately, with low priority, and in silence
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Usage {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

impl Retention {
    pub(crate) fn action(self) -> Action {
        self.action.unwrap_or(Action::Apply(self.apply))
    }
}
