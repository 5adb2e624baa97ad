//! From frames to records, and what happens when the disk does not take them.
//!
//! ```text
//! Unopened ──journal made──▶ Open ──write failed──▶ Open and stopped ──gap written──▶ Open
//!     └──setup failed──▶ Off
//! ```
//! While stopped nothing is written but counted; once a second the disk is tried again, and
//! the first record that it takes is the gap.

use super::queue::{Item, Lost};
use super::recording::{OpenError, Recording, nanoseconds};
use super::{Hooks, Setup, Stats};
use crate::journal::format::DIGEST;
use crate::journal::header::{Gap, SessionEnd};
use crate::journal::{Flags, Kind};
use crate::redact::Carry;
use agent_trace_model::Stream;
use agent_trace_wire::frame::Framing;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait before the disk is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What a record is about, and when that was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The session's ordinal in the process, or 0 for the process itself.
    pub(super) session: u32,
    /// The HTTP exchange's ordinal in the process, or 0.
    pub(super) exchange: u32,
    pub(super) stream: Stream,
    /// On the items' clock.
    pub(super) at: u64,
}

impl Place {
    /// Where an item of the one session of a stdio relay is.
    pub(super) fn stdio(item: &Item) -> Self {
        Self {
            session: item.channel.source,
            exchange: 0,
            stream: item.channel.stream,
            at: item.at,
        }
    }

    /// The process itself.
    pub(super) fn process(at: u64) -> Self {
        Self {
            session: 0,
            exchange: 0,
            stream: Stream::ServerToClient,
            at,
        }
    }
}

/// A frame or a line on its way to the journal.
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) place: Place,
    pub(super) raw: &'a [u8],
    pub(super) framing: Framing,
    pub(super) flags: Flags,
    pub(super) length: u64,
    /// How many of these bytes were told of as lost already.
    pub(super) lost: u64,
    pub(super) digest: Option<[u8; DIGEST]>,
    /// Where it is one of several lines that belong together: what the others leave open.
    pub(super) carry: Option<&'a mut Carry>,
}

