//! Copies of what a connection moves, kept until they may be handed over.
//!
//! A tap is told after the bytes were written, so that recording adds nothing to their way.
//! hyper asks for a chunk, writes it and flushes within one poll of its connection; the copy,
//! which shares the chunk's memory, waits here until that poll returns.

use super::meter::Clock;
use agent_trace_model::{Caller, Channel, Finish, Moment, Stream, Tap, Told};
use bytes::Bytes;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What a tap will be told.
#[derive(Debug)]
enum Kept {
    Request(Caller, Vec<u8>),
    Response(Vec<u8>),
    Chunk(Bytes),
    Undelivered(Bytes),
    Trailers(Vec<u8>),
    Altered(Bytes, Bytes),
    Close,
    Finished(Finish),
}

impl Kept {
    fn told(&self) -> Told<'_> {
        match self {
            Self::Request(caller, head) => Told::Request(*caller, head),
            Self::Response(head) => Told::Response(head),
            Self::Chunk(bytes) => Told::Copy(bytes),
            Self::Undelivered(bytes) => Told::Undelivered(bytes),
            Self::Trailers(lines) => Told::Trailers(lines),
            Self::Altered(from, to) => Told::Altered(from, to),
            Self::Close => Told::Close,
            Self::Finished(finish) => Told::Finished(*finish),
        }
    }
}

/// The copies of one connection, in their order.
pub(super) struct Copies {
    tap: Arc<dyn Tap>,
    clock: Rc<Clock>,
    source: u32,
    waiting: RefCell<Vec<(u32, Stream, Moment, Kept)>>,
}

impl Copies {
    pub(super) fn new(tap: Arc<dyn Tap>, clock: Rc<Clock>, source: u32) -> Self {
        Self {
            tap,
            clock,
            source,
            waiting: RefCell::default(),
        }
    }

    /// See [`Clock::now`].
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(super) fn request(&self, exchange: u32, read: Moment, caller: Caller, head: Vec<u8>) {
        let told = Kept::Request(caller, head);
        self.put(exchange, Stream::ClientToServer, read, told);
    }

    pub(super) fn response(&self, exchange: u32, read: Moment, head: Vec<u8>) {
        self.put(exchange, Stream::ServerToClient, read, Kept::Response(head));
    }

    pub(super) fn chunk(&self, exchange: u32, stream: Stream, read: Moment, bytes: Bytes) {
        self.put(exchange, stream, read, Kept::Chunk(bytes));
    }

    pub(super) fn undelivered(&self, exchange: u32, read: Moment, bytes: Bytes) {
        let told = Kept::Undelivered(bytes);
        self.put(exchange, Stream::ClientToServer, read, told);
    }

    pub(super) fn trailers(&self, exchange: u32, stream: Stream, read: Moment, lines: Vec<u8>) {
        self.put(exchange, stream, read, Kept::Trailers(lines));
    }

    pub(super) fn altered(&self, exchange: u32, read: Moment, from: Bytes, to: Bytes) {
        let told = Kept::Altered(from, to);
        self.put(exchange, Stream::ServerToClient, read, told);
    }

    pub(super) fn close(&self, exchange: u32, stream: Stream) {
        self.put(exchange, stream, self.now(), Kept::Close);
    }

    pub(super) fn finished(&self, exchange: u32, finish: Finish) {
        let told = Kept::Finished(finish);
        self.put(exchange, Stream::ServerToClient, self.now(), told);
    }

    /// Hands everything over.
    pub(super) fn flush(&self) {
        self.clock.goes_on();
        if self.waiting.borrow().is_empty() {
            return;
        }
        // What a tap does may not come back in here, but a panic must not either.
        let mut waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        self.tap
            .tell(&mut waiting.iter().map(|(exchange, stream, at, kept)| {
                let channel = Channel {
                    source: self.source,
                    exchange: *exchange,
                    stream: *stream,
                };
                (channel, *at, kept.told())
            }));
        waiting.clear();
        // Its room is used again.
        let mut empty = self.waiting.borrow_mut();
        if empty.is_empty() {
            *empty = waiting;
        }
    }

    fn put(&self, exchange: u32, stream: Stream, at: Moment, kept: Kept) {
        self.waiting.borrow_mut().push((exchange, stream, at, kept));
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.flush();
    }
}
