//! What memory is put to the test with: streams that nobody should send.

use agent_trace_store::recorder::KEPT_OF_A_FRAME;
use std::fmt::Write;

const MB: usize = 1_000_000;
/// A write of the client.
const CHUNK: usize = 64_000;

/// Bytes to be sent so many times.
type Part = (Vec<u8>, usize);

/// A stream of bytes, in pieces.
pub(crate) struct Abuse {
    pub(crate) what: String,
    parts: Vec<Part>,
}

impl Abuse {
    fn new(what: impl Into<String>, parts: Vec<Part>) -> Self {
        let what = what.into();
        Self { what, parts }
    }

    /// What the client writes, write by write.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.parts
            .iter()
            .flat_map(|(bytes, times)| std::iter::repeat_n(&bytes[..], *times))
    }

    pub(crate) fn total(&self) -> u64 {
        let length = |(bytes, times): &Part| (bytes.len() * times) as u64;
        self.parts.iter().map(length).sum()
    }
}

/// Every stream, with the larger ones cut down for a first look.
pub(crate) fn all(quick: bool) -> Vec<Abuse> {
    let endless = if quick { 128 * MB } else { 1000 * MB };
    let messages = if quick { 50 } else { 200 };
    // Just less than what is kept of a message.
    let large = KEPT_OF_A_FRAME - 100_000;
    vec![
        Abuse::new(
            format!("{} MB without a line end", endless / MB),
            line(&[(vec![b'a'; CHUNK], endless / CHUNK)]),
        ),
        Abuse::new(
            "one line of 64 MB of \\n escapes",
            line(&[(b"\\n".repeat(CHUNK / 2), 64 * MB / CHUNK)]),
        ),
        Abuse::new("4 lines of 8 MB of \\n escapes", {
            let one = line(&[(b"\\n".repeat(CHUNK / 2), large / CHUNK)]);
            std::iter::repeat_n(one, 4).flatten().collect()
        }),
        Abuse::new("Content-Length of 10^30, then 32 MB", {
            let head = format!("Content-Length: 1{}\r\n\r\n", "0".repeat(30));
            let body = (vec![b'b'; CHUNK], 32 * MB / CHUNK);
            vec![(head.into_bytes(), 1), body, (b"\n".to_vec(), 1)]
        }),
        Abuse::new("Content-Length of 10^9, then 32 MB", {
            let head = format!("Content-Length: {}\r\n\r\n", 1000 * MB);
            vec![(head.into_bytes(), 1), (vec![b'{'; CHUNK], 32 * MB / CHUNK)]
        }),
        Abuse::new("4 MB of nested arrays", {
            let open = (vec![b'['; CHUNK], 2 * MB / CHUNK);
            let close = (vec![b']'; CHUNK], 2 * MB / CHUNK);
            let begin = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":"#;
            vec![(begin.to_vec(), 1), open, close, (b"}\n".to_vec(), 1)]
        }),
        Abuse::new(
            "16 MB of blank lines",
            vec![(vec![b'\n'; CHUNK], 16 * MB / CHUNK)],
        ),
        Abuse::new(
            format!("{messages} messages of 1 MB"),
            vec![(joined(&line(&[(vec![b'c'; MB], 1)])), messages)],
        ),
        Abuse::new("200000 tiny messages", tiny(200_000)),
        Abuse::new(
            "4 messages of 8 MB full of secrets",
            vec![(secrets(large), 4)],
        ),
    ]
}

/// A message with one long string.
fn line(text: &[Part]) -> Vec<Part> {
    let begin = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":""#;
    let mut parts = vec![(begin.to_vec(), 1)];
    parts.extend_from_slice(text);
    parts.push((b"\"}}\n".to_vec(), 1));
    parts
}

fn joined(parts: &[Part]) -> Vec<u8> {
    let repeated = parts.iter().map(|(bytes, times)| bytes.repeat(*times));
    repeated.flatten().collect()
}

/// Requests that nobody answers, each with an id and a write of its own.
fn tiny(count: usize) -> Vec<Part> {
    let request = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n");
    (0..count).map(|id| (request(id).into_bytes(), 1)).collect()
}

/// A message of about this size, with made-up secrets in the shapes that redaction knows.
fn secrets(size: usize) -> Vec<u8> {
    let mut text = String::from(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"list":["#);
    let mut number = 0_u64;
    while text.len() < size {
        // Digits that look random, all of them different.
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(
            text,
            r#"{{"password":"{number:016x}","h":"Bearer {number:016x}{number:020}","u":"https://me:{number:x}@host/"}},"#
        );
    }
    text.push_str("0]}}\n");
    text.into_bytes()
}
