//! From frames to records, and what happens when the disk does not take them.
//!
//! ```text
//! Unopened ──journal made──▶ Open ──write failed──▶ Open and stopped ──gap written──▶ Open
//!     └──setup failed──▶ Off
//! ```
//! While stopped nothing is written but counted; once a second the disk is tried again, and
//! the first record that it takes is the gap.

use super::bodies;
use super::queue::Item;
use super::sync::Syncer;
use super::{Acknowledge, Durability, Options, Report, Setup, StdioSession};
use crate::journal::format::{DIGEST, Span, narrow};
use crate::journal::header::{Gap, Header, Meta, Redaction, SessionEnd, SessionOpen};
use crate::journal::writer::Writer;
use crate::journal::{Bodies, Envelope, Flags, Kind};
use crate::key;
use crate::layout::Store;
use crate::process::{self, Process};
use crate::redact::{Carry, Key, Redaction as Hidden, Redactor};
use agent_trace_model::{Channel, ProcessId, Stream};
use agent_trace_wire::stdio::{Framing, body};
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
    report: Report,
    acknowledge: Option<Acknowledge>,
    /// Wall clock at the zero of the items' clock, taken anew for each batch: the wall clock
    /// may be set, and the other one stands still while a machine sleeps.
    epoch: u64,
    stopped: Option<Stopped>,
}

