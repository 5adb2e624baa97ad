//! A JSON tokenizer that tells where each token stands.
//!
//! It is strict about grammar and indifferent to content: `1e400`, lone surrogates, duplicate
//! keys and bytes that are no UTF-8 are all fine inside their tokens, since a peer may send
//! them and a record must show what was sent. Nesting costs one bit a level, so that depth is
//! bounded only by the length of the text.

mod text;

use std::fmt;
use std::iter::FusedIterator;

pub use text::{Unescaped, unescape};

/// A UTF-8 byte order mark.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// What a piece of JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `{`
    ObjectOpen,
    /// `}`
    ObjectClose,
    /// `[`
    ArrayOpen,
    /// `]`
    ArrayClose,
    /// A member's name.
    Key,
    /// A string that is a value.
    String,
    /// A number.
    Number,
    /// `true`, `false` or `null`.
    Literal,
}

/// One token and the bytes of the text it takes up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub token: Token,
    /// Offset of its first byte. Strings and keys include their quotes.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
}

/// The text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Offset of the first byte that cannot stand where it stands; the text's length if it
    /// ends too early.
    pub at: usize,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at byte {}", self.at)
    }
}

impl std::error::Error for Invalid {}

/// Whether `text` is exactly one JSON text, as [`Scanner`] reads it.
#[must_use]
pub fn is_valid(text: &[u8]) -> bool {
    Scanner::new(text).all(|item| item.is_ok())
}

/// Iterates over the tokens of one JSON text.
///
/// White space around the text and a byte order mark before it are skipped. The iterator ends
/// after the text or after its first error; anything but white space behind the text is an
/// error.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    expect: Expect,
    nesting: Nesting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrClose,
    KeyOrClose,
    Key,
    Colon,
    CommaOrClose,
    End,
    Nothing,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        let at = if text.starts_with(BOM) { BOM.len() } else { 0 };
        Self {
            text,
            at,
            expect: Expect::Value,
            nesting: Nesting::default(),
        }
    }

    /// How many objects and arrays are open after the last token.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.nesting.depth
    }

    /// Offset after the last token; after an error, where it is.
    ///
    /// Through a `&mut Scanner` this name means [`Iterator::position`]: write
    /// `Scanner::position(scanner)` there.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space, which is skipped.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    fn open(&mut self, token: Token) -> Item {
        let object = token == Token::ObjectOpen;
        self.nesting.push(object);
        self.expect = if object {
            Expect::KeyOrClose
        } else {
            Expect::ValueOrClose
        };
        self.punctuation(token)
    }

    #[inline]
    fn close(&mut self, byte: u8) -> Result<Item, Invalid> {
        let token = match (byte, self.nesting.in_object()) {
            (b'}', true) => Token::ObjectClose,
            (b']', false) => Token::ArrayClose,
            _ => return self.fail(),
        };
        self.nesting.pop();
        self.after_value();
        Ok(self.punctuation(token))
    }

    #[inline]
    fn punctuation(&mut self, token: Token) -> Item {
        self.at += 1;
        Item {
            token,
            start: self.at - 1,
            end: self.at,
        }
    }

    #[inline]
    fn after_value(&mut self) {
        self.expect = if self.nesting.depth == 0 {
            Expect::End
        } else {
            Expect::CommaOrClose
        };
    }

    #[inline]
    fn value(&mut self, byte: u8) -> Result<Item, Invalid> {
        let token = match byte {
            b'{' => return Ok(self.open(Token::ObjectOpen)),
            b'[' => return Ok(self.open(Token::ArrayOpen)),
            b'"' => Token::String,
            b'-' | b'0'..=b'9' => Token::Number,
            b't' | b'f' | b'n' => Token::Literal,
            _ => return self.fail(),
        };
        let start = self.at;
        let read = match byte {
            b'"' => text::string_end(self.text, start),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => number_end(self.text, start),
        };
        self.take(token, read, |scanner| scanner.after_value())
    }

    #[inline]
    fn key(&mut self, byte: u8) -> Result<Item, Invalid> {
        if byte != b'"' {
            return self.fail();
        }
        let read = text::string_end(self.text, self.at);
        self.take(Token::Key, read, |scanner| scanner.expect = Expect::Colon)
    }

    #[inline]
    fn take(
        &mut self,
        token: Token,
        end: Result<usize, usize>,
        then: impl FnOnce(&mut Self),
    ) -> Result<Item, Invalid> {
        let start = self.at;
        match end {
            Ok(end) => {
                self.at = end;
                then(self);
                Ok(Item { token, start, end })
            }
            Err(at) => {
                self.at = at;
                self.fail()
            }
        }
    }

    fn literal(&self, word: &[u8]) -> Result<usize, usize> {
        let rest = &self.text[self.at..];
        let same = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
        if same == word.len() {
            Ok(self.at + same)
        } else {
            Err(self.at + same)
        }
    }

    #[cold]
    fn fail<T>(&mut self) -> Result<T, Invalid> {
        self.expect = Expect::Nothing;
        Err(Invalid { at: self.at })
    }
}

