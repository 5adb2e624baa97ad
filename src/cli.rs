//! The command line.
//!
//! - [`assistants`]: arguments of what answers assistants
//! - [`check`]: arguments of what finds faults in a run
//! - [`formats`]: arguments of what brings recordings in and out
//! - [`index`]: arguments of `index`
//! - [`retention`]: arguments of what keeps the store small
//! - [`scan`]: arguments of `mcp-scan`
//! - [`serve`]: arguments of what serves HTTP
//! - [`understand`]: arguments of what tells how a run went
//! - [`verify`]: arguments of what proves journals
//! - [`verdict`]: judging runs

pub(crate) mod assistants;
pub(crate) mod check;
pub(crate) mod formats;
pub(crate) mod index;
pub(crate) mod retention;
pub(crate) mod scan;
pub(crate) mod serve;
pub(crate) mod understand;
pub(crate) mod verdict;
pub(crate) mod verify;

use crate::config::Flags;
use agent_trace_store::journal::Bodies;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use tracing::level_filters::LevelFilter;

/// Stands between an AI assistant and its MCP servers: relays every byte unchanged, records
/// both directions, and answers what ran, what failed and why.
#[derive(Debug, Parser)]
#[command(
    name = "agent-trace",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 something was found, 2 it could not be done.\n\
                  `record` exits with the server's own status, or 127 if it could not be started.\n\n\
                  Environment: AGENT_TRACE_DIR (data directory), AGENT_TRACE_CONFIG (configuration\n\
                  file), AGENT_TRACE_TASK (what is recorded is for this task), AGENT_TRACE=off (relay without\n\
                  recording), NO_COLOR."
)]
pub(crate) struct Cli {
    /// The data directory [default: $AGENT_TRACE_DIR, else the platform's data folder]
    #[arg(long, global = true, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The configuration file [default: $AGENT_TRACE_CONFIG, else agent-trace/config.toml in
    /// the platform's configuration folder]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to log to standard error: off, error, warn, info, debug or trace [default: warn,
    /// of the daemon info]
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<LevelFilter>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            config: self.config.clone(),
            store: self.store.clone(),
            log: self.log,
        }
    }

    /// What to log.
    pub(crate) fn log(&self) -> LevelFilter {
        let default = match &self.command {
            Command::Daemon(daemon) if daemon.runs() => LevelFilter::INFO,
            _ => LevelFilter::WARN,
        };
        self.log.unwrap_or(default)
    }
}

/// What `config --help` says.
const SETTINGS: &str = concat!(
    "The file's settings (TOML), with their defaults or examples:\n\n",
    include_str!("config/settings.toml"),
    "\nPaths are relative to the file. Spans of time have units ms, s, m, h, d or w; sizes kB, MB,\n\
     GB, KiB, MiB or GiB. The daemon reads the file again on SIGHUP and on `agent-trace daemon\n\
     reload`."
);

/// The filter language, as `analysis::filter` has it.
const FILTERS: &str = "\
Filters, for `runs`, `show`, `search`, `stats` and `export`; a run matches if one of its steps does:
  ~t TOOL      the tool that is called        ~e           failed
  ~s SERVER    the server                     ~q           never answered
  ~c CLIENT    a client of the run            ~o OUTCOME   ok, error, tool_error, timeout, ... slow
  ~m METHOD    the method                     ~x CODE      JSON-RPC error, HTTP status, AT1001
  ~b TEXT      request or response body       ~d >2s       duration (> >= < <= =; ns us ms s m h d)
  ~bq, ~bs     request body, response body    ~size >1MB   bytes of both messages
  ~w WORDS     whole words in either body     ~since 2h    ~until 2026-11-30
  ~h TEXT      a header line (HTTP)           ~r RUN       the run, by the beginning of its id
  ~k TASK      the task of the run            ~v VERDICT   right, wrong, unjudged
  ~failed      of a run that failed           ~all         everything
