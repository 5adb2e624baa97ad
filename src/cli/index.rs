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
    /// Make the index anew from the journals
    ///
    /// Nothing is lost by it: all that the index holds is derived from them.
    Rebuild(Rebuild),
    /// Compare the index with one that is made anew; exits with 1 where they differ
    Verify(Verify),
}

#[derive(Debug, Args)]
pub(crate) struct Rebuild {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