impl Iterator for Scanner<'_> {
    type Item = Result<Item, Invalid>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.expect == Expect::Nothing {
                return None;
            }
            let Some(byte) = self.peek() else {
                if self.expect == Expect::End {
                    self.expect = Expect::Nothing;
                    return None;
                }
                return Some(self.fail());
            };
            return Some(match (self.expect, byte) {
                (Expect::Colon, b':') => {
                    self.at += 1;
                    self.expect = Expect::Value;
                    continue;
                }
                (Expect::CommaOrClose, b',') => {
                    self.at += 1;
                    self.expect = if self.nesting.in_object() {
                        Expect::Key
                    } else {
                        Expect::Value
                    };
                    continue;
                }
                (Expect::KeyOrClose, b'}')
                | (Expect::ValueOrClose, b']')
                | (Expect::CommaOrClose, _) => self.close(byte),
                (Expect::Value | Expect::ValueOrClose, _) => self.value(byte),
                (Expect::Key | Expect::KeyOrClose, _) => self.key(byte),
                _ => self.fail(),
            });
        }
    }
}

impl FusedIterator for Scanner<'_> {}

/// Offset after the number that starts at `start`, or where it stops being one.
fn number_end(text: &[u8], start: usize) -> Result<usize, usize> {
    let digits = |mut at: usize| {
        let first = at;
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        if at == first { Err(at) } else { Ok(at) }
    };
    let mut at = start + usize::from(text.get(start) == Some(&b'-'));
    at = if text.get(at) == Some(&b'0') {
        at + 1
    } else {
        digits(at)?
    };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at = digits(at + usize::from(matches!(text.get(at), Some(b'+' | b'-'))))?;
    }
    // A digit here follows a leading zero. Any other byte is judged as what comes next.
    if text.get(at).is_some_and(u8::is_ascii_digit) {
        Err(at)
    } else {
        Ok(at)
    }
}

