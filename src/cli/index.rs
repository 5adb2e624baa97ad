//! Arguments of `index`.

use super::Format;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Index {
    #[command(subcommand)]
    pub(crate) command: IndexCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Say which process has the index, where it lies and how large it is
    Status(Status),
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
