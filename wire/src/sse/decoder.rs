//! Splits an event stream into its events.

use crate::assembly::{Assembly, Budget};
use crate::frame::{Event, Framing, Sink};
use crate::json::BOM;

/// Splits the bytes of an event stream into events, each up to and with its blank line. What
/// holds no data (comments, an id alone) is an event too.
///
/// Each byte ends up in exactly one frame, in order, and the bytes alone decide in which,
/// never where a chunk ended. A byte order mark, and blank lines that end nothing, belong to
/// the event after them.
///
/// An event is told with the last byte of its blank line. Where that is a CR, an LF may still
/// follow that belongs to the same line end, and only the next byte tells; so it is waited
/// for, but not where the line before ended with a CR alone: such a stream ends its lines so,
/// and an LF after all would be told as the beginning of the next event, where it does not
/// matter.
#[derive(Debug)]
pub struct Decoder {
    frame: Assembly,
    at: At,
    /// Some line of the event is not blank.
    begun: bool,
    /// The line before ended with a CR alone.
    lone_cr: bool,
}

/// Where in the stream the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At its beginning, after so many bytes of a byte order mark.
    Start(usize),
    /// At the beginning of a line.
    Line,
    /// Within a line.
    Within,
    /// After the CR that ends a line; if `ends`, it was the event's blank line.
    Return { ends: bool },
}

impl Decoder {
    /// A decoder at the start of a stream that keeps at most `limit` bytes of each event, and
    /// takes them from `budget`.
    #[must_use]
    pub fn new(limit: usize, budget: &Budget) -> Self {
        Self {
            frame: Assembly::new(limit, budget),
            at: At::Start(0),
            begun: false,
            lone_cr: false,
        }
    }

    /// How many bytes are held, waiting for the rest of their event.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.frame.held().len()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        let mut rest = bytes;
        // How much of `rest` was looked at; all of it belongs to the event in progress.
        let mut seen = 0;
        while let Some(&byte) = rest.get(seen) {
            let ends = match self.at {
                At::Start(mark) => {
                    if BOM.get(mark) == Some(&byte) {
                        seen += 1;
                        self.at = At::Start(mark + 1);
                    } else {
                        // A part of a mark is text as any other.
                        let text = mark % BOM.len() > 0;
                        self.begun |= text;
                        self.at = if text { At::Within } else { At::Line };
                    }
                    false
                }
                At::Line | At::Within => {
                    let blank = self.at == At::Line && matches!(byte, b'\r' | b'\n');
                    self.begun |= !blank;
                    match memchr::memchr2(b'\r', b'\n', &rest[seen..]) {
                        Some(found) => {
                            seen += found + 1;
                            self.end_line(rest[seen - 1], blank && self.begun)
                        }
                        None => {
                            seen = rest.len();
                            self.at = At::Within;
                            false
                        }
                    }
                }
                At::Return { ends } => {
                    self.lone_cr = byte != b'\n';
                    seen += usize::from(byte == b'\n');
                    self.at = At::Line;
                    ends
                }
            };
            if ends {
                let (event, after) = rest.split_at(seen);
                self.end(event, false, sink);
                (rest, seen) = (after, 0);
            }
        }
        if !rest.is_empty() {
            self.frame.keep(rest, sink);
        }
    }

    /// Takes note that the next `lost` bytes of the stream are missing from the copy.
    ///
    /// They count as bytes of the event in progress, since whether it ended among them is not
    /// known. Where none is in progress the next one is marked, as it may be the rest of a
    /// lost one.
    pub fn skip(&mut self, lost: u64, sink: &mut dyn FnMut(Event<'_>)) {
        if lost == 0 {
            return;
        }
        if self.at == (At::Return { ends: true }) {
            self.end(&[], false, sink);
        }
        if self.frame.is_fresh() {
            self.frame.mark_lossy();
            self.at = At::Line;
        } else {
            self.frame.lose(lost);
            self.begun = true;
            self.at = At::Within;
        }
    }

    /// Ends the stream: what is pending becomes a frame. The decoder is then as new.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if !self.frame.is_fresh() {
            let whole = !self.begun || self.at == (At::Return { ends: true });
            self.end(&[], !whole, sink);
        }
        self.frame.reset();
        self.at = At::Start(0);
    }

    /// A line ends with this byte; `ends` if it is the blank line of an event. Returns whether
    /// that is certain to be all of it.
    fn end_line(&mut self, byte: u8, ends: bool) -> bool {
        if byte == b'\n' || ends && self.lone_cr {
            self.lone_cr = false;
            self.at = At::Line;
            return ends;
        }
        self.at = At::Return { ends };
        false
    }

    fn end(&mut self, tail: &[u8], incomplete: bool, sink: Sink<'_>) {
        // An event that lies in one chunk is never copied.
        if self.frame.is_fresh() {
            self.frame.end(tail, Framing::Event, incomplete, sink);
        } else {
            self.frame.keep(tail, sink);
            self.frame.end(&[], Framing::Event, incomplete, sink);
        }
        self.at = At::Line;
        self.begun = false;
        self.lone_cr = false;
    }
}
