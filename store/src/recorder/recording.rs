//! An open journal and all that it takes to write records: from a frame to its record.

use super::events;
use super::heads::Heads;
use super::sink::{Piece, Place};
use super::sync::Syncer;
use super::{Durability, Options, Setup, StdioSession, bodies};
use crate::journal::format::{MOST_SPANS, Span};
use crate::journal::header::{Header, Meta, Redaction, SessionOpen};
use crate::journal::writer::Writer;
use crate::journal::{Bodies, Envelope, Flags, Kind};
use crate::key;
use crate::process::{self, Process};
use crate::redact::{Carry, Key, Redaction as Hidden, Redactor, RuleError};
use agent_trace_model::{Caller, ProcessId, Stream};
use agent_trace_wire::frame::{self, Framing};
use std::borrow::Cow;
use std::ffi::OsString;
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
    /// The one session of a stdio relay.
    opening: Option<SessionOpen>,
    heads: Heads,
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
        let (key_id, chain) = (key.id(), key.chain());
        let session = setup.session.as_ref();
        let redactor = redactor(key, &options, session).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|c| format!(": {c}"));
            OpenError::Never(format!("{error}{}", cause.unwrap_or_default()).replace('\n', " "))
        })?;
        let opening = session.map(|session| opening(session, &redactor, options.redact));
        let header = header(&options, key_id, session, &redactor)
            .map_err(|error| OpenError::NotNow(error.to_string()))?;
        let writer = Writer::chained(&setup.store, header, chain)
            .map_err(|error| OpenError::NotNow(at(&error)))?;
        let syncer = (options.durability == Durability::Timer).then(Syncer::start);
        Ok(Self {
            writer,
            redactor,
            options,
            opening,
            heads: Heads::default(),
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

    /// The number of the one session of a stdio relay, or else 0, the process itself.
    pub(super) fn session(&self) -> u32 {
        u32::from(self.opening.is_some())
    }

    fn opening(&mut self, at: u64, wall: u64) -> io::Result<()> {
        let Some(opening) = &self.opening else {
            return Ok(());
        };
        let meta = Meta::SessionOpen(opening.clone());
        let place = Place {
            session: self.session(),
            stream: Stream::ClientToServer,
            ..Place::process(at)
        };
        self.json(Kind::Meta, place, wall, &meta)
    }

    /// Records the head of a request; who called is not known where the head is lost.
    pub(super) fn request(
        &mut self,
        place: Place,
        wall: u64,
        caller: Option<Caller>,
        head: &[u8],
    ) -> io::Result<()> {
        let digested = (self.options.bodies == Bodies::Digest)
            .then(|| bodies::without_mirrors(head, &|bytes| self.digest(bytes)));
        let head = digested.as_deref().unwrap_or(head);
        self.head(place, wall, |heads, redaction, out| {
            heads.request(caller, head, redaction, out)
        })
    }

    /// Records the head of an answer.
    pub(super) fn response(&mut self, place: Place, wall: u64, head: &[u8]) -> io::Result<()> {
        self.head(place, wall, |heads, redaction, out| {
            heads.response(place.session, head, redaction, out)
        })
    }

    /// Records header lines after a body.
    pub(super) fn trailers(&mut self, place: Place, wall: u64, lines: &[u8]) -> io::Result<()> {
        self.head(place, wall, |heads, redaction, out| {
            heads.trailers(lines, redaction, out)
        })
    }

    fn head(
        &mut self,
        place: Place,
        wall: u64,
        write: impl FnOnce(&mut Heads, (&Redactor, bool), &mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let redaction = (&self.redactor, self.options.redact);
        let written = write(&mut self.heads, redaction, &mut text)
            .and_then(|()| self.payload(Kind::Meta, place, wall, &text));
        self.text = text;
        written
    }

    /// The value of a header without its secrets.
    pub(super) fn header_value(&self, name: &[u8], value: &[u8]) -> String {
        let hidden = self.redactor.header(name, value, self.options.redact);
        String::from_utf8_lossy(hidden.as_deref().unwrap_or(value)).into_owned()
    }

    /// A URI without its secrets.
    pub(super) fn uri(&self, uri: &[u8]) -> String {
        let hidden = self.redactor.target(uri, self.options.redact);
        String::from_utf8_lossy(hidden.as_ref().map_or(uri, |(uri, _)| uri)).into_owned()
    }

    /// The keyed fingerprint of something secret.
    pub(super) fn fingerprint(&self, secret: &[u8]) -> String {
        self.redactor.fingerprint(secret)
    }

    pub(super) fn json(
        &mut self,
        kind: Kind,
        place: Place,
        wall: u64,
        what: &impl serde::Serialize,
    ) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let written = serde_json::to_writer(&mut text, what)
            .map_err(Into::into)
            .and_then(|()| self.payload(kind, place, wall, &text));
        self.text = text;
        written
    }

    fn payload(&mut self, kind: Kind, place: Place, wall: u64, payload: &[u8]) -> io::Result<()> {
        let envelope = Envelope {
            length: payload.len() as u64,
            ..self.envelope(kind, place, wall)
        };
        self.writer.append(&envelope, payload)
    }

    pub(super) fn piece(&mut self, piece: Piece<'_>, wall: u64) -> io::Result<()> {
        self.batch.0 += 1;
        self.batch.1 += piece.bytes();
        let mut text = std::mem::take(&mut self.text);
        let mut hidden = std::mem::take(&mut self.hidden);
        text.clear();
        hidden.clear();
        let digested = (self.options.bodies == Bodies::Digest).then(|| self.digested(&piece));
        let raw = digested.as_deref().unwrap_or(piece.raw);
        let changed = self.hide(raw, piece.framing, piece.carry, &mut text, &mut hidden);
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
            ..self.envelope(piece.kind, piece.place, wall)
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
        let rules = self.options.redact;
        // The id in an endpoint is a credential, and hidden in any case.
        if !rules && framing != Framing::Event {
            return false;
        }
        if let Some(carry) = carry {
            return self.redactor.line(carry, raw, out, hidden);
        }
        let text = frame::text(raw, framing);
        if framing == Framing::Event {
            let joined = matches!(text, Cow::Owned(_));
            let rewritten = events::hide(&self.redactor, raw, &text, joined, rules, out, hidden);
            if let Some(any) = rewritten {
                return any;
            }
        }
        if !rules {
            return false;
        }
        // A message may have padding, a header block, other fields and a line end around its
        // JSON text.
        let (before, text, after) = around(raw, &text);
        let mut any = false;
        for part in [before, text, after] {
            any |= events::append(&self.redactor, part, out, hidden);
        }
        any
    }

    /// The frame with digests in place of arguments and results.
    fn digested(&self, piece: &Piece<'_>) -> Vec<u8> {
        let digest = |bytes: &[u8]| self.digest(bytes);
        let whole = piece.kind == Kind::Frame && piece.framing != Framing::Stray;
        let text = frame::text(piece.raw, piece.framing);
        let reduced = bodies::without(&text, &digest).filter(|_| whole);
        if piece.framing == Framing::Event
            && let Some(event) = events::digested(piece.raw, reduced.as_deref())
        {
            return event;
        }
        match reduced {
            Some(reduced) => {
                let (before, _, after) = around(piece.raw, &text);
                [before, &reduced, after].concat()
            }
            None if piece.raw.is_empty() => Vec::new(),
            None => bodies::instead_of(piece.raw, &digest).into_bytes(),
        }
    }

    fn digest(&self, bytes: &[u8]) -> String {
        let mut hasher = self.redactor.hasher();
        hasher.update(bytes).finalize().to_hex()[..32].to_owned()
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

    /// Says in the hash chain that nothing more comes. If the disk does not take it, the end
    /// is not proven.
    pub(super) fn conclude(&mut self) {
        let _ = self.writer.close();
    }

    /// Says that the journal is finished. Its descriptor may be held by others for a while,
    /// and the lock with it.
    pub(super) fn unlock(&mut self) {
        self.conclude();
        let _ = self.writer.file().unlock();
    }

    /// What was not acknowledged was not written: its numbers are free again. Returns how
    /// many frames and bytes that were.
    pub(super) fn take_back(&mut self) -> (u64, u64) {
        self.sequence = self.writer.acknowledged();
        std::mem::take(&mut self.batch)
    }

    /// Takes note of what was acknowledged; whether that is all.
    pub(super) fn settle(&mut self) -> bool {
        let all = self.writer.acknowledged() == self.sequence;
        if all {
            self.batch = (0, 0);
        }
        all
    }

    fn envelope(&mut self, kind: Kind, place: Place, wall: u64) -> Envelope {
        self.sequence += 1;
        Envelope {
            kind,
            stream: place.stream,
            framing: Framing::Stray,
            flags: Flags::default(),
            session: place.session,
            exchange: place.exchange,
            sequence: self.sequence,
            wall,
            monotonic: place.at,
            length: 0,
            digest: None,
            spans: Vec::new(),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        match &self.syncer {
            Some(syncer) => syncer.wrote(self.writer.file(), self.writer.length()),
            None => self.writer.file().sync_data()?,
        }
        if self.writer.is_full() && self.writer.roll().is_ok() {
            // Each file tells by itself which session it is of. Those of HTTP are told when
            // they next have something to write.
            let started = self.opening.as_ref().map_or(0, |opening| opening.started);
            self.opening(0, started)?;
            self.writer.flush()?;
        }
        Ok(())
    }
}

/// The text, which is a part of `raw`, and what is before and after it.
fn around<'a>(raw: &'a [u8], text: &[u8]) -> (&'a [u8], &'a [u8], &'a [u8]) {
    let start = (text.as_ptr() as usize).checked_sub(raw.as_ptr() as usize);
    let parts = start.and_then(|start| {
        let (before, rest) = raw.split_at_checked(start)?;
        let (text, after) = rest.split_at_checked(text.len())?;
        Some((before, text, after))
    });
    // An empty text can be anywhere.
    parts
        .filter(|_| !text.is_empty())
        .unwrap_or((raw, &[], &[]))
}

fn redactor(
    key: Key,
    options: &Options,
    session: Option<&StdioSession>,
) -> Result<Redactor, RuleError> {
    let mut redactor = Redactor::new(key, &options.user_rules)?;
    match session {
        Some(session) => {
            let pairs = session.environment.iter();
            let pairs = pairs.map(|(n, v)| (n.as_encoded_bytes(), v.as_encoded_bytes()));
            redactor.add_environment(pairs);
            redactor.add_argv(&lossy(&session.command));
        }
        // A relay of HTTP starts no server; what is secret in its own environment is what it
        // and the servers beside it were given.
        None => redactor.add_own_environment(),
    }
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
        run: session.run.as_deref().map(text),
        task: session.task.as_deref().map(text),
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
    session: Option<&StdioSession>,
    redactor: &Redactor,
) -> Result<Header, getrandom::Error> {
    let mut random = [0; 10];
    getrandom::fill(&mut random)?;
    let started = now();
    let project = session.map(|session| project(&session.folder));
    let project = project.map(|folder| folder.to_string_lossy().into_owned());
    Ok(Header {
        process: ProcessId::new(started / 1_000_000, random),
        segment: 1,
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        host: process::host(),
        boot: process::boot(),
        relay: Process::current(),
        // The clients of HTTP are told session by session.
        client: session
            .and_then(|_| Process::parent())
            .map(|client| Process {
                name: if options.redact {
                    redactor.text(&client.name)
                } else {
                    client.name
                },
                ..client
            }),
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

/// The project that a folder belongs to: the nearest folder upwards that is one, as its version
/// control says, else the folder itself.
#[must_use]
pub fn project(folder: &Path) -> PathBuf {
    let is_project = |folder: &&Path| {
        [".git", ".hg", ".jj", ".svn"]
            .iter()
            .any(|mark| folder.join(mark).exists())
    };
    folder.ancestors().find(is_project).unwrap_or(folder).into()
}

fn lossy(command: &[OsString]) -> Vec<String> {
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
