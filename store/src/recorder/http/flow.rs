//! One direction of an exchange: its content coding undone, its events or its body told.

use super::Shared;
use super::exchange::About;
use crate::journal::Flags;
use crate::journal::Kind;
use crate::journal::header::{Meta, NotDecoded};
use crate::recorder::frames::{Frames, KEPT_OF_A_FRAME};
use crate::recorder::sink::{Piece, Place, Sink};
use agent_trace_wire::coding::{self, Problem};
use agent_trace_wire::frame::{Event, Framing};
use agent_trace_wire::http::Head;
use agent_trace_wire::{Budget, body, sse};

/// One direction of an exchange.
#[derive(Default)]
pub(super) struct Flow {
    reader: Reader,
    coding: Option<coding::Decoder>,
    /// The value of its `Content-Encoding`, if it has one.
    named: String,
    /// Coded bytes that were not decoded, once there was a problem.
    undecoded: Option<Undecoded>,
    frames: Frames,
    /// Something came.
    any: bool,
    /// The sender got to its end.
    pub(super) closed: bool,
    /// When something last came. A body is recorded when its end is told, but was there then:
    /// its end may be told after the answer to it was read, or after the exchange ended.
    pub(super) last: Option<u64>,
}

#[derive(Default)]
enum Reader {
    /// Nothing came yet.
    #[default]
    None,
    Body(body::Decoder),
    Events(Box<sse::Decoder>),
}

struct Undecoded {
    problem: Problem,
    length: u64,
    /// How many of them were lost.
    lost: u64,
    digest: Option<Box<blake3::Hasher>>,
    lossy: bool,
}

/// What comes in.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Bytes(&'a [u8]),
    Undelivered(&'a [u8]),
    Lost(u64),
    /// Nothing more comes; broken if its sender did not get to its end.
    End {
        broken: bool,
    },
}

impl Flow {
    /// The head is known before the first byte. `coded` if it has a `Content-Encoding`.
    pub(super) fn head(
        &mut self,
        head: &Head<'_>,
        (events, coded): (bool, bool),
        frames: &Budget,
        windows: &Budget,
    ) {
        if !matches!(self.reader, Reader::None) {
            return;
        }
        self.reader = Reader::new(events, frames);
        if !coded {
            return;
        }
        match coding::Decoder::new(head.all("content-encoding"), windows) {
            Ok(coding) => self.coding = coding,
            Err(problem) => self.undecoded = Some(Undecoded::new(problem)),
        }
        if self.coding.is_some() || self.undecoded.is_some() {
            let names: Vec<_> = head
                .all("content-encoding")
                .map(String::from_utf8_lossy)
                .collect();
            self.named = names.join(", ").chars().take(200).collect();
        }
    }

    /// The relay changed something in what comes next.
    pub(super) fn altered(&mut self) {
        self.frames.altered = true;
    }

    pub(super) fn take(
        &mut self,
        input: Input<'_>,
        place: Place,
        about: &mut About,
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        if matches!(self.reader, Reader::None) {
            if let Input::End { .. } = input {
                return;
            }
            self.reader = Reader::new(false, &shared.frames);
        }
        if self.undecoded.is_none() && self.coding.is_none() {
            return self.read(input, place, about, shared, sink);
        }
        self.any |= !matches!(input, Input::End { .. });
        match input {
            Input::Bytes(bytes) | Input::Undelivered(bytes) => {
                self.frames.undelivered |= matches!(input, Input::Undelivered(_));
                self.decode(bytes, place, about, shared, sink);
            }
            // What comes after a hole cannot be decoded.
            Input::Lost(lost) => {
                self.coding = None;
                self.read(input, place, about, shared, sink);
                let undecoded = self
                    .undecoded
                    .get_or_insert_with(|| Undecoded::new(Problem::Broken));
                undecoded.lossy = true;
                undecoded.digest = None;
                undecoded.length += lost;
                undecoded.lost += lost;
            }
            Input::End { broken } => {
                let undone = self.coding.take().map(coding::Decoder::finish);
                if let Some(Err(problem)) = undone
                    && !broken
                {
                    self.undecoded = Some(Undecoded::new(problem));
                }
                let broken = broken || self.undecoded.is_some();
                self.read(Input::End { broken }, place, about, shared, sink);
                self.not_decoded(place, about, shared, sink);
            }
        }
    }

