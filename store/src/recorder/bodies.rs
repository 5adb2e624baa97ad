//! `--bodies digest`: arguments and results leave only their keyed digests.
//!
//! What remains is what ran, when, for how long, with which outcome; equal arguments have
//! equal digests. A frame stays valid JSON.

use agent_trace_wire::message::{Message, MessageKind, member, messages};

/// A keyed digest of some bytes, in hexadecimal digits.
pub(super) type Digest<'a> = &'a dyn Fn(&[u8]) -> String;

/// The body of a frame without arguments and results; none where it is no JSON.
pub(super) fn without(body: &[u8], digest: Digest<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len().min(1024));
    let mut copied = 0;
    for message in messages(body).ok()? {
        for (part, replacement) in replacements(&message, digest) {
            // Every part is a slice of the body.
            let start = part.as_ptr() as usize - body.as_ptr() as usize;
            if start >= copied {
                out.extend_from_slice(&body[copied..start]);
                out.extend_from_slice(replacement.as_bytes());
                copied = start + part.len();
            }
        }
    }
    out.extend_from_slice(&body[copied..]);
    Some(out)
}

/// What stands for bytes that are no message.
pub(super) fn instead_of(bytes: &[u8], digest: Digest<'_>) -> String {
    format!("[DIGEST:{}:{}]", digest(bytes), bytes.len())
}

fn replacements<'a>(message: &Message<'a>, digest: Digest<'_>) -> Vec<(&'a [u8], String)> {
    let stand_in = |part: &'a [u8]| (part, object(part, digest, ""));
    let mut parts = Vec::new();
    if let Some(params) = message.params.filter(|_| !is_protocol(message)) {
        parts.push(stand_in(member(params, "arguments").unwrap_or(params)));
    }
    if let Some(result) = message.result {
        let failed = member(result, "isError") == Some(b"true");
        let kept = if failed { r#","isError":true"# } else { "" };
        parts.push((result, object(result, digest, kept)));
    }
    if let Some(error) = message.error {
        // The code tells the outcome; the rest often repeats the arguments.
        match (member(error, "message"), member(error, "data")) {
            (None, None) if error.first() == Some(&b'{') => {}
            (None, None) => parts.push(stand_in(error)),
            (text, data) => parts.extend(text.into_iter().chain(data).map(stand_in)),
        }
    }
    if message.kind == MessageKind::Other && parts.is_empty() {
        parts.push(stand_in(message.text));
    }
    parts.sort_by_key(|(part, _)| part.as_ptr() as usize);
    parts
}

fn object(part: &[u8], digest: Digest<'_>, more: &str) -> String {
    format!(
        r#"{{"digest":"{}","bytes":{}{more}}}"#,
        digest(part),
        part.len()
    )
}

/// Whether a message's parameters are the protocol's own and tell nothing of the work.
fn is_protocol(message: &Message<'_>) -> bool {
    let Some(method) = message.method.as_deref() else {
        return false;
    };
    let known = [
        "initialize",
        "ping",
        "server/discover",
        "logging/setLevel",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
    ];
    known.contains(&method) || method.ends_with("/list") || method.ends_with("/list_changed")
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
                r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"b"}}}"#
            ),
            r##"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"digest":"#9","bytes":9}}}"##
        );
        assert_eq!(
            without(r#"{"id":1,"result":{"content":[],"isError":true}}"#),
            r##"{"id":1,"result":{"digest":"#29","bytes":29,"isError":true}}"##
        );
        assert_eq!(
            without(r#"{"id":1,"error":{"code":-1,"message":"m","data":[1]}}"#),
            r##"{"id":1,"error":{"code":-1,"message":{"digest":"#3","bytes":3},"data":{"digest":"#3","bytes":3}}}"##
        );
        assert_eq!(
            without(r#"[{"id":1,"method":"x","params":[1]},"text"]"#),
            r##"[{"id":1,"method":"x","params":{"digest":"#3","bytes":3}},{"digest":"#6","bytes":6}]"##
        );
        let kept = r#"{"id":1,"method":"tools/list","params":{"cursor":"x"}}"#;
        assert_eq!(without(kept), kept);
    }
}
