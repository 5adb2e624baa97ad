//! One foreign session while it is written: a journal of sealed files.

use super::Import;
use crate::journal::chain::{Hash, NONE, What};
use crate::journal::format::{MOST_PAYLOAD, MOST_SPANS, Span, encode};
use crate::journal::header::{Gap, Header, Imported, Meta, SessionEnd, SessionOpen};
use crate::journal::sealed::{Ends, Sealer};
use crate::journal::{Envelope, Flags, Kind, Record};
use crate::layout::{SegmentPath, create_private};
use crate::redact::Redaction as Hidden;
use agent_trace_model::{End, Stream};
use agent_trace_wire::frame::Framing;
use std::io::{self, Write};

/// A file with so many bytes of records is followed by another: what is in memory of it at a
/// time is its compressed form.
const ROLL_AT: u64 = 32 << 20;
/// The transport of sessions that came from elsewhere.
const TRANSPORT: &str = "imported";

/// What is known of a foreign session before its frames. Nothing in here is redacted yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// The task that it was started for, where that is known.
    pub task: Option<String>,
    /// What to call the client: the agent.
    pub client: Option<String>,
    /// What to call the server, where its command does not tell.
    pub server: Option<String>,
    /// The command and arguments of what was recorded.
    pub command: Vec<String>,
    /// The folder that it ran in.
    pub folder: Option<String>,
    /// Where it came from.
    pub imported: Imported,
}

