//! Arguments of what answers assistants: `mcp` and `key`.

use agent_trace_mcp_tools::Scopes;
use agent_trace_mcp_tools::key::Limit;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Answer runs of all projects, not only of the one that this is started in
    ///
    /// The project is the nearest folder upwards under version control, else the folder itself.
    /// What was relayed over HTTP belongs to none.
    #[arg(long)]
    pub(crate) all_projects: bool,
    /// The file with the key of who asks; without it runs can be read and scanned, no more
    #[arg(long, value_name = "FILE", conflicts_with = "all_projects")]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Key {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key, and show it this once
    ///
    /// Only a hash of it is kept. With --key-file it is written to a file that only you can
    /// read, and not shown: name that file in the assistant's entry. An argument or a variable
    /// can be read by other programs.
    Create(Create),
    /// List the keys, and when each was last used
    List(List),
    /// Let a key count no longer, from the next request on
    Revoke {
        /// Its id, or its name
        key: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What to call it
    #[arg(long)]
    pub(crate) name: String,
    /// What it opens, with commas: runs:read, suspects:read, scan:run, experiments:start,
    /// experiments:cancel, ingest:write, admin
    #[arg(
        long,
        value_name = "SCOPES",
        default_value = "runs:read,suspects:read,scan:run"
    )]
    pub(crate) scopes: Scopes,
    /// The workspace whose runs it opens
    #[arg(long, default_value = crate::config::WORKSPACE)]
    pub(crate) workspace: String,
    /// Who has it
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) user: String,
    /// After how long it no longer counts, such as 90d [default: never]
    #[arg(long, value_name = "SPAN", value_parser = crate::units::duration)]
    pub(crate) expires: Option<Duration>,
    /// How many calls it has in which span, such as 60/min [default: 300/min]
    #[arg(long, value_name = "CALLS/SPAN")]
    pub(crate) limit: Option<Limit>,
    /// Write it to this new file, for your eyes only
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Print the entry for this assistant's configuration
    #[arg(long = "for", value_name = "ASSISTANT", requires = "key_file")]
    pub(crate) client: Option<Assistant>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: super::Format,
}

/// Whose configuration an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Assistant {
    Claude,
    Codex,
    Copilot,
    Cursor,
    Gemini,
    Opencode,
    Vscode,
    Windsurf,
    Zed,
}
