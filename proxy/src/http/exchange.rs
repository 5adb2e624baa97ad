//! One request and its answer, as the tap is told of them.

use super::connection::{Connection, Shared};
use super::copies::Copies;
use super::turns::Turns;
use agent_trace_model::{Finish, Moment, Stream};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// An exchange for as long as any part of it is on its way. Whoever lets go of it last ends it.
pub(super) struct Exchange {
    pub(super) number: u32,
    pub(super) turns: Rc<Turns>,
    copies: Rc<Copies>,
    shared: Rc<Shared>,
    /// How it will have ended, as far as that is known.
    finish: Cell<Option<Finish>>,
    /// When a byte last moved, where there is a bound for that.
    moved: Cell<Option<Instant>>,
    open: Cell<[bool; 2]>,
}

impl Exchange {
    pub(super) fn begin(
        number: u32,
        connection: &Connection,
        read: Moment,
        head: Vec<u8>,
    ) -> Rc<Self> {
        let copies = Rc::clone(&connection.copies);
        let shared = Rc::clone(&connection.shared);
        shared.stats.exchanges.fetch_add(1, Ordering::Relaxed);
        shared.stats.exchanges_open.fetch_add(1, Ordering::Relaxed);
        copies.request(number, read, connection.caller, head);
        Rc::new(Self {
            number,
            turns: Rc::clone(&connection.turns),
            copies,
            shared,
            finish: Cell::new(None),
            moved: Cell::new(connection.settings.idle.map(|_| Instant::now())),
            open: Cell::new([true; 2]),
        })
    }

    /// How it will have ended, as far as that is known.
    pub(super) fn finish(&self) -> Option<Finish> {
        self.finish.get()
    }

    /// Takes note of how it ends. The first to tell is right: what follows is a consequence.
    pub(super) fn ends(&self, finish: Finish) {
        if self.finish.get().is_none() {
            self.finish.set(Some(finish));
        }
    }

    /// When a byte last moved in either direction, where there is a bound for that.
    pub(super) fn moved(&self) -> Option<Instant> {
        self.moved.get()
    }

    fn moves(&self) {
        if self.moved.get().is_some() {
            self.moved.set(Some(Instant::now()));
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.copies.now()
    }

    pub(super) fn response(&self, head: Vec<u8>) {
        self.moves();
        self.copies.response(self.number, self.now(), head);
    }

    pub(super) fn chunk(&self, stream: Stream, read: Moment, bytes: Bytes) {
        self.moves();
        let counter = match stream {
            Stream::ClientToServer => &self.shared.stats.bytes_to_server,
            Stream::ServerToClient | Stream::Stderr => &self.shared.stats.bytes_to_client,
        };
        counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.copies.chunk(self.number, stream, read, bytes);
    }

    /// Bytes of the client that no server took.
    pub(super) fn undelivered(&self, bytes: Bytes) {
        self.copies.undelivered(self.number, self.now(), bytes);
    }

    pub(super) fn trailers(&self, stream: Stream, lines: Vec<u8>) {
        self.copies.trailers(self.number, stream, self.now(), lines);
    }

    pub(super) fn altered(&self, from: Bytes, to: Bytes) {
        self.copies.altered(self.number, self.now(), from, to);
    }

    /// A body came to its end. Told once.
    pub(super) fn close(&self, stream: Stream) {
        let mut open = self.open.get();
        if std::mem::replace(
            &mut open[usize::from(stream != Stream::ClientToServer)],
            false,
        ) {
            self.open.set(open);
            self.copies.close(self.number, stream);
        }
        if stream == Stream::ServerToClient {
            self.ends(Finish::Complete);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let unknown = || match self.shared.cut.is_cancelled() {
            true => Finish::RelayStopped,
            false => Finish::ClientGone,
        };
        let finish = self.finish.get().unwrap_or_else(unknown);
        if matches!(
            finish,
            Finish::ServerBroke | Finish::Unreachable | Finish::TimedOut
        ) {
            self.shared
                .stats
                .upstream_failures
                .fetch_add(1, Ordering::Relaxed);
        }
        self.shared
            .stats
            .exchanges_open
            .fetch_sub(1, Ordering::Relaxed);
        self.copies.finished(self.number, finish);
    }
}
