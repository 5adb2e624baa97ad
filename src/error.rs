//! What is said when something could not be done, and exit codes.

use agent_trace_store::journal::reader::OpenError;
use agent_trace_store::portable::PortableError;
use agent_trace_store::redact::RuleError;
use agent_trace_store::retention::RetentionError;
use agent_trace_store::trace::FindError;
use owo_colors::OwoColorize;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit codes. `record` is the exception: it exits with the server's own status, or 127 when
/// the server could not be started.
pub(crate) mod exit {
    /// Done, and nothing was found wrong.
    pub(crate) const SUCCESS: u8 = 0;
    /// Done, and something was found: a finding, a regression, a failed check.
    pub(crate) const FOUND: u8 = 1;
    /// It could not be done.
    pub(crate) const FAILURE: u8 = 2;
}

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Nobody reads our output any more.
    #[error("output was closed")]
    BrokenPipe,
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Portable(#[from] PortableError),
    #[error(transparent)]
    Retention(#[from] RetentionError),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("cannot use {}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("cannot read {}", path.display())]
    Config {
        path: PathBuf,
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("cannot write output")]
    Output(#[source] io::Error),
    /// Something that is wrong with what was asked, and what to do about it.
    #[error("{what}")]
    Usage { what: String, hint: &'static str },
    #[error("{what}")]
    Failed {
        what: String,
        #[source]
        source: io::Error,
    },
}

impl CommandError {
    pub(crate) fn path(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Path { path, source }
    }

    pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Failed { what, source }
    }

    /// Prints the error with its causes and what can be done; returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let mut text = format!("{} {self}\n", "error:".red().bold());
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(&format!("  {} {error}\n", "caused by:".red()));
            cause = error.source();
        }
        if let Some(hint) = self.hint() {
            text.push_str(&format!("\n{} {hint}\n", "hint:".cyan().bold()));
        }
        let _ = anstream::stderr().write_all(text.as_bytes());
        exit::FAILURE.into()
    }

    fn hint(&self) -> Option<&str> {
        match self {
            Self::Find(FindError::Empty) => Some(
                "put `agent-trace record --` before a server's command in your assistant's \
                 configuration, or try `agent-trace demo`",
            ),
            Self::Find(FindError::NotFound { .. }) => {
                Some("`agent-trace runs` lists what was recorded; `latest` is the newest run")
            }
            Self::Find(FindError::Ambiguous { .. }) => Some("give more digits of the id"),
            Self::Retention(RetentionError::Live) => {
                Some("end the assistant's session (or the server) first")
            }
            Self::Config { .. } => Some("`agent-trace config --help` lists the settings"),
            Self::Usage { hint, .. } => Some(hint),
            _ => None,
        }
    }
}

impl From<io::Error> for CommandError {
    /// Of writing output; everything else names what it was about.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Output(error),
        }
    }
}
