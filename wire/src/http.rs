//! Heads of HTTP messages, as HTTP/1.1 writes them: a first line and header lines, each ended
//! by CR LF.

/// A head, taken apart. Everything is borrowed from its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// The method of a request; empty for an answer.
    pub method: &'a [u8],
    /// Path and query of a request, as it is written; empty for an answer.
    pub target: &'a [u8],
    /// As `HTTP/1.1`.
    pub version: &'a [u8],
    /// The status code of an answer; 0 for a request, or where it is no number.
    pub status: u16,
    /// All lines after the first.
    pub lines: &'a [u8],
}

impl<'a> Head<'a> {
    /// The head of a request. What is missing is empty.
    #[must_use]
    pub fn request(bytes: &'a [u8]) -> Self {
        let (line, lines) = split_line(bytes);
        let mut words = line.splitn(3, |&byte| byte == b' ');
        Self {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            version: words.next().unwrap_or_default(),
            status: 0,
            lines,
        }
    }

    /// The head of an answer. What is missing is empty.
    #[must_use]
    pub fn response(bytes: &'a [u8]) -> Self {
        let (line, lines) = split_line(bytes);
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let version = words.next().unwrap_or_default();
        let status = words.next().and_then(|word| std::str::from_utf8(word).ok());
        Self {
            version,
            status: status.and_then(|word| word.parse().ok()).unwrap_or(0),
            lines,
            ..Self::default()
        }
    }

    /// Names and values in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        headers(self.lines)
    }

    /// The first value under this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// The first value under each of these names, in one pass over the lines.
    #[must_use]
    pub fn first<const N: usize>(&self, names: [&str; N]) -> [Option<&'a [u8]>; N] {
        let mut found = [None; N];
        for (known, value) in self.headers() {
            for (name, found) in names.iter().zip(&mut found) {
                if found.is_none() && known.eq_ignore_ascii_case(name.as_bytes()) {
                    *found = Some(value);
                }
            }
        }
        found
    }

    /// All values under this name.
    pub fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.headers()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Whether its `Content-Type` is that of an event stream.
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        is_event_stream(self.get("content-type").unwrap_or_default())
    }
}

/// Whether this value of `Content-Type` is that of an event stream.
#[must_use]
pub fn is_event_stream(media: &[u8]) -> bool {
    let media = media.split(|&byte| byte == b';').next().unwrap_or_default();
    media
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
}

/// Names and values of header lines, in their order. A line without a colon is passed over.
pub fn headers(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            rest = after;
            if let Some(colon) = memchr::memchr(b':', line) {
                let (name, value) = line.split_at(colon);
                return Some((name.trim_ascii(), value[1..].trim_ascii()));
            }
        }
        None
    })
}

/// The first line without its end, and what is after it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', bytes);
    let (line, rest) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_head_is_taken_apart() {
        let head = Head::request(
            b"POST /mcp?a=b HTTP/1.1\r\nHost: x:1\r\nMCP-Session-ID:  s \r\nx\r\nA: 1\r\na:\r\n",
        );
        assert_eq!(head.method, b"POST");
        assert_eq!(head.target, b"/mcp?a=b");
        assert_eq!(head.version, b"HTTP/1.1");
        assert_eq!(head.get("mcp-session-id"), Some(&b"s"[..]));
        assert_eq!(head.all("A").collect::<Vec<_>>(), [&b"1"[..], b""]);
        assert_eq!(head.headers().count(), 4);
        assert_eq!(
            head.first(["a", "x", "host"]),
            [Some(&b"1"[..]), None, Some(b"x:1")]
        );
        let head = Head::response(
            b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n",
        );
        assert_eq!((head.status, head.version), (200, &b"HTTP/1.1"[..]));
        assert!(head.is_event_stream());
        assert!(!Head::response(b"HTTP/1.1 204\r\n").is_event_stream());
        assert_eq!(Head::response(b"HTTP/2 x").status, 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            for head in [Head::request(&bytes), Head::response(&bytes)] {
                prop_assert!(head.headers().count() <= bytes.len());
                prop_assert!(head.get("x").is_none_or(|value| value.len() <= bytes.len()));
                prop_assert!(!head.is_event_stream() || !bytes.is_empty());
            }
        }
    }
}
