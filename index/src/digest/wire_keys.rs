//! What a request says of the conversation, the trace and the prompt that it belongs to.
//!
//! Codex names session and turn in `_meta` of each call (`sessionId`, and
//! `x-codex-turn-metadata` with `session_id` and `turn_id`); any client may name a trace
//! (`traceparent`, W3C Trace Context). Claude's `claudecode/toolUseId` is an id of the call
//! alone. What Copilot, Gemini and opencode send names nothing of the kind.

use super::bounded;
use crate::rows::GroupKey;
use agent_trace_wire::message::{member, member_at, string};
use std::borrow::Cow;

/// What a request says of what it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireKeys {
    /// The conversation.
    pub conversation: Option<GroupKey>,
    /// The trace.
    pub trace: Option<GroupKey>,
    /// The id of the prompt.
    pub turn: Option<String>,
}

impl WireKeys {
    /// What a request with this JSON text says.
    #[must_use]
    pub fn of(request: &[u8]) -> Self {
        // Most say nothing; to find that out takes no parsing.
        let wanted = [&b"\"sessionId\""[..], TURN_METADATA, b"\"traceparent\""];
        if !wanted.iter().any(|name| holds(request, name)) {
            return Self::default();
        }
        let Some(meta) = member_at(request, &["params", "_meta"]) else {
            return Self::default();
        };
        let turn = member(meta, "x-codex-turn-metadata").map(object);
        let of_turn = |name| text(member(turn.as_deref()?, name)?);
        let session = member(meta, "sessionId").and_then(text);
        let trace = member(meta, "traceparent").and_then(text);
        Self {
            conversation: session
                .or_else(|| of_turn("session_id"))
                .map(GroupKey::Conversation),
            trace: trace
                .and_then(|parent| trace_id(&parent))
                .map(GroupKey::Trace),
            turn: of_turn("turn_id"),
        }
    }
}

const TURN_METADATA: &[u8] = b"\"x-codex-turn-metadata\"";

/// Whether these bytes are anywhere in a text.
pub(super) fn holds(text: &[u8], bytes: &[u8]) -> bool {
    memchr::memmem::find(text, bytes).is_some()
}

/// An object, or one as a text in a string.
fn object(value: &[u8]) -> Cow<'_, [u8]> {
    match string(value) {
        Some(text) => Cow::Owned(text.into_owned().into_bytes()),
        None => Cow::Borrowed(value),
    }
}

fn text(value: &[u8]) -> Option<String> {
    let text = string(value)?;
    (!text.is_empty()).then(|| bounded(&text))
}

/// The trace id in a `traceparent` (W3C Trace Context, section 3.2): version, trace id,
/// parent id and flags in lower-case hexadecimal digits. Version `ff` and the trace id of
/// zeroes are invalid.
fn trace_id(parent: &str) -> Option<String> {
    let mut fields = parent.split('-');
    let (version, trace, span) = (fields.next()?, fields.next()?, fields.next()?);
    let hex = |text: &str, length| {
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        text.len() == length && text.bytes().all(digit)
    };
    let valid = hex(version, 2) && version != "ff" && hex(trace, 32) && hex(span, 16);
    let zero = trace.bytes().all(|b| b == b'0');
    (valid && !zero).then(|| trace.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_codex_names_its_conversation_and_its_prompt() {
        let call = br#"{"id":2,"method":"tools/call","params":{"_meta":{"callId":"c","x-codex-turn-metadata":{"session_id":"s","turn_id":"t"},"sessionId":"s"},"name":"x"}}"#;
        let keys = WireKeys::of(call);
        assert_eq!(keys.conversation, Some(GroupKey::Conversation("s".into())));
        assert_eq!(keys.turn.as_deref(), Some("t"));
        let call = br#"{"params":{"_meta":{"x-codex-turn-metadata":"{\"session_id\":\"s\"}"}}}"#;
        assert_eq!(WireKeys::of(call).conversation, keys.conversation);
    }

    #[test]
    fn a_name_elsewhere_than_in_meta_says_nothing() {
        let call = br#"{"params":{"arguments":{"sessionId":"s","traceparent":"x"},"_meta":{}}}"#;
        assert_eq!(WireKeys::of(call), WireKeys::default());
    }

    #[test]
    fn traces_are_known_by_their_ids_alone() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(
            trace_id(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(),
            Some(id)
        );
        for wrong in [
            format!("ff-{id}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{id}"),
            String::new(),
        ] {
            assert_eq!(trace_id(&wrong), None, "{wrong}");
        }
    }
}
