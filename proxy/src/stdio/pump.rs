//! One direction of a stdio relay.

use crate::os::descriptors::{Pipe, has_data, wait_readable, wait_writable};
use agent_trace_model::{Channel, Tap};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What one read can take: the size of a pipe on Linux.
const CHUNK: usize = 64 << 10;

/// Why a pump ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pumped {
    /// The sender ended the stream, and all of it was passed on.
    ToTheEnd,
    /// The receiver took no more.
    ReceiverGone,
}

/// How far a pump is, for those who decide when the relay may end.
#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
    /// Microseconds from `started` to the last change between reading and writing.
    changed: AtomicU64,
    reading: AtomicBool,
    ended: AtomicBool,
    /// Where it reads from, for as long as it does.
    source: Weak<Pipe>,
}

impl Progress {
    fn new(source: &Arc<Pipe>) -> Self {
        Self {
            source: Arc::downgrade(source),
            started: Instant::now(),
            changed: AtomicU64::new(0),
            reading: AtomicBool::new(true),
            ended: AtomicBool::new(false),
        }
    }

    fn now(&self, reading: bool) {
        let since = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.changed.store(since, Ordering::Relaxed);
        self.reading.store(reading, Ordering::Release);
    }

    /// When it last began to read or to write.
    pub(super) fn changed(&self) -> Instant {
        self.started + Duration::from_micros(self.changed.load(Ordering::Relaxed))
    }

    /// Whether it waits for its sender (rather than for its receiver).
    pub(super) fn is_reading(&self) -> bool {
        self.reading.load(Ordering::Acquire)
    }

    /// Whether its sender has written something that it has not read: it may only not have
    /// come to it yet.
    pub(super) fn has_data(&self) -> bool {
        self.source.upgrade().is_some_and(|pipe| has_data(&pipe))
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// One direction, before it runs.
pub(super) struct Pump {
    channel: Channel,
    tap: Arc<dyn Tap>,
    from: Arc<Pipe>,
    progress: Arc<Progress>,
}

impl Pump {
    pub(super) fn new(channel: Channel, tap: &Arc<dyn Tap>, from: Pipe) -> Self {
        let from = Arc::new(from);
        Self {
            channel,
            tap: Arc::clone(tap),
            progress: Arc::new(Progress::new(&from)),
            from,
        }
    }

    /// Moves bytes on a thread of its own until the stream ends or its receiver is gone.
    /// Both pipes are closed after `done` was called: a server may exit as soon as its input
    /// ends, and that the client ended it has to be known by then.
    pub(super) fn spawn(
        self,
        mut to: impl Receiver + Send + 'static,
        done: impl FnOnce(Pumped) + Send + 'static,
    ) -> io::Result<Arc<Progress>> {
        let progress = Arc::clone(&self.progress);
        std::thread::Builder::new()
            .name(format!("{:?}", self.channel.stream))
            .spawn(move || {
                let how = self.run(&mut to);
                self.progress.ended.store(true, Ordering::Release);
                done(how);
            })?;
        Ok(progress)
    }

    fn run(&self, to: &mut impl Receiver) -> Pumped {
        let mut from = &*self.from;
        let mut buffer = vec![0; CHUNK];
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e)
                    if e.kind() == ErrorKind::WouldBlock && wait_readable(&self.from).is_ok() =>
                {
                    continue;
                }
                // A broken stream has ended, whatever broke it.
                Err(_) => break,
            };
            let read = self.tap.now();
            let chunk = &buffer[..n];
            self.progress.now(false);
            let taken = write_all(to, chunk);
            self.progress.now(true);
            self.tap.copy(self.channel, read, &chunk[..taken]);
            if taken < n {
                self.tap.undelivered(self.channel, read, &chunk[taken..]);
                return Pumped::ReceiverGone;
            }
        }
        self.tap.close(self.channel, self.tap.now());
        Pumped::ToTheEnd
    }
}

/// Writes as much of the chunk as the receiver takes and returns how much that was.
fn write_all(to: &mut impl Receiver, chunk: &[u8]) -> usize {
    let mut taken = 0;
    while taken < chunk.len() {
        match to.write(&chunk[taken..]) {
            Ok(0) => break,
            Ok(n) => taken += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock && to.wait_until_writable() => {}
            Err(_) => break,
        }
    }
    taken
}

/// Where a pump writes to.
pub(super) trait Receiver {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn wait_until_writable(&self) -> bool;
}

impl Receiver for std::process::ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn wait_until_writable(&self) -> bool {
        wait_writable(self).is_ok()
    }
}

impl Receiver for std::fs::File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn wait_until_writable(&self) -> bool {
        wait_writable(self).is_ok()
    }
}

impl Receiver for Arc<std::fs::File> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&**self).write(bytes)
    }

    fn wait_until_writable(&self) -> bool {
        wait_writable(&**self).is_ok()
    }
}
