//! What a session is made of: frames as they were recorded, and the steps that they make up.

use crate::journal::Record;
pub use agent_trace_model::step::StepKind;
use agent_trace_model::{Finish, Outcome, Stream};
use agent_trace_wire::frame::{self, Framing};
use agent_trace_wire::message::{member, member_at, string};
use std::borrow::Cow;
use std::ops::Range;

/// The member of `_meta` with which requests of MCP 2026-07-28 and later name the revision.
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// One frame of a session.
#[derive(Clone, Debug)]
pub struct Frame {
    /// As it stands in the journal.
    pub record: Record,
    text: Text,
}

/// Where the JSON text of a frame is.
#[derive(Clone, Debug)]
enum Text {
    /// A piece of its bytes.
    Piece(Range<usize>),
    /// Put together: the data of an event is on several lines.
    Joined(Vec<u8>),
}

impl Frame {
    pub(super) fn new(record: Record) -> Self {
        let payload = &record.payload[..];
        let text = match frame::text(payload, record.envelope.framing) {
            _ if record.envelope.framing == Framing::Stray => Text::Piece(0..payload.len()),
            Cow::Owned(joined) => Text::Joined(joined),
            Cow::Borrowed([]) => Text::Piece(0..0),
            Cow::Borrowed(piece) => {
                // A piece of the payload.
                let start = piece.as_ptr() as usize - payload.as_ptr() as usize;
                Text::Piece(start..start + piece.len())
            }
        };
        Self { record, text }
    }

    /// Keeps what is known of it without its bytes.
    pub(super) fn drop_text(&mut self) {
        self.record.payload = Vec::new();
        self.text = Text::Piece(0..0);
    }

    /// Its JSON text, without what is around it on the wire; of an event its data, of stray
    /// bytes all of them.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        match &self.text {
            Text::Piece(range) => &self.record.payload[range.clone()],
            Text::Joined(joined) => joined,
        }
    }

    /// Whether it is no message.
    #[must_use]
    pub fn is_stray(&self) -> bool {
        self.record.envelope.framing == Framing::Stray
    }
}

/// A part of a frame: a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position of the frame in the session.
    pub frame: usize,
    /// Where in its [text](Frame::body) the message is.
    pub range: Range<usize>,
}

impl Place {
    /// The message's JSON text.
    #[must_use]
    pub fn text<'a>(&self, frames: &'a [Frame]) -> &'a [u8] {
        frames
            .get(self.frame)
            .and_then(|frame| frame.body().get(self.range.clone()))
            .unwrap_or_default()
    }
}

/// One entry in a session's list.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number, from 1.
    pub number: usize,
    /// What it is.
    pub kind: StepKind,
    /// Who began it.
    pub from: Stream,
    /// The method, where there is one; of an HTTP exchange its own.
    pub method: Option<String>,
    /// The tool, prompt or resource that it is about; of an HTTP exchange path and query.
    pub target: Option<String>,
    /// The id's JSON text.
    pub id: Option<Vec<u8>>,
    /// The message that began it; absent for an HTTP exchange without a request body.
    pub opened: Option<Place>,
    /// The message that answered it, or the body of an HTTP answer that is no message.
    pub closed: Option<Place>,
    /// The HTTP exchange that it began in, or 0.
    pub exchange: u32,
    /// The HTTP status of that exchange, as far as it is known.
    pub status: Option<u16>,
    /// How that exchange ended, where that has a say in the outcome.
    pub finish: Option<Finish>,
    /// How many requests it took: more than one where the server asked for input and the
    /// client repeated the request with it (MCP 2026-07-28).
    pub rounds: u32,
    /// When it began, in nanoseconds since 1970.
    pub wall: u64,
    /// The same on the recorder's monotonic clock, which durations are measured with.
    pub monotonic: u64,
    /// From the end of the request to the end of its answer, in nanoseconds.
    pub duration: Option<u64>,
    /// How many progress notifications came.
    pub progress: u32,
    /// Whether it was cancelled, answered or not.
    pub cancel_sent: bool,
    /// The code of the JSON-RPC error that it was answered with, as its JSON text.
    pub code: Option<String>,
    /// What came of it.
    pub outcome: Outcome,
}

impl Step {
    /// Whether the client began it.
    #[must_use]
    pub fn is_clients(&self) -> bool {
        self.from == Stream::ClientToServer
    }

    /// The tool that it calls.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        let calls = self.method.as_deref() == Some("tools/call");
        self.target.as_deref().filter(|_| calls)
    }

    /// The request's parameters, as JSON text.
    pub(super) fn params<'a>(&self, frames: &'a [Frame]) -> Option<&'a [u8]> {
        member(self.opened.as_ref()?.text(frames), "params")
    }

    /// The message that began it as JSON text, or the bytes that did.
    #[must_use]
    pub fn request<'a>(&self, frames: &'a [Frame]) -> &'a [u8] {
        let text = self.opened.as_ref().map(|place| place.text(frames));
        text.unwrap_or_default()
    }

    /// The message that answered it as JSON text, or the body that did.
    #[must_use]
    pub fn response<'a>(&self, frames: &'a [Frame]) -> Option<&'a [u8]> {
        Some(self.closed.as_ref()?.text(frames))
    }

    /// The name by which the client introduces itself in this step, if it does.
    #[must_use]
    pub fn client_name(&self, frames: &[Frame]) -> Option<String> {
        let params = self.params(frames).filter(|_| self.is_clients())?;
        let modern = ["_meta", "io.modelcontextprotocol/clientInfo", "name"];
        let name =
            member_at(params, &["clientInfo", "name"]).or_else(|| member_at(params, &modern));
        name.and_then(string).map(Into::into)
    }

    /// The revision of the protocol that this step tells, if it does: what the server agreed
    /// to, or what each request of 2026-07-28 and later says of itself.
    #[must_use]
    pub fn revision(&self, frames: &[Frame]) -> Option<String> {
        let version = if self.method.as_deref() == Some("initialize") {
            let result = member(self.response(frames)?, "result")?;
            member(result, "protocolVersion")
        } else {
            member_at(self.params(frames)?, &["_meta", PROTOCOL_VERSION])
        };
        version.and_then(string).map(Into::into)
    }
}
