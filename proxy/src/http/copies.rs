//! Copies of what a connection moves, kept until they may be handed over.
//!
//! A tap is told after the bytes were written, so that recording adds nothing to their way.
//! hyper asks for a chunk, writes it and flushes within one poll of its connection; the copy,
//! which shares the chunk's memory, waits here until that poll returns.

use agent_trace_model::{Caller, Channel, Finish, Moment, Stream, Tap};
use bytes::Bytes;
use std::cell::RefCell;
use std::sync::Arc;

/// What a tap will be told.
#[derive(Debug)]
enum Told {
    Request(Caller, Vec<u8>),
    Response(Vec<u8>),
    Chunk(Bytes),
    Undelivered(Bytes),
    Trailers(Vec<u8>),
    Altered(Bytes, Bytes),
    Close,
    Finished(Finish),
}

/// The copies of one connection, in their order.
pub(super) struct Copies {
    tap: Arc<dyn Tap>,
    source: u32,
    waiting: RefCell<Vec<(u32, Stream, Moment, Told)>>,
}

impl Copies {
    pub(super) fn new(tap: Arc<dyn Tap>, source: u32) -> Self {
        Self {
            tap,
            source,
            waiting: RefCell::default(),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.tap.now()
    }

    pub(super) fn request(&self, exchange: u32, read: Moment, caller: Caller, head: Vec<u8>) {
        let told = Told::Request(caller, head);
        self.put(exchange, Stream::ClientToServer, read, told);
    }

    pub(super) fn response(&self, exchange: u32, read: Moment, head: Vec<u8>) {
        self.put(exchange, Stream::ServerToClient, read, Told::Response(head));
    }

    pub(super) fn chunk(&self, exchange: u32, stream: Stream, read: Moment, bytes: Bytes) {
        self.put(exchange, stream, read, Told::Chunk(bytes));
    }

    pub(super) fn undelivered(&self, exchange: u32, read: Moment, bytes: Bytes) {
        let told = Told::Undelivered(bytes);
        self.put(exchange, Stream::ClientToServer, read, told);
    }

    pub(super) fn trailers(&self, exchange: u32, stream: Stream, read: Moment, lines: Vec<u8>) {
        self.put(exchange, stream, read, Told::Trailers(lines));
    }

    pub(super) fn altered(&self, exchange: u32, read: Moment, from: Bytes, to: Bytes) {
        let told = Told::Altered(from, to);
        self.put(exchange, Stream::ServerToClient, read, told);
    }

    pub(super) fn close(&self, exchange: u32, stream: Stream) {
        self.put(exchange, stream, self.now(), Told::Close);
    }

    pub(super) fn finished(&self, exchange: u32, finish: Finish) {
        let told = Told::Finished(finish);
        self.put(exchange, Stream::ServerToClient, self.now(), told);
    }

    /// Hands everything over.
    pub(super) fn flush(&self) {
        // What a tap does may not come back in here, but a panic must not either.
        let mut waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for (exchange, stream, at, told) in waiting.drain(..) {
            let channel = Channel {
                source: self.source,
                exchange,
                stream,
            };
            match told {
                Told::Request(caller, head) => self.tap.request(channel, at, caller, &head),
                Told::Response(head) => self.tap.response(channel, at, &head),
                Told::Chunk(bytes) => self.tap.copy(channel, at, &bytes),
                Told::Undelivered(bytes) => self.tap.undelivered(channel, at, &bytes),
                Told::Trailers(lines) => self.tap.trailers(channel, at, &lines),
                Told::Altered(from, to) => self.tap.altered(channel, at, &from, &to),
                Told::Close => self.tap.close(channel, at),
                Told::Finished(finish) => self.tap.finished(channel, at, finish),
            }
        }
        // Its room is used again.
        let mut empty = self.waiting.borrow_mut();
        if empty.is_empty() {
            *empty = waiting;
        }
    }

    fn put(&self, exchange: u32, stream: Stream, at: Moment, told: Told) {
        self.waiting.borrow_mut().push((exchange, stream, at, told));
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.flush();
    }
}
