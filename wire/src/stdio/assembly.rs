//! The bytes of the frame in progress.

use super::{HEADER_MAX, PADDING_MAX, STRAY_STEP, Sink};
use crate::frame::{Event, Frame, Framing};

/// A buffer larger than this is given back once its frame has ended.
const IDLE_MAX: usize = 64 << 10;

/// More than the bytes held beyond the limit ever are: padding and a header block, or a step
/// of a stray line.
const UNDECIDED_MAX: usize = PADDING_MAX + HEADER_MAX + STRAY_STEP;

/// Collects the bytes of one frame after another, and emits them.
#[derive(Clone, Debug)]
pub(super) struct Assembly {
    limit: usize,
    /// The frame's first bytes. Can exceed the limit by what is still undecided; if bytes
    /// beyond the limit have been passed on, what exceeds it are the frame's last bytes.
    held: Vec<u8>,
    /// Bytes of the frame so far, held or not.
    length: u64,
    overflowed: bool,
    lossy: bool,
    /// Bytes are missing within the frame.
    hole: bool,
}

impl Assembly {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Vec::new(),
            length: 0,
            overflowed: false,
            lossy: false,
            hole: false,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether nothing of the frame was seen yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.length == 0
    }

    /// Whether the frame that would end with `tail` is all there, so that it can be checked.
    pub(super) fn is_whole_with(&self, tail: &[u8]) -> bool {
        !self.hole && self.length.saturating_add(tail.len() as u64) <= self.limit as u64
    }

    /// Whether bytes are missing within the frame.
    pub(super) fn has_hole(&self) -> bool {
        self.hole
    }

    /// Adds bytes that may still turn out to belong to another frame, whatever the limit.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len() as u64);
        self.hold(bytes);
    }

    /// Adds bytes of this frame, and passes on what exceeds the limit.
    pub(super) fn keep(&mut self, bytes: &[u8], sink: Sink<'_>) {
        self.length = self.length.saturating_add(bytes.len() as u64);
        let room = self.limit.saturating_sub(self.held.len()).min(bytes.len());
        let (kept, more) = bytes.split_at(room);
        self.hold(kept);
        self.pass_held(self.held.len(), sink);
        if !more.is_empty() {
            self.pass(more, sink);
        }
    }

    /// Passes on the bytes beyond the limit except for the last `undecided` ones. Returns
    /// how many.
    pub(super) fn spill(&mut self, undecided: usize, sink: Sink<'_>) -> usize {
        self.pass_held(self.held.len().saturating_sub(undecided), sink)
    }

    /// Removes what begins at `at`: it belongs to the next frame.
    pub(super) fn split(&mut self, at: usize) -> Vec<u8> {
        let rest = self.held.split_off(at);
        self.length -= rest.len() as u64;
        rest
    }

    /// Removes all bytes, none of which may have been passed on or lost.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.length = 0;
        std::mem::take(&mut self.held)
    }

    /// The frame may be the rest of one whose beginning was lost.
    pub(super) fn mark_lossy(&mut self) {
        self.lossy = true;
    }

    /// The next bytes of the frame were lost.
    pub(super) fn lose(&mut self, lost: u64) {
        self.length = self.length.saturating_add(lost);
        self.lossy = true;
        self.hole = true;
    }

    /// Emits the frame, which ends with `tail`, and is then ready for the next.
    #[inline]
    pub(super) fn end(&mut self, tail: &[u8], framing: Framing, incomplete: bool, sink: Sink<'_>) {
        let mut raw = tail;
        if !self.is_fresh() {
            self.hold(tail);
            raw = &self.held;
        }
        let length = self.length.saturating_add(tail.len() as u64);
        if let Some((kept, more)) = raw.split_at_checked(self.limit) {
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
        }));
        self.length = 0;
        self.overflowed = false;
        self.lossy = false;
        self.hole = false;
        self.held.clear();
        if self.held.capacity() > IDLE_MAX {
            self.held = Vec::new();
        }
    }

    fn pass_held(&mut self, end: usize, sink: Sink<'_>) -> usize {
        if end <= self.limit {
            return 0;
        }
        let kept = if self.overflowed { 0 } else { self.limit };
        self.overflowed = true;
        sink(Event::Overflow {
            kept: &self.held[..kept],
            more: &self.held[self.limit..end],
        });
        self.held.drain(self.limit..end).len()
    }

    fn pass(&mut self, more: &[u8], sink: Sink<'_>) {
        let kept: &[u8] = if self.overflowed { &[] } else { &self.held };
        sink(Event::Overflow { kept, more });
        self.overflowed = true;
    }

    /// Grows with the data: doubling, but not beyond what a frame can need.
    fn hold(&mut self, bytes: &[u8]) {
        let needed = self.held.len() + bytes.len();
        if needed > self.held.capacity() {
            let most = self.limit.saturating_add(UNDECIDED_MAX);
            let doubled = (2 * self.held.capacity()).min(most);
            self.held
                .reserve_exact(needed.max(doubled) - self.held.len());
        }
        self.held.extend_from_slice(bytes);
    }
}
