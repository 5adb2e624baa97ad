//! Where a relay leaves its copies: a queue bounded in bytes, whatever the size of chunks.
//!
//! Chunks are gathered in blocks that change hands as a whole and are used again, so that
//! the relay pays for one copy in memory and the reader for none. When the queue is full,
//! chunks are dropped; what was dropped is told in its place in the stream.

use agent_trace_model::{Caller, Channel, End, Finish, Moment, Tap};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes that wait to be recorded.
pub const QUEUE_LIMIT: usize = 16 << 20;
/// What a chunk counts in addition to its bytes, so that tiny ones are bounded too.
const ITEM_COST: usize = 64;
const BLOCK: usize = 256 << 10;
/// Empty blocks that are kept to be used again.
const SPARE_BLOCKS: usize = 4;
/// How long chunks are gathered.
const TICK: Duration = Duration::from_millis(5);
/// With this much waiting, the tick is cut short.
const EARLY: usize = 1 << 20;

/// One thing that happened, in the order in which it did.
#[derive(Debug)]
pub(super) enum What {
    /// This many bytes of the block were forwarded.
    Copied(usize),
    /// This many bytes of the block could not be delivered.
    Undelivered(usize),
    /// This many bytes were forwarded that there was no room for.
    Lost(u64),
    /// The stream ended.
    Closed,
    /// The session ended.
    Ended(Box<End>),
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) channel: Channel,
    /// When the bytes were read, in nanoseconds since the queue was made. Right across
    /// streams, while the order of items is right within a stream only.
    pub(super) at: u64,
    pub(super) what: What,
}

/// Some chunks with their bytes.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) items: Vec<Item>,
}

