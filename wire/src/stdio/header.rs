//! Header lines, and where in a frame its JSON text lies.

use crate::frame::Framing;
use crate::json::Scanner;

pub(super) use crate::json::BOM;

/// The name of the one header that matters.
pub(super) const NAME: &[u8] = b"content-length";

/// What a line is to a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its end.
    Blank,
    /// A Content-Length, with its value if that is a number.
    Length(Option<u64>),
    /// Another header whose name begins with `Content-`.
    Content,
    /// Any other header.
    Other,
    /// No header.
    No,
}

impl Line {
    /// Whether a header block can begin with it. Any `Word: text` looks like a header, but
    /// is far more often a log line, which should not have to wait for the line after it.
    pub(super) fn is_header(self) -> bool {
        matches!(self, Self::Length(_) | Self::Content)
    }
}

/// Tells what a line is, with or without its line end.
pub(super) fn parse(line: &[u8]) -> Line {
    let line = line.trim_ascii_end();
    if line.is_empty() {
        return Line::Blank;
    }
    let end = line
        .iter()
        .position(|&byte| !is_token(byte))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let Some(value) = rest.trim_ascii_start().strip_prefix(b":") else {
        return Line::No;
    };
    if name.is_empty() {
        Line::No
    } else if name.eq_ignore_ascii_case(NAME) {
        Line::Length(number(value.trim_ascii()))
    } else if name
        .get(..8)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"content-"))
    {
        Line::Content
    } else {
        Line::Other
    }
}

/// Whether a line of a header block, its end included, can begin with this byte.
pub(super) fn may_begin(byte: u8) -> bool {
    is_token(byte) || is_blank(byte)
}

/// Where the first `Content-Length:` in `text` is.
pub(super) fn find(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b':', text)
        .filter_map(|colon| colon.checked_sub(NAME.len()))
        .find(|&at| text[at..at + NAME.len()].eq_ignore_ascii_case(NAME))
}

/// What a line that starts like JSON is.
pub(super) enum Judgement {
    Message,
    /// A message, and at this offset a header that directly follows it.
    Followed(usize),
    Broken,
}

/// Judges a whole line. Something like `{…}Content-Length: 7` comes from a sender that mixes
/// framings or counts too much; the header cannot be text of the message, as that is over.
#[inline]
pub(super) fn judge(raw: &[u8]) -> Judgement {
    let text = after_padding(raw);
    let mut scanner = Scanner::new(text);
    let Some(invalid) = scanner.find_map(|item| item.err()) else {
        return Judgement::Message;
    };
    let rest = &text[invalid.at..];
    if scanner.depth() == 0 && rest.len() > NAME.len() && find(&rest[..=NAME.len()]) == Some(0) {
        return Judgement::Followed(raw.len() - rest.len());
    }
    Judgement::Broken
}

/// The JSON text in a frame's raw bytes: what is left without the padding and the header
/// block before it, and the line end and blanks behind it.
///
/// Needs nothing but the bytes, so it can be used on a frame read back from a record. Of a
/// stray frame it is the text without blanks around it.
#[must_use]
#[inline]
pub fn body(raw: &[u8], framing: Framing) -> &[u8] {
    let mut text = after_padding(raw);
    if framing == Framing::ContentLength {
        text = after_padding(after_block(text));
    }
    while let [rest @ .., byte] = text
        && is_blank(*byte)
    {
        text = rest;
    }
    text
}

#[inline]
fn after_padding(mut text: &[u8]) -> &[u8] {
    loop {
        match text {
            [byte, rest @ ..] if is_blank(*byte) => text = rest,
            _ => match text.strip_prefix(BOM) {
                Some(rest) => text = rest,
                None => return text,
            },
        }
    }
}

fn after_block(mut text: &[u8]) -> &[u8] {
    while let Some(end) = memchr::memchr(b'\n', text) {
        let (line, rest) = text.split_at(end + 1);
        text = rest;
        if line.trim_ascii().is_empty() {
            return text;
        }
    }
    &[]
}

/// A byte of white space between JSON texts.
#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// A blank, or a byte of a byte order mark.
pub(super) fn is_padding(byte: u8) -> bool {
    is_blank(byte) || BOM.contains(&byte)
}

/// A byte of a header's name (RFC 9110, token).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_are_told_however_loosely_written() {
        for (line, expected) in [
            ("Content-Length: 12\r\n", Line::Length(Some(12))),
            ("content-LENGTH\t :12", Line::Length(Some(12))),
            ("Content-Length:  007  \n", Line::Length(Some(7))),
            ("Content-Length:", Line::Length(None)),
            ("Content-Length: -1", Line::Length(None)),
            ("Content-Length: +1", Line::Length(None)),
            ("Content-Length: 1 2", Line::Length(None)),
            (
                "Content-Length: 99999999999999999999999",
                Line::Length(None),
            ),
            (
                "Content-Type: application/json; charset=utf-8\r\n",
                Line::Content,
            ),
            ("INFO: started", Line::Other),
            ("Content is king: yes", Line::No),
            ("Connected\n", Line::No),
            (" Content-Length: 5", Line::No),
            (": x", Line::No),
            ("{\"a\":1}", Line::No),
            (" \t\r\n", Line::Blank),
            ("", Line::Blank),
        ] {
            assert_eq!(parse(line.as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn a_header_is_found_within_a_text() {
        assert_eq!(find(b"a: b\"}}content-length: 5"), Some(7));
        assert_eq!(find(b"Content-Length:"), Some(0));
        assert_eq!(find(b"Content-Length"), None);
        assert_eq!(find(b"Length: 5 : :"), None);
    }

    #[test]
    fn the_body_is_what_the_frame_says() {
        for (raw, framing, expected) in [
            ("{}\n", Framing::Newline, "{}"),
            ("\r\n \u{FEFF}{} \r\n", Framing::Newline, "{}"),
            (
                "\nContent-Length: 2\r\n\r\n{}",
                Framing::ContentLength,
                "{}",
            ),
            (
                "Content-Type: x\nContent-Length: 4\n\n{} \n",
                Framing::ContentLength,
                "{}",
            ),
            (
                "Content-Length: 5\n \r\n\u{FEFF}{}",
                Framing::ContentLength,
                "{}",
            ),
            ("Content-Length: 5\r\n", Framing::ContentLength, ""),
            (" log line\r\n", Framing::Stray, "log line"),
            ("\n\n", Framing::Stray, ""),
            ("", Framing::ContentLength, ""),
        ] {
            assert_eq!(
                body(raw.as_bytes(), framing),
                expected.as_bytes(),
                "{raw:?}"
            );
        }
    }
}
