//! JSON strings: where one ends, and what it says.

use std::ops::Range;

/// Offset after the string whose opening quote is at `start`, or where it stops being one.
#[inline]
pub(super) fn string_end(text: &[u8], start: usize) -> Result<usize, usize> {
    let mut at = start + 1;
    loop {
        at = plain_end(text, at);
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape_end(text, at)?,
            _ => return Err(at),
        }
    }
}

/// Offset of the first quote, backslash or control byte from `at` on, or the text's length.
#[inline]
fn plain_end(text: &[u8], mut at: usize) -> usize {
    // Most strings are short, so look at a few words first. Where these are plain, the
    // string is long and a loop that the compiler can vectorise pays.
    let mut words = 0;
    while let Some(word) = text[at..].first_chunk::<8>() {
        let found = special_bytes(u64::from_le_bytes(*word));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        words += 1;
        if words == 4 {
            at = plain_blocks_end(text, at);
        }
    }
    while text.get(at).is_some_and(|&byte| !is_special(byte)) {
        at += 1;
    }
    at
}

/// Offset after the blocks of plain bytes that follow `at`.
fn plain_blocks_end(text: &[u8], mut at: usize) -> usize {
    while let Some(block) = text[at..].first_chunk::<64>() {
        if block
            .iter()
            .fold(false, |found, &byte| found | is_special(byte))
        {
            break;
        }
        at += 64;
    }
    at
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Sets the high bit of each byte of `word` that is special. Bytes *above* a special one may
/// be marked wrongly (a borrow), the lowest mark is always right.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & (ONES * 0x80)
}

/// Offset after the escape at `at`, or where it stops being one.
fn escape_end(text: &[u8], at: usize) -> Result<usize, usize> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => (at + 2..at + 6)
            .find(|&digit| !text.get(digit).is_some_and(u8::is_ascii_hexdigit))
            .map_or(Ok(at + 6), Err),
        _ => Err(at + 1),
    }
}

/// A JSON string's content (what stands between the quotes) with its escapes resolved, and
/// a map back to the raw content.
#[derive(Clone, Debug, Default)]
pub struct Unescaped {
    /// The content. Not necessarily UTF-8: a lone surrogate becomes its three bytes of
    /// WTF-8, and bytes that were no UTF-8 stay as they are.
    pub bytes: Vec<u8>,
    map: Map,
}

impl Unescaped {
    /// The smallest range of raw bytes that produces this range of [`bytes`](Self::bytes).
    ///
    /// A range that touches a part of what an escape produces covers the whole escape. What
    /// lies beyond the content is cut off; an empty range stays empty.
    #[must_use]
    pub fn raw_range(&self, range: Range<usize>) -> Range<usize> {
        let end = range.end.min(self.bytes.len());
        let first = self.map.raw(range.start.min(end));
        if range.start >= end {
            return first.start..first.start;
        }
        first.start..self.map.raw(end - 1).end
    }
}

/// Resolves the escapes in a JSON string's content, `raw` being what stands between quotes.
///
/// Lenient, so that it can be used on any text: what is no escape (`\q`, `\u12`) stays as it
/// is. Escaped surrogate pairs become one UTF-8 character.
#[must_use]
pub fn unescape(raw: &[u8]) -> Unescaped {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut map = Map::default();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &raw[at..]) {
        at += found;
        let Some((shape, character)) = escape(&raw[at..]) else {
            at += 1;
            continue;
        };
        bytes.extend_from_slice(&raw[copied..at]);
        map.add(shape, at - copied);
        push_wtf8(&mut bytes, character);
        at += shape.raw();
        copied = at;
    }
    bytes.extend_from_slice(&raw[copied..]);
    Unescaped { bytes, map }
}

/// The escape that `raw` starts with, and its code point (perhaps a lone surrogate).
fn escape(raw: &[u8]) -> Option<(Shape, u32)> {
    let simple = match raw.get(1)? {
        b'u' => {
            let first = hex4(raw)?;
            if (0xD800..0xDC00).contains(&first)
                && let Some(second) = hex4(&raw[6..])
                && (0xDC00..0xE000).contains(&second)
            {
                let character = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Some((Shape::Pair, character));
            }
            let shape = match first {
                0..0x80 => Shape::One,
                0x80..0x800 => Shape::Two,
                _ => Shape::Three,
            };
            return Some((shape, first));
        }
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        &same @ (b'"' | b'\\' | b'/') => same,
        _ => return None,
    };
    Some((Shape::Simple, u32::from(simple)))
}

/// The number in a `\uXXXX` at the start of `raw`.
fn hex4(raw: &[u8]) -> Option<u32> {
    let digits = raw.strip_prefix(b"\\u")?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |number, &digit| {
        Some(number << 4 | char::from(digit).to_digit(16)?)
    })
}

/// Appends a code point; unlike `char` this takes surrogates.
fn push_wtf8(bytes: &mut Vec<u8>, point: u32) {
    let continuation = |shift: u32| 0x80 | (point >> shift & 0x3F) as u8;
    match point {
        0..0x80 => bytes.push(point as u8),
        0x80..0x800 => bytes.extend([0xC0 | (point >> 6) as u8, continuation(0)]),
        0x800..0x10000 => {
            bytes.extend([0xE0 | (point >> 12) as u8, continuation(6), continuation(0)]);
        }
        _ => bytes.extend([
            0xF0 | (point >> 18) as u8,
            continuation(12),
            continuation(6),
            continuation(0),
        ]),
    }
}

/// How long an escape is, and how long what it produces.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// `\n`
    Simple,
    /// `\u0041`, of one byte
    One,
    /// `\u00e9`, of two bytes
    Two,
    /// `\u20ac`, of three bytes
    Three,
    /// `\ud83d\ude00`, of four bytes
    Pair,
}

