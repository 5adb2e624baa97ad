//! One direction of a stdio relay.

use crate::os::descriptors::{wait_readable, wait_writable};
use agent_trace_model::{Channel, Tap};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[cfg(unix)]
pub(super) use std::os::fd::AsFd as Handle;
#[cfg(windows)]
pub(super) use std::os::windows::io::AsHandle as Handle;

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
}

impl Progress {
    fn new() -> Self {
        Self {
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

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// One direction, before it runs.
pub(super) struct Pump {
    channel: Channel,
    tap: Arc<dyn Tap>,
    progress: Arc<Progress>,
}

impl Pump {
    pub(super) fn new(channel: Channel, tap: &Arc<dyn Tap>) -> Self {
        Self {
            channel,
            tap: Arc::clone(tap),
            progress: Arc::new(Progress::new()),
        }
    }

    /// Moves bytes on a thread of its own until the stream ends or its receiver is gone.
    /// Both pipes are closed after `done` was called: a server may exit as soon as its input
    /// ends, and that the client ended it has to be known by then.
    pub(super) fn spawn<F, T>(
        self,
        mut from: F,
        mut to: T,
        done: impl FnOnce(Pumped) + Send + 'static,
    ) -> io::Result<Arc<Progress>>
    where
        F: Read + Handle + Send + 'static,
        T: Receiver + Send + 'static,
    {
        let progress = Arc::clone(&self.progress);
        std::thread::Builder::new()
            .name(format!("{:?}", self.channel.stream))
            .spawn(move || {
                let how = self.run(&mut from, &mut to);
                self.progress.ended.store(true, Ordering::Release);
                done(how);
            })?;
        Ok(progress)
    }

    fn run(&self, from: &mut (impl Read + Handle), to: &mut impl Receiver) -> Pumped {
        let mut buffer = vec![0; CHUNK];
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock && wait_readable(from).is_ok() => {
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
        self.tap.close(self.channel);
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