Parts side by side must all hold; `&`, `|`, `!` and parentheses as usual. A word alone is looked
for in the names of tools, targets and methods. Texts match anywhere, upper or lower case;
/.../ is a regular expression; blanks and signs need quotes.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Relay a stdio MCP server and record both directions
    ///
    /// Put it before the server's command in the assistant's configuration. Bytes, exit
    /// status, signals and end of file pass unchanged; the server gets the same environment,
    /// folder and arguments. Recording never delays or ends the relay.
    Record(Record),
    /// Start a program, an agent or a script, whose MCP sessions are one run
    ///
    /// Marks the program and all that it starts by a variable in their environment, which
    /// `record` sees. A relay of HTTP cannot see it: sessions over HTTP get no mark, and belong
    /// to a run by what the client names or by its process. Exits with the program's own status.
    Run(RunCommand),
    /// Relay an MCP server that speaks HTTP, and record both directions
    ///
    /// Put the address that it prints in place of the server's into the assistant's
    /// configuration. Any revision of MCP over HTTP passes unchanged. Runs until it is ended:
    /// INT, TERM or HUP let open exchanges come to their end, a second one cuts them off.
    Relay(serve::Relay),
    /// Run the relays of the configuration file in one process
    Daemon(serve::Daemon),
    /// List recorded runs, newest first
    #[command(after_long_help = FILTERS)]
    Runs(Runs),
    /// Find where a text was recorded
    Search(Search),
    /// Print calls, errors and times of each tool over many runs
    Stats(Stats),
    /// Print what happened in a run
    Show(Show),
    /// Show how a run went in time: phases, idleness, retries, slow steps
    ///
    /// Each step is a bar, from when it began to when it was answered. Pauses in which nothing
    /// was under way take no room.
    Timeline(understand::Timeline),
    /// Say in plain words what happened in a run
    ///
    /// What was asked of whom, what failed and what was made good, what got no answer, what is
    /// missing in the recording and what it cannot tell, each with the steps and quotes that
    /// it is based on. No model is asked.
    Explain(understand::Explain),
    /// Show where the values that a step was given came from
    ///
    /// Each value in the step's arguments is followed back to where it appeared first: in an
    /// earlier result, notification or definition, or in earlier arguments, by which the
    /// assistant or the user brought it in. The steps that gave it follow, with the values
    /// that they were given.
    #[command(after_long_help = understand::SAME)]
    Why(understand::Why),
    /// Rank the steps that may have broken a run
    ///
    /// By fixed rules over errors, retries, empty and partial results, arguments against
    /// definitions, values that were handed on, and what is different from runs of the same task
    /// that passed; each with its weight and quotes. No model is asked, but by --judge. A score orders the steps
    /// of one run; it is no probability.
    Suspects(understand::Suspects),
    /// Show what is different between two runs
    ///
    /// Exits with 0 when they are the same, with 1 when they are not: in their steps, or in
    /// how their sessions ended. Times, ids and `_meta` are not compared; how long a step took
    /// is told, but makes no difference.
    Diff(understand::Diff),
    /// Show which steps led to which
    ///
    /// Sessions, their prompts, their steps; and under a call what the server asked because of
    /// it, where that can be told.
    Tree(understand::Tree),
    /// Print a run step by step, as fast as it was
    Replay(understand::Replay),
    /// Find what is wrong in a run: errors, broken frames, misuse of the protocol
    Check(check::Check),
    /// Find instructions to the model in what an MCP server lists
    ///
    /// Reads definitions from a file, a recorded run, or a server: tools, prompts, resources,
    /// instructions. No server is started or called that the options do not say; no model is
    /// asked.
    McpScan(scan::Scan),
    /// Write runs to a portable file, or in a format of other programs
    #[command(after_help = formats::EXPORT)]
    Export(formats::Export),
    /// Take runs into the store: from portable files, or from what other programs recorded
    #[command(after_help = formats::IMPORT)]
    Import(formats::Import),
    /// Say whether a run was right or wrong
    ///
    /// A verdict counts before what happened in the run: one that was judged right has not
    /// failed, whatever errors there were, and one that was judged wrong has. What happened is
    /// shown all the same. A person's verdict counts before that of a check. With --check, the
    /// exit status is 0 for right, 1 for wrong and 2 where the check could not tell.
    Verdict(verdict::Judge),
    /// Answer assistants about what was recorded: an MCP server on standard input and output
    ///
    /// Put it into an assistant's configuration, and ask "why did my last run fail?". The
    /// daemon answers the same at /mcp, for keys.
    Mcp(assistants::Mcp),
    /// Make and revoke keys for those who ask over MCP
    Key(assistants::Key),
    /// Remove runs from the disk
    Forget(Forget),
    /// Show what redaction hides in a text or in a recorded run
    Redact(Redact),
    /// Prove that journals are what was recorded: nothing changed, cut off or taken out
    Verify(verify::Verify),
    /// Seal finished journals, and remove what is beyond the limits
    Retention(retention::Retention),
    /// Look after the index, from which questions are answered
    Index(index::Index),
    /// Check that recording works, and what went wrong when it did not
    Doctor,
    /// Print each setting and where it came from
    ///
    /// A flag counts before an environment variable, that before the file, that before the
    /// default.
    #[command(after_long_help = SETTINGS)]
    Config,
    /// Record a bundled server: one run that succeeds and one that fails
    Demo(Demo),
    /// Print shell completions
    Completions(Completions),
    /// Print the manual page, or write one for each command
    Man(Man),
    /// The bundled server of `demo`
    #[command(hide = true)]
    DemoServer,
}