/// Writes the frames of one session. All of them have to be handed over in their order.
pub struct Writer<'a> {
    import: &'a Import,
    header: Header,
    opening: SessionOpen,
    /// None for as long as the file has no record but its opening.
    sealer: Option<Sealer>,
    /// What the file before ended with.
    before: Hash,
    /// Bytes of the records in the file.
    bytes: u64,
    sequence: u64,
    /// Since the session began, in nanoseconds; never less than for the frame before.
    clock: u64,
    wall: u64,
    totals: SessionEnd,
    text: Vec<u8>,
    hidden: Vec<Hidden>,
    raw: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(super) fn begin(
        import: &'a Import,
        mut header: Header,
        opening: Opening,
    ) -> io::Result<Self> {
        let on = header.redaction.on;
        let text = |text: &str| match on {
            true => import.redactor.text(text),
            false => text.to_owned(),
        };
        let maybe = |given: Option<String>| given.as_deref().map(text);
        let Imported {
            format,
            version,
            source,
            session,
            digest,
        } = opening.imported;
        header.project = maybe(opening.folder.clone());
        let opening = SessionOpen {
            transport: TRANSPORT.into(),
            started: opening.started,
            task: maybe(opening.task),
            client: maybe(opening.client),
            server: maybe(opening.server),
            command: match on {
                true => import.redactor.argv(&opening.command),
                false => opening.command,
            },
            cwd: maybe(opening.folder).unwrap_or_default(),
            imported: Some(Box::new(Imported {
                format,
                version: maybe(version),
                source: text(&source),
                session: text(&session),
                digest,
            })),
            ..SessionOpen::default()
        };
        let mut writer = Self {
            import,
            wall: opening.started,
            header,
            opening,
            sealer: None,
            before: NONE,
            bytes: 0,
            sequence: 0,
            clock: 0,
            totals: SessionEnd {
                end: End {
                    ending: agent_trace_model::Ending::ClientClosed,
                    exit_code: None,
                    signal: None,
                    killed: false,
                    error: None,
                },
                frames: [0; 3],
                bytes: [0; 3],
                lost: 0,
            },
            text: Vec::new(),
            hidden: Vec::new(),
            raw: Vec::new(),
        };
        writer.open()?;
        Ok(writer)
    }

    /// Adds a message, given as one line of JSON without its line end. `wall` is when it was
    /// sent, in nanoseconds since 1970; 0 where that is not known.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn frame(&mut self, stream: Stream, wall: u64, message: &[u8]) -> io::Result<()> {
        let (mut text, mut hidden) = (
            std::mem::take(&mut self.text),
            std::mem::take(&mut self.hidden),
        );
        text.clear();
        hidden.clear();
        let on = self.header.redaction.on;
        if !(on && self.import.redactor.bytes(message, &mut text, &mut hidden)) {
            text.extend_from_slice(message);
        }
        text.push(b'\n');
        let length = message.len() as u64 + 1;
        self.totals.frames[stream as usize] += 1;
        self.totals.bytes[stream as usize] += length;
        self.tick(wall);
        let spans = hidden.iter().take(MOST_SPANS + 1).map(|hidden| Span {
            at: hidden.at,
            length: hidden.marker,
            original: hidden.original,
        });
        let envelope = Envelope {
            stream,
            framing: Framing::Newline,
            length,
            spans: spans.collect(),
            ..self.envelope(Kind::Frame)
        };
        let written = self.record(envelope, &mut text);
        self.text = text;
        self.hidden = hidden;
        written
    }

    /// Says that something may not have been recorded where the session comes from.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn gap(&mut self, reason: &str) -> io::Result<()> {
        let gap = Gap {
            reason: reason.into(),
            since: self.wall,
            frames: 0,
            bytes: 0,
            stream: None,
        };
        self.json(Kind::Gap, &gap)
    }

    /// Nothing more will come. `end` says how the session ended and when (0 where that is not
    /// known), if it did and that was recorded.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, end: Option<(End, u64)>) -> io::Result<()> {
        if let Some((mut end, wall)) = end {
            if let Some(error) = end.error.as_mut().filter(|_| self.header.redaction.on) {
                *error = self.import.redactor.text(error);
            }
            self.tick(wall);
            self.totals.end = end;
            let totals = self.totals.clone();
            self.json(Kind::End, &totals)?;
        }
        self.close(What::End)
    }

    /// Takes note of the time of what comes next.
    fn tick(&mut self, wall: u64) {
        if wall > 0 {
            self.wall = wall;
            // Files are in order also where clocks were set, and readers go by this clock.
            let clock = wall.saturating_sub(self.opening.started);
            self.clock = self.clock.max(clock);
        }
    }

    fn envelope(&mut self, kind: Kind) -> Envelope {
        self.sequence += 1;
        Envelope {
            kind,
            stream: Stream::ClientToServer,
            framing: Framing::Stray,
            flags: Flags::default(),
            session: 1,
            exchange: 0,
            sequence: self.sequence,
            wall: self.wall,
            monotonic: self.clock,
            length: 0,
            digest: None,
            spans: Vec::new(),
        }
    }

    fn json(&mut self, kind: Kind, what: &impl serde::Serialize) -> io::Result<()> {
        let mut payload = serde_json::to_vec(what)?;
        let envelope = Envelope {
            length: payload.len() as u64,
            ..self.envelope(kind)
        };
        self.record(envelope, &mut payload)
    }

    /// Adds a record to the file; goes on in another one first where it is full.
    fn record(&mut self, mut envelope: Envelope, payload: &mut Vec<u8>) -> io::Result<()> {
        if self.bytes >= ROLL_AT {
            // Each file tells by itself what it is of, in a record before this one.
            self.sequence -= 1;
            self.close(What::Rolled)?;
            self.header.segment += 1;
            self.bytes = 0;
            self.open()?;
            self.sequence += 1;
            envelope.sequence = self.sequence;
        }
        let header = &self.header;
        let sealer = match &mut self.sealer {
            Some(sealer) => sealer,
            none => {
                let ends = Ends {
                    before: self.before,
                    ..Ends::default()
                };
                none.insert(Sealer::between(header, self.import.key.chain(), ends)?)
            }
        };
        if payload.len() > MOST_PAYLOAD {
            let what = "a message is larger than a record can be once its secrets are hidden";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.raw.clear();
        encode(&envelope, payload, &mut self.raw);
        self.raw.extend_from_slice(payload);
        self.bytes += self.raw.len() as u64;
        let mut record = Record {
            envelope,
            payload: std::mem::take(payload),
        };
        let added = sealer.add(&record, &self.raw);
        *payload = std::mem::take(&mut record.payload);
        added
    }

    /// Begins a file.
    fn open(&mut self) -> io::Result<()> {
        let opening = Meta::SessionOpen(self.opening.clone());
        self.json(Kind::Meta, &opening)
    }

    /// Writes the file.
    fn close(&mut self, what: What) -> io::Result<()> {
        let Some(sealer) = self.sealer.take() else {
            return Ok(());
        };
        let name = SegmentPath::name(self.header.process, self.header.segment, true);
        let mut file = create_private(&self.import.staging.join(name))?;
        let (bytes, end) = sealer.finish_as(what)?;
        self.before = end;
        file.write_all(&bytes)
    }
}
