//! Frames of one direction of a stdio connection.
//!
//! MCP on stdio is one JSON text a line. Some hand-written peers send Content-Length blocks
//! instead, and many print banners and logs between their messages; one stream can mix all
//! of it. [`Decoder`] tells message by message, from a copy of the bytes in chunks of any
//! size. Each byte ends up in exactly one frame, in order, and every decision depends on the
//! bytes alone, never on where a chunk ended.
//!
//! What it goes by:
//! - Blanks and byte order marks before a message belong to its frame.
//! - A line that starts with `{` or `[` and is JSON is a message; any other line is stray.
//! - A line that starts with `Content-…:` opens a header block if a blank line ends it and
//!   one of its lines is a usable Content-Length; else its lines are stray.
//! - A body that is no JSON means that its length was wrong. What follows is read by the same
//!   rules, and a stray line ends where `Content-Length:` stands in it, so that a sender who
//!   counts characters instead of bytes costs only the messages it got wrong.
//!
//! Within:
//! - `header`: header lines, and where a frame's JSON text lies

mod header;

use crate::assembly::{Assembly, Budget, UNDECIDED_MAX};
use crate::frame::{Event, Framing, Sink};
use header::Line;

pub use header::body;

/// Most bytes of padding before a message that are taken as a part of it.
const PADDING_MAX: usize = 4 << 10;
/// Most bytes of a header block.
const HEADER_MAX: usize = 8 << 10;
/// Most bytes a Content-Length can announce and be believed.
const BODY_MAX: u64 = 1 << 30;
/// Most bytes of a stray line that are looked at in one go.
const STRAY_STEP: usize = 16 << 10;

const _: () = assert!(PADDING_MAX + HEADER_MAX + STRAY_STEP <= UNDECIDED_MAX);

/// Splits a byte stream into frames.
#[derive(Debug)]
pub struct Decoder {
    frame: Assembly,
    state: State,
}

/// Where in a frame the stream is.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Before a message, with nothing but padding so far.
    Padding {
        /// How many bytes of a byte order mark the padding ends with, if not all three.
        mark: usize,
    },
    /// In a line that starts like JSON.
    Json,
    /// In any other line.
    Stray {
        /// The first place in the frame where a header might begin.
        from: usize,
    },
    /// In what may be a header block.
    Header(Block),
    /// In the body after a header block.
    Body {
        /// Bytes still to come.
        left: u64,
        /// Its first byte that is not padding.
        first: Option<u8>,
    },
}

impl State {
    const START: Self = Self::Padding { mark: 0 };
}

/// The part of a header block that was read.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Offset of the first line in the frame.
    start: usize,
    /// Offset of the current line in the frame.
    line: usize,
    length: Declared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    Nothing,
    Bytes(u64),
    Absurd,
}

impl Decoder {
    /// A decoder at the start of a stream that keeps at most `limit` bytes of each frame, and
    /// takes them from `budget`.
    #[must_use]
    pub fn new(limit: usize, budget: &Budget) -> Self {
        Self {
            frame: Assembly::new(limit, budget),
            state: State::START,
        }
    }

