//! From the bytes of a stdio session to its frames and lines.

use super::frames::{BEFORE_A_CUT, Frames, KEPT_OF_A_FRAME, kept};
use super::queue::{Item, What};
use super::requests::OpenRequests;
use super::sink::{Piece, Place, Sink};
use crate::journal::header::SessionEnd;
use crate::journal::{Flags, Kind};
use crate::redact::Carry;
use agent_trace_model::{Channel, End, Stream};
use agent_trace_wire::Budget;
use agent_trace_wire::frame::{Event, Frame, Framing};
use agent_trace_wire::message::{beginning, messages};
use agent_trace_wire::stdio::Decoder;

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
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            inbound: Flow::new(budget),
            outbound: Flow::new(budget),
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
                sink.took(stream, bytes.len());
                Input::Bytes(bytes)
            }
            What::Undelivered(_) => Input::Undelivered(bytes),
            What::Lost(lost) => {
                self.bytes[index] += lost.body;
                self.lost += lost.body;
                sink.queue_was_full(Place::stdio(item), lost);
                Input::Lost(lost.body)
            }
            What::Closed => Input::End,
            // Dealt with by the caller, or no part of stdio.
            _ => return,
        };
        let mut out = Out {
            place: Place::stdio(item),
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
    place: Place,
    sink: &'a mut Sink,
    frames: &'a mut u64,
    open: &'a mut OpenRequests,
}

/// One direction of messages.
struct Flow {
    decoder: Decoder,
    frames: Frames,
}

impl Flow {
    fn new(budget: &Budget) -> Self {
        Self {
            decoder: Decoder::new(KEPT_OF_A_FRAME, budget),
            frames: Frames::default(),
        }
    }

    fn take(&mut self, input: Input<'_>, out: &mut Out<'_>) {
        self.frames.undelivered |= matches!(input, Input::Undelivered(_));
        let frames = &mut self.frames;
        let mut sink = |event: Event<'_>| match event {
            Event::Overflow { kept, more } => frames.overflow(kept, more, out.sink),
            Event::Frame(frame) => out.frame(&frame, frames),
        };
        match input {
            Input::Bytes(bytes) | Input::Undelivered(bytes) => self.decoder.push(bytes, &mut sink),
            Input::Lost(lost) => self.decoder.skip(lost, &mut sink),
            Input::End => self.decoder.finish(&mut sink),
        }
    }
}

impl Out<'_> {
    fn frame(&mut self, frame: &Frame<'_>, frames: &mut Frames) {
        *self.frames += 1;
        let kept = kept(frame);
        let stream = self.place.stream;
        if kept.cut && frame.framing != Framing::Stray {
            let beginning = beginning(kept.raw).unwrap_or_default();
            self.open.see(stream, &beginning);
        } else if frame.framing != Framing::Stray && !kept.lost {
            for message in messages(&frame.text()).into_iter().flatten() {
                self.open.see(stream, &message);
            }
        }
        frames.record(frame, kept, self.place, self.sink);
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
    /// How many of its length are missing.
    lost: u64,
    key: Carry,
}

impl Lines {
    fn take(&mut self, input: Input<'_>, out: &mut Out<'_>) {
        let mut rest = match input {
            Input::Bytes(bytes) | Input::Undelivered(bytes) => bytes,
            Input::Lost(lost) => {
                self.length += lost;
                self.lost += lost;
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
            place: out.place,
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
            lost: std::mem::take(&mut self.lost),
            digest: None,
            carry: Some(&mut self.key),
        });
        self.held.clear();
        self.held.shrink_to(4096);
        self.length = 0;
        self.lossy = false;
    }
}
