//! Secrets in the events of an event stream.
//!
//! An event's data may be on several lines, with the name of a secret on one and its value on
//! the next. So the lines are looked at as the text that they are, and where something is
//! hidden in it the event is written anew, with one `data` line for each line of the text.

use crate::journal::format::narrow;
use crate::redact::{Redaction, Redactor};
use agent_trace_wire::sse::{fields, lines};

/// Appends an event, redacted, where that takes more than its parts: it names the endpoint of
/// the older transport, or has data on several lines. Says whether anything was hidden; none
/// where its parts suffice, and then nothing was appended. `data` is the event's, `joined` if it
/// is on several lines. Without the `rules` for texts only the id of an endpoint is hidden.
pub(super) fn hide(
    redactor: &Redactor,
    raw: &[u8],
    data: &[u8],
    joined: bool,
    rules: bool,
    out: &mut Vec<u8>,
    hidden: &mut Vec<Redaction>,
) -> Option<bool> {
    let is_endpoint = is_endpoint(raw);
    if !(is_endpoint || joined && rules) {
        return None;
    }
    let (mut text, mut within) = (Vec::new(), Vec::new());
    if is_endpoint {
        if let Some((uri, spans)) = redactor.target(data, rules) {
            (text, within) = (uri, spans);
        }
    } else {
        redactor.bytes(data, &mut text, &mut within);
    }
    let mut any = !within.is_empty();
    let new = any.then_some((&text[..], &within[..]));
    let mut written = false;
    for line in with_ends(raw) {
        if !is_data(line) && !rules {
            out.extend_from_slice(line);
            continue;
        }
        if !is_data(line) {
            any |= append(redactor, line, out, hidden);
            continue;
        }
        match new {
            None => out.extend_from_slice(line),
            Some((text, within)) if !written => {
                let end = &line[line.len() - end_length(line)..];
                let end = if end.is_empty() { &b"\n"[..] } else { end };
                data_lines(text, within, end, out, hidden);
                written = true;
            }
            Some(_) => {}
        }
    }
    Some(any)
}

/// Appends some bytes without their secrets, with the places of the markers in all of `out`.
pub(super) fn append(
    redactor: &Redactor,
    part: &[u8],
    out: &mut Vec<u8>,
    hidden: &mut Vec<Redaction>,
) -> bool {
    let (base, known) = (narrow::<u32>(out.len()), hidden.len());
    let any = redactor.bytes(part, out, hidden);
    if any {
        for hidden in &mut hidden[known..] {
            hidden.at += base;
        }
    } else {
        out.extend_from_slice(part);
    }
    any
}

/// An event with digests: `reduced` in place of its data, and of the rest what is known to be
/// the protocol's own. None where there is nothing known about it.
pub(super) fn digested(raw: &[u8], reduced: Option<&[u8]>) -> Option<Vec<u8>> {
    let fields = fields(raw);
    let data = match reduced {
        Some(reduced) => reduced,
        None if is_endpoint(raw) => &fields.data,
        None => return None,
    };
    let mut out = Vec::new();
    for (name, value) in [("event", fields.event), ("id", fields.id)] {
        if let Some(value) = value {
            for part in [name.as_bytes(), b": ", value, b"\n"] {
                out.extend_from_slice(part);
            }
        }
    }
    if let Some(retry) = fields.retry {
        out.extend_from_slice(format!("retry: {retry}\n").as_bytes());
    }
    data_lines(data, &[], b"\n", &mut out, &mut Vec::new());
    out.push(b'\n');
    Some(out)
}

/// Whether it tells a client of the older transport (2024-11-05) where to send its messages.
pub(super) fn is_endpoint(raw: &[u8]) -> bool {
    // A quick no for the others.
    memchr::memmem::find(raw, b"endpoint").is_some() && fields(raw).event == Some(b"endpoint")
}

