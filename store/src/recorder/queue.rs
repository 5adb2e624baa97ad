//! Where a relay leaves its copies: a queue bounded in bytes, whatever the size of chunks.
//!
//! Chunks are gathered in blocks that change hands as a whole and are used again, so that
//! the relay pays for one copy in memory and the reader for none. When the queue is full,
//! chunks are dropped; what was dropped is told in its place in the stream.

use super::HttpListener;
use super::counters::Counters;
use agent_trace_model::{Caller, Channel, End, Finish, Moment, Stream, Tap, Told};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes that wait to be recorded.
pub const QUEUE_LIMIT: usize = 16 << 20;
/// What a chunk counts in addition to its bytes, so that tiny ones are bounded too.
const ITEM_COST: usize = 64;
/// What the caller of an exchange counts.
const CALLER_COST: usize = size_of::<Caller>();
/// Room beyond the limit for what is small and ends something.
const RESERVE: usize = 4 << 20;
/// Of so many streams the losses are told in their place; of more, only how much it was.
const MOST_LOST: usize = 4096;
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
    /// There was no room for this.
    Lost(Lost),
    /// The stream ended.
    Closed,
    /// The session ended.
    Ended(Box<End>),
    /// An exchange began; its head is this many bytes of the block, who called is told there.
    Request {
        /// Which of the block's callers.
        caller: usize,
        /// Bytes of the head.
        head: usize,
    },
    /// The head of its answer.
    Response(usize),
    /// Header lines after a body.
    Trailers(usize),
    /// What was sent, and what was forwarded in its place.
    Altered {
        /// Bytes of what was sent, which come first.
        from: usize,
        /// Bytes of what was forwarded.
        to: usize,
    },
    /// The exchange ended.
    Finished(Finish),
    /// There was no room for these bytes of many streams, and for the ends of some of them.
    Forgotten(u64),
    /// What is known of the source.
    Listener(Box<HttpListener>),
    /// Every session ends.
    Stop,
}

/// Bytes of one stream that there was no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// Bytes that were forwarded as a part of the stream.
    pub(super) body: u64,
    /// Bytes of heads and the like.
    pub(super) head: u64,
}

impl What {
    /// How many of the block's bytes belong to it.
    fn length(&self) -> usize {
        match self {
            Self::Copied(length)
            | Self::Undelivered(length)
            | Self::Request { head: length, .. }
            | Self::Response(length)
            | Self::Trailers(length) => *length,
            Self::Altered { from, to } => from.saturating_add(*to),
            _ => 0,
        }
    }
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
    /// Who began the exchanges that begin here.
    pub(super) callers: Vec<Caller>,
}

impl Block {
    fn cost(&self) -> usize {
        self.bytes.len() + self.items.len() * ITEM_COST + self.callers.len() * CALLER_COST
    }

