//! The sections of this benchmark.

use crate::options::{self, Sections};

pub(crate) type Options = options::Options<Section>;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Without an index.
    Reading,
    /// Making one, and what all takes on the disk.
    Indexing,
    /// What takes how much of the disk.
    Parts,
    /// Scanning what is recorded.
    Scanning,
    /// Commands that open the index themselves.
    Cold,
    /// Commands that ask who owns it.
    Owner,
    /// Beside agent-strace.
    Peer,
}

impl Sections for Section {
    const ALL: &'static [Self] = &[
        Self::Reading,
        Self::Indexing,
        Self::Parts,
        Self::Scanning,
        Self::Cold,
        Self::Owner,
        Self::Peer,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Indexing => "indexing",
            Self::Parts => "parts",
            Self::Scanning => "scanning",
            Self::Cold => "cold",
            Self::Owner => "owner",
            Self::Peer => "peer",
        }
    }
}
