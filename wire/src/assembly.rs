//! The bytes of the frame in progress, and the budget that bounds those of all decoders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::frame::{Event, Frame, Framing, Sink};

/// A buffer larger than this is given back once its frame has ended: a process may hold
/// thousands of streams, most of them idle.
const IDLE_MAX: usize = 4 << 10;

/// More than the bytes held beyond the limit ever are: of stdio the padding and a header
/// block, or a step of a stray line.
pub(crate) const UNDECIDED_MAX: usize = 28 << 10;

/// A bound on the bytes that all decoders with a clone of it hold together.
///
/// When it is used up, of the frames in progress no more is kept than was so far, as if each
/// had reached its limit.
#[derive(Clone, Debug)]
pub struct Budget {
    limit: usize,
    used: Arc<AtomicUsize>,
}

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            used: Arc::default(),
        }
    }

    /// How many bytes are in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes this many bytes if they are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Collects the bytes of one frame after another, and emits them.
#[derive(Debug)]
pub(crate) struct Assembly {
    limit: usize,
    budget: Budget,
    /// What was taken from the budget: as much as `held` has room for, but for the few bytes
    /// that are held though nothing was left.
    taken: usize,
    /// The limit, or how many bytes of this frame were held when the budget was used up.
    room: usize,
    /// The frame's first bytes. Can exceed the limit by what is still undecided; if bytes
    /// beyond the limit have been passed on, what exceeds it are the frame's last bytes.
    held: Vec<u8>,
    /// Bytes of the frame so far, held or not.
    length: u64,
    overflowed: bool,
    lossy: bool,
    /// How many bytes are missing within the frame.
    lost: u64,
}

impl Assembly {
    pub(crate) fn new(limit: usize, budget: &Budget) -> Self {
        Self {
            limit,
            budget: budget.clone(),
            taken: 0,
            room: limit,
            held: Vec::new(),
            length: 0,
            overflowed: false,
            lossy: false,
            lost: 0,
        }
    }

    /// The most bytes that are kept of this frame.
    pub(crate) fn most(&self) -> usize {
        self.room
    }

    pub(crate) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether nothing of the frame was seen yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.length == 0
    }

    /// Whether the frame that would end with `tail` is all there, so that it can be checked.
    pub(crate) fn is_whole_with(&self, tail: &[u8]) -> bool {
        self.lost == 0 && self.length.saturating_add(tail.len() as u64) <= self.room as u64
    }

    /// Whether bytes are missing within the frame.
    pub(crate) fn has_hole(&self) -> bool {
        self.lost > 0
    }

    /// Adds bytes that may still turn out to belong to another frame, whatever the limit.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len() as u64);
        self.hold(bytes, bytes.len());
    }

    /// Adds bytes of this frame, and passes on what exceeds the limit.
    pub(crate) fn keep(&mut self, bytes: &[u8], sink: Sink<'_>) {
        self.length = self.length.saturating_add(bytes.len() as u64);
        let room = self.room.saturating_sub(self.held.len()).min(bytes.len());
        let before = self.held.len();
        self.hold(&bytes[..room], 0);
        let more = &bytes[self.held.len() - before..];
        self.pass_held(self.held.len(), sink);
        if !more.is_empty() {
            self.pass(more, sink);
        }
    }

    /// Passes on the bytes beyond the limit except for the last `undecided` ones. Returns
    /// how many.
    pub(crate) fn spill(&mut self, undecided: usize, sink: Sink<'_>) -> usize {
        self.pass_held(self.held.len().saturating_sub(undecided), sink)
    }

    /// Removes what begins at `at`: it belongs to the next frame.
    pub(crate) fn split(&mut self, at: usize) -> Vec<u8> {
        let rest = self.held.split_off(at);
        self.length -= rest.len() as u64;
        rest
    }

    /// Removes all bytes, none of which may have been passed on or lost.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.reset();
        held
    }

    /// The frame may be the rest of one whose beginning was lost.
    pub(crate) fn mark_lossy(&mut self) {
        self.lossy = true;
    }

    /// The next bytes of the frame were lost.
    pub(crate) fn lose(&mut self, lost: u64) {
        self.length = self.length.saturating_add(lost);
        self.lost = self.lost.saturating_add(lost);
        self.lossy = true;
    }

    /// Emits the frame, which ends with `tail`, and is then ready for the next.
    #[inline]
    pub(crate) fn end(&mut self, tail: &[u8], framing: Framing, incomplete: bool, sink: Sink<'_>) {
        let mut raw = tail;
        if !self.is_fresh() {
            self.hold(tail, tail.len());
            raw = &self.held;
        }
        let length = self.length.saturating_add(tail.len() as u64);
        if let Some((kept, more)) = raw.split_at_checked(self.room) {
            raw = kept;
            if !more.is_empty() {
                sink(Event::Overflow {
                    kept: if self.overflowed { &[] } else { kept },
                    more,
                });
            }
        }
        sink(Event::Frame(Frame {
            raw,
            framing,
            length,
            incomplete,
            lossy: self.lossy,
            lost: self.lost,
        }));
        self.reset();
    }

    /// Forgets the frame in progress.
    pub(crate) fn reset(&mut self) {
        self.length = 0;
        self.room = self.limit;
        self.overflowed = false;
        self.lossy = false;
        self.lost = 0;
        self.held.clear();
        if self.held.capacity() > IDLE_MAX {
            self.held = Vec::new();
        }
        if self.taken > self.held.capacity() {
            self.budget.give_back(self.taken - self.held.capacity());
            self.taken = self.held.capacity();
        }
    }

    fn pass_held(&mut self, end: usize, sink: Sink<'_>) -> usize {
        if end <= self.room {
            return 0;
        }
        let kept = if self.overflowed { 0 } else { self.room };
        self.overflowed = true;
        sink(Event::Overflow {
            kept: &self.held[..kept],
            more: &self.held[self.room..end],
        });
        self.held.drain(self.room..end).len()
    }

    fn pass(&mut self, more: &[u8], sink: Sink<'_>) {
        let kept: &[u8] = if self.overflowed { &[] } else { &self.held };
        sink(Event::Overflow { kept, more });
        self.overflowed = true;
    }

    /// Holds bytes, but no more than `least` of them once the budget is used up. Grows with
    /// the data: doubling, but not beyond what a frame can need.
    fn hold(&mut self, mut bytes: &[u8], least: usize) {
        let needed = self.held.len() + bytes.len();
        if needed > self.held.capacity() {
            let most = self.limit.saturating_add(UNDECIDED_MAX);
            let wanted = needed.max((2 * self.held.capacity()).min(most));
            let size = [wanted, needed].into_iter().find(|&size| self.pay(size));
            if size.is_none() {
                self.room = self.room.min(self.held.len());
                bytes = &bytes[..least];
            }
            let size = size.unwrap_or(self.held.len() + bytes.len());
            self.held
                .reserve_exact(size.saturating_sub(self.held.len()));
        }
        self.held.extend_from_slice(bytes);
    }

    /// Takes from the budget what a buffer of this size needs more than was taken.
    fn pay(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(self.taken);
        let paid = more == 0 || self.budget.take(more);
        if paid {
            self.taken += more;
        }
        paid
    }
}

impl Drop for Assembly {
    fn drop(&mut self) {
        self.budget.give_back(self.taken);
    }
}