    /// Each item with its bytes.
    pub(super) fn each(&self, mut take: impl FnMut(&Item, &[u8])) {
        let mut rest = &self.bytes[..];
        for item in &self.items {
            let (bytes, after) = rest.split_at(item.what.length().min(rest.len()));
            rest = after;
            take(item, bytes);
        }
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
    pub(super) counters: Counters,
}

#[derive(Debug, Default)]
struct State {
    blocks: VecDeque<Block>,
    spare: Vec<Block>,
    /// Cost of all blocks that were not given back yet.
    queued: usize,
    /// What each channel lost and was not told yet.
    lost: HashMap<Channel, Loss>,
    /// What others lost, and since when.
    forgotten: Option<(u64, u64)>,
    reader_sleeps: bool,
    closed: bool,
    done: bool,
}

/// What was dropped of one channel.
#[derive(Debug, Default)]
struct Loss {
    /// Since when.
    at: u64,
    bytes: Lost,
    /// When it ended.
    closed: Option<u64>,
    /// When and how its exchange ended.
    finished: Option<(u64, Finish)>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            unanswered: AtomicUsize::new(0),
            counters: Counters::default(),
        }
    }

    /// When the clock of [`Item::at`] began.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn set_unanswered(&self, count: usize) {
        self.unanswered.store(count, Ordering::Relaxed);
    }

    /// How much is waiting, or being recorded.
    pub(super) fn queued(&self) -> u64 {
        self.lock().queued as u64
    }

    /// Waits for something to do, but not longer than `limit`; gathers for a tick, and takes
    /// all there is. None when the queue was closed and is empty.
    pub(super) fn take(&self, limit: Option<Duration>) -> Option<VecDeque<Block>> {
        let mut state = self.lock();
        let until = limit.map(|limit| Instant::now() + limit);
        while state.is_empty() {
            if state.closed {
                return None;
            }
            state.reader_sleeps = true;
            // Nothing comes, so memory that a burst took is given back.
            state.spare.truncate(1);
            let Some(until) = until else {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.reader_sleeps = false;
                return Some(VecDeque::new());
            }
            state = self
                .work
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.reader_sleeps = false;
        let gathering = |state: &mut State| !state.closed && state.queued < EARLY;
        let mut state = self
            .work
            .wait_timeout_while(state, TICK, gathering)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        state.tell_all();
        Some(std::mem::take(&mut state.blocks))
    }

    /// Gives back a block that was dealt with.
    pub(super) fn give_back(&self, mut block: Block) {
        let mut state = self.lock();
        state.queued = state.queued.saturating_sub(block.cost());
        if state.spare.len() < SPARE_BLOCKS && block.bytes.capacity() == BLOCK {
            block.bytes.clear();
            block.items.clear();
            block.callers.clear();
            state.spare.push(block);
        }
    }

    /// The session ended. This is never dropped.
    pub(super) fn end(&self, source: u32, end: End) {
        self.say(source, What::Ended(Box::new(end)));
    }

    /// Says something that is never dropped.
    pub(super) fn say(&self, source: u32, what: What) {
        let channel = Channel {
            source,
            exchange: 0,
            stream: Stream::ServerToClient,
        };
        let Moment(at) = self.now();
        let mut state = self.lock();
        if state.done {
            return;
        }
        // What was lost belongs to the session, so it is told before its end.
        state.tell_all();
        state.push(channel, at, [&[]; 2], what);
        state.reader_sleeps = false;
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

    fn put(&self, channel: Channel, Moment(at): Moment, told: Told<'_>) {
        self.put_all(&mut std::iter::once((channel, Moment(at), told)));
    }

    /// Takes the lock once for all of them.
    fn put_all<'a>(&self, all: &mut dyn Iterator<Item = (Channel, Moment, Told<'a>)>) {
        let mut state = self.lock();
        if state.done {
            return all.for_each(drop);
        }
        let before = state.queued;
        for (channel, Moment(at), told) in all {
            state.take(channel, at, told);
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
    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.lost.is_empty() && self.forgotten.is_none()
    }

    fn take(&mut self, channel: Channel, at: u64, told: Told<'_>) {
        let parts = match told {
            Told::Copy([]) => return,
            Told::Copy(bytes)
            | Told::Undelivered(bytes)
            | Told::Request(_, bytes)
            | Told::Response(bytes)
            | Told::Trailers(bytes) => [bytes, &[]],
            Told::Altered(from, to) => [from, to],
            Told::Close | Told::Finished(_) => [&[][..]; 2],
        };
        let limit = match told {
            Told::Close | Told::Finished(_) => QUEUE_LIMIT + RESERVE,
            _ => QUEUE_LIMIT,
        };
        let bytes = parts[0].len() + parts[1].len();
        if self.queued + bytes + ITEM_COST > limit {
            return self.lose(channel, at, bytes as u64, told);
        }
        if !self.lost.is_empty() {
            self.tell_before(channel, told);
        }
        let length = parts[0].len();
        let what = match told {
            Told::Copy(_) => What::Copied(length),
            Told::Undelivered(_) => What::Undelivered(length),
            Told::Close => What::Closed,
            Told::Response(_) => What::Response(length),
            Told::Trailers(_) => What::Trailers(length),
            Told::Altered(from, to) => What::Altered {
                from: from.len(),
                to: to.len(),
            },
            Told::Finished(finish) => What::Finished(finish),
            Told::Request(caller, _) => {
                let block = self.block(length);
                block.callers.push(caller);
                let caller = block.callers.len() - 1;
                self.queued += CALLER_COST;
                let head = length;
                What::Request { caller, head }
            }
        };
        self.push(channel, at, parts, what);
    }

    fn push(&mut self, channel: Channel, at: u64, parts: [&[u8]; 2], what: What) {
        let length = parts[0].len() + parts[1].len();
        let block = self.block(length);
        for part in parts {
            block.bytes.extend_from_slice(part);
        }
        block.items.push(Item { channel, at, what });
        self.queued += length + ITEM_COST;
    }

    /// The last block, with room for these bytes.
    fn block(&mut self, length: usize) -> &mut Block {
        let full = |block: &Block| !block.bytes.is_empty() && block.bytes.len() + length > BLOCK;
        if self.blocks.back().is_none_or(full) {
            let fresh = || Block {
                bytes: Vec::with_capacity(BLOCK),
                ..Block::default()
            };
            let block = self.spare.pop().unwrap_or_else(fresh);
            self.blocks.push_back(block);
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    fn lose(&mut self, channel: Channel, at: u64, bytes: u64, told: Told<'_>) {
        if self.lost.len() >= MOST_LOST && !self.lost.contains_key(&channel) {
            let (total, _) = self.forgotten.get_or_insert((0, at));
            *total += bytes;
            return;
        }
        let loss = self.lost.entry(channel).or_insert_with(|| Loss {
            at,
            ..Loss::default()
        });
        match told {
            Told::Copy(_) | Told::Undelivered(_) => loss.bytes.body += bytes,
            Told::Close => loss.closed = Some(at),
            Told::Finished(finish) => loss.finished = Some((at, finish)),
            _ => loss.bytes.head += bytes,
        }
    }

    /// Tells what was lost of a channel before what comes next, and of a whole exchange
    /// before its end.
    fn tell_before(&mut self, channel: Channel, told: Told<'_>) {
        let whole = matches!(told, Told::Finished(_));
        for stream in Stream::ALL {
            let channel = Channel { stream, ..channel };
            if (whole || stream == channel.stream)
                && let Some(loss) = self.lost.remove(&channel)
            {
                self.tell(channel, &loss);
            }
        }
    }

    fn tell(&mut self, channel: Channel, loss: &Loss) {
        if loss.bytes != Lost::default() {
            self.push(channel, loss.at, [&[]; 2], What::Lost(loss.bytes));
        }
        if let Some(at) = loss.closed {
            self.push(channel, at, [&[]; 2], What::Closed);
        }
    }

    /// Tells all that was lost.
    fn tell_all(&mut self) {
        if !self.lost.is_empty() {
            let mut lost: Vec<_> = std::mem::take(&mut self.lost).into_iter().collect();
            lost.sort_by_key(|(_, loss)| loss.at);
            for (channel, loss) in &lost {
                self.tell(*channel, loss);
            }
            for (channel, loss) in &lost {
                if let Some((at, finish)) = loss.finished {
                    self.push(*channel, at, [&[]; 2], What::Finished(finish));
                }
            }
        }
        if let Some((bytes, at)) = self.forgotten.take() {
            let channel = Channel {
                source: 0,
                exchange: 0,
                stream: Stream::ServerToClient,
            };
            self.push(channel, at, [&[]; 2], What::Forgotten(bytes));
        }
    }
}

impl Tap for Queue {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn copy(&self, channel: Channel, read: Moment, bytes: &[u8]) {
        self.put(channel, read, Told::Copy(bytes));
    }

    fn undelivered(&self, channel: Channel, read: Moment, bytes: &[u8]) {
        self.put(channel, read, Told::Undelivered(bytes));
    }

    fn close(&self, channel: Channel, at: Moment) {
        self.put(channel, at, Told::Close);
    }

    fn request(&self, channel: Channel, read: Moment, caller: Caller, head: &[u8]) {
        self.put(channel, read, Told::Request(caller, head));
    }

    fn response(&self, channel: Channel, read: Moment, head: &[u8]) {
        self.put(channel, read, Told::Response(head));
    }

    fn trailers(&self, channel: Channel, read: Moment, lines: &[u8]) {
        self.put(channel, read, Told::Trailers(lines));
    }

    fn altered(&self, channel: Channel, read: Moment, from: &[u8], to: &[u8]) {
        self.put(channel, read, Told::Altered(from, to));
    }

    fn finished(&self, channel: Channel, at: Moment, finish: Finish) {
        self.put(channel, at, Told::Finished(finish));
    }

    fn tell<'a>(&self, all: &mut dyn Iterator<Item = (Channel, Moment, Told<'a>)>) {
        self.put_all(all);
    }

    fn unanswered(&self, _source: u32) -> Option<usize> {
        let counted = !self.lock().done;
        counted.then(|| self.unanswered.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
