//! How long bytes of an answer stay in the relay: from the read off the server's socket to
//! the write into the client's.

use super::stats::Stats;
use hyper::rt::{Read, ReadBufCursor, Write};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// When bytes of the server were read that were not written yet.
#[derive(Debug)]
pub(super) struct Clock {
    read: Cell<Option<Instant>>,
    stats: Arc<Stats>,
}

impl Clock {
    pub(super) fn new(stats: Arc<Stats>) -> Rc<Self> {
        Rc::new(Self {
            read: Cell::new(None),
            stats,
        })
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
#[derive(Debug)]
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
        if self.side == Side::Server && read.is_ready() && self.clock.read.get().is_none() {
            self.clock.read.set(Some(Instant::now()));
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