impl Block {
    fn cost(&self) -> usize {
        self.bytes.len() + self.items.len() * ITEM_COST
    }
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    started: Instant,
    state: Mutex<State>,
    /// There is something to do for the reader.
    work: Condvar,
    /// The reader is done for good.
    done: Condvar,
    unanswered: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    blocks: VecDeque<Block>,
    spare: Vec<Block>,
    /// Cost of all blocks that were not given back yet.
    queued: usize,
    lost: Vec<(Channel, u64, u64)>,
    reader_sleeps: bool,
    closed: bool,
    done: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            unanswered: AtomicUsize::new(0),
        }
    }

    /// When the clock of [`Item::at`] began.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn set_unanswered(&self, count: usize) {
        self.unanswered.store(count, Ordering::Relaxed);
    }

    /// Waits for something to do, gathers for a tick, and takes all there is. None when the
    /// queue was closed and is empty.
    pub(super) fn take(&self) -> Option<VecDeque<Block>> {
        let mut state = self.lock();
        while state.blocks.is_empty() && state.lost.is_empty() {
            if state.closed {
                return None;
            }
            state.reader_sleeps = true;
            // Nothing comes, so memory that a burst took is given back.
            state.spare.truncate(1);
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.reader_sleeps = false;
        let gathering = |state: &mut State| !state.closed && state.queued < EARLY;
        let mut state = self
            .work
            .wait_timeout_while(state, TICK, gathering)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        let mut blocks = std::mem::take(&mut state.blocks);
        if !state.lost.is_empty() {
            let mut told = Block::default();
            for (channel, bytes, at) in state.lost.drain(..) {
                let what = What::Lost(bytes);
                told.items.push(Item { channel, at, what });
            }
            state.queued += told.cost();
            blocks.push_back(told);
        }
        Some(blocks)
    }

    /// Gives back a block that was dealt with.
    pub(super) fn give_back(&self, mut block: Block) {
        let mut state = self.lock();
        state.queued = state.queued.saturating_sub(block.cost());
        if state.spare.len() < SPARE_BLOCKS && block.bytes.capacity() == BLOCK {
            block.bytes.clear();
            block.items.clear();
            state.spare.push(block);
        }
    }

    /// The session ended. This is never dropped.
    pub(super) fn end(&self, source: u32, end: End) {
        let channel = Channel {
            source,
            exchange: 0,
            stream: agent_trace_model::Stream::ServerToClient,
        };
        // What was lost belongs to the session, so it is told before its end.
        let Moment(at) = self.now();
        let mut state = self.lock();
        for (of, lost, since) in std::mem::take(&mut state.lost) {
            state.push(of, since, &[], What::Lost(lost));
        }
        state.push(channel, at, &[], What::Ended(Box::new(end)));
        self.work.notify_one();
    }

    /// Lets the reader come to an end, and waits for that.
    pub(super) fn close_and_wait(&self, limit: Duration) -> bool {
        let mut state = self.lock();
        state.closed = true;
        self.work.notify_one();
        self.done
            .wait_timeout_while(state, limit, |state| !state.done)
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .done
    }

    /// The reader is gone: nothing is kept any more.
    pub(super) fn reader_is_done(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.done = true;
        state.blocks.clear();
        state.spare.clear();
        self.done.notify_all();
    }

    fn put(
        &self,
        channel: Channel,
        Moment(at): Moment,
        bytes: &[u8],
        what: impl FnOnce(usize) -> What,
    ) {
        let mut state = self.lock();
        if state.done {
            return;
        }
        let before = state.queued;
        let what = what(bytes.len());
        if before + bytes.len() + ITEM_COST > QUEUE_LIMIT && !bytes.is_empty() {
            state.lose(channel, bytes.len() as u64, at);
        } else {
            if let Some(lost) = state.found(channel) {
                state.push(channel, at, &[], What::Lost(lost));
            }
            state.push(channel, at, bytes, what);
        }
        let crossed = before < EARLY && state.queued >= EARLY;
        if state.reader_sleeps || crossed {
            state.reader_sleeps = false;
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked with the lock left counters at worst, and the relay goes on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, channel: Channel, at: u64, bytes: &[u8], what: What) {
        let full = |block: &Block| block.bytes.len() + bytes.len() > BLOCK;
        if self.blocks.back().is_none_or(full) {
            let fresh = || Block {
                bytes: Vec::with_capacity(BLOCK),
                items: Vec::new(),
            };
            self.blocks
                .push_back(self.spare.pop().unwrap_or_else(fresh));
        }
        if let Some(block) = self.blocks.back_mut() {
            block.bytes.extend_from_slice(bytes);
            block.items.push(Item { channel, at, what });
            self.queued += bytes.len() + ITEM_COST;
        }
    }

    fn lose(&mut self, channel: Channel, bytes: u64, at: u64) {
        match self.lost.iter_mut().find(|(of, ..)| *of == channel) {
            Some((_, total, _)) => *total += bytes,
            None => self.lost.push((channel, bytes, at)),
        }
    }

    /// What was lost of this channel, to be told before what comes next.
    fn found(&mut self, channel: Channel) -> Option<u64> {
        let at = self.lost.iter().position(|(of, ..)| *of == channel)?;
        Some(self.lost.swap_remove(at).1)
    }
}

impl Tap for Queue {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn copy(&self, channel: Channel, read: Moment, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.put(channel, read, bytes, What::Copied);
        }
    }

    fn undelivered(&self, channel: Channel, read: Moment, bytes: &[u8]) {
        self.put(channel, read, bytes, What::Undelivered);
    }

    fn close(&self, channel: Channel) {
        self.put(channel, self.now(), &[], |_| What::Closed);
    }

    fn request(&self, _: Channel, _: Moment, _: Caller, _: &[u8]) {}
    fn response(&self, _: Channel, _: Moment, _: &[u8]) {}
    fn trailers(&self, _: Channel, _: Moment, _: &[u8]) {}
    fn altered(&self, _: Channel, _: Moment, _: &[u8], _: &[u8]) {}
    fn finished(&self, _: Channel, _: Moment, _: Finish) {}

    fn unanswered(&self, _source: u32) -> Option<usize> {
        let counted = !self.lock().done;
        counted.then(|| self.unanswered.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_model::Stream;

    const CHANNEL: Channel = Channel {
        source: 1,
        exchange: 0,
        stream: Stream::ClientToServer,
    };

    fn told(blocks: &VecDeque<Block>) -> (u64, u64) {
        let mut told = (0, 0);
        for item in blocks.iter().flat_map(|block| &block.items) {
            match item.what {
                What::Copied(n) => told.0 += n as u64,
                What::Lost(n) => told.1 += n,
                _ => {}
            }
        }
        told
    }

    #[test]
    fn a_full_queue_drops_counts_and_tells_the_loss_in_its_place() {
        let queue = Queue::new();
        let chunk = [0; 64 << 10];
        for _ in 0..1000 {
            queue.copy(CHANNEL, queue.now(), &chunk);
        }
        let blocks = queue.take().unwrap();
        let (copied, lost) = told(&blocks);
        assert_eq!(copied + lost, 1000 * chunk.len() as u64);
        assert!(copied as usize <= QUEUE_LIMIT && lost > 0);
        assert!(matches!(
            blocks.back().unwrap().items[0].what,
            What::Lost(_)
        ));
        for block in blocks {
            queue.give_back(block);
        }
        queue.copy(CHANNEL, queue.now(), &chunk);
        assert_eq!(told(&queue.take().unwrap()), (chunk.len() as u64, 0));
    }

    #[test]
    fn tiny_chunks_are_bounded_too() {
        let queue = Queue::new();
        for _ in 0..1_000_000 {
            queue.copy(CHANNEL, queue.now(), b"x");
        }
        let state = queue.lock();
        assert!(state.queued <= QUEUE_LIMIT);
        assert_eq!(state.lost.len(), 1);
    }

    #[test]
    fn a_reader_that_is_gone_costs_nothing() {
        let queue = Queue::new();
        queue.reader_is_done();
        queue.copy(CHANNEL, queue.now(), b"x");
        assert_eq!(queue.lock().queued, 0);
        assert!(queue.close_and_wait(Duration::ZERO));
    }
}
