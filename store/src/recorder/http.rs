//! From what a relay tells of HTTP to sessions, exchanges and frames.
//!
//! The relay parses nothing, so which exchanges belong together is found out here:
//! - `exchange`: one exchange, whose session may only be known once its first message is
//! - `initialize`: the request that begins a session
//! - `known`: what matters of a head
//! - `flow`: one direction of it: content coding, events or a body
//! - `target`: the target of a request, and the URI of an `endpoint`
//! - `sessions`: which sessions there are, and when one ends
//! - `callers`: who calls, and which process of this machine that is

mod callers;
mod exchange;
mod flow;
mod initialize;
mod known;
mod sessions;
mod target;

use super::HttpListener;
use super::ordinal::ByOrdinal;
use super::queue::{Item, What};
use super::recording::nanoseconds;
use super::sink::{Place, Sink};
use agent_trace_model::{Caller, Ending, Finish};
use agent_trace_wire::Budget;
use callers::Connections;
use exchange::Exchange;
use sessions::Sessions;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The most exchanges that are followed at a time.
const MOST_EXCHANGES: usize = 10_000;
/// How long the end of a request waits for its session to be told: a tick.
const EARLY: Duration = Duration::from_millis(10);
/// The most memory for the windows of content codings.
const WINDOWS: usize = 64 << 20;

/// All HTTP of a process.
pub(super) struct Http {
    exchanges: ByOrdinal<Exchange>,
    shared: Shared,
    /// Exchanges the end of whose request waits, and since when.
    deferred: VecDeque<(u32, u64)>,
    /// Bytes of exchanges that are too many, and since when.
    unfollowed: Option<(u64, u64)>,
}

/// What exchanges have in common.
struct Shared {
    sessions: Sessions,
    connections: Connections,
    /// How many exchanges of each source may still tell of a session.
    telling: HashMap<u32, u32>,
    frames: Budget,
    windows: Budget,
}

impl Http {
    pub(super) fn new(frames: Budget) -> Self {
        Self {
            exchanges: ByOrdinal::default(),
            shared: Shared {
                sessions: Sessions::default(),
                connections: Connections::default(),
                telling: HashMap::new(),
                frames,
                windows: Budget::new(WINDOWS),
            },
            deferred: VecDeque::new(),
            unfollowed: None,
        }
    }

    /// Takes what happened, with the bytes that belong to it.
    pub(super) fn take(&mut self, item: &Item, bytes: &[u8], callers: &[Caller], sink: &mut Sink) {
        match &item.what {
            What::Listener(listener) => return self.listener(item.channel.source, listener),
            What::Forgotten(lost) => {
                sink.gap("queue_full", Place::process(item.at), *lost, None);
                for exchange in self.exchanges.values_mut() {
                    exchange.doubtful = true;
                }
                return;
            }
            What::Stop => return self.stop(item.at, sink),
            _ => {}
        }
        if matches!(item.what, What::Copied(_)) {
            sink.took(item.channel.stream, bytes.len());
        }
        let number = item.channel.exchange;
        if !self.exchanges.contains_key(&number) && !self.follow(item, bytes, sink) {
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&number) else {
            return;
        };
        exchange.take(item, bytes, callers, &mut self.shared, sink);
        if exchange.deferred == Some(item.at) {
            self.deferred.push_back((number, item.at));
        }
        if let What::Finished(_) = item.what {
            self.exchanges.remove(&number);
        }
    }

    /// Begins to follow an exchange; false where that is not possible, or not worth it.
    fn follow(&mut self, item: &Item, bytes: &[u8], sink: &mut Sink) -> bool {
        if matches!(item.what, What::Closed | What::Finished(_)) {
            return false;
        }
        if self.exchanges.len() >= MOST_EXCHANGES {
            self.forget_one(item.at, sink);
        }
        if self.exchanges.len() >= MOST_EXCHANGES {
            let lost = match item.what {
                What::Lost(lost) => lost.body + lost.head,
                _ => bytes.len() as u64,
            };
            self.unfollowed.get_or_insert((0, item.at)).0 += lost;
            return false;
        }
        let nobody = self.shared.connections.nobody(item.channel.source);
        let exchange = Exchange::new(item.channel, nobody);
        self.exchanges.insert(item.channel.exchange, exchange);
        true
    }

    /// Ends an exchange whose end was perhaps not told.
    fn forget_one(&mut self, at: u64, sink: &mut Sink) {
        let doubtful = self.exchanges.iter().find(|(_, e)| e.doubtful);
        if let Some(mut exchange) = doubtful
            .map(|(number, _)| *number)
            .and_then(|number| self.exchanges.remove(&number))
        {
            exchange.finish(at, Finish::RelayStopped, &mut self.shared, sink);
        }
    }

    fn listener(&mut self, source: u32, listener: &HttpListener) {
        self.shared.sessions.listener(source, listener.clone());
    }

    /// Ends everything.
    fn stop(&mut self, at: u64, sink: &mut Sink) {
        sink.try_now();
        for (_, mut exchange) in self.exchanges.drain() {
            exchange.finish(at, Finish::RelayStopped, &mut self.shared, sink);
        }
        self.shared.sessions.end_all(at, Ending::RelayStopped, sink);
    }

    /// Ends sessions that were idle for long, and tells what was not followed, or waited.
    pub(super) fn sweep(&mut self, now: Duration, sink: &mut Sink) {
        if let Some((bytes, since)) = self.unfollowed.take() {
            sink.gap("too_many_exchanges", Place::process(since), bytes, None);
        }
        let due = nanoseconds(now.saturating_sub(EARLY));
        while let Some(&(number, at)) = self.deferred.front().filter(|(_, at)| *at <= due) {
            self.deferred.pop_front();
            if let Some(exchange) = self.exchanges.get_mut(&number)
                && exchange.deferred == Some(at)
            {
                exchange.close_request(&mut self.shared, sink);
            }
        }
        self.shared.sessions.sweep(now, sink);
    }

    /// When there is something to sweep.
    pub(super) fn wakes_in(&self, now: Duration) -> Option<Duration> {
        let deferred = self.deferred.front().map(|(_, at)| {
            let due = Duration::from_nanos(*at) + EARLY;
            due.saturating_sub(now)
        });
        let idle = self.shared.sessions.wakes_in(now);
        deferred.into_iter().chain(idle).min()
    }

    /// How many sessions are open, and how many there were.
    pub(super) fn sessions(&self) -> (u64, u64) {
        self.shared.sessions.counts()
    }
}

#[cfg(test)]
mod tests;
