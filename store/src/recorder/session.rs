//! From the bytes of one session to its frames and lines.

use super::queue::{Item, What};
use super::requests::OpenRequests;
use super::sink::{Piece, Sink};
use crate::journal::header::SessionEnd;
use crate::journal::{Flags, Kind};
use crate::redact::Carry;
use agent_trace_model::{Channel, End, Stream};
use agent_trace_wire::message::messages;
use agent_trace_wire::stdio::{Decoder, Event, Frame, Framing};

/// The most bytes of one frame that are kept; of the rest only length and digest.
pub const KEPT_OF_A_FRAME: usize = 8 << 20;
/// Bytes before a cut that are not kept either: a secret that the cut goes through could not
/// be told any more.
const BEFORE_A_CUT: usize = 16 << 10;
/// The most bytes of one line of standard error.
const KEPT_OF_A_LINE: usize = 64 << 10;

/// One session while it is recorded.
pub(super) struct Session {
    inbound: Flow,
    outbound: Flow,
    errors: Lines,
    open: OpenRequests,
    frames: [u64; 3],
    bytes: [u64; 3],
    lost: u64,
}

impl Session {
    pub(super) fn new() -> Self {
        Self {
            inbound: Flow::new(),
            outbound: Flow::new(),
            errors: Lines::default(),
            open: OpenRequests::default(),
            frames: [0; 3],
            bytes: [0; 3],
            lost: 0,
        }
    }

    /// Takes what happened, with the bytes that belong to it.
    pub(super) fn take(&mut self, item: &Item, bytes: &[u8], sink: &mut Sink) {
        let stream = item.channel.stream;
        let index = stream as usize;
        let known = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let input = match item.what {
            What::Copied(_) => {
                self.bytes[index] += known;
                Input::Bytes(bytes)
            }
            What::Undelivered(_) => Input::Undelivered(bytes),
            What::Lost(lost) => {
                self.bytes[index] += lost;
                self.lost += lost;
                sink.queue_was_full(item, lost);
                Input::Lost(lost)
            }
            What::Closed => Input::End,
            // Dealt with by the caller.
            What::Ended(_) => return,
        };
        let mut out = Out {
            item,
            sink,
            frames: &mut self.frames[index],
            open: &mut self.open,
        };
        match stream {
            Stream::ClientToServer => self.inbound.take(input, &mut out),
            Stream::ServerToClient => self.outbound.take(input, &mut out),
            Stream::Stderr => self.errors.take(input, &mut out),
        }
    }

    /// Ends all streams. Returns the totals.
    pub(super) fn finish(&mut self, item: &Item, end: End, sink: &mut Sink) -> SessionEnd {
        for stream in Stream::ALL {
            let channel = Channel {
                stream,
                ..item.channel
            };
            let what = What::Closed;
            let at = item.at;
            self.take(&Item { channel, at, what }, &[], sink);
        }
        SessionEnd {
            end,
            frames: self.frames,
            bytes: self.bytes,
            lost: self.lost,
        }
    }

    pub(super) fn unanswered(&self) -> usize {
        self.open.count()
    }
}

#[derive(Clone, Copy)]
enum Input<'a> {
    Bytes(&'a [u8]),
    Undelivered(&'a [u8]),
    Lost(u64),
    End,
}

/// Where frames and lines go.
struct Out<'a> {
    item: &'a Item,
    sink: &'a mut Sink,
    frames: &'a mut u64,
    open: &'a mut OpenRequests,
}

/// One direction of messages.
struct Flow {
    decoder: Decoder,
    details: Details,
}

/// What a flow remembers between frames.
#[derive(Default)]
struct Details {
    digest: Option<blake3::Hasher>,
    /// A private key that is printed line by line.
    key: Carry,
    undelivered: bool,
}

impl Flow {
    fn new() -> Self {
        Self {
            decoder: Decoder::new(KEPT_OF_A_FRAME),
            details: Details::default(),
        }
    }

