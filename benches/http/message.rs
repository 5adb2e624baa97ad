//! As much of HTTP/1.1 as the client and the origin need of each other.

use crate::Result;

/// The most bytes of a head, and of the line before a chunk.
const MOST_HEAD: usize = 64 << 10;

/// A head: what it says of itself and of the body after it.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    /// Request or status line.
    pub(crate) first: &'a str,
    /// Its bytes with the blank line.
    pub(crate) length: usize,
    pub(crate) body: Body,
    pub(crate) session: Option<&'a str>,
}

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Length(usize),
    Chunked,
}

impl<'a> Head<'a> {
    /// The head at the beginning of these bytes; none while its end is not there.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return match bytes.len() {
                ..MOST_HEAD => Ok(None),
                _ => Err("a head without an end".into()),
            };
        };
        let text = std::str::from_utf8(&bytes[..end])?;
        let mut lines = text.split("\r\n");
        let mut head = Self {
            first: lines.next().unwrap_or_default(),
            length: end + 4,
            body: Body::Length(0),
            session: None,
        };
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a header without a colon")?;
            if name.eq_ignore_ascii_case("content-length") {
                head.body = Body::Length(value.trim().parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.body = Body::Chunked;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.trim());
            }
        }
        Ok(Some(head))
    }

    /// The status of an answer.
    pub(crate) fn status(&self) -> Option<u16> {
        self.first.split(' ').nth(1)?.parse().ok()
    }
}

/// Takes the chunks out of a chunked body, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Bytes that are still to come of this chunk, with the line end after it.
    left: usize,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    last: bool,
}

impl Chunks {
    /// Appends to `out` what these bytes bring. Returns whether the body has ended.
    pub(crate) fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let n = self.left.min(bytes.len());
                // The two bytes of the line end are no data.
                let data = self.left.saturating_sub(2).min(n);
                out.extend_from_slice(&bytes[..data]);
                self.left -= n;
                bytes = &bytes[n..];
                continue;
            }
            let Some(end) = bytes.iter().position(|&b| b == b'\n') else {
                self.line.extend_from_slice(bytes);
                return match self.line.len() {
                    ..MOST_HEAD => Ok(false),
                    _ => Err("a chunk without a length".into()),
                };
            };
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::str::from_utf8(&self.line)?.trim();
            if self.last {
                // Trailers, if there are any, and the blank line.
                if line.is_empty() {
                    return Ok(true);
                }
            } else {
                let length = usize::from_str_radix(line, 16)?;
                self.last = length == 0;
                self.left = if self.last { 0 } else { length + 2 };
            }
            self.line.clear();
        }
        Ok(false)
    }
}
