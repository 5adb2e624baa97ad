//! The sections of this benchmark.

use crate::options::{self, Sections};

pub(crate) type Options = options::Options<Section>;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Latency,
    Startup,
    Big,
    Flat,
    Memory,
}

impl Sections for Section {
    const ALL: &'static [Self] = &[
        Self::Latency,
        Self::Startup,
        Self::Big,
        Self::Flat,
        Self::Memory,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Startup => "startup",
            Self::Big => "big",
            Self::Flat => "flat",
            Self::Memory => "memory",
        }
    }
}
