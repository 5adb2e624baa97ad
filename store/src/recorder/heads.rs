//! Heads of HTTP messages as records, without their secrets.
//!
//! Clients send the same lines on every request, so what a line became is kept and used again:
//! `repeated` takes over the lines that are as in a head before, and what remains is looked up
//! line by line.

mod repeated;

use crate::redact::Redactor;
use agent_trace_model::Caller;
use agent_trace_wire::http::{Head, headers};
use repeated::Repeated;
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
    requests: Repeated<Option<Caller>>,
    responses: Repeated<()>,
}

impl Heads {
    /// Appends a [`Request`](crate::journal::header::Request) to `out`.
    pub(super) fn request(
        &mut self,
        caller: Option<Caller>,
        head: &[u8],
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let slot = caller.map_or(0, |caller| caller.connection);
        let mut before = std::mem::take(&mut self.requests);
        let written = before.append(slot, caller, head, out, |line, is_first, out| {
            if is_first {
                request_line(caller, &Head::request(line), redaction, out)
            } else {
                self.lines(line, redaction, out)
            }
        });
        self.requests = before;
        end_lines(out);
        written
    }

    /// Appends a [`Response`](crate::journal::header::Response) to `out`. Those of one session
    /// are alike.
    pub(super) fn response(
        &mut self,
        session: u32,
        head: &[u8],
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut before = std::mem::take(&mut self.responses);
        let written = before.append(session, (), head, out, |line, is_first, out| {
            if is_first {
                status_line(&Head::response(line), out)
            } else {
                self.lines(line, redaction, out)
            }
        });
        self.responses = before;
        end_lines(out);
        written
    }

    /// Appends [`Trailers`](crate::journal::header::Trailers) to `out`.
    pub(super) fn trailers(
        &mut self,
        lines: &[u8],
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(br#"{"type":"trailers""#);
        begin_lines(out);
        let written = self.lines(lines, redaction, out);
        end_lines(out);
        written
    }

    /// Appends names and values, each with a comma after it.
    fn lines(
        &mut self,
        lines: &[u8],
        redaction: Redaction<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        for (name, value) in headers(lines) {
            self.pair(name, value, redaction, out)?;
            out.push(b',');
        }
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

fn request_line(
    caller: Option<Caller>,
    head: &Head<'_>,
    (redactor, rules): Redaction<'_>,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    out.extend_from_slice(br#"{"type":"request""#);
    if let Some(caller) = caller {
        out.extend_from_slice(format!(r#","connection":{}"#, caller.connection).as_bytes());
        member("peer", caller.peer.to_string().as_bytes(), out)?;
    }
    member("method", head.method, out)?;
    let hidden = redactor.target(head.target, rules);
    let target = hidden.as_ref().map_or(head.target, |(target, _)| target);
    member("target", target, out)?;
    member("version", head.version, out)?;
    begin_lines(out);
    Ok(())
}

fn status_line(head: &Head<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let status = format!(r#"{{"type":"response","status":{}"#, head.status);
    out.extend_from_slice(status.as_bytes());
    member("version", head.version, out)?;
    begin_lines(out);
    Ok(())
}

fn begin_lines(out: &mut Vec<u8>) {
    out.extend_from_slice(br#","headers":["#);
}

fn end_lines(out: &mut Vec<u8>) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.extend_from_slice(b"]}");
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
                .request(None, head, (&redactor, true), &mut out)
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
