//! What is written to a server, and what is heard from it while an answer is awaited.

use super::{Fault, Limits};
use agent_trace_wire::message::{Message, MessageKind, messages};

/// The revision of servers that are asked by `initialize`; they may answer with an older one.
pub(super) const LEGACY: &str = "2025-11-25";
/// The revision of those that are asked without.
pub(super) const MODERN: &str = "2026-07-28";

/// What we say that we can. Lists depend on it: who says little is shown little.
const CAPABILITIES: &str = r#"{"roots":{},"sampling":{},"elicitation":{}}"#;
const NOBODY: &str = concat!(
    r#"{"name":"agent-trace","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) method: &'static str,
    /// Without the era's `_meta` where there is none.
    pub(super) text: Vec<u8>,
    pub(super) modern: bool,
}

impl Request {
    /// `cursor`: the JSON text of one.
    pub(super) fn new(id: u64, method: &'static str, cursor: Option<&[u8]>, modern: bool) -> Self {
        let mut params = Vec::new();
        if method == "initialize" {
            params.push(format!(
                r#""protocolVersion":"{LEGACY}","capabilities":{CAPABILITIES},"clientInfo":{NOBODY}"#
            ));
        }
        if modern {
            let prefix = "io.modelcontextprotocol";
            params.push(format!(
                r#""_meta":{{"{prefix}/protocolVersion":"{MODERN}","{prefix}/clientCapabilities":{CAPABILITIES},"{prefix}/clientInfo":{NOBODY}}}"#
            ));
        }
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"#);
        let mut text = head.into_bytes();
        text.extend_from_slice(params.join(",").as_bytes());
        if let Some(cursor) = cursor {
            if !params.is_empty() {
                text.push(b',');
            }
            text.extend_from_slice(b"\"cursor\":");
            text.extend_from_slice(cursor);
        }
        text.extend_from_slice(b"}}");
        Self {
            id,
            method,
            text,
            modern,
        }
    }
}

pub(super) const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What was heard from a server until now.
#[derive(Debug)]
pub(super) struct Heard {
    bytes: usize,
    requests: usize,
    /// Whether it said that its tools are others now.
    pub(super) tools_changed: bool,
    most_bytes: usize,
    most_requests: usize,
    most_message: usize,
}

/// What a text held.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The answer that was awaited.
    pub(super) answer: Option<Vec<u8>>,
    /// What is to be written to the server.
    pub(super) replies: Vec<Vec<u8>>,
}

impl Heard {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            bytes: 0,
            requests: 0,
            tools_changed: false,
            most_bytes: limits.bytes,
            most_requests: limits.requests,
            most_message: limits.message,
        }
    }

    /// Counts what came in.
    pub(super) fn count(&mut self, bytes: usize, method: &'static str) -> Result<(), Fault> {
        self.bytes += bytes;
        match self.bytes > self.most_bytes {
            true => Err(too_much(method, self.most_bytes)),
            false => Ok(()),
        }
    }

    pub(super) fn too_long(&self, method: &'static str) -> Fault {
        too_much(method, self.most_message)
    }

    /// Looks at a text for the answer to a request. What is no message is passed over.
    pub(super) fn take(&mut self, text: &[u8], asked: &Request) -> Taken {
        let mut taken = Taken::default();
        let id = asked.id.to_string();
        for message in messages(text).into_iter().flatten() {
            match message.kind {
                MessageKind::Response | MessageKind::Error => {
                    // The id of an error may be missing: there is only one that it can mean.
                    let nobody = message.id.is_none_or(|id| id == b"null");
                    let ours = message.id.is_some_and(|given| is(given, &id));
                    if ours || (nobody && message.kind == MessageKind::Error) {
                        taken.answer = Some(message.text.to_vec());
                    }
                }
                MessageKind::Request => {
                    self.requests += 1;
                    if self.requests <= self.most_requests {
                        taken.replies.extend(reply(&message));
                    }
                }
                MessageKind::Notification => {
                    self.tools_changed |=
                        message.method.as_deref() == Some("notifications/tools/list_changed");
                }
                MessageKind::Other => {}
            }
        }
        taken
    }
}

/// Whether an id is the one that was given: some servers make a string of it.
fn is(given: &[u8], id: &str) -> bool {
    let plain = given
        .strip_prefix(b"\"")
        .and_then(|id| id.strip_suffix(b"\""));
    plain.unwrap_or(given) == id.as_bytes()
}

fn too_much(method: &'static str, bytes: usize) -> Fault {
    let limit = match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebi => format!("{mebi} MiB"),
    };
    Fault::TooMuch { method, limit }
}

/// The most bytes of an id that are sent back.
const LONGEST_ID: usize = 1024;

/// What a request of the server is answered with: only `ping` is done.
fn reply(request: &Message<'_>) -> Option<Vec<u8>> {
    let id = request
        .id
        .filter(|id| id.len() <= LONGEST_ID && is_plain(id))?;
    let mut text = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    text.extend_from_slice(id);
    text.extend_from_slice(match request.method.as_deref() {
        Some("ping") => br#","result":{}}"#,
        _ => br#","error":{"code":-32601,"message":"not done: this client only lists"}}"#,
    });
    Some(text)
}

/// Whether it is a number or a string on one line.
fn is_plain(id: &[u8]) -> bool {
    !id.contains(&b'\n') && matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_json_in_both_eras() {
        for modern in [false, true] {
            for method in ["initialize", "tools/list"] {
                for cursor in [None, Some(&br#""a\n""#[..])] {
                    let request = Request::new(7, method, cursor, modern);
                    let all: Vec<_> = messages(&request.text).unwrap().collect();
                    assert_eq!(all.len(), 1);
                    assert_eq!(all[0].kind, MessageKind::Request);
                    assert_eq!(all[0].id, Some(&b"7"[..]));
                }
            }
        }
    }

    #[test]
    fn only_the_awaited_answer_is_taken() {
        let mut heard = Heard::new(&Limits {
            requests: 2,
            ..Limits::default()
        });
        let asked = Request::new(1, "tools/list", None, false);
        let mut take = |text: &str| heard.take(text.as_bytes(), &asked);
        assert!(take(r#"{"id":2,"result":{}}"#).answer.is_none());
        assert!(take("no JSON").answer.is_none());
        assert!(take(r#"{"id":1,"result":{}}"#).answer.is_some());
        assert!(take(r#"{"id":"1","result":{}}"#).answer.is_some());
        assert!(take(r#"{"id":null,"error":{}}"#).answer.is_some());
        assert!(
            take(r#"[{"id":3,"result":{}},{"id":1,"error":{}}]"#)
                .answer
                .is_some()
        );
        let ping = take(r#"{"id":"x","method":"ping"}"#).replies;
        assert_eq!(ping, [br#"{"jsonrpc":"2.0","id":"x","result":{}}"#]);
        let roots = take(r#"{"id":0,"method":"roots/list"}"#).replies;
        assert!(String::from_utf8_lossy(&roots[0]).contains("-32601"));
        assert!(take(r#"{"id":0,"method":"ping"}"#).replies.is_empty());
        take(r#"{"method":"notifications/tools/list_changed"}"#);
        assert!(heard.tools_changed);
    }
}
