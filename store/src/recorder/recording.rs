//! An open journal and all that it takes to write records: from a frame to its record.

use super::sink::Piece;
use super::sync::Syncer;
use super::{Durability, Options, Setup, StdioSession, bodies};
use crate::journal::format::{MOST_SPANS, Span, narrow};
use crate::journal::header::{Header, Meta, Redaction, SessionOpen};
use crate::journal::writer::Writer;
use crate::journal::{Bodies, Envelope, Flags, Kind};
use crate::key;
use crate::process::{self, Process};
use crate::redact::{Carry, Key, Redaction as Hidden, Redactor, RuleError};
use agent_trace_model::{Channel, ProcessId, Stream};
use agent_trace_wire::frame::Framing;
use agent_trace_wire::stdio::body;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An open journal and all that it takes to write records.
pub(super) struct Recording {
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

/// Why there is no journal.
pub(super) enum OpenError {
    /// The disk may allow it later.
    NotNow(String),
    /// It will not be possible.
    Never(String),
}

impl Recording {
    pub(super) fn new(setup: &Setup) -> Result<Self, OpenError> {
        let options = setup.options.clone();
        let at = |error: &io::Error| format!("{error} ({})", setup.store.root().display());
        let key = key::load_or_create(&setup.store).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => OpenError::Never(error.to_string()),
            _ => OpenError::NotNow(at(&error)),
        })?;
        let key_id = key.id();
        let none = StdioSession::default();
        let session = setup.session.as_ref().unwrap_or(&none);
        let redactor = redactor(key, &options, session).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|c| format!(": {c}"));
            OpenError::Never(format!("{error}{}", cause.unwrap_or_default()).replace('\n', " "))
        })?;
        let opening = opening(session, &redactor, options.redact);
        let header = header(&options, key_id, session, &redactor)
            .map_err(|error| OpenError::NotNow(error.to_string()))?;
        let writer =
            Writer::create(&setup.store, header).map_err(|error| OpenError::NotNow(at(&error)))?;
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

    /// Begins the journal with what is known of the session, unless that is written.
    pub(super) fn begin(&mut self, wall: u64) -> io::Result<()> {
        if self.writer.acknowledged() == 0 {
            self.opening(0, wall)?;
        }
        Ok(())
    }

    fn opening(&mut self, at: u64, wall: u64) -> io::Result<()> {
        let meta = Meta::SessionOpen(self.opening.clone());
        let of = Channel {
            source: 1,
            exchange: 0,
            stream: Stream::ClientToServer,
        };
        self.json(Kind::Meta, of, at, wall, &meta)
    }

    pub(super) fn json(
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

    pub(super) fn piece(&mut self, piece: Piece<'_>, wall: u64) -> io::Result<()> {
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
        let spans = hidden.iter().take(MOST_SPANS + 1).map(|hidden| Span {
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

    /// The text without its secrets, if they are hidden.
    pub(super) fn text(&self, text: &str) -> String {
        if self.options.redact {
            self.redactor.text(text)
        } else {
            text.to_owned()
        }
    }

    /// Takes note of lines that are not recorded but may begin a key that goes on.
    pub(super) fn pass_over(&self, carry: &mut Carry, line: &[u8]) {
        self.redactor
            .line(carry, line, &mut Vec::new(), &mut Vec::new());
    }

    /// A keyed hasher.
    pub(super) fn hasher(&self) -> blake3::Hasher {
        self.redactor.hasher()
    }

    /// The last sequence number that was written.
    pub(super) fn acknowledged(&self) -> u64 {
        self.writer.acknowledged()
    }

    /// The current file and its number.
    pub(super) fn file(&self) -> (u32, &Arc<File>) {
        (self.writer.header().segment, self.writer.file())
    }

    /// Says that the journal is finished. Its descriptor may be held by others for a while,
    /// and the lock with it.
    pub(super) fn unlock(&self) {
        let _ = self.writer.file().unlock();
    }

    /// What was not acknowledged was not written: its numbers are free again. Returns how
    /// many frames and bytes that were.
    pub(super) fn take_back(&mut self) -> (u64, u64) {
        self.sequence = self.writer.acknowledged();
        std::mem::take(&mut self.batch)
    }

    /// Takes note of what was acknowledged.
    pub(super) fn settle(&mut self) {
        if self.writer.acknowledged() == self.sequence {
            self.batch = (0, 0);
        }
    }

    fn envelope(&mut self, kind: Kind, of: Channel, at: u64, wall: u64) -> Envelope {
        self.sequence += 1;
        Envelope {
            kind,
            stream: of.stream,
            framing: Framing::Stray,
            flags: Flags::default(),
            session: of.source,
            exchange: of.exchange,
            sequence: self.sequence,
            wall,
            monotonic: at,
            length: 0,
            digest: None,
            spans: Vec::new(),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
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

fn redactor(key: Key, options: &Options, session: &StdioSession) -> Result<Redactor, RuleError> {
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
        ..SessionOpen::default()
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
fn project(folder: &Path) -> Option<PathBuf> {
    let is_project = |folder: &&Path| {
        [".git", ".hg", ".jj", ".svn"]
            .iter()
            .any(|mark| folder.join(mark).exists())
    };
    folder.ancestors().find(is_project).map(Into::into)
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

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
