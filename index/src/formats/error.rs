//! Why something could not come in or go out.

use agent_trace_store::import::ImportError;
use agent_trace_store::portable::PortableError;
use std::io;
use std::path::PathBuf;

/// Why something could not come in or go out. What cannot come in leaves nothing behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A file or folder cannot be read or written.
    #[error("cannot use {}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is in none of the formats that are known, or there is nothing in it.
    #[error("{} holds no recording in a format that is known", path.display())]
    Unknown {
        /// Which.
        path: PathBuf,
    },
    /// A line of a file is not what it should be.
    #[error("{} line {line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A portable file cannot be taken.
    #[error("cannot take {}", path.display())]
    Portable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: PortableError,
    },
    /// The store does not take it.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// There is something in the way.
    #[error("{} is there already", path.display())]
    Exists {
        /// What.
        path: PathBuf,
    },
    /// The run has nothing that the format could hold.
    #[error("run {run} has nothing that {format} could hold: {why}")]
    Nothing {
        /// The run's id.
        run: String,
        /// The format.
        format: &'static str,
        /// What it lacks.
        why: &'static str,
    },
    /// The output cannot be written.
    #[error("cannot write output")]
    Output(#[source] io::Error),
}

impl FormatError {
    /// Turns an error of the system into one that names the file.
    pub(super) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}
