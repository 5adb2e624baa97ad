//! Which requests of the client still wait for their answer.
//!
//! The relay asks before it ends a server that ignores the end of its input. Ids are kept as
//! hashes of their JSON text, so that long ones cost no more than short ones.

use agent_trace_model::Stream;
use agent_trace_wire::message::{Message, MessageKind, member, stays_open};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// More are not kept: whoever sends so many does not wait for one.
const MOST: usize = 10_000;

/// The open requests of one session.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    hasher: RandomState,
    open: HashSet<u64>,
    /// Answers whose requests were not seen yet: copies of two streams may come in the wrong
    /// order.
    early: HashSet<u64>,
}

impl OpenRequests {
    /// Takes note of a message that passed on this stream.
    pub(super) fn see(&mut self, stream: Stream, message: &Message<'_>) {
        match (stream, message.kind, message.id) {
            (Stream::ClientToServer, MessageKind::Request, Some(id)) => {
                let waits = !stays_open(message.method.as_deref());
                let id = self.hasher.hash_one(id);
                if !self.early.remove(&id) && waits && self.open.len() < MOST {
                    self.open.insert(id);
                }
            }
            (Stream::ClientToServer, MessageKind::Notification, _) => {
                let cancelled = message.method.as_deref() == Some("notifications/cancelled");
                let id = message
                    .params
                    .and_then(|params| member(params, "requestId"));
                if let Some(id) = id.filter(|_| cancelled) {
                    self.open.remove(&self.hasher.hash_one(id));
                }
            }
            (Stream::ServerToClient, MessageKind::Response | MessageKind::Error, Some(id)) => {
                let id = self.hasher.hash_one(id);
                if !self.open.remove(&id) && self.early.len() < MOST {
                    self.early.insert(id);
                }
            }
            _ => {}
        }
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_wire::message::messages;

    fn count(seen: &[(Stream, &str)]) -> usize {
        let mut open = OpenRequests::default();
        for (stream, text) in seen {
            for message in messages(text.as_bytes()).unwrap() {
                open.see(*stream, &message);
            }
        }
        open.count()
    }

    #[test]
    fn answers_and_cancels_close_what_requests_opened() {
        use Stream::{ClientToServer as C, ServerToClient as S};
        let ask = (C, r#"{"id":1,"method":"tools/call"}"#);
        assert_eq!(count(&[ask]), 1);
        assert_eq!(count(&[ask, (S, r#"{"id":1,"result":{}}"#)]), 0);
        assert_eq!(count(&[ask, (S, r#"{"id":1,"error":{}}"#)]), 0);
        assert_eq!(
            count(&[(S, r#"{"id":1,"result":{}}"#), ask]),
            0,
            "the copies overtook"
        );
        assert_eq!(
            count(&[ask, (S, r#"{"id":"1","result":{}}"#)]),
            1,
            "another id"
        );
        assert_eq!(
            count(&[ask, (S, r#"{"id":1,"method":"roots/list"}"#)]),
            1,
            "its own request"
        );
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(count(&[ask, (C, cancel)]), 0);
        assert_eq!(
            count(&[(C, r#"[{"id":1,"method":"a"},{"id":2,"method":"b"}]"#)]),
            2
        );
        assert_eq!(
            count(&[(C, r#"{"id":1,"method":"subscriptions/listen"}"#)]),
            0
        );
    }
}
