//! From the bytes of one session to its frames and lines.

use super::queue::{Item, What};
use super::requests::OpenRequests;
use super::sink::{Piece, Sink};
use crate::journal::header::SessionEnd;
use crate::journal::{Flags, Kind};
use crate::redact::Carry;
use agent_trace_model::{Channel, End, Stream};
use agent_trace_wire::frame::{Event, Frame, Framing};
use agent_trace_wire::message::{beginning, messages};
use agent_trace_wire::stdio::Decoder;

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
            decoder: Decoder::new(KEPT_OF_A_FRAME, &agent_trace_wire::Budget::new(64 << 20)),
            details: Details::default(),
        }
    }

    fn take(&mut self, input: Input<'_>, out: &mut Out<'_>) {
        self.details.undelivered |= matches!(input, Input::Undelivered(_));
        let details = &mut self.details;
        let mut sink = |event: Event<'_>| match event {
            Event::Overflow { kept, more } => details.overflow(kept, more, out),
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
    /// Follows a frame beyond what is kept of it.
    fn overflow(&mut self, kept: &[u8], more: &[u8], out: &Out<'_>) {
        // Begun at the frame's first byte or not at all: there may be no key for it yet.
        if !kept.is_empty() {
            self.digest = out.sink.hasher();
        }
        if let Some(digest) = &mut self.digest {
            digest.update(kept).update(more);
        }
    }

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
        let stream = out.item.channel.stream;
        if cut && frame.framing != Framing::Stray {
            out.open.see(stream, &beginning(raw).unwrap_or_default());
        } else if frame.framing != Framing::Stray && !lost {
            for message in messages(&frame.text()).into_iter().flatten() {
                out.open.see(stream, &message);
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
    /// The line so far, as much as is kept of it.
    held: Vec<u8>,
    /// Its true length so far.
    length: u64,
    /// Bytes are missing before what is held.
    lossy: bool,
    key: Carry,
}

impl Lines {
    fn take(&mut self, input: Input<'_>, out: &mut Out<'_>) {
        let mut rest = match input {
            Input::Bytes(bytes) | Input::Undelivered(bytes) => bytes,
            Input::Lost(lost) => {
                self.length += lost;
                self.lossy = true;
                return;
            }
            Input::End => {
                if self.length > 0 {
                    self.line(&[], out);
                }
                return;
            }
        };
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end + 1);
            self.line(line, out);
            rest = after;
        }
        self.hold(rest);
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let room = KEPT_OF_A_LINE.saturating_sub(self.held.len());
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// A line ends with these bytes.
    fn line(&mut self, end: &[u8], out: &mut Out<'_>) {
        *out.frames += 1;
        // Most lines come in one chunk and are not copied.
        let whole = self.length == 0 && end.len() <= KEPT_OF_A_LINE;
        if !whole {
            self.hold(end);
        }
        let length = if whole { end.len() as u64 } else { self.length };
        let line = if whole { end } else { &self.held[..] };
        let cut = (line.len() as u64) < length && !self.lossy;
        out.sink.put(Piece {
            kind: Kind::Stderr,
            item: out.item,
            raw: match line {
                _ if self.lossy => &[],
                line if cut => &line[..line.len().saturating_sub(BEFORE_A_CUT)],
                line => line,
            },
            framing: Framing::Stray,
            flags: Flags::default()
                .with_if(Flags::LOSSY, self.lossy)
                .with_if(Flags::CUT, cut),
            length,
            digest: None,
            carry: Some(&mut self.key),
        });
        self.held.clear();
        self.held.shrink_to(4096);
        self.length = 0;
        self.lossy = false;
    }
}
