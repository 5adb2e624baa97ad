//! From frames to records, and what happens when the disk does not take them.
//!
//! ```text
//! Unopened ──journal made──▶ Open ──write failed──▶ Open and stopped ──gap written──▶ Open
//!     └──setup failed──▶ Off
//! ```
//! While stopped nothing is written but counted; once a second the disk is tried again, and
//! the first record that it takes is the gap.

use super::queue::Item;
use super::recording::{OpenError, Recording, nanoseconds};
use super::{Hooks, Setup};
use crate::journal::format::DIGEST;
use crate::journal::header::{Gap, SessionEnd};
use crate::journal::{Flags, Kind};
use crate::redact::Carry;
use agent_trace_model::{Channel, Stream};
use agent_trace_wire::frame::Framing;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait before the disk is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A frame or a line on its way to the journal.
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) item: &'a Item,
    pub(super) raw: &'a [u8],
    pub(super) framing: Framing,
    pub(super) flags: Flags,
    pub(super) length: u64,
    pub(super) digest: Option<[u8; DIGEST]>,
    /// Where it is one of several lines that belong together: what the others leave open.
    pub(super) carry: Option<&'a mut Carry>,
}

/// Where frames become records.
pub(super) struct Sink {
    state: State,
    hooks: Hooks,
    /// Wall clock at the zero of the items' clock, taken anew for each batch: the wall clock
    /// may be set, and the other one stands still while a machine sleeps.
    epoch: u64,
    /// The items' clock at the beginning of the batch.
    clock: u64,
    stopped: Option<Stopped>,
    /// Bytes that the disk did not take.
    refused: u64,
    /// Number of the file that [`Hooks::opened`] was told of last.
    file: u32,
    /// The user was told that recording stopped.
    reported: bool,
}

enum State {
    /// The journal could not be made yet.
    Unopened(Box<Setup>),
    Open(Box<Recording>),
    /// Nothing will be recorded.
    Off,
}

/// What was lost since recording stopped.
struct Stopped {
    reason: String,
    since: u64,
    frames: u64,
    bytes: u64,
    tried: Instant,
}

impl Sink {
    pub(super) fn new(setup: Result<Setup, String>, hooks: Hooks) -> Self {
        let state = match setup {
            Ok(setup) => State::Unopened(Box::new(setup)),
            Err(reason) => {
                (hooks.report)(&format!("not recording: {reason}"));
                State::Off
            }
        };
        let mut sink = Self {
            state,
            hooks,
            epoch: 0,
            clock: 0,
            stopped: None,
            refused: 0,
            file: 0,
            reported: false,
        };
        sink.begin_batch(Duration::ZERO);
        sink.open();
        sink
    }