impl Piece<'_> {
    /// How many bytes are lost with it where it is not written.
    pub(super) fn bytes(&self) -> u64 {
        self.length.saturating_sub(self.lost)
    }
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
    /// Gaps that are in the batch, and the bytes that they tell of.
    unwritten: (u64, u64),
    /// Number of the file that [`Hooks::opened`] was told of last.
    file: u32,
    /// Changes when what was said of sessions has to be said again.
    generation: u64,
    stats: Stats,
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
    /// How many of the bytes were lost before they could be refused.
    told: u64,
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
            unwritten: (0, 0),
            file: 0,
            generation: 1,
            stats: Stats::default(),
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
    pub(super) fn hasher(&self) -> Option<Box<blake3::Hasher>> {
        match &self.state {
            State::Open(recording) => Some(Box::new(recording.hasher())),
            _ => None,
        }
    }

    pub(super) fn put(&mut self, piece: Piece<'_>) {
        let wall = self.epoch.saturating_add(piece.place.at);
        self.stats.frames[piece.place.stream as usize] += 1;
        if let Some(stopped) = &mut self.stopped {
            stopped.frames += 1;
            stopped.bytes += piece.bytes();
            // A key that begins now must still be known when recording goes on.
            if let (State::Open(open), Some(carry)) = (&self.state, piece.carry) {
                open.pass_over(carry, piece.raw);
            }
        } else if let State::Open(open) = &mut self.state {
            let written = open.piece(piece, wall);
            self.settle(written);
        }
    }

    /// Bytes were taken over.
    pub(super) fn took(&mut self, stream: Stream, bytes: usize) {
        self.stats.bytes[stream as usize] += bytes as u64;
    }

    /// The queue had no room for some bytes.
    pub(super) fn queue_was_full(&mut self, place: Place, lost: Lost) {
        let bytes = lost.body + lost.head;
        self.gap("queue_full", place, bytes, Some(place.stream));
    }

    /// These bytes are in no record.
    pub(super) fn gap(&mut self, reason: &str, place: Place, bytes: u64, stream: Option<Stream>) {
        if let Some(stopped) = &mut self.stopped {
            stopped.bytes += bytes;
            stopped.told += bytes;
            return;
        }
        self.stats.gaps += 1;
        self.stats.lost_bytes += bytes;
        self.unwritten.0 += 1;
        self.unwritten.1 += bytes;
        let gap = Gap {
            reason: reason.into(),
            since: self.epoch.saturating_add(place.at),
            frames: 0,
            bytes,
            stream,
        };
        self.write_json(Kind::Gap, place, &gap);
    }

    /// Records a fact, as [`Meta`](crate::journal::header::Meta). `make` is called if it is
    /// going to be written.
    pub(super) fn meta<T: serde::Serialize>(
        &mut self,
        place: Place,
        make: impl FnOnce(&mut Recording, u64) -> T,
    ) {
        let epoch = self.epoch;
        self.write(place, |open, wall| {
            let meta = make(open, epoch);
            open.json(Kind::Meta, place, wall, &meta)
        });
    }

    /// Writes something, if anything is written now. `write` gets the wall clock.
    pub(super) fn write(
        &mut self,
        place: Place,
        write: impl FnOnce(&mut Recording, u64) -> io::Result<()>,
    ) {
        if self.stopped.is_some() {
            return;
        }
        let wall = self.epoch.saturating_add(place.at);
        if let State::Open(open) = &mut self.state {
            let written = write(open, wall);
            self.settle(written);
        }
    }

    /// What was said of a session under another number may be in no file, or not in this one.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// What was counted.
    pub(super) fn stats(&self) -> Stats {
        Stats {
            recording: self.stopped.is_none() && matches!(self.state, State::Open(_)),
            ..self.stats
        }
    }

    /// The session is over. The batch ends with it.
    pub(super) fn session_ended(&mut self, place: Place, mut end: SessionEnd) {
        // A command that could not be started is named in here.
        if let (State::Open(open), Some(error)) = (&self.state, &mut end.end.error) {
            *error = open.text(error);
        }
        self.try_now();
        if self.stopped.is_none() {
            end.lost += self.refused;
            self.write_json(Kind::End, place, &end);
        }
        self.end_batch();
        if let (State::Open(open), None) = (&mut self.state, &self.stopped) {
            open.conclude();
        }
    }

    /// One of several sessions is over.
    pub(super) fn one_ended(&mut self, place: Place, end: &SessionEnd) {
        if self.stopped.is_none() {
            self.write_json(Kind::End, place, end);
        }
    }

    /// Tries to go on now, if recording stopped.
    pub(super) fn try_now(&mut self) {
        if self.stopped.is_some() {
            self.try_again();
        }
    }

    /// Nothing more will be written.
    pub(super) fn close(&mut self) {
        if let State::Open(recording) = &mut self.state {
            recording.unlock();
        }
    }

    fn write_json(&mut self, kind: Kind, place: Place, what: &impl serde::Serialize) {
        let wall = self.epoch.saturating_add(place.at);
        if let State::Open(open) = &mut self.state {
            let written = open.json(kind, place, wall, what);
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
        if open.settle() {
            self.unwritten = (0, 0);
        }
        let (number, file) = open.file();
        if let Some(opened) = self.hooks.opened.as_ref().filter(|_| number != self.file) {
            opened(file);
        }
        if number != self.file {
            self.file = number;
            self.generation += 1;
        }
        if let Some(acknowledge) = &mut self.hooks.acknowledge {
            acknowledge(open.acknowledged());
        }
    }

    fn stop(&mut self, reason: String, frames: u64, bytes: u64) {
        self.generation += 1;
        // The gaps in the batch are not written: what they told is a part of this one.
        let (gaps, told) = std::mem::take(&mut self.unwritten);
        self.stats.gaps = self.stats.gaps.saturating_sub(gaps);
        self.stats.lost_bytes = self.stats.lost_bytes.saturating_sub(told);
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
            bytes: bytes + told,
            told,
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
        let place = Place {
            session: recording.session(),
            ..Place::process(self.clock)
        };
        let now = self.epoch.saturating_add(self.clock);
        let written = recording
            .begin(self.epoch)
            .and_then(|()| recording.json(Kind::Gap, place, now, &gap))
            .and_then(|()| recording.flush());
        if written.is_ok() {
            self.refused += stopped.bytes.saturating_sub(stopped.told);
            self.stats.gaps += 1;
            self.stats.lost_bytes += stopped.bytes;
            self.settle(Ok(()));
        } else {
            recording.take_back();
            self.stopped = Some(stopped);
        }
    }
}
