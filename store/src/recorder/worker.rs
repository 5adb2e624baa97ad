//! The recorder's thread.

use super::queue::{Block, Queue, What};
use super::session::Session;
use super::sink::Sink;
use super::{Hooks, Setup};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
                queue: &queue,
            };
            while let Some(blocks) = queue.take() {
                worker.tick(blocks);
            }
            worker.sink.close();
        };
        // Whatever is wrong in here must not reach the relay, which shares the process.
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            tracing::error!("the recorder failed; relaying goes on without it");
        }
        queue.reader_is_done();
    };
    std::thread::Builder::new()
        .name("recorder".into())
        .spawn(work)
        .map(drop)
}

struct Worker<'a> {
    sink: Sink,
    sessions: HashMap<u32, Session>,
    queue: &'a Queue,
}

impl Worker<'_> {
    fn tick(&mut self, blocks: impl IntoIterator<Item = Block>) {
        self.sink.begin_batch(self.queue.started().elapsed());
        for block in blocks {
            self.block(&block);
            self.queue.give_back(block);
        }
        self.sink.end_batch();
        let unanswered = self.sessions.values().map(Session::unanswered).sum();
        self.queue.set_unanswered(unanswered);
    }

    fn block(&mut self, block: &Block) {
        let mut rest = &block.bytes[..];
        for item in &block.items {
            let length = match item.what {
                What::Copied(length) | What::Undelivered(length) => length,
                _ => 0,
            };
            let (bytes, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            let number = item.channel.source;
            let session = self.sessions.entry(number).or_insert_with(Session::new);
            if let What::Ended(end) = &item.what {
                let end = session.finish(item, (**end).clone(), &mut self.sink);
                self.sink.session_ended(item, end);
                self.sessions.remove(&number);
            } else {
                session.take(item, bytes, &mut self.sink);
            }
        }
    }
}