enum State {
    /// The journal could not be made yet.
    Unopened(Box<Setup>),
    Open(Box<Open>),
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

/// An open journal and all that it takes to write records.
struct Open {
    writer: Writer,
    redactor: Redactor,
    options: Options,
    opening: SessionOpen,
    syncer: Option<Syncer>,
    sequence: u64,
    /// Frames and bytes in the batch that is not written yet.
    batch: (u64, u64),
    text: Vec<u8>,
    hidden: Vec<Hidden>,
}

impl Sink {
    pub(super) fn new(
        setup: Result<Setup, String>,
        report: Report,
        acknowledge: Option<Acknowledge>,
    ) -> Self {
        let state = match setup {
            Ok(setup) => State::Unopened(Box::new(setup)),
            Err(reason) => {
                report(&format!("not recording: {reason}"));
                State::Off
            }
        };
        let mut sink = Self {
            state,
            report,
            acknowledge,
            epoch: 0,
            stopped: None,
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

    /// A keyed hasher for bytes that are not kept.
    pub(super) fn hasher(&self) -> blake3::Hasher {
        match &self.state {
            State::Open(open) => open.redactor.hasher(),
            // Nothing of it will be written.
            _ => blake3::Hasher::new(),
        }
    }

    pub(super) fn put(&mut self, piece: Piece<'_>) {
        let wall = self.epoch.saturating_add(piece.item.at);
        if let Some(stopped) = &mut self.stopped {
            stopped.frames += 1;
            stopped.bytes += piece.length;
            // A key that begins now must still be known when recording goes on.
            if let (State::Open(open), Some(carry)) = (&self.state, piece.carry) {
                open.redactor
                    .line(carry, piece.raw, &mut Vec::new(), &mut Vec::new());
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
        if let (State::Open(open), Some(error)) = (&self.state, &mut end.end.error)
            && open.options.redact
        {
            *error = open.redactor.text(error);
        }
        if self.stopped.is_some() {
            self.try_again();
        }
        if self.stopped.is_none() {
            self.write_json(Kind::End, item.channel, item.at, &end);
        }
        self.end_batch();
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
        let reason = match Open::new(setup) {
            Ok(open) => {
                self.state = State::Open(Box::new(open));
                let written = self.write_opening();
                return self.settle(written);
            }
            Err(OpenError::Never(reason)) => {
                (self.report)(&format!("not recording: {reason}"));
                self.state = State::Off;
                return;
            }
            Err(OpenError::NotNow(reason)) => reason,
        };
        self.stop(reason, 0, 0);
    }

    fn write_opening(&mut self) -> io::Result<()> {
        let wall = self.epoch;
        match &mut self.state {
            State::Open(open) => open.opening(0, wall).and_then(|()| open.flush()),
            _ => Ok(()),
        }
    }

    /// Takes note of how writing went.
    fn settle(&mut self, written: io::Result<()>) {
        let State::Open(open) = &mut self.state else {
            return;
        };
        let acknowledged = open.writer.acknowledged();
        if let Err(error) = written {
            // What was not acknowledged was not written: its numbers are free again.
            open.sequence = acknowledged;
            let (frames, bytes) = std::mem::take(&mut open.batch);
            self.stop(error.to_string(), frames, bytes);
            return;
        }
        if acknowledged == open.sequence {
            open.batch = (0, 0);
        }
        if let Some(acknowledge) = &mut self.acknowledge {
            acknowledge(acknowledged);
        }
    }

    fn stop(&mut self, reason: String, frames: u64, bytes: u64) {
        (self.report)(&format!(
            "recording stopped: {reason}; relaying goes on, and the trace will show the gap"
        ));
        self.stopped = Some(Stopped {
            reason,
            since: self.epoch,
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
        if let State::Unopened(setup) = &self.state {
            match Open::new(setup) {
                Ok(mut open) => {
                    let began = open.opening(0, self.epoch);
                    self.state = State::Open(Box::new(open));
                    if began.is_err() {
                        self.stopped = Some(stopped);
                        return;
                    }
                }
                Err(OpenError::NotNow(_) | OpenError::Never(_)) => {
                    self.stopped = Some(stopped);
                    return;
                }
            }
        }
        let State::Open(open) = &mut self.state else {
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
            session: 1,
            exchange: 0,
            stream: Stream::ServerToClient,
        };
        let written = open
            .json(Kind::Gap, of, 0, self.epoch, &gap)
            .and_then(|()| open.flush());
        if written.is_err() {
            open.sequence = open.writer.acknowledged();
            self.stopped = Some(stopped);
        } else {
            self.settle(Ok(()));
        }
    }
}

enum OpenError {
    /// The disk may allow it later.
    NotNow(String),
    /// It will not be possible.
    Never(String),
}

impl Open {
    fn new(setup: &Setup) -> Result<Self, OpenError> {
        let options = setup.options.clone();
        let at = |error: &io::Error| format!("{error} ({})", setup.store.root().display());
        let key = key::load_or_create(&setup.store).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => OpenError::Never(error.to_string()),
            _ => OpenError::NotNow(at(&error)),
        })?;
        let key_id = key.id();
        let redactor = redactor(key, &options, &setup.session)
            .map_err(|error| OpenError::Never(error.to_string()))?;
        let opening = opening(&setup.session, &redactor, options.redact);
        let header = header(&options, key_id, &setup.session, &redactor)
            .map_err(|error| OpenError::NotNow(error.to_string()))?;
        let writer = create(&setup.store, header).map_err(|error| OpenError::NotNow(at(&error)))?;
        let syncer = (options.durability == Durability::Timer).then(Syncer::start);
        Ok(Self {
            writer,
            redactor,
            options,
            opening,
            syncer,
            sequence: 0,
            batch: (0, 0),
            text: Vec::new(),
            hidden: Vec::new(),
        })
    }

    fn opening(&mut self, at: u64, wall: u64) -> io::Result<()> {
        let meta = Meta::SessionOpen(self.opening.clone());
        let of = Channel {
            session: 1,
            exchange: 0,
            stream: Stream::ClientToServer,
        };
        self.json(Kind::Meta, of, at, wall, &meta)
    }

    fn json(
        &mut self,
        kind: Kind,
        of: Channel,
        at: u64,
        wall: u64,
        what: &impl serde::Serialize,
    ) -> io::Result<()> {
        let payload = serde_json::to_vec(what)?;
        let envelope = Envelope {
            length: payload.len() as u64,
            ..self.envelope(kind, of, at, wall)
        };
        self.writer.append(&envelope, &payload)
    }

    fn piece(&mut self, piece: Piece<'_>, wall: u64) -> io::Result<()> {
        self.batch.0 += 1;
        self.batch.1 += piece.length;
        let mut text = std::mem::take(&mut self.text);
        let mut hidden = std::mem::take(&mut self.hidden);
        text.clear();
        hidden.clear();
        let digested = (self.options.bodies == Bodies::Digest).then(|| self.digested(&piece));
        let raw = digested.as_deref().unwrap_or(piece.raw);
        let changed = self.options.redact
            && self.hide(raw, piece.framing, piece.carry, &mut text, &mut hidden);
        let spans = hidden.iter().map(|hidden| Span {
            at: hidden.at,
            length: hidden.marker,
            original: hidden.original,
        });
        let envelope = Envelope {
            framing: piece.framing,
            flags: piece
                .flags
                .with_if(Flags::BODIES_DIGESTED, digested.is_some()),
            length: piece.length,
            digest: piece.digest,
            spans: spans.collect(),
            ..self.envelope(piece.kind, piece.item.channel, piece.item.at, wall)
        };
        let written = self
            .writer
            .append(&envelope, if changed { &text } else { raw });
        // A large frame is rare, and its memory is not kept.
        if text.capacity() <= 256 << 10 {
            self.text = text;
            self.hidden = hidden;
        }
        written
    }

    /// Appends the redacted form of a frame to `out`; false where there is nothing to hide.
    fn hide(
        &self,
        raw: &[u8],
        framing: Framing,
        carry: Option<&mut Carry>,
        out: &mut Vec<u8>,
        hidden: &mut Vec<Hidden>,
    ) -> bool {
        if let Some(carry) = carry {
            return self.redactor.line(carry, raw, out, hidden);
        }
        // A message may have padding, a header block and a line end around its JSON text.
        let text = body(raw, framing);
        let start = text.as_ptr() as usize - raw.as_ptr() as usize;
        let mut any = false;
        for part in [&raw[..start], text, &raw[start + text.len()..]] {
            let (base, known) = (narrow::<u32>(out.len()), hidden.len());
            if self.redactor.bytes(part, out, hidden) {
                any = true;
                hidden[known..]
                    .iter_mut()
                    .for_each(|hidden| hidden.at += base);
            } else {
                out.extend_from_slice(part);
            }
        }
        any
    }

    /// The frame with digests in place of arguments and results.
    fn digested(&self, piece: &Piece<'_>) -> Vec<u8> {
        let digest = |bytes: &[u8]| {
            let mut hasher = self.redactor.hasher();
            hasher.update(bytes).finalize().to_hex()[..32].to_owned()
        };
        let whole = piece.kind == Kind::Frame && piece.framing != Framing::Stray;
        let text = body(piece.raw, piece.framing);
        match bodies::without(text, &digest).filter(|_| whole) {
            Some(reduced) => {
                let start = text.as_ptr() as usize - piece.raw.as_ptr() as usize;
                let (before, after) = (&piece.raw[..start], &piece.raw[start + text.len()..]);
                [before, &reduced, after].concat()
            }
            None => bodies::instead_of(piece.raw, &digest).into_bytes(),
        }
    }

    fn envelope(&mut self, kind: Kind, of: Channel, at: u64, wall: u64) -> Envelope {
        self.sequence += 1;
        Envelope {
            kind,
            stream: of.stream,
            framing: Framing::Stray,
            flags: Flags::default(),
            session: of.session,
            exchange: of.exchange,
            sequence: self.sequence,
            wall,
            monotonic: at,
            length: 0,
            digest: None,
            spans: Vec::new(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        match &self.syncer {
            Some(syncer) => syncer.wrote(self.writer.file()),
            None => self.writer.file().sync_data()?,
        }
        if self.writer.is_full() && self.writer.roll().is_ok() {
            // Each file tells by itself which session it is of.
            self.opening(0, self.opening.started)?;
            self.writer.flush()?;
        }
        Ok(())
    }
}

fn redactor(
    key: Key,
    options: &Options,
    session: &StdioSession,
) -> Result<Redactor, crate::redact::RuleError> {
    let mut redactor = Redactor::new(key, &options.user_rules)?;
    let environment = session.environment.iter();
    redactor.add_environment(
        environment.map(|(name, value)| (name.as_encoded_bytes(), value.as_encoded_bytes())),
    );
    redactor.add_argv(&lossy(&session.command));
    Ok(redactor)
}

fn opening(session: &StdioSession, redactor: &Redactor, redact: bool) -> SessionOpen {
    let command = lossy(&session.command);
    let folder = session.folder.to_string_lossy();
    let text = |text: &str| {
        if redact {
            redactor.text(text)
        } else {
            text.to_owned()
        }
    };
    let mut names: Vec<String> = session
        .environment
        .iter()
        .map(|(name, _)| text(&name.to_string_lossy()))
        .collect();
    names.sort();
    SessionOpen {
        transport: "stdio".into(),
        started: now(),
        client: session.client.as_deref().map(text),
        server: session.server.as_deref().map(text),
        command: if redact {
            redactor.argv(&command)
        } else {
            command
        },
        cwd: text(&folder),
        env: names,
        pid: session.pid,
    }
}

fn header(
    options: &Options,
    key: String,
    session: &StdioSession,
    redactor: &Redactor,
) -> Result<Header, getrandom::Error> {
    let mut random = [0; 10];
    getrandom::fill(&mut random)?;
    let started = now();
    let project = project(&session.folder).map(|folder| folder.to_string_lossy().into_owned());
    Ok(Header {
        process: ProcessId::new(started / 1_000_000, random),
        segment: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        host: process::host(),
        boot: process::boot(),
        relay: Process::current(),
        client: Process::parent(),
        redaction: Redaction {
            on: options.redact,
            key,
            user_rules: options.user_rules.len(),
        },
        bodies: options.bodies,
        workspace: options.workspace.clone(),
        project: project.map(|p| if options.redact { redactor.text(&p) } else { p }),
    })
}

/// The nearest folder upwards that is a project, as its version control says.
fn project(folder: &std::path::Path) -> Option<std::path::PathBuf> {
    let is_project = |folder: &&std::path::Path| {
        [".git", ".hg", ".jj", ".svn"]
            .iter()
            .any(|mark| folder.join(mark).exists())
    };
    folder.ancestors().find(is_project).map(Into::into)
}

fn create(store: &Store, header: Header) -> io::Result<Writer> {
    Writer::create(store, header)
}

fn lossy(command: &[std::ffi::OsString]) -> Vec<String> {
    command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn now() -> u64 {
    nanoseconds(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