/// Appends a text as `data` lines, and where its markers then are.
fn data_lines(
    text: &[u8],
    within: &[Redaction],
    end: &[u8],
    out: &mut Vec<u8>,
    hidden: &mut Vec<Redaction>,
) {
    let mut within = within.iter().peekable();
    let mut start = 0;
    for line in text.split(|&byte| byte == b'\n') {
        out.extend_from_slice(b"data: ");
        let base = out.len();
        out.extend_from_slice(line);
        out.extend_from_slice(end);
        // A marker has no line end in it.
        while let Some(span) = within.next_if(|span| (span.at as usize) < start + line.len()) {
            hidden.push(Redaction {
                at: narrow(base + (span.at as usize).saturating_sub(start)),
                ..span.clone()
            });
        }
        start += line.len() + 1;
    }
}

/// The lines of an event with their ends.
fn with_ends(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = raw;
    lines(raw).map(move |line| {
        let length = line.len()
            + end_length(&rest[line.len()..][..rest.len().min(line.len() + 2) - line.len()]);
        let (whole, after) = rest.split_at(length);
        rest = after;
        whole
    })
}

/// The length of the line end in, or at the end of, `text`, which has no more than one.
fn end_length(text: &[u8]) -> usize {
    match memchr::memchr2(b'\r', b'\n', text) {
        Some(at) if text[at] == b'\r' && text.get(at + 1) == Some(&b'\n') => 2,
        Some(_) => 1,
        None => 0,
    }
}

fn is_data(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.strip_prefix(b"data")
        .is_some_and(|rest| matches!(rest, [] | [b':' | b'\r' | b'\n', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Key;

    fn hide_in(raw: &str) -> Option<String> {
        let redactor = Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap();
        let data = fields(raw.as_bytes()).data;
        let (mut out, mut hidden) = (Vec::new(), Vec::new());
        let joined = matches!(data, std::borrow::Cow::Owned(_));
        let any = hide(
            &redactor,
            raw.as_bytes(),
            &data,
            joined,
            true,
            &mut out,
            &mut hidden,
        )?;
        assert_eq!(any, !hidden.is_empty());
        for span in &hidden {
            let marker = &out[span.at as usize..][..span.marker as usize];
            assert!(
                marker.starts_with(b"[REDACTED:") && marker.ends_with(b"]"),
                "{raw:?}"
            );
        }
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_secret_whose_name_is_on_the_line_before_is_hidden() {
        let raw =
            "id: 7\r\ndata: {\"password\":\r\ndata: \"hunter2\",\r\n: c\r\ndata: \"a\":1}\r\n\r\n";
        let out = hide_in(raw).unwrap();
        assert!(!out.contains("hunter2"), "{out}");
        assert!(
            out.starts_with("id: 7\r\ndata: {\"password\":\r\ndata: \"[REDACTED:"),
            "{out}"
        );
        assert!(
            out.ends_with("]\",\r\ndata: \"a\":1}\r\n: c\r\n\r\n"),
            "{out}"
        );
        let plain = "data: {\"a\":\ndata: 1}\n\n";
        assert_eq!(hide_in(plain).unwrap(), plain);
        assert_eq!(
            hide_in("data: {\"password\":\"hunter2\"}\n\n"),
            None,
            "its parts suffice"
        );
    }

    #[test]
    fn the_id_in_an_endpoint_is_hidden() {
        let out = hide_in("event: endpoint\ndata: /m?sessionId=abc\n\n").unwrap();
        assert!(
            out.starts_with("event: endpoint\ndata: /m?sessionId=[REDACTED:mcp-session-id:"),
            "{out}"
        );
        assert!(out.ends_with("]\n\n"), "{out}");
    }

    #[test]
    fn with_digests_only_known_fields_stay() {
        let raw = b": private\nevent: message\nid: 7\nother: private\ndata: {}\n\n";
        let out = digested(raw, Some(b"{\"a\":1}")).unwrap();
        assert_eq!(out, b"event: message\nid: 7\ndata: {\"a\":1}\n\n");
        assert_eq!(digested(b": private\n\n", None), None);
        let endpoint = b"event: endpoint\ndata: /m\n\n";
        assert_eq!(digested(endpoint, None).as_deref(), Some(&endpoint[..]));
    }
}