    fn take(&mut self, input: Input<'_>, out: &mut Out<'_>) {
        self.details.undelivered |= matches!(input, Input::Undelivered(_));
        let details = &mut self.details;
        let mut sink = |event: Event<'_>| match event {
            Event::Overflow { kept, more } => {
                let hasher = || out.sink.hasher();
                details
                    .digest
                    .get_or_insert_with(hasher)
                    .update(kept)
                    .update(more);
            }
            Event::Frame(frame) => details.frame(&frame, out),
        };
        match input {
            Input::Bytes(bytes) | Input::Undelivered(bytes) => self.decoder.push(bytes, &mut sink),
            Input::Lost(lost) => self.decoder.skip(lost, &mut sink),
            Input::End => self.decoder.finish(&mut sink),
        }
    }
}

impl Details {
    fn frame(&mut self, frame: &Frame<'_>, out: &mut Out<'_>) {
        *out.frames += 1;
        let digest = self.digest.take();
        let cut = frame.truncated() && !frame.lossy;
        // Where bytes are missing, what is left of a secret could not be told; only a frame
        // that is a whole message for all that is safe.
        let lost = frame.lossy && (frame.truncated() || frame.framing == Framing::Stray);
        let raw = match frame.raw {
            _ if lost => &[][..],
            raw if cut => &raw[..raw.len().saturating_sub(BEFORE_A_CUT)],
            raw => raw,
        };
        if frame.framing != Framing::Stray && !cut && !lost {
            for message in messages(frame.body()).into_iter().flatten() {
                out.open.see(out.item.channel.stream, &message);
            }
        }
        out.sink.put(Piece {
            kind: Kind::Frame,
            item: out.item,
            raw,
            framing: frame.framing,
            flags: Flags::default()
                .with_if(Flags::CUT, cut)
                .with_if(Flags::INCOMPLETE, frame.incomplete)
                .with_if(Flags::LOSSY, frame.lossy)
                .with_if(Flags::UNDELIVERED, self.undelivered),
            length: frame.length,
            digest: digest
                .filter(|_| cut)
                .map(|hasher| *hasher.finalize().as_bytes()),
            carry: (frame.framing == Framing::Stray).then_some(&mut self.key),
        });
    }
}

/// Standard error: lines, since that is how it is written and how secrets are told.
#[derive(Default)]
struct Lines {
    held: Vec<u8>,
    lossy: bool,
    /// A private key that is printed line by line.
    key: Carry,
}

impl Lines {
    fn take(&mut self, input: Input<'_>, out: &mut Out<'_>) {
        let mut rest = match input {
            Input::Bytes(bytes) | Input::Undelivered(bytes) => bytes,
            Input::Lost(_) => {
                self.held.clear();
                self.lossy = true;
                return;
            }
            Input::End => {
                if !self.held.is_empty() {
                    self.line(&[], out);
                }
                return;
            }
        };
        while !rest.is_empty() {
            let room = KEPT_OF_A_LINE.saturating_sub(self.held.len()).max(1);
            let window = &rest[..rest.len().min(room)];
            let end = memchr::memchr(b'\n', window).map(|at| at + 1);
            if end.is_none() && window.len() < room {
                self.held.extend_from_slice(window);
                return;
            }
            let (line, after) = rest.split_at(end.unwrap_or(window.len()));
            self.line(line, out);
            rest = after;
        }
    }

    fn line(&mut self, end: &[u8], out: &mut Out<'_>) {
        let held = std::mem::take(&mut self.held);
        let line = if held.is_empty() {
            end
        } else {
            self.held = held;
            self.held.extend_from_slice(end);
            &self.held
        };
        *out.frames += 1;
        let lossy = std::mem::take(&mut self.lossy);
        out.sink.put(Piece {
            kind: Kind::Stderr,
            item: out.item,
            raw: if lossy { &[] } else { line },
            framing: Framing::Stray,
            flags: Flags::default().with_if(Flags::LOSSY, lossy),
            length: line.len() as u64,
            digest: None,
            carry: Some(&mut self.key),
        });
        self.held.clear();
    }
}
