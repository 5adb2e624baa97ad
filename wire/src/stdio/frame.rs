//! What a decoder tells: frames, and the bytes of them that are not kept.

use super::body;

/// How the end of a frame was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// A JSON object or array on a line. The last line of a stream may lack its line end, as
    /// may a message that a Content-Length block directly follows.
    Newline,
    /// A Content-Length block and the body it announces.
    ContentLength,
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
}

impl<'a> Frame<'a> {
    /// Whether `raw` is less than what was on the wire. Its body is then no JSON, or not what
    /// was sent.
    #[must_use]
    pub fn truncated(&self) -> bool {
        (self.raw.len() as u64) < self.length
    }

    /// The JSON text in it, as [`body`] finds it.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        body(self.raw, self.framing)
    }
}

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
