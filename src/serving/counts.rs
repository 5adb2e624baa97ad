//! What went through each listener: counted on the way to the recorder.

use agent_trace_model::{Caller, Channel, Finish, Moment, Tap, Told};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A tap that counts exchanges and passes everything on.
pub(crate) struct Counts {
    tap: Arc<dyn Tap>,
    sources: RwLock<BTreeMap<u32, Source>>,
}

#[derive(Debug, Default)]
struct Source {
    begun: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// What went through one listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Totals {
    /// Exchanges that began.
    pub(crate) exchanges: u64,
    /// Those of them that are open.
    pub(crate) open: u64,
    /// Those that were refused for their `Host` or `Origin`.
    pub(crate) refused: u64,
    /// Those in which the server could not be reached or broke off.
    pub(crate) failed: u64,
}

impl Counts {
    pub(super) fn new(tap: Arc<dyn Tap>) -> Self {
        Self {
            tap,
            sources: RwLock::default(),
        }
    }

    pub(super) fn add(&self, source: u32) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.entry(source).or_default();
    }

    pub(super) fn of(&self, source: u32) -> Totals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.at(source, |source| {
            // In this order, so that what ends meanwhile does not make it negative.
            let ended = read(&source.ended);
            let exchanges = read(&source.begun);
            Totals {
                exchanges,
                open: exchanges.saturating_sub(ended),
                refused: read(&source.refused),
                failed: read(&source.failed),
            }
        })
        .unwrap_or_default()
    }

    fn one(&self, channel: Channel, at: Moment, told: Told<'_>) {
        self.tell(&mut std::iter::once((channel, at, told)));
    }

    fn at<T>(&self, source: u32, look: impl FnOnce(&Source) -> T) -> Option<T> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.get(&source).map(look)
    }
}

impl Source {
    fn take(&self, told: &Told<'_>) {
        let one_more = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        match told {
            Told::Request(..) => {
                one_more(&self.begun);
            }
            Told::Finished(finish) => {
                match finish {
                    Finish::Refused => one_more(&self.refused),
                    Finish::ServerBroke | Finish::Unreachable | Finish::TimedOut => {
                        one_more(&self.failed)
                    }
                    _ => 0,
                };
                one_more(&self.ended);
            }
            _ => {}
        }
    }
}

impl Tap for Counts {
    fn tell<'a>(&self, all: &mut dyn Iterator<Item = (Channel, Moment, Told<'a>)>) {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        self.tap.tell(&mut all.inspect(|(channel, _, told)| {
            if matches!(told, Told::Request(..) | Told::Finished(_))
                && let Some(source) = sources.get(&channel.source)
            {
                source.take(told);
            }
        }));
    }

    fn request(&self, channel: Channel, read: Moment, caller: Caller, head: &[u8]) {
        self.one(channel, read, Told::Request(caller, head));
    }

    fn finished(&self, channel: Channel, at: Moment, finish: Finish) {
        self.one(channel, at, Told::Finished(finish));
    }

    fn now(&self) -> Moment {
        self.tap.now()
    }

    fn copy(&self, channel: Channel, read: Moment, bytes: &[u8]) {
        self.tap.copy(channel, read, bytes);
    }

    fn undelivered(&self, channel: Channel, read: Moment, bytes: &[u8]) {
        self.tap.undelivered(channel, read, bytes);
    }

    fn close(&self, channel: Channel, at: Moment) {
        self.tap.close(channel, at);
    }

    fn response(&self, channel: Channel, read: Moment, head: &[u8]) {
        self.tap.response(channel, read, head);
    }

    fn trailers(&self, channel: Channel, read: Moment, lines: &[u8]) {
        self.tap.trailers(channel, read, lines);
    }

    fn altered(&self, channel: Channel, read: Moment, from: &[u8], to: &[u8]) {
        self.tap.altered(channel, read, from, to);
    }

    fn unanswered(&self, source: u32) -> Option<usize> {
        self.tap.unanswered(source)
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}
