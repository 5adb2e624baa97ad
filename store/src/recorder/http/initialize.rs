//! Telling the request that begins a session of an older revision.

use agent_trace_wire::message::{Message, MessageKind, beginning, messages};

/// Whether a body holds the request that begins a session; of one that was `cut` the beginning
/// tells.
pub(super) fn holds_initialize(text: &[u8], cut: bool) -> bool {
    // A quick no for the others.
    if memchr::memmem::find(text, b"initialize").is_none() {
        return false;
    }
    let is = |message: &Message<'_>| {
        message.kind == MessageKind::Request && message.method.as_deref() == Some("initialize")
    };
    if cut {
        return beginning(text).is_some_and(|message| is(&message));
    }
    messages(text)
        .into_iter()
        .flatten()
        .any(|message| is(&message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_is_a_request_by_that_name() {
        assert!(holds_initialize(
            br#"{"id":1,"method":"initialize"}"#,
            false
        ));
        assert!(holds_initialize(
            br#"{"id":1,"method":"initialize","params":{"x":"#,
            true
        ));
        assert!(holds_initialize(
            br#"[{"id":1,"method":"initialize"}]"#,
            false
        ));
        assert!(!holds_initialize(
            br#"{"method":"notifications/initialized"}"#,
            false
        ));
        assert!(!holds_initialize(
            br#"{"id":1,"method":"x","params":"initialize"}"#,
            false
        ));
    }
}
