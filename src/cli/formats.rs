//! Arguments of what brings recordings in and out.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `import --help` says in full.
pub(crate) const IMPORT: &str = "\
Formats, told by their content:
  a run of ours         RUN.atrace, as `export` writes it
  agent-strace          a .agent-traces folder (its workspaces too), one session's folder, what its
                        `inspect` or `export --format json|ndjson` printed
  agenttrace-vcr        a recording (JSON)
  Claude Code           a transcript (.jsonl), or a folder of them such as ~/.claude/projects
  Codex                 a rollout (.jsonl), or a folder of them such as ~/.codex/sessions
  Copilot CLI           events.jsonl, or a folder such as ~/.copilot/session-state

Everything comes in or nothing does. What is there already is left alone; --replace takes a
recording anew that has changed since. Secrets are hidden as in what is recorded here. What becomes
of what: docs/formats.md.";

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Files or folders; `-` reads standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Take recordings anew that have changed since they were imported
    #[arg(long)]
    pub(crate) replace: bool,
}

/// What `export --help` says in full.
pub(crate) const EXPORT: &str = "\
Formats:
  portable      a file that `import` takes, for each run
  jsonl         one step a line, with its messages
  csv           one step a row; cells that a spreadsheet would take for formulas begin with '
  har           HTTP Archive 1.2, for runs over HTTP
  chrome        trace events, to be opened in Perfetto (ui.perfetto.dev) or chrome://tracing
  agent-strace  a folder that agent-strace reads [default output: .agent-traces]

A filter at the end, such as '~failed ~since 7d' (`runs --help`), takes the steps that match; without
a RUN before it, of all runs that have such steps. Portable files, har and agent-strace hold whole
runs. What is no id, nor the beginning of one, is a filter.

Nothing is un-hidden: secrets are in none of them. What becomes of what: docs/formats.md.";

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The runs: `latest`, ids, or the beginnings of them; last, a filter (below)
    #[arg(required = true, value_name = "RUN|FILTER")]
    pub(crate) runs: Vec<String>,
    /// The format
    #[arg(long = "as", value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: Form,
    /// The file to write; `-` writes to standard output [default: RUN.atrace for portable files,
    /// else standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    #[default]
    Portable,
    Jsonl,
    Csv,
    Har,
    Chrome,
    AgentStrace,
}
