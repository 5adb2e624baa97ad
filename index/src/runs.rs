//! Asking what was recorded, wherever the index is.

use crate::engine::EngineError;
use crate::indexer::IndexError;
use crate::protocol::{Query, Reply, VERSION, Wrong};
use agent_trace_store::journal::reader::OpenError;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

/// An answer that is awaited.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<Reply, RunsError>> + Send + 'a>>;

/// Who answers questions about what was recorded.
///
/// - [`Local`](crate::local::Local): the index, opened in this process
/// - [`Remote`](crate::control::client::Remote): a process that owns it
/// - [`Access`](crate::access::Access): whichever of the two it is at the moment
pub trait Runs: Send + Sync {
    /// Answers a question.
    fn ask(&self, query: Query) -> Asked<'_>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// There is no data directory.
    #[error("there is no store at {}", .0.display())]
    NoStore(PathBuf),
    /// The lock of the index cannot be used.
    #[error("cannot use {}", path.display())]
    Lock {
        /// Where it lies.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The index cannot be read or written.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Somebody has the index for long, and cannot be asked.
    #[error("the index is in use by another process{}", number(.0))]
    Busy(Option<u32>),
    /// Whoever has the index ended before it answered.
    #[error(
        "the process{} that has the index ended before it answered",
        number(pid)
    )]
    Lost {
        /// Its number.
        pid: Option<u32>,
        /// What was seen of it.
        source: io::Error,
    },
    /// Whoever has the index takes too long.
    #[error("the process{} that has the index does not answer", number(pid))]
    Silent {
        /// Its number.
        pid: Option<u32>,
        /// What was seen of it.
        source: io::Error,
    },
    /// Whoever has the index is of a version that cannot be talked to.
    #[error(
        "the index is in use by agent-trace {}{}, which speaks version {theirs} of the control \
         protocol; this one speaks version {VERSION}",
        program.as_deref().unwrap_or("of another version"),
        number(pid)
    )]
    Version {
        /// Its number.
        pid: Option<u32>,
        /// Its version of this program, where it says that.
        program: Option<String>,
        /// The version of the protocol that it speaks.
        theirs: u32,
    },
    /// Whoever has the index does not answer such a question.
    #[error("{0}")]
    Refused(String),
    /// What was answered is not understood here.
    #[error("the process{} that has the index answered something that is not known here", number(.0))]
    Unknown(Option<u32>),
    /// There are no runs.
    #[error("nothing has been recorded yet")]
    Empty,
    /// No run has this name.
    #[error("no run {0:?}")]
    NotFound(String),
    /// Several runs have ids that begin so.
    #[error("{count} runs begin with {name:?}")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// What was asked cannot be, in words.
    #[error("{0}")]
    Wrong(String),
    /// A journal cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journals cannot be listed.
    #[error("cannot read the store")]
    Store(#[source] io::Error),
    /// A fault of this program.
    #[error("answering failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn number(pid: &Option<u32>) -> String {
    let text = pid.map(|pid| format!(" (process {pid})"));
    text.unwrap_or_default()
}

impl RunsError {
    /// What is wrong with what was asked, if that is why.
    #[must_use]
    pub fn wrong(&self) -> Option<Wrong> {
        Some(match self {
            Self::Empty => Wrong::Empty,
            Self::NotFound(name) => Wrong::NotFound(name.clone()),
            Self::Ambiguous { name, count } => Wrong::Ambiguous {
                name: name.clone(),
                count: *count,
            },
            Self::Wrong(text) => Wrong::Other(text.clone()),
            _ => return None,
        })
    }

    /// What can be done about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy(_) | Self::Silent { .. } => Some(
                "wait until it is done, or end it if it hangs: what is recorded is safe, and \
                 the next one that asks takes the index over",
            ),
            Self::Version { .. } | Self::Refused(_) | Self::Unknown(_) => Some(
                "it may be of another version: end it (`agent-trace daemon stop`, if it is the \
                 daemon), and the next one that asks takes the index over",
            ),
            _ => None,
        }
    }
}

impl From<Wrong> for RunsError {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Empty => Self::Empty,
            Wrong::NotFound(name) => Self::NotFound(name),
            Wrong::Ambiguous { name, count } => Self::Ambiguous { name, count },
            Wrong::Other(text) => Self::Wrong(text),
        }
    }
}

impl From<IndexError> for RunsError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => Self::Store(error),
            IndexError::Engine(error) => Self::Engine(error),
        }
    }
}
