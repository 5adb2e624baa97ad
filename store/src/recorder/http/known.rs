//! What matters of a head, found in one pass over its lines.

use agent_trace_wire::http::{Head, is_event_stream};

/// What the head of a request says, as far as it matters here.
pub(super) struct Known<'a> {
    /// See [`body_of`].
    pub(super) body: (bool, bool),
    pub(super) version: Option<&'a [u8]>,
    pub(super) session: Option<&'a [u8]>,
    pub(super) method: Option<&'a [u8]>,
    pub(super) agent: Option<&'a [u8]>,
    pub(super) credentials: Option<&'a [u8]>,
}

impl<'a> Known<'a> {
    pub(super) fn of(head: &Head<'a>) -> Self {
        let [media, coding, version, session, method, agent, credentials] = head.first([
            "content-type",
            "content-encoding",
            "mcp-protocol-version",
            "mcp-session-id",
            "mcp-method",
            "user-agent",
            "authorization",
        ]);
        Self {
            body: body_of([media, coding]),
            version,
            session,
            method,
            agent,
            credentials,
        }
    }
}

/// By `Content-Type` and `Content-Encoding`: whether a body is an event stream, and whether it
/// is coded.
pub(super) fn body_of([media, coding]: [Option<&[u8]>; 2]) -> (bool, bool) {
    (media.is_some_and(is_event_stream), coding.is_some())
}
