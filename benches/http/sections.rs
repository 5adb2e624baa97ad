//! The sections of this benchmark.

use crate::options::{self, Sections};

pub(crate) type Options = options::Options<Section>;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Latency,
    Throughput,
    Events,
    Load,
    Flat,
}

impl Sections for Section {
    const ALL: &'static [Self] = &[
        Self::Latency,
        Self::Throughput,
        Self::Events,
        Self::Load,
        Self::Flat,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Events => "events",
            Self::Load => "load",
            Self::Flat => "flat",
        }
    }
}
