//! What is said when something could not be done, and exit codes.

#[cfg(unix)]
use crate::daemon::client::ClientError;
use crate::render::escape;
use agent_trace_analysis::filter::FilterError;
use agent_trace_index::RunsError;
use agent_trace_index::formats::FormatError;
use agent_trace_proxy::http::UpstreamError;
use agent_trace_store::import::ImportError;
use agent_trace_store::journal::reader::OpenError;
use agent_trace_store::key;
use agent_trace_store::portable::PortableError;
use agent_trace_store::redact::{Redactor, RuleError};
use agent_trace_store::retention::RetentionError;
use agent_trace_store::state::StateError;
use owo_colors::OwoColorize;
use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
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
    Runs(#[from] RunsError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the filter has an error: {0}\n{caret}", caret = .0.caret())]
    Filter(FilterError),
    #[error(transparent)]
    Portable(#[from] PortableError),
    #[error(transparent)]
    Retention(#[from] RetentionError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("cannot relay to this URL")]
    Upstream(#[from] UpstreamError),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[cfg(unix)]
    #[error(transparent)]
    Daemon(ClientError),
    /// What the daemon said before it ended.
    #[error("{what}\n{said}")]
    NotStarted { what: String, said: String },
    #[error("cannot use {}", path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("cannot read {}", path.display())]
    Config {
        path: PathBuf,
        source: Box<dyn Error + Send + Sync>,
    },
    #[error(transparent)]
    Format(FormatError),
    #[error("{} is there already", path.display())]
    Exists { path: PathBuf },
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
        let mut text = format!("{} {}\n", "error:".red().bold(), shown(self));
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(&format!("  {} {}\n", "caused by:".red(), shown(error)));
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
            Self::Runs(RunsError::NoStore(_) | RunsError::Empty) => Some(
                "put `agent-trace record --` before a server's command in your assistant's \
                 configuration, or try `agent-trace demo`",
            ),
            Self::Runs(RunsError::NotFound(_)) => {
                Some("`agent-trace runs` lists what was recorded; `latest` is the newest run")
            }
            Self::Runs(RunsError::Ambiguous { .. }) => Some("give more digits of the id"),
            Self::Runs(error) => error.hint(),
            Self::Filter(error) => error
                .hint
                .as_deref()
                .or(Some("`agent-trace runs --help` has the language")),
            Self::Retention(RetentionError::Live) => {
                Some("end the assistant's session (or the server) first")
            }
            Self::Retention(RetentionError::StillWritten) => Some(
                "end the relay or daemon that writes it, or wait until it has gone on in a new \
                 file",
            ),
            Self::Config { .. } => Some("`agent-trace config --help` lists the settings"),
            Self::Upstream(UpstreamError::Scheme) => {
                Some("`agent-trace record -- COMMAND` relays a server that speaks stdio")
            }
            Self::Upstream(UpstreamError::Credentials | UpstreamError::Query) => Some(
                "leave it in the assistant's configuration: what clients send is passed on \
                 as it is",
            ),
            Self::Upstream(_) => Some(
                "give it as it stands in the assistant's configuration, such as \
                 https://mcp.example.com/mcp",
            ),
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => Some(
                "another program listens there: end it, or give another port (0: any that is free)",
            ),
            Self::Listen { .. } => Some("give an address of this machine, such as 127.0.0.1:4001"),
            #[cfg(unix)]
            Self::Daemon(error) => error.hint(),
            Self::Format(FormatError::Unknown { .. }) => {
                Some("`agent-trace import --help` lists the formats")
            }
            Self::Format(FormatError::Import(ImportError::Digests)) => Some(
                "import with a --config that has not `bodies = \"digest\"`, if they may be kept",
            ),
            Self::Exists { .. } | Self::Format(FormatError::Exists { .. }) => {
                Some("remove it, or give another file with --output")
            }
            Self::Portable(PortableError::TooLarge { .. }) => {
                Some("copy the run's files from the data directory instead")
            }
            Self::Usage { hint, .. } => Some(hint),
            _ => None,
        }
    }
}

/// An error with its causes in one line.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let text = in_full(error);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ")
}

/// An error with its causes; some have several lines.
pub(crate) fn in_full(error: &dyn Error) -> String {
    let mut text = shown(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&shown(error));
        cause = error.source();
    }
    text
}

/// An error's text as it may be printed: it may quote a recording, which is hostile, or a
/// command line or a configuration, which may hold secrets. Line ends stay.
fn shown(error: &dyn Error) -> String {
    let text = discreet(error.to_string().trim_end());
    let lines: Vec<String> = text
        .lines()
        .map(|line| escape::text(line.as_bytes(), 0))
        .collect();
    lines.join("\n")
}

/// A text without the secrets that redaction can tell.
pub(crate) fn discreet(text: &str) -> String {
    let Ok(mut redactor) = key::random().map_err(drop).and_then(|key| {
        // The user's own rules are left out: what is being reported may be that they are wrong.
        Redactor::new(key, &[]).map_err(drop)
    }) else {
        return text.to_owned();
    };
    redactor.add_own_environment();
    redactor.text(text)
}

impl From<FormatError> for CommandError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Output(error) => error.into(),
            error => Self::Format(error),
        }
    }
}

impl From<FilterError> for CommandError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
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
