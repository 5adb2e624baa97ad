//! Events of a server-sent event stream.
//!
//! Source of the format: WHATWG HTML, section 9.2.6 "Interpreting an event stream".
//! [`Decoder`] splits a stream into events, [`fields`] reads one.

mod decoder;

use std::borrow::Cow;

pub use decoder::Decoder;

/// The fields of one event. Where a field is there twice the last one counts, and of `data`
/// all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a> {
    /// The type; absent means `message`.
    pub event: Option<&'a [u8]>,
    /// The id that a client resumes with as `Last-Event-ID`. Ignored if it holds a NUL.
    pub id: Option<&'a [u8]>,
    /// How long a client waits before it connects again, in milliseconds.
    pub retry: Option<u64>,
    /// The data; lines are joined with a line feed. Borrowed if it is on one line.
    pub data: Cow<'a, [u8]>,
    /// Whether there is any data at all: without it nothing is dispatched.
    pub has_data: bool,
}

/// Reads the fields of an event from all its bytes. Comments are passed over.
#[must_use]
pub fn fields(raw: &[u8]) -> Fields<'_> {
    let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
    let mut fields = Fields::default();
    for line in lines(raw) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => fields.event = Some(value),
            b"id" if !value.contains(&0) => fields.id = Some(value),
            b"retry" => {
                let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let text = std::str::from_utf8(value).unwrap_or_default();
                fields.retry = text.parse().ok().filter(|_| digits).or(fields.retry);
            }
            b"data" if !fields.has_data => {
                fields.has_data = true;
                fields.data = Cow::Borrowed(value);
            }
            b"data" => {
                let data = fields.data.to_mut();
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            _ => {}
        }
    }
    fields
}

/// The lines of a text; they end with CR LF, LF or CR, and the end is not part of them.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = match after {
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => after,
            [] => after,
        };
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_the_specification_says() {
        let raw = b": hello\nid: 7\revent:message\r\nretry: 10\ndata: {\"a\":\ndata\ndata:  1}\n\n";
        let fields = fields(raw);
        assert_eq!(fields.id, Some(&b"7"[..]));
        assert_eq!(fields.event, Some(&b"message"[..]));
        assert_eq!(fields.retry, Some(10));
        assert_eq!(&*fields.data, b"{\"a\":\n\n 1}");
        assert!(!super::fields(b": ping\n\n").has_data);
    }
}
