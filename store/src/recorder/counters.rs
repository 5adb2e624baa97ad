//! What others may ask while the recorder works.

use super::Stats;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The numbers of [`Stats`], set after each tick.
#[derive(Debug, Default)]
pub(super) struct Counters {
    frames: [AtomicU64; 3],
    bytes: [AtomicU64; 3],
    gaps: AtomicU64,
    lost_bytes: AtomicU64,
    sessions_open: AtomicU64,
    sessions: AtomicU64,
    recording: AtomicBool,
}

impl Counters {
    pub(super) fn set(&self, stats: &Stats) {
        let set = |to: &AtomicU64, value| to.store(value, Ordering::Relaxed);
        for at in 0..3 {
            set(&self.frames[at], stats.frames[at]);
            set(&self.bytes[at], stats.bytes[at]);
        }
        set(&self.gaps, stats.gaps);
        set(&self.lost_bytes, stats.lost_bytes);
        set(&self.sessions_open, stats.sessions_open);
        set(&self.sessions, stats.sessions);
        self.recording.store(stats.recording, Ordering::Relaxed);
    }

    /// The recorder is gone.
    pub(super) fn stop(&self) {
        self.recording.store(false, Ordering::Relaxed);
    }

    pub(super) fn get(&self, queued: u64) -> Stats {
        let get = |from: &AtomicU64| from.load(Ordering::Relaxed);
        Stats {
            frames: self.frames.each_ref().map(get),
            bytes: self.bytes.each_ref().map(get),
            gaps: get(&self.gaps),
            lost_bytes: get(&self.lost_bytes),
            sessions_open: get(&self.sessions_open),
            sessions: get(&self.sessions),
            queued,
            recording: self.recording.load(Ordering::Relaxed),
        }
    }
}
