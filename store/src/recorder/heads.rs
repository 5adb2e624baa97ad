//! Heads of HTTP messages as records, without their secrets.
//!
//! Clients send the same lines on every request, so what a line became is kept and used again.

use crate::redact::Redactor;
use agent_trace_model::Caller;
use agent_trace_wire::http::{Head, headers};
use std::collections::HashMap;
use std::io;

/// The most lines that are kept, and the longest.
const MOST_LINES: usize = 1024;
const LONGEST: usize = 512;

/// The redactor, and whether its rules for texts are followed.
type Redaction<'r> = (&'r Redactor, bool);

/// Header lines that were redacted lately, as JSON.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By name, a zero byte and value.
    known: HashMap<Box<[u8]>, Box<[u8]>>,
    line: Vec<u8>,
}

impl Heads {
    /// Appends a [`Request`](crate::journal::header::Request) to `out`.
    pub(super) fn request(
        &mut self,
        caller: Option<Caller>,
        head: &Head<'_>,
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(br#"{"type":"request""#);
        if let Some(caller) = caller {
            out.extend_from_slice(format!(r#","connection":{}"#, caller.connection).as_bytes());
            member("peer", caller.peer.to_string().as_bytes(), out)?;
        }
        member("method", head.method, out)?;
        let hidden = redaction.0.target(head.target, redaction.1);
        member(
            "target",
            hidden.as_ref().map_or(head.target, |(target, _)| target),
            out,
        )?;
        member("version", head.version, out)?;
        self.lines(head.lines, redaction, out)
    }

    /// Appends a [`Response`](crate::journal::header::Response) to `out`.
    pub(super) fn response(
        &mut self,
        head: &Head<'_>,
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(
            format!(r#"{{"type":"response","status":{}"#, head.status).as_bytes(),
        );
        member("version", head.version, out)?;
        self.lines(head.lines, redaction, out)
    }

    /// Appends [`Trailers`](crate::journal::header::Trailers) to `out`.
    pub(super) fn trailers(
        &mut self,
        lines: &[u8],
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(br#"{"type":"trailers""#);
        self.lines(lines, redaction, out)
    }

    fn lines(
        &mut self,
        lines: &[u8],
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(br#","headers":["#);
        let mut first = true;
        for (name, value) in headers(lines) {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            self.pair(name, value, redaction, out)?;
        }
        out.extend_from_slice(b"]}");
        Ok(())
    }

    fn pair(
        &mut self,
        name: &[u8],
        value: &[u8],
        (redactor, rules): Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        // A length changes with each message, and is no secret.
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        if is_length && value.iter().all(u8::is_ascii_digit) {
            return pair(name, value, out);
        }
        self.line.clear();
        for part in [name, b"\0", value] {
            self.line.extend_from_slice(part);
        }
        if let Some(known) = self.known.get(&self.line[..]) {
            out.extend_from_slice(known);
            return Ok(());
        }
        let start = out.len();
        let hidden = redactor.header(name, value, rules);
        pair(name, hidden.as_deref().unwrap_or(value), out)?;
        if self.line.len() <= LONGEST {
            if self.known.len() >= MOST_LINES {
                self.known.clear();
            }
            self.known.insert(self.line[..].into(), out[start..].into());
        }
        Ok(())
    }
}

fn pair(name: &[u8], value: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.push(b'[');
    string(name, out)?;
    out.push(b',');
    string(value, out)?;
    out.push(b']');
    Ok(())
}

/// Appends a member that is not the first.
fn member(name: &str, value: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.push(b',');
    string(name.as_bytes(), out)?;
    out.push(b':');
    string(value, out)
}

fn string(text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(out, &String::from_utf8_lossy(text)).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::header::Meta;
    use crate::redact::Key;

    #[test]
    fn a_head_is_a_record_without_secrets_the_second_time_too() {
        let redactor = Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap();
        let head = b"POST /m?sessionId=abc HTTP/1.1\r\nHost: x\r\nauthorization: Bearer abc\r\nX: \"\\\xFF\r\ncontent-length: 7\r\n";
        let mut heads = Heads::default();
        let mut seen = Vec::new();
        for _ in 0..2 {
            let mut out = Vec::new();
            heads
                .request(None, &Head::request(head), (&redactor, true), &mut out)
                .unwrap();
            let Meta::Request(request) = serde_json::from_slice(&out).unwrap() else {
                panic!("no request");
            };
            seen.push(request);
        }
        assert_eq!(seen[0], seen[1]);
        let request = &seen[0];
        assert_eq!((&*request.method, &*request.version), ("POST", "HTTP/1.1"));
        assert!(
            request.target.starts_with("/m?sessionId=[REDACTED:"),
            "{}",
            request.target
        );
        assert_eq!(request.headers.len(), 4);
        assert!(
            request.headers[1]
                .1
                .starts_with("Bearer [REDACTED:authorization:")
        );
        assert_eq!(request.headers[2].1, "\"\\\u{FFFD}");
        assert_eq!(heads.known.len(), 3);
    }

    #[test]
    fn lines_that_never_repeat_are_bounded() {
        let redactor = Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap();
        let mut heads = Heads::default();
        for at in 0..5000 {
            let line = format!("A: {at}\r\n");
            heads
                .trailers(line.as_bytes(), (&redactor, true), &mut Vec::new())
                .unwrap();
        }
        assert!(heads.known.len() <= MOST_LINES);
    }
}
