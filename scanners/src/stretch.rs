//! Which parts of a string are read closely: all of a definition; of a result what is around
//! *anchors*, the words that an injection cannot do without.
//!
//! A result is looked through cell by cell, each as a view has it, so that what hides an order
//! from people or splits its words hides no anchor.

use crate::lexicon::Lexicon;
use crate::signal::{Mask, Sig};
use crate::view::View;

/// How much around a cell with anchors is read closely, in bytes.
const AROUND: usize = 700;
/// How long a cell is, in bytes: what a rule takes together stands in two of them at most.
const CELL: usize = 1300;
/// How far a cell reaches into the next, so that no anchor is cut.
const OVERLAP: usize = 160;
/// A stretch is cut after this many bytes; the next begins that much (`AGAIN`) before its end.
const STRETCH: usize = 64 << 10;
const AGAIN: usize = 2 << 10;

/// Each of these is enough to read closely.
pub(crate) const STRONG: Mask = Mask::of(&[
    Sig::Ai,
    Sig::Agent,
    Sig::Conceal,
    Sig::Unasked,
    Sig::Path,
    Sig::Special,
    Sig::Tag,
    Sig::Key,
    Sig::Regardless,
    Sig::Turn,
    Sig::Override,
    Sig::Ignore,
    Sig::Continue,
    Sig::Able,
    Sig::Approve,
    Sig::Persona,
    Sig::Reading,
    Sig::Step,
]);

/// All of a text, in stretches.
pub(crate) fn all(raw: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    push(raw, &mut out, 0, raw.len());
    out
}

/// The parts of a result that may hold an order to a model. `json`: its escapes count.
pub(crate) fn around_anchors(raw: &str, json: bool) -> Vec<(usize, usize)> {
    if raw.len() <= CELL {
        let cell = Cell::of(raw, json);
        return match cell.strong() || cell.weak() {
            true => all(raw),
            false => Vec::new(),
        };
    }
    let mut out: Vec<(usize, usize)> = Vec::new();
    let mut add = |start: usize, end: usize| {
        let start = boundary(raw, start.saturating_sub(AROUND));
        let end = boundary(raw, end + AROUND);
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = end.max(last.1),
            _ => out.push((start, end)),
        }
    };
    let mut before = Cell::default();
    let mut start = 0;
    while start < raw.len() {
        let end = boundary(raw, start + CELL);
        let cell = Cell::of(&raw[start..boundary(raw, end + OVERLAP)], json);
        if cell.strong() {
            add(start, end);
        } else if cell.with(before).weak() {
            add(start.saturating_sub(CELL), end);
        }
        before = cell;
        start = end;
    }
    let mut cut = Vec::with_capacity(out.len());
    for (start, end) in out {
        push(raw, &mut cut, start, end);
    }
    cut
}

/// A part, in stretches that are not too long.
fn push(raw: &str, out: &mut Vec<(usize, usize)>, start: usize, end: usize) {
    let mut start = start;
    while end - start > STRETCH {
        let cut = boundary(raw, start + STRETCH);
        out.push((start, cut));
        start = boundary(raw, cut - AGAIN);
    }
    if end > start {
        out.push((start, end));
    }
}

/// The next boundary of a character, or the end.
pub(crate) fn boundary(raw: &str, at: usize) -> usize {
    let mut at = at.min(raw.len());
    while !raw.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// What is in a cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    anchors: Mask,
    /// Something that may be an address.
    address: bool,
    /// Something that may be a tool's name.
    name: bool,
    /// Little is left of it once what is not seen is left out.
    thin: bool,
}

impl Cell {
    fn of(raw: &str, json: bool) -> Self {
        let text = squeezed(raw, json).unwrap_or_else(|| View::of(raw, 0, json).text);
        Self {
            anchors: Lexicon::get().anchors(&text),
            address: text.contains('@') || text.contains("://") || text.contains("www."),
            name: text.contains('_') || text.contains("tool") || text.contains("function"),
            thin: text.len() < raw.len() / 4,
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            anchors: self.anchors.and(other.anchors),
            address: self.address || other.address,
            name: self.name || other.name,
            thin: self.thin || other.thin,
        }
    }

    fn strong(self) -> bool {
        self.thin || self.anchors.meets(STRONG)
    }

    /// Whether it may hold what rules without a word of [`STRONG`] look for: a request for a
    /// call or for copies, or a leak that is kept from somebody.
    fn weak(self) -> bool {
        let has = |sig| self.anchors.has(sig);
        let asked = has(Sig::Please) && (self.address || self.name);
        let denied = has(Sig::Tell) && (has(Sig::Neg) || has(Sig::Nothing));
        let valuable = self.address || has(Sig::Secret) || has(Sig::Context);
        asked || ((denied || has(Sig::Quiet)) && valuable)
    }
}

/// An ASCII text with one blank in place of white space, which is a view for what anchors are
/// concerned and takes a fraction of the time. `None` if it takes more to make one.
fn squeezed(raw: &str, json: bool) -> Option<String> {
    let mut out = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    let blank = |out: &mut Vec<u8>| {
        if out.last().is_some_and(|last| *last != b' ') {
            out.push(b' ');
        }
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if json => match bytes.next() {
                Some(b'n' | b'r' | b't') => blank(&mut out),
                Some(escaped @ (b'"' | b'\\' | b'/')) => out.push(escaped),
                _ => return None,
            },
            0x21..=0x7e => out.push(byte),
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => blank(&mut out),
            0..=0x7f => {}
            _ => return None,
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_overlap_and_leave_nothing_out() {
        let text = "é".repeat(100_000);
        let parts = all(&text);
        assert!(parts.len() > 3);
        assert_eq!((parts[0].0, parts[parts.len() - 1].1), (0, text.len()));
        for pair in parts.windows(2) {
            assert!(pair[1].0 + AGAIN <= pair[0].1 + 1, "{pair:?}");
        }
    }

    #[test]
    fn ordinary_prose_is_not_read_closely() {
        let text = "The harbour was quiet, and the boats lay still. Please bring the papers. ";
        assert_eq!(around_anchors(&text.repeat(1000), false), []);
        let order = format!("{0}ask the as\u{200b}sistant. {0}", text.repeat(100));
        assert_eq!(around_anchors(&order, false).len(), 1);
    }
}
