//! When bytes were read, and how long those of an answer stay in the relay: from the read off
//! the server's socket to the write into the client's.

use super::stats::Stats;
use agent_trace_model::{Moment, Tap};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// The time on a connection and on the one to its server.
pub(super) struct Clock {
    tap: Arc<dyn Tap>,
    /// What the tap's clock showed after the last read.
    moment: Cell<Option<Moment>>,
    /// When bytes of the server were read that were not written yet.
    read: Cell<Option<Instant>>,
    stats: Arc<Stats>,
}

impl Clock {
    pub(super) fn new(tap: Arc<dyn Tap>, stats: Arc<Stats>) -> Rc<Self> {
        Rc::new(Self {
            tap,
            moment: Cell::new(None),
            read: Cell::new(None),
            stats,
        })
    }

    /// The time at which what is dealt with now was read: one reading of the clock serves for
    /// all of it.
    pub(super) fn now(&self) -> Moment {
        let moment = self.moment.get().unwrap_or_else(|| self.tap.now());
        self.moment.set(Some(moment));
        moment
    }

    /// Time goes on: something else was read, or is begun.
    pub(super) fn goes_on(&self) {
        self.moment.set(None);
    }

    /// A new exchange begins: what was read before is not waiting any more.
    pub(super) fn reset(&self) {
        self.read.set(None);
    }
}

/// Which socket of a connection's two it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// A socket that is watched.
pub(super) struct Metered<T> {
    inner: T,
    side: Side,
    clock: Rc<Clock>,
}

impl<T> Metered<T> {
    pub(super) fn new(inner: T, side: Side, clock: Rc<Clock>) -> Self {
        Self { inner, side, clock }
    }

    fn wrote(&self, result: &Poll<io::Result<usize>>) {
        if self.side == Side::Client
            && matches!(result, Poll::Ready(Ok(_)))
            && let Some(read) = self.clock.read.take()
        {
            self.clock.stats.latency.record(read.elapsed());
        }
    }
}

impl<T: Read + Unpin> Read for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if read.is_ready() {
            self.clock.goes_on();
            if self.side == Side::Server && self.clock.read.get().is_none() {
                self.clock.read.set(Some(Instant::now()));
            }
        }
        read
    }
}

impl<T: Write + Unpin> Write for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wrote(&result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.wrote(&result);
        result
    }
}