impl Shape {
    const ALL: [Self; 5] = [Self::Simple, Self::One, Self::Two, Self::Three, Self::Pair];

    fn raw(self) -> usize {
        match self {
            Self::Simple => 2,
            Self::One | Self::Two | Self::Three => 6,
            Self::Pair => 12,
        }
    }

    fn decoded(self) -> usize {
        match self {
            Self::Simple | Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Pair => 4,
        }
    }
}

/// Where the escapes are.
///
/// A hostile string can be nothing but escapes, so an entry takes about a byte: the plain
/// bytes since the escape before, times eight, plus the shape, seven bits at a time. Every
/// 64th has its absolute place noted, which keeps a look-up short.
#[derive(Clone, Debug, Default)]
struct Map {
    entries: Vec<u8>,
    marks: Vec<Mark>,
    escapes: usize,
    end: Mark,
}

/// A place in both texts.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    decoded: usize,
    raw: usize,
    /// The offset in `entries` of what follows.
    entry: usize,
}

impl Map {
    fn add(&mut self, shape: Shape, plain: usize) {
        if self.escapes.is_multiple_of(64) {
            self.marks.push(self.end);
        }
        self.escapes += 1;
        let mut number = plain << 3 | shape as usize;
        while number >= 0x80 {
            self.entries.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.entries.push(number as u8);
        self.end.decoded += plain + shape.decoded();
        self.end.raw += plain + shape.raw();
        self.end.entry = self.entries.len();
    }

    /// The raw bytes that produce the decoded byte at `decoded`.
    fn raw(&self, decoded: usize) -> Range<usize> {
        let after = self.marks.partition_point(|mark| mark.decoded <= decoded);
        let mut at = self.marks[..after].last().copied().unwrap_or_default();
        while let Some((plain, shape)) = self.read(&mut at.entry) {
            if decoded < at.decoded + plain {
                break;
            }
            at.decoded += plain;
            at.raw += plain;
            if decoded < at.decoded + shape.decoded() {
                return at.raw..at.raw + shape.raw();
            }
            at.decoded += shape.decoded();
            at.raw += shape.raw();
        }
        let raw = at.raw + (decoded - at.decoded);
        raw..raw + 1
    }

    fn read(&self, entry: &mut usize) -> Option<(usize, Shape)> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = *self.entries.get(*entry)?;
            *entry += 1;
            number |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return Some((number >> 3, *Shape::ALL.get(number & 7)?));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_resolved() {
        for (raw, expected) in [
            (r#"a\"\\\/\b\f\n\r\tz"#, &b"a\"\\/\x08\x0C\n\r\tz"[..]),
            (r"\u0041\u00e9\u20AC\ud83d\ude00", "Aé€😀".as_bytes()),
            (r"\ud800", b"\xED\xA0\x80"),
            (r"\ud800\u0041", b"\xED\xA0\x80A"),
            (r"\ude00\ud83d", b"\xED\xB8\x80\xED\xA0\xBD"),
            (r"\ud83d\ud83d\ude00", b"\xED\xA0\xBD\xF0\x9F\x98\x80"),
        ] {
            assert_eq!(unescape(raw.as_bytes()).bytes, expected, "{raw}");
        }
    }

    #[test]
    fn what_is_no_escape_stays() {
        for raw in [r"\q", r"\u12", r"\u12g4", "\\", r"x\u", "\u{1}", ""] {
            assert_eq!(unescape(raw.as_bytes()).bytes, raw.as_bytes());
        }
        assert_eq!(unescape(br"\u12\n").bytes, b"\\u12\n");
    }

    #[test]
    fn a_range_that_touches_an_escape_covers_it() {
        let text = unescape(r"ab\ncd\u20acef\ud83d\ude00".as_bytes());
        assert_eq!(text.bytes, "ab\ncd€ef😀".as_bytes());
        for (decoded, raw) in [
            (0..2, 0..2),
            (0..3, 0..4),
            (2..3, 2..4),
            (3..5, 4..6),
            (5..8, 6..12),
            (6..7, 6..12),
            (4..6, 5..12),
            (8..9, 12..13),
            (10..11, 14..26),
            (9..14, 13..26),
            (3..3, 4..4),
            (13..99, 14..26),
            (99..100, 26..26),
        ] {
            assert_eq!(text.raw_range(decoded.clone()), raw, "{decoded:?}");
        }
    }

    #[test]
    fn a_string_of_escapes_has_a_small_map() {
        let raw = br"a\n\u0041".repeat(100_000);
        let text = unescape(&raw);
        assert!(text.map.entries.len() <= 200_000);
        assert_eq!(text.raw_range(299_999..300_000), raw.len() - 6..raw.len());
    }

    proptest! {
        #[test]
        fn each_byte_comes_from_its_raw_range(raw in r#"([a-zé]|\\[nu"\\q]|\\u[0d][08e][0-9a-f]{2}){0,300}"#) {
            let raw = raw.as_bytes();
            let text = unescape(raw);
            let mut at = 0;
            let mut rebuilt = Vec::new();
            for byte in 0..text.bytes.len() {
                let range = text.raw_range(byte..byte + 1);
                // A byte of an escape repeats the range of the byte before.
                if range.end > at {
                    prop_assert_eq!(range.start, at);
                    rebuilt.extend(unescape(&raw[range.clone()]).bytes);
                    at = range.end;
                }
            }
            prop_assert_eq!(at, raw.len());
            prop_assert_eq!(rebuilt, text.bytes);
        }
    }
}