    /// How many bytes are held, waiting for the rest of their frame. About `limit` at most.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.frame.held().len()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let used = match self.state {
                State::Padding { mark } => self.padding(mark, rest, sink),
                State::Json => self.json(0, rest, sink),
                State::Stray { from } => self.stray(from, rest, sink),
                State::Header(block) => self.header(block, rest, sink),
                State::Body { left, first } => self.body(left, first, rest, sink),
            };
            rest = &rest[used..];
        }
    }

    /// Takes note that the next `lost` bytes of the stream are missing from the copy.
    ///
    /// They count as bytes of the frame in progress: of a body as many as are due, of a line
    /// all of them, since whether a line end was among them is not known. Where no frame is
    /// in progress the next one is marked, as it may be the rest of a lost one.
    pub fn skip(&mut self, lost: u64, sink: &mut dyn FnMut(Event<'_>)) {
        if lost == 0 {
            return;
        }
        match self.state {
            State::Padding { mark: 0 } => self.frame.mark_lossy(),
            State::Json => self.frame.lose(lost),
            State::Body { left, first } => {
                let within = lost.min(left);
                self.frame.lose(within);
                self.state = State::Body {
                    left: left - within,
                    first,
                };
                if within == left {
                    self.end_body(first, false, sink);
                }
                if within < lost {
                    self.frame.mark_lossy();
                }
            }
            // What began like a header or a byte order mark cannot be told any more.
            State::Padding { .. } | State::Stray { .. } | State::Header(_) => {
                self.state = State::Stray {
                    from: self.frame.held().len(),
                };
                self.frame.lose(lost);
            }
        }
    }

    /// Ends the stream: what is pending becomes a frame. The decoder is then as new.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        loop {
            match self.state {
                State::Padding { .. } => {
                    if !self.frame.is_fresh() {
                        self.end(&[], Framing::Stray, false, sink);
                    }
                    self.frame.reset();
                    self.state = State::START;
                    return;
                }
                State::Json => {
                    self.end_json(&[], true, sink);
                }
                State::Stray { .. } => self.end(&[], Framing::Stray, false, sink),
                State::Header(block)
                    if block.is_first_line() && !self.line_of(block).is_header() =>
                {
                    self.look_for_header(block.line + 1, true, sink);
                }
                State::Header(_) => self.end(&[], Framing::Stray, true, sink),
                State::Body { first, .. } => self.end_body(first, true, sink),
            }
        }
    }

    // Each of the following takes bytes from the start of `input`, which is not empty, and
    // returns how many. Those that return none have changed the state.

    fn padding(&mut self, mut mark: usize, input: &[u8], sink: Sink<'_>) -> usize {
        let before = self.frame.held().len();
        for (at, &byte) in input.iter().enumerate() {
            let more = match header::BOM.get(mark) {
                Some(&expected) if byte == expected => (mark + 1) % header::BOM.len(),
                _ if mark == 0 && header::is_blank(byte) => 0,
                _ => return self.begin(mark, at, input, sink),
            };
            if mark == 0 && before + at >= PADDING_MAX {
                self.end(&input[..at], Framing::Stray, false, sink);
                return at;
            }
            mark = more;
        }
        self.frame.append(input);
        self.state = State::Padding { mark };
        input.len()
    }

    /// The padding ends at `input[at]`, which does not continue the `mark`.
    #[inline]
    fn begin(&mut self, mark: usize, at: usize, input: &[u8], sink: Sink<'_>) -> usize {
        if mark == 0 && matches!(input[at], b'{' | b'[') {
            self.state = State::Json;
            return self.json(at, input, sink);
        }
        self.frame.append(&input[..at]);
        let start = self.frame.held().len();
        self.state = if mark == 0 && matches!(input[at], b'c' | b'C') {
            State::Header(Block {
                start,
                line: start,
                length: Declared::Nothing,
            })
        } else {
            State::Stray { from: start }
        };
        at
    }

    /// `input[..from]` is known to hold no line end.
    #[inline]
    fn json(&mut self, from: usize, input: &[u8], sink: Sink<'_>) -> usize {
        match memchr::memchr(b'\n', &input[from..]) {
            Some(found) => self.end_json(&input[..=from + found], false, sink),
            None => {
                self.frame.keep(input, sink);
                input.len()
            }
        }
    }

    /// The line ends with `input`, by a line end or else by the end of the stream.
    fn end_json(&mut self, input: &[u8], stream_ended: bool, sink: Sink<'_>) -> usize {
        // A line that lies in one chunk is never copied.
        let (raw, tail) = if self.frame.is_fresh() {
            (input, input)
        } else {
            self.frame.keep(input, sink);
            (self.frame.held(), &[][..])
        };
        if !self.frame.is_whole_with(tail) {
            self.end(tail, Framing::Newline, stream_ended, sink);
            return input.len();
        }
        match header::judge(raw) {
            header::Judgement::Message => self.end(tail, Framing::Newline, false, sink),
            header::Judgement::Broken => self.end(tail, Framing::Stray, stream_ended, sink),
            header::Judgement::Followed(at) if tail.is_empty() => {
                let rest = self.frame.split(at);
                self.end(&[], Framing::Newline, false, sink);
                self.push(&rest, sink);
            }
            header::Judgement::Followed(at) => {
                self.end(&tail[..at], Framing::Newline, false, sink);
                return at;
            }
        }
        input.len()
    }

    fn stray(&mut self, from: usize, input: &[u8], sink: Sink<'_>) -> usize {
        let mut used = input.len().min(STRAY_STEP);
        let found = memchr::memchr(b'\n', &input[..used]);
        if let Some(found) = found {
            used = found + 1;
        }
        let before = self.frame.held().len();
        self.frame.append(&input[..used]);
        self.state = State::Stray { from };
        self.look_for_header(
            from.max(before.saturating_sub(header::NAME.len())),
            found.is_some(),
            sink,
        );
        used
    }

    /// Ends the stray line in progress before a header that begins at `from` or later; else,
    /// if `line_ended`, as it is.
    fn look_for_header(&mut self, from: usize, line_ended: bool, sink: Sink<'_>) {
        let held = self.frame.held();
        if let Some(found) = header::find(held.get(from..).unwrap_or_default()) {
            let rest = self.frame.split(from + found);
            self.end(&[], Framing::Stray, false, sink);
            // At most a step or a header block long, and begins with what is now at its start.
            self.push(&rest, sink);
        } else if line_ended {
            self.end(&[], Framing::Stray, false, sink);
        } else {
            // A header may have begun in the last bytes.
            let moved = self.frame.spill(header::NAME.len(), sink);
            let from = if moved == 0 {
                from
            } else {
                from.saturating_sub(moved).max(self.frame.most())
            };
            self.state = State::Stray { from };
        }
    }

    fn header(&mut self, block: Block, input: &[u8], sink: Sink<'_>) -> usize {
        let held = self.frame.held().len();
        // Told at its first byte, as the line may be a message of any length.
        if held == block.line && !block.is_first_line() && !header::may_begin(input[0]) {
            self.abandon(block, sink);
            return 0;
        }
        let room = (HEADER_MAX + block.start).saturating_sub(held);
        let window = &input[..input.len().min(room)];
        if let Some(found) = memchr::memchr(b'\n', window) {
            self.frame.append(&window[..=found]);
            self.end_header_line(block, sink);
            return found + 1;
        }
        self.frame.append(window);
        if window.len() == room {
            // What was read is not looked through again: a header found in it could grow
            // to this size once more, and so on.
            self.look_for_header(self.frame.held().len(), false, sink);
        }
        window.len()
    }

    fn end_header_line(&mut self, mut block: Block, sink: Sink<'_>) {
        match self.line_of(block) {
            Line::Blank => match block.length {
                Declared::Nothing => return self.abandon(block, sink),
                Declared::Absurd => return self.end(&[], Framing::Stray, true, sink),
                Declared::Bytes(0) => return self.end_body(None, false, sink),
                Declared::Bytes(left) => {
                    self.state = State::Body { left, first: None };
                    return;
                }
            },
            Line::Length(length) => {
                let length = match length {
                    Some(length) if length <= BODY_MAX => Declared::Bytes(length),
                    _ => Declared::Absurd,
                };
                let again = block.length != Declared::Nothing && block.length != length;
                block.length = if again { Declared::Absurd } else { length };
            }
            Line::Content => {}
            Line::Other if !block.is_first_line() => {}
            Line::Other | Line::No if block.is_first_line() => {
                return self.look_for_header(block.line + 1, true, sink);
            }
            Line::Other | Line::No => return self.abandon(block, sink),
        }
        block.line = self.frame.held().len();
        self.state = State::Header(block);
    }

    /// The lines of the block before the current one are no header block; they are stray.
    fn abandon(&mut self, block: Block, sink: Sink<'_>) {
        let current = self.frame.split(block.line);
        let lines = self.frame.take();
        let mut from = 0;
        // The padding before the block may hold line ends, but is a part of its first line.
        for end in memchr::memchr_iter(b'\n', &lines).filter(|&end| end >= block.start) {
            self.end(&lines[from..=end], Framing::Stray, false, sink);
            from = end + 1;
        }
        self.push(&current, sink);
    }

    fn line_of(&self, block: Block) -> Line {
        header::parse(&self.frame.held()[block.line..])
    }

    fn body(&mut self, left: u64, first: Option<u8>, input: &[u8], sink: Sink<'_>) -> usize {
        let used = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let input = &input[..used];
        let first = first.or_else(|| {
            input
                .iter()
                .copied()
                .find(|&byte| !header::is_padding(byte))
        });
        self.frame.keep(input, sink);
        let left = left - used as u64;
        self.state = State::Body { left, first };
        if left == 0 {
            self.end_body(first, false, sink);
        }
        used
    }

    fn end_body(&mut self, first: Option<u8>, stream_ended: bool, sink: Sink<'_>) {
        let right = if stream_ended || !self.frame.is_whole_with(&[]) {
            // It cannot be checked, so it is judged by how it begins, if that was seen.
            match first {
                Some(byte) => matches!(byte, b'{' | b'['),
                None => stream_ended || self.frame.has_hole(),
            }
        } else {
            crate::json::is_valid(body(self.frame.held(), Framing::ContentLength))
        };
        let framing = if right {
            Framing::ContentLength
        } else {
            Framing::Stray
        };
        self.end(&[], framing, stream_ended || !right, sink);
    }

    /// Ends the frame in progress with `tail`.
    #[inline]
    fn end(&mut self, tail: &[u8], framing: Framing, incomplete: bool, sink: Sink<'_>) {
        self.state = State::START;
        self.frame.end(tail, framing, incomplete, sink);
    }
}

impl Block {
    fn is_first_line(self) -> bool {
        self.line == self.start
    }
}