/// The open objects (1) and arrays (0), one bit a level. The first 64 need no allocation.
#[derive(Clone, Debug, Default)]
struct Nesting {
    depth: usize,
    /// The innermost levels, the last one in bit 0.
    top: u64,
    /// Full words of 64 levels below them.
    below: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.depth -= 1;
        self.top >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.top = self.below.pop().unwrap_or_default();
        }
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.top & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Token, &str)> {
        Scanner::new(text.as_bytes())
            .map(|item| item.expect("valid"))
            .map(|item| (item.token, &text[item.start..item.end]))
            .collect()
    }

    fn error(text: &[u8]) -> Option<usize> {
        Scanner::new(text)
            .find_map(|item| item.err())
            .map(|invalid| invalid.at)
    }

    #[test]
    fn tokens_stand_where_they_stand() {
        use Token::{ArrayClose, ArrayOpen, Key, Literal, Number, ObjectClose, ObjectOpen, String};
        assert_eq!(
            tokens("\u{FEFF} {\"a\" : [1,-0.5e+3,true],\"\\\"\":\"é\\n\"}\n"),
            [
                (ObjectOpen, "{"),
                (Key, "\"a\""),
                (ArrayOpen, "["),
                (Number, "1"),
                (Number, "-0.5e+3"),
                (Literal, "true"),
                (ArrayClose, "]"),
                (Key, "\"\\\"\""),
                (String, "\"é\\n\""),
                (ObjectClose, "}"),
            ]
        );
    }

    #[test]
    fn w21_w22_odd_content_is_fine() {
        for text in [
            "1e400",
            "-0.0",
            "9007199254740993",
            "0",
            "-1E-7",
            "null",
            "\"\\ud800\"",
            "[]",
            "{}",
            "{\"a\":1,\"a\":2}",
            "\"\"",
            "\"\u{7F}\"",
            " \t\r\n1 \t\r\n",
        ] {
            assert_eq!(error(text.as_bytes()), None, "{text}");
        }
        assert_eq!(error(b"\"\xFF\xFE\""), None);
    }

    #[test]
    fn errors_tell_their_place() {
        for (text, at) in [
            ("", 0),
            ("  ", 2),
            ("01", 1),
            ("-", 1),
            ("1.", 2),
            ("1.e1", 2),
            ("1e", 2),
            ("+1", 0),
            (".5", 0),
            ("tru", 3),
            ("trux", 3),
            ("nulll", 4),
            ("\"a", 2),
            ("\"a\nb\"", 2),
            ("\"\\q\"", 2),
            ("\"\\u12g4\"", 5),
            ("\"\\u12", 5),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\":1,}", 7),
            ("{\"a\" 1}", 5),
            ("{1:2}", 1),
            ("{,}", 1),
            ("[}", 1),
            ("{]", 1),
            ("[1}", 2),
            ("[", 1),
            ("{\"a\":", 5),
            ("1 1", 2),
            ("{}x", 2),
            ("'a'", 0),
            ("NaN", 0),
            (" \u{FEFF}1", 1),
        ] {
            assert_eq!(error(text.as_bytes()), Some(at), "{text:?}");
        }
    }

    #[test]
    fn the_iterator_stays_ended() {
        for text in ["1", "[1", "x"] {
            let mut scanner = Scanner::new(text.as_bytes());
            while scanner.by_ref().next().is_some_and(|item| item.is_ok()) {}
            assert_eq!((scanner.next(), scanner.next()), (None, None), "{text}");
        }
    }

    #[test]
    fn nesting_deeper_than_a_word_keeps_its_kinds() {
        let open: String = (0..1000)
            .map(|n| if n % 3 == 0 { "[" } else { "{\"k\":" })
            .collect();
        let close: String = (0..1000)
            .rev()
            .map(|n| if n % 3 == 0 { "]" } else { "}" })
            .collect();
        let text = format!("{open}1{close}");
        assert_eq!(error(text.as_bytes()), None);
        let deepest = {
            let mut scanner = Scanner::new(text.as_bytes());
            let mut deepest = 0;
            while scanner.next().is_some() {
                deepest = deepest.max(scanner.depth());
            }
            assert_eq!((scanner.depth(), scanner.position()), (0, text.len()));
            deepest
        };
        assert_eq!(deepest, 1000);
        for level in [0, 63, 64, 65, 127, 128, 999] {
            let mut wrong = text.clone().into_bytes();
            let at = text.len() - 1 - level;
            wrong[at] = if wrong[at] == b']' { b'}' } else { b']' };
            assert_eq!(error(&wrong), Some(at), "{level}");
        }
        assert!(!is_valid("[".repeat(1_000_000).as_bytes()));
    }

    #[test]
    fn a_control_byte_or_quote_is_found_at_any_offset_of_a_string() {
        for length in 0..200 {
            for special in [0u8, 0x1F, b'\\'] {
                let mut text = vec![b'a'; length];
                text.insert(0, b'"');
                text.extend([special, b'"']);
                let at = length + 1 + if special == b'\\' { 2 } else { 0 };
                assert_eq!(error(&text), Some(at), "{length} {special}");
                text.remove(length + 1);
                assert_eq!(error(&text), None);
            }
        }
    }
}
