//! `--bodies digest`: arguments and results leave only their keyed digests.
//!
//! What remains is what ran, when, for how long, with which outcome; equal arguments have
//! equal digests. A frame stays valid JSON.

use agent_trace_wire::http::Head;
use agent_trace_wire::message::{Message, MessageKind, member, member_at, messages};

/// A keyed digest of some bytes, in hexadecimal digits.
pub(super) type Digest<'a> = &'a dyn Fn(&[u8]) -> String;

/// The body of a frame without arguments and results; none where it is no JSON.
///
/// What is known to be the protocol's own is taken over, and nothing else: a member that a
/// later revision adds, or that is there twice, may hold anything.
pub(super) fn without(body: &[u8], digest: Digest<'_>) -> Option<Vec<u8>> {
    let messages = messages(body).ok()?;
    let is_batch = messages.is_batch();
    let all: Vec<Vec<u8>> = messages.map(|message| rebuilt(&message, digest)).collect();
    let joined = all.join(&b","[..]);
    Some(if is_batch {
        [b"[", &joined[..], b"]"].concat()
    } else {
        joined
    })
}

/// What stands for bytes that are no message.
pub(super) fn instead_of(bytes: &[u8], digest: Digest<'_>) -> String {
    format!("[DIGEST:{}:{}]", digest(bytes), bytes.len())
}

/// The head of a request without what it repeats of the arguments: the `Mcp-Param-…` lines
/// (MCP 2026-07-28), and `Mcp-Name` where it is no name but a URI.
pub(super) fn without_mirrors(head: &[u8], digest: Digest<'_>) -> Vec<u8> {
    let read = Head::request(head);
    let named = matches!(read.get("mcp-method"), Some(b"tools/call" | b"prompts/get"));
    let mut out = head[..head.len() - read.lines.len()].to_vec();
    for (name, value) in read.headers() {
        let is_param = name
            .get(..10)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"mcp-param-"));
        let mirrors = is_param || !named && name.eq_ignore_ascii_case(b"mcp-name");
        let stand_in = mirrors.then(|| instead_of(value, digest).into_bytes());
        let value = stand_in.as_deref().unwrap_or(value);
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out
}

fn rebuilt(message: &Message<'_>, digest: Digest<'_>) -> Vec<u8> {
    let mut members = Members::default();
    if message.kind == MessageKind::Other {
        return stand_in(message.text, digest);
    }
    members.copy("jsonrpc", member(message.text, "jsonrpc"));
    members.copy("id", message.id);
    // As written: it may hold escapes.
    members.copy(
        "method",
        message.method.as_ref().and(member(message.text, "method")),
    );
    if let Some(params) = message.params {
        members.add("params", &parameters(message, params, digest));
    }
    if let Some(result) = message.result {
        let mut kept = Members::digest(result, digest);
        kept.copy(
            "isError",
            member(result, "isError").filter(|failed| *failed == b"true"),
        );
        members.add("result", &kept.end());
    }
    if let Some(error) = message.error {
        // The code tells the outcome; the rest often repeats the arguments.
        let mut kept = Members::digest(error, digest);
        kept.copy("code", member(error, "code"));
        members.add("error", &kept.end());
    }
    members.end()
}

fn parameters(message: &Message<'_>, params: &[u8], digest: Digest<'_>) -> Vec<u8> {
    let method = message.method.as_deref().unwrap_or_default();
    let whole = ["initialize", "ping", "server/discover", "logging/setLevel"];
    if whole.contains(&method) || method.ends_with("/list") || method.ends_with("/list_changed") {
        return params.to_vec();
    }
    let mut kept = Members::default();
    // What ties messages together and says what was called.
    let known: &[&str] = match method {
        "tools/call" | "prompts/get" => &["name"],
        "notifications/cancelled" => &["requestId"],
        "notifications/progress" => &["progressToken", "progress", "total"],
        _ => &[],
    };
    for name in known {
        kept.copy(name, member(params, name));
    }
    if let Some(token) = member_at(params, &["_meta", "progressToken"]) {
        kept.add("_meta", &[br#"{"progressToken":"#, token, b"}"].concat());
    }
    match member(params, "arguments") {
        Some(arguments) => kept.add("arguments", &stand_in(arguments, digest)),
        None if kept.is_empty() => return stand_in(params, digest),
        None => {}
    }
    kept.end()
}

fn stand_in(part: &[u8], digest: Digest<'_>) -> Vec<u8> {
    Members::digest(part, digest).end()
}

/// A JSON object in the making.
#[derive(Default)]
struct Members(Vec<u8>);

impl Members {
    /// An object that stands for `part`.
    fn digest(part: &[u8], digest: Digest<'_>) -> Self {
        let mut members = Self::default();
        members.add("digest", format!("\"{}\"", digest(part)).as_bytes());
        members.add("bytes", part.len().to_string().as_bytes());
        members
    }

    fn copy(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(format!("\"{name}\":").as_bytes());
        self.0.extend_from_slice(value);
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn end(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    fn without(body: &str) -> String {
        let out = super::without(body.as_bytes(), &|bytes| format!("#{}", bytes.len())).unwrap();
        serde_json::from_slice::<serde_json::Value>(&out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn arguments_and_results_are_gone_and_the_rest_is_as_it_was() {
        assert_eq!(
            without(
                r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"b"},"x":"private"}}"#
            ),
            r##"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"digest":"#9","bytes":9}}}"##
        );
        assert_eq!(
            without(r#"{"jsonrpc":"2.0","id":1.0,"result":{"content":[],"isError":true}}"#),
            r##"{"jsonrpc":"2.0","id":1.0,"result":{"digest":"#29","bytes":29,"isError":true}}"##
        );
        assert_eq!(
            without(r#"{"id":1,"error":{"code":-1,"message":"m","data":[1]}}"#),
            r##"{"id":1,"error":{"digest":"#36","bytes":36,"code":-1}}"##
        );
        assert_eq!(
            without(r#"[{"id":1,"method":"x","params":[1]},"text"]"#),
            r##"[{"id":1,"method":"x","params":{"digest":"#3","bytes":3}},{"digest":"#6","bytes":6}]"##
        );
        assert_eq!(
            without(
                r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1,"message":"private"}}"#
            ),
            r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#
        );
        let kept = r#"{"id":1,"method":"tools/list","params":{"cursor":"x"}}"#;
        assert_eq!(without(kept), kept);
        assert_eq!(without("[]"), "[]");
    }

    #[test]
    fn what_is_there_twice_or_unknown_is_not_kept() {
        let sneaky = r#"{"id":1,"method":"tools/call","params":{"private":1},"params":{"name":"t"},"extra":"private"}"#;
        assert_eq!(
            without(sneaky),
            r#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#
        );
    }
}