    fn decode(
        &mut self,
        bytes: &[u8],
        place: Place,
        about: &mut About,
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        if let Some(mut coding) = self.coding.take() {
            let done = coding.push(bytes, &mut |piece| {
                self.read(Input::Bytes(piece), place, about, shared, sink);
            });
            match done {
                Ok(()) => self.coding = Some(coding),
                Err(problem) => self.undecoded = Some(Undecoded::new(problem)),
            }
            if done.is_ok() {
                return;
            }
        }
        if let Some(undecoded) = &mut self.undecoded {
            if undecoded.length == 0 {
                undecoded.digest = sink.hasher();
            }
            undecoded.length += bytes.len() as u64;
            if let Some(digest) = &mut undecoded.digest {
                digest.update(bytes);
            }
        }
    }

    /// Reads what is not coded.
    fn read(
        &mut self,
        input: Input<'_>,
        place: Place,
        about: &mut About,
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        self.frames.undelivered |= matches!(input, Input::Undelivered(_));
        let frames = &mut self.frames;
        let mut each = |event: Event<'_>| match event {
            Event::Overflow { kept, more } => frames.overflow(kept, more, sink),
            Event::Frame(frame) => about.frame(&frame, frames, place, shared, sink),
        };
        match (&mut self.reader, input) {
            (Reader::None, _) => {}
            (Reader::Body(body), Input::Bytes(bytes) | Input::Undelivered(bytes)) => {
                body.push(bytes, &mut each);
            }
            (Reader::Body(body), Input::Lost(lost)) => body.skip(lost),
            (Reader::Body(body), Input::End { broken }) => body.finish(broken, &mut each),
            (Reader::Events(events), Input::Bytes(bytes) | Input::Undelivered(bytes)) => {
                events.push(bytes, &mut each);
            }
            (Reader::Events(events), Input::Lost(lost)) => events.skip(lost, &mut each),
            (Reader::Events(events), Input::End { .. }) => events.finish(&mut each),
        }
    }

    /// Records that something was not decoded, and how much.
    fn not_decoded(
        &mut self,
        place: Place,
        about: &mut About,
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        // An answer to HEAD names its coding and has no body.
        let Some(undecoded) = self.undecoded.take().filter(|_| self.any) else {
            return;
        };
        about.settle(shared, place.at, sink);
        let place = about.place(place, shared, sink);
        let (coding, reason) = (&self.named, undecoded.problem.name());
        sink.meta(place, |open, _| {
            Meta::NotDecoded(NotDecoded {
                coding: open.text(coding),
                reason: reason.into(),
            })
        });
        if undecoded.length > 0 {
            about.count_frame(place.stream, shared);
            sink.put(Piece {
                kind: Kind::Frame,
                place,
                raw: &[],
                framing: Framing::Stray,
                flags: Flags::CUT.with_if(Flags::LOSSY, undecoded.lossy),
                length: undecoded.length,
                lost: undecoded.lost,
                digest: undecoded.digest.map(|hasher| *hasher.finalize().as_bytes()),
                carry: None,
            });
        }
    }
}

impl Reader {
    fn new(events: bool, budget: &Budget) -> Self {
        if events {
            Self::Events(Box::new(sse::Decoder::new(KEPT_OF_A_FRAME, budget)))
        } else {
            Self::Body(body::Decoder::new(KEPT_OF_A_FRAME, budget))
        }
    }
}

impl Undecoded {
    fn new(problem: Problem) -> Self {
        Self {
            problem,
            length: 0,
            lost: 0,
            digest: None,
            lossy: false,
        }
    }
}
