//! The recorder's thread.

use super::frames::ASSEMBLY;
use super::http::Http;
use super::queue::{Block, Item, Queue, What};
use super::session::Session;
use super::sink::{Place, Sink};
use super::{Hooks, Setup};
use agent_trace_wire::Budget;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After so many bytes, which is some 50 µs, whoever waits for the processor gets it. A batch
/// can take a millisecond, and a relay that waits for so long keeps its clients and servers
/// waiting too.
const AT_A_STRETCH: usize = 32 << 10;
/// What an item counts in addition to its bytes.
const ITEM_COST: usize = 64;
/// After this long with one batch, or with so many bytes waiting, the recorder insists on its
/// share of the processor: where others never rest, giving way would leave it too little to
/// keep up.
const PATIENCE: Duration = Duration::from_millis(10);
const MUCH: u64 = 2 << 20;

pub(super) fn spawn(
    queue: Arc<Queue>,
    setup: impl FnOnce() -> Result<Setup, String> + Send + 'static,
    hooks: Hooks,
) -> std::io::Result<()> {
    let work = move || {
        let run = || {
            let mut worker = Worker {
                sink: Sink::new(setup(), hooks),
                sessions: HashMap::new(),
                http: None,
                budget: Budget::new(ASSEMBLY),
                queue: &queue,
            };
            worker.count();
            while let Some(blocks) = queue.take(worker.wakes_in()) {
                worker.tick(blocks);
            }
            worker.sink.close();
        };
        // Whatever is wrong in here must not reach the relay, which shares the process.
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!("the recorder failed; relaying goes on without it");
        }
        queue.counters.stop();
        queue.reader_is_done();
    };
    std::thread::Builder::new()
        .name("recorder".into())
        .spawn(work)
        .map(drop)
}

struct Worker<'a> {
    sink: Sink,
    /// Of stdio.
    sessions: HashMap<u32, Session>,
    /// Made when something of HTTP is told.
    http: Option<Box<Http>>,
    budget: Budget,
    queue: &'a Queue,
}

impl Worker<'_> {
    fn tick(&mut self, blocks: impl IntoIterator<Item = Block>) {
        let now = self.queue.started().elapsed();
        self.sink.begin_batch(now);
        let mut stretch = Stretch::new();
        for block in blocks {
            block.each(|item, bytes| {
                self.item(item, bytes, &block);
                stretch.did(bytes.len() + ITEM_COST, self.queue);
            });
            self.queue.give_back(block);
        }
        if let Some(http) = &mut self.http {
            http.sweep(now, &mut self.sink);
        }
        self.sink.end_batch();
        self.count();
    }

    fn item(&mut self, item: &Item, bytes: &[u8], block: &Block) {
        let of_http = item.channel.exchange > 0
            || matches!(
                item.what,
                What::Listener(_) | What::Forgotten(_) | What::Stop
            );
        if of_http {
            let budget = &self.budget;
            let http = self
                .http
                .get_or_insert_with(|| Box::new(Http::new(budget.clone())));
            http.take(item, bytes, &block.callers, &mut self.sink);
            return;
        }
        let number = item.channel.source;
        let budget = &self.budget;
        let session = self
            .sessions
            .entry(number)
            .or_insert_with(|| Session::new(budget));
        if let What::Ended(end) = &item.what {
            let end = session.finish(item, (**end).clone(), &mut self.sink);
            self.sink.session_ended(Place::stdio(item), end);
            self.sessions.remove(&number);
        } else {
            session.take(item, bytes, &mut self.sink);
        }
    }

    /// When there is something to do though nothing comes in; never in a stdio relay.
    fn wakes_in(&self) -> Option<Duration> {
        let now = self.queue.started().elapsed();
        self.http.as_ref()?.wakes_in(now)
    }

    fn count(&self) {
        let unanswered = self.sessions.values().map(Session::unanswered).sum();
        self.queue.set_unanswered(unanswered);
        let mut stats = self.sink.stats();
        if let Some(http) = &self.http {
            (stats.sessions_open, stats.sessions) = http.sessions();
        }
        self.queue.counters.set(&stats);
    }
}

/// How much was done since others had a chance to run.
struct Stretch {
    done: usize,
    began: Instant,
}

impl Stretch {
    fn new() -> Self {
        Self {
            done: 0,
            began: Instant::now(),
        }
    }

    fn did(&mut self, cost: usize, queue: &Queue) {
        self.done += cost;
        if self.done < AT_A_STRETCH {
            return;
        }
        self.done = 0;
        if self.began.elapsed() < PATIENCE && queue.queued() < MUCH {
            std::thread::yield_now();
        }
    }
}