#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The name of the run that the session belongs to
    ///
    /// Without it the session belongs to the run of `agent-trace run` above it, else to what
    /// the same client does at the same time.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The task that the session is for: runs of the same task are compared with each other
    ///
    /// Without it that of `agent-trace run --task` above it, or of AGENT_TRACE_TASK.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// What to call the client in the trace
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// What to call the server in the trace
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Record secrets as they are; the trace says so
    #[arg(long)]
    pub(crate) no_redact: bool,
    /// Keep arguments and results in full, or only keyed digests of them
    #[arg(long, value_name = "WHAT")]
    pub(crate) bodies: Option<BodiesArg>,
    /// The server's command and arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RunCommand {
    /// The name of the run; sessions of an earlier command with the same name belong to it, too
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The task that the run is for: `suspects` compares runs of the same task [default:
    /// $AGENT_TRACE_TASK]
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BodiesArg {
    Full,
    Digest,
}

impl From<BodiesArg> for Bodies {
    fn from(arg: BodiesArg) -> Self {
        match arg {
            BodiesArg::Full => Self::Full,
            BodiesArg::Digest => Self::Digest,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One JSON object a line
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Only the runs that match, such as '~s github & ~e'; `runs --help` has the language
    pub(crate) filter: Option<String>,
    /// How many to list; 0 lists all
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: usize,
    /// List failed runs only
    #[arg(long)]
    pub(crate) failed: bool,
    /// List also clients that only connected and listed, such as health checks
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Go on after this place, with which a list ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// Print a line for each session that begins or ends from now on
    #[arg(short, long, conflicts_with_all = ["after", "all", "failed", "filter", "limit"])]
    pub(crate) follow: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The text, as whole words
    pub(crate) text: String,
    /// Only in steps that match, such as '~t get_issue'
    pub(crate) filter: Option<String>,
    /// Find the text in longer words, too; this takes longer
    #[arg(long)]
    pub(crate) part: bool,
    /// Look in so many of the newest runs only; 0 looks in all
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub(crate) last: usize,
    /// How many runs to find; 0 finds all
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Go on after this place, with which a list ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
    /// How many characters of arguments and results to print, around the text where it is in
    /// them; 0 prints all
    #[arg(short = 's', long, value_name = "COUNT", default_value_t = 120)]
    pub(crate) string_limit: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Only over the runs that match, such as '~since 7d'
    pub(crate) filter: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// Only the steps that match, such as '~t get_issue & ~e'
    #[arg(conflicts_with_all = ["frame", "frames", "http"])]
    pub(crate) filter: Option<String>,
    /// Print calls, errors and times of each tool instead
    #[arg(short = 'c', long, conflicts_with_all = ["frame", "frames"])]
    pub(crate) summary: bool,
    /// Go on with what happens until the run ends
    #[arg(short, long, conflicts_with_all = ["frame", "frames", "http", "summary"])]
    pub(crate) follow: bool,
    /// How many characters of arguments and results to print; 0 prints all
    #[arg(short = 's', long, value_name = "COUNT", default_value_t = 120)]
    pub(crate) string_limit: usize,
    /// Print step numbers
    #[arg(short, long)]
    pub(crate) numbers: bool,
    /// Print what the server wrote to standard error, too
    #[arg(long)]
    pub(crate) stderr: bool,
    /// List the frames with their numbers instead
    #[arg(long, conflicts_with = "frame")]
    pub(crate) frames: bool,
    /// Print the heads of the HTTP exchanges instead
    #[arg(long, conflicts_with_all = ["frame", "frames", "summary"])]
    pub(crate) http: bool,
    /// Write the recorded bytes of one frame, and nothing else
    #[arg(long, value_name = "NUMBER")]
    pub(crate) frame: Option<u64>,
    /// The session that the frame is in, by its id or the name of its server
    #[arg(long, value_name = "SESSION", requires = "frame")]
    pub(crate) session: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// The runs: ids or their beginnings, or `latest`
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Redact {
    /// The text; standard input is read without it
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "-", allow_hyphen_values = true, required_unless_present = "run")]
    pub(crate) test: Option<String>,
    /// A recorded run, judged by the rules as they are now
    #[arg(long, conflicts_with = "test")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many characters of arguments and results to print
    #[arg(
        short = 's',
        long,
        value_name = "COUNT",
        default_value_t = 60,
        hide = true
    )]
    pub(crate) string_limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write one page for each command into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_the_dashes_is_the_servers() {
        let words = [
            "agent-trace",
            "record",
            "--",
            "sh",
            "-c",
            "x",
            "--",
            "--store",
            "y",
        ];
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Record(record) = cli.command else {
            panic!("not record");
        };
        assert_eq!(record.command, words[3..]);
        assert_eq!(cli.store, None);
    }
}
