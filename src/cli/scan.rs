//! Arguments of `mcp-scan`.

use super::Format;
use super::check::Accepted;
use agent_trace_scanners::Severity;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Without a file, a run, a server or --clients, what is recorded of all servers is told; it was scanned as it was\n\
                  recorded. Definitions that are not what they were are told until they are approved.\n\n\
                  Exit codes: 0 nothing from --fail-on on was found, 1 something was, 2 something could not\n\
                  be scanned.\n\
                  `mcp-scan explain` prints all codes."
)]
pub(crate) struct Scan {
    #[command(subcommand)]
    pub(crate) command: Option<ScanCommand>,
    /// A file of definitions (JSON), or - for standard input: an array of tools, or an object
    /// with tools, prompts, resources or instructions, such as the answer to `tools/list`
    pub(crate) file: Option<PathBuf>,
    /// A recorded run: what its servers said of themselves, and the results that they gave
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "rows", "name"])]
    pub(crate) run: Option<String>,
    /// Goes on, and prints what is found in what is being recorded
    #[arg(long, conflicts_with_all = ["file", "run", "rows", "name", "server", "url", "baseline"])]
    pub(crate) watch: bool,
    /// Start this server and scan what it lists: its command and arguments as one text. It gets
    /// PATH, HOME and the like of the environment, and what --env names
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["file", "rows", "run"])]
    pub(crate) server: Option<String>,
    /// Call the server at this URL and scan what it lists
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "rows", "run", "server"])]
    pub(crate) url: Option<String>,
    /// The servers in the configurations of assistants, all or those that are named: how they are
    /// started. None is started without --start
    #[arg(long, value_name = "ASSISTANT", num_args = 0.., conflicts_with_all = ["file", "rows", "run", "server", "url", "name"])]
    pub(crate) clients: Option<Vec<String>>,
    /// Start these servers, or call them, and scan what they list: all or those that are named.
    /// What is run is shown, and asked for once. Each gets what its own entry gives it, and PATH,
    /// HOME and the like
    #[arg(long, value_name = "SERVER", num_args = 0.., requires = "clients")]
    pub(crate) start: Option<Vec<String>>,
    /// Do not ask, for CI: start the servers that --start names
    #[arg(long, requires = "start")]
    pub(crate) yes: bool,
    /// Start what files of the current folder name as well
    #[arg(long, requires = "start")]
    pub(crate) trust_project: bool,
    /// A variable that the server gets: one of ours, or with a value
    #[arg(long, value_name = "NAME[=VALUE]", requires = "server")]
    pub(crate) env: Vec<String>,
    /// A header line that goes to the server with each request
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// How long a server may take for all its answers
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration, default_value = "60s")]
    pub(crate) timeout: Duration,
    /// Labelled rows, one JSON object a line; prints a verdict for each
    #[arg(long, hide = true, value_name = "FILE", conflicts_with_all = ["file", "fail_on", "name", "format"])]
    pub(crate) rows: Option<PathBuf>,
    /// What the server is called, where the file does not say it
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Report weak signs as well, which harmless texts have too
    #[arg(long)]
    pub(crate) sensitive: bool,
    /// From which severity on a finding makes the scan fail; what does is always reported
    #[arg(long, value_enum, value_name = "SEVERITY", default_value_t)]
    pub(crate) fail_on: Level,
    #[command(flatten)]
    pub(crate) accepted: Accepted,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Report,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Report {
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One JSON object a line: a finding
    Jsonl,
    /// SARIF 2.1.0, for code hosts
    Sarif,
    /// JUnit XML: one test case for each code, and one for each finding
    Junit,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScanCommand {
    /// What servers define, and what of it changed
    Pins {
        #[command(subcommand)]
        command: PinsCommand,
    },
    /// Say what a code means, and what to do about it
    Explain {
        /// Such as AT1001; without it all codes are listed
        code: Option<String>,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PinsCommand {
    /// List what servers define, and how it stands: changed, new, seen or approved
    Show {
        #[command(flatten)]
        which: Which,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print what changed, field by field; the exit status is 1 if anything did
    Diff {
        #[command(flatten)]
        which: Which,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Accept definitions as they are told now: others are compared with them from now on
    Approve {
        #[command(flatten)]
        which: Which,
        /// All servers
        #[arg(long, conflicts_with = "server")]
        all: bool,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// Which pins.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The server: its identity, the end of it (such as the name of a package), or what it is
    /// called
    pub(crate) server: Option<String>,
    /// Only the tool, prompt or resource with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    Info,
    Low,
    #[default]
    Medium,
    High,
    Critical,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Info => Self::Info,
            Level::Low => Self::Low,
            Level::Medium => Self::Medium,
            Level::High => Self::High,
            Level::Critical => Self::Critical,
        }
    }
}