    /// A batch begins; the items' clock shows this.
    pub(super) fn begin_batch(&mut self, clock: Duration) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.epoch = nanoseconds(now.saturating_sub(clock));
        self.clock = nanoseconds(clock);
        if self
            .stopped
            .as_ref()
            .is_some_and(|s| s.tried.elapsed() >= RETRY)
        {
            self.try_again();
        }
    }

    /// A batch ends: everything that was put is written.
    pub(super) fn end_batch(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        let State::Open(open) = &mut self.state else {
            return;
        };
        let written = open.flush();
        self.settle(written);
    }

    /// A keyed hasher for bytes that are not kept, if there is a key yet.
    pub(super) fn hasher(&self) -> Option<blake3::Hasher> {
        match &self.state {
            State::Open(recording) => Some(recording.hasher()),
            _ => None,
        }
    }

    pub(super) fn put(&mut self, piece: Piece<'_>) {
        let wall = self.epoch.saturating_add(piece.item.at);
        if let Some(stopped) = &mut self.stopped {
            stopped.frames += 1;
            stopped.bytes += piece.length;
            // A key that begins now must still be known when recording goes on.
            if let (State::Open(open), Some(carry)) = (&self.state, piece.carry) {
                open.pass_over(carry, piece.raw);
            }
        } else if let State::Open(open) = &mut self.state {
            let written = open.piece(piece, wall);
            self.settle(written);
        }
    }

    /// The queue had no room for some bytes.
    pub(super) fn queue_was_full(&mut self, item: &Item, bytes: u64) {
        if let Some(stopped) = &mut self.stopped {
            stopped.bytes += bytes;
            return;
        }
        let gap = Gap {
            reason: "queue_full".into(),
            since: self.epoch.saturating_add(item.at),
            frames: 0,
            bytes,
            stream: Some(item.channel.stream),
        };
        self.write_json(Kind::Gap, item.channel, item.at, &gap);
    }

    pub(super) fn session_ended(&mut self, item: &Item, mut end: SessionEnd) {
        // A command that could not be started is named in here.
        if let (State::Open(open), Some(error)) = (&self.state, &mut end.end.error) {
            *error = open.text(error);
        }
        if self.stopped.is_some() {
            self.try_again();
        }
        if self.stopped.is_none() {
            end.lost += self.refused;
            self.write_json(Kind::End, item.channel, item.at, &end);
        }
        self.end_batch();
    }

    /// Nothing more will be written.
    pub(super) fn close(&mut self) {
        if let State::Open(recording) = &self.state {
            recording.unlock();
        }
    }

    fn write_json(&mut self, kind: Kind, of: Channel, at: u64, what: &impl serde::Serialize) {
        let wall = self.epoch.saturating_add(at);
        if let State::Open(open) = &mut self.state {
            let written = open.json(kind, of, at, wall, what);
            self.settle(written);
        }
    }

    fn open(&mut self) {
        let State::Unopened(setup) = &self.state else {
            return;
        };
        let reason = match Recording::new(setup) {
            Ok(mut recording) => {
                let written = recording.begin(self.epoch).and_then(|()| recording.flush());
                self.state = State::Open(Box::new(recording));
                return self.settle(written);
            }
            Err(OpenError::Never(reason)) => {
                (self.hooks.report)(&format!("not recording: {reason}"));
                self.state = State::Off;
                return;
            }
            Err(OpenError::NotNow(reason)) => reason,
        };
        self.stop(reason, 0, 0);
    }

    /// Takes note of how writing went.
    fn settle(&mut self, written: io::Result<()>) {
        let State::Open(open) = &mut self.state else {
            return;
        };
        if let Err(error) = written {
            let (frames, bytes) = open.take_back();
            self.stop(error.to_string(), frames, bytes);
            return;
        }
        open.settle();
        let (number, file) = open.file();
        if let Some(opened) = self.hooks.opened.as_ref().filter(|_| number != self.file) {
            self.file = number;
            opened(file);
        }
        if let Some(acknowledge) = &mut self.hooks.acknowledge {
            acknowledge(open.acknowledged());
        }
    }

    fn stop(&mut self, reason: String, frames: u64, bytes: u64) {
        // Once is enough for a disk that is full again and again.
        if !std::mem::replace(&mut self.reported, true) {
            (self.hooks.report)(&format!(
                "recording stopped: {reason}; relaying goes on, and the trace will show the gap"
            ));
        }
        self.stopped = Some(Stopped {
            reason,
            since: self.epoch.saturating_add(self.clock),
            frames,
            bytes,
            tried: Instant::now(),
        });
    }

    /// Tries to write the gap, and with it to go on.
    fn try_again(&mut self) {
        let Some(mut stopped) = self.stopped.take() else {
            return;
        };
        stopped.tried = Instant::now();
        if let State::Unopened(setup) = &self.state
            && let Ok(recording) = Recording::new(setup)
        {
            self.state = State::Open(Box::new(recording));
        }
        let State::Open(recording) = &mut self.state else {
            self.stopped = Some(stopped);
            return;
        };
        let gap = Gap {
            reason: stopped.reason.clone(),
            since: stopped.since,
            frames: stopped.frames,
            bytes: stopped.bytes,
            stream: None,
        };
        let of = Channel {
            source: 1,
            exchange: 0,
            stream: Stream::ServerToClient,
        };
        let now = self.epoch.saturating_add(self.clock);
        let written = recording
            .begin(self.epoch)
            .and_then(|()| recording.json(Kind::Gap, of, self.clock, now, &gap))
            .and_then(|()| recording.flush());
        if written.is_ok() {
            self.refused += stopped.bytes;
            self.settle(Ok(()));
        } else {
            recording.take_back();
            self.stopped = Some(stopped);
        }
    }
}
