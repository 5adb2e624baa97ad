//! What a store holds: what its readers have to find.

use super::world::{SERVERS, TOOLS};
use serde::{Deserialize, Serialize};

/// Words that are in few runs, each of which holds one at most.
pub(crate) const NEEDLES: usize = 8;
/// A needle is in one of so many runs, at places that all needles share out.
pub(crate) const ONE_IN: usize = 128;

/// The needle with this number.
pub(crate) fn needle(number: usize) -> String {
    format!("heliotrope{number}")
}

/// What is true of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Truth {
    /// The tools that were called, by their numbers.
    pub(crate) tools: u32,
    /// Those of them whose last call failed.
    pub(crate) failed_last: u32,
    pub(crate) servers: u8,
    pub(crate) calls: u64,
    pub(crate) failed_calls: u64,
    /// A call took longer than [`super::SLOW`].
    pub(crate) slow: bool,
    pub(crate) unanswered: bool,
    pub(crate) crashed: bool,
    pub(crate) needle: Option<usize>,
}

/// What is true of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    pub(crate) runs: u64,
    pub(crate) sessions: u64,
    /// Clients that only listed tools: sessions, but no runs.
    pub(crate) probes: u64,
    pub(crate) files: u64,
    /// Messages.
    pub(crate) events: u64,
    /// All records.
    pub(crate) records: u64,
    /// Bytes of messages and of lines of standard error.
    pub(crate) raw: u64,
    pub(crate) calls: u64,
    pub(crate) failed_calls: u64,
    /// Runs by what is true of them.
    pub(crate) failed: u64,
    pub(crate) unanswered: u64,
    pub(crate) crashed: u64,
    pub(crate) slow: u64,
    /// By the numbers of tools, servers and needles.
    pub(crate) by_tool: Vec<u64>,
    pub(crate) by_server: Vec<u64>,
    pub(crate) by_needle: Vec<u64>,
}

impl Made {
    pub(crate) fn new() -> Self {
        Self {
            by_tool: vec![0; TOOLS],
            by_server: vec![0; SERVERS.len()],
            by_needle: vec![0; NEEDLES],
            ..Self::default()
        }
    }

    pub(crate) fn add_run(&mut self, truth: &Truth) {
        self.runs += 1;
        self.calls += truth.calls;
        self.failed_calls += truth.failed_calls;
        let failed = truth.failed_last != 0 || truth.unanswered || truth.crashed;
        self.failed += u64::from(failed);
        self.unanswered += u64::from(truth.unanswered);
        self.crashed += u64::from(truth.crashed);
        self.slow += u64::from(truth.slow);
        for (tool, count) in self.by_tool.iter_mut().enumerate() {
            *count += u64::from(truth.tools >> tool & 1);
        }
        for (server, count) in self.by_server.iter_mut().enumerate() {
            *count += u64::from(truth.servers >> server & 1);
        }
        if let Some(needle) = truth.needle {
            self.by_needle[needle] += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let add = |all: &mut Vec<u64>, more: &[u64]| {
            for (sum, more) in all.iter_mut().zip(more) {
                *sum += more;
            }
        };
        add(&mut self.by_tool, &other.by_tool);
        add(&mut self.by_server, &other.by_server);
        add(&mut self.by_needle, &other.by_needle);
        for (sum, more) in [
            (&mut self.runs, other.runs),
            (&mut self.sessions, other.sessions),
            (&mut self.probes, other.probes),
            (&mut self.files, other.files),
            (&mut self.events, other.events),
            (&mut self.records, other.records),
            (&mut self.raw, other.raw),
            (&mut self.calls, other.calls),
            (&mut self.failed_calls, other.failed_calls),
            (&mut self.failed, other.failed),
            (&mut self.unanswered, other.unanswered),
            (&mut self.crashed, other.crashed),
            (&mut self.slow, other.slow),
        ] {
            *sum += more;
        }
    }
}
