//! What a decoder tells: frames, and the bytes of them that are not kept.

use std::borrow::Cow;

use crate::{sse, stdio};

/// How the end of a frame was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// A JSON object or array on a line. The last line of a stream may lack its line end, as
    /// may a message that a Content-Length block directly follows.
    Newline,
    /// A Content-Length block and the body it announces.
    ContentLength,
    /// One event of a server-sent event stream, up to and with its blank line.
    Event,
    /// The whole body of an HTTP message, if it is JSON.
    Body,
    /// No message: a line of other text, broken JSON, blanks, or a block with a wrong length.
    Stray,
}

/// One frame: a message, or stray bytes, as they were on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its bytes with all that belongs to it: padding, headers, line end. Only the first
    /// ones, up to the decoder's limit, if it was larger.
    pub raw: &'a [u8],
    /// How its end was told.
    pub framing: Framing,
    /// Its true length on the wire in bytes, including what was lost within it.
    pub length: u64,
    /// The stream ended inside it, or it has a header block whose announced body is not there.
    pub incomplete: bool,
    /// Bytes are missing from the copy within it or just before it. If within, it is
    /// [truncated](Self::truncated) too, and `raw` may join pieces of two messages.
    pub lossy: bool,
    /// How many bytes of its length were lost within it.
    pub lost: u64,
}

impl<'a> Frame<'a> {
    /// Whether `raw` is less than what was on the wire. Its body is then no JSON, or not what
    /// was sent.
    #[must_use]
    pub fn truncated(&self) -> bool {
        (self.raw.len() as u64) < self.length
    }

    /// The JSON text in it, as [`text`] finds it.
    #[must_use]
    pub fn text(&self) -> Cow<'a, [u8]> {
        text(self.raw, self.framing)
    }
}

/// The JSON text in the bytes of a frame: without padding, header block and line end, and of
/// an event its data. Copied only where an event's data is on several lines.
#[must_use]
pub fn text(raw: &[u8], framing: Framing) -> Cow<'_, [u8]> {
    match framing {
        Framing::Event => sse::fields(raw).data,
        framing => Cow::Borrowed(stdio::body(raw, framing)),
    }
}

/// Takes what a decoder tells.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(Event<'_>);

/// What a decoder tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes of a frame beyond the limit. All of a frame's bytes, for a digest, are what its
    /// first such event keeps and then the `more` of all of them.
    Overflow {
        /// In the frame's first such event what [`Frame::raw`] will be, later empty.
        kept: &'a [u8],
        /// The bytes after it, which are not kept.
        more: &'a [u8],
    },
    /// A frame has ended.
    Frame(Frame<'a>),
}
