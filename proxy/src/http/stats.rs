//! What is counted, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the latency histogram's buckets, in microseconds; a last one is unbounded.
pub const BUCKETS_US: [u64; 14] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000,
];

/// Counters of a relay. All only grow, but for those that say "open".
#[derive(Debug, Default)]
pub struct Stats {
    /// Connections of clients that are open.
    pub connections_open: AtomicU64,
    /// Connections of clients that were accepted.
    pub connections: AtomicU64,
    /// Exchanges that are open.
    pub exchanges_open: AtomicU64,
    /// Exchanges that began.
    pub exchanges: AtomicU64,
    /// Requests that were refused for their `Host` or `Origin`.
    pub refused: AtomicU64,
    /// Exchanges in which the server failed: unreachable, or gone before its answer's end.
    pub upstream_failures: AtomicU64,
    /// Bytes of bodies from clients to servers.
    pub bytes_to_server: AtomicU64,
    /// Bytes of bodies from servers to clients.
    pub bytes_to_client: AtomicU64,
    /// From when bytes of an answer were read to when they were written.
    pub latency: Histogram,
}

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Counts of each bucket of [`BUCKETS_US`], and of what is longer; not cumulative.
    pub buckets: [AtomicU64; BUCKETS_US.len() + 1],
    /// Sum of all, in nanoseconds.
    pub sum_ns: AtomicU64,
}

impl Histogram {
    /// Takes one duration.
    pub fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }
}
