//! agent-strace: directories of sessions, each a list of events.
//!
//! The format is that of version 0.103.0 (its `models.py` and `store.py`). What comes in is
//! taken as it is, unknown kinds of events and unknown members too; what goes out keeps to what
//! that version accepts.
//!
//! - [`event`]: one line of `events.ndjson`
//! - `read`: sessions on their way in
//! - `write`: runs on their way out; `told`: the events that a run of ours is told with

pub mod event;
pub mod write;

pub(super) mod read;
mod told;

/// What imported sessions say they are.
pub(super) const FORMAT: &str = "agent-strace";
/// The member that holds the event that a message was made from.
pub(super) const MARK: &str = "agent-strace/event";
/// What the methods of events that are no messages begin with.
pub(super) const PREFIX: &str = "agent-strace/";
/// The method of the message that holds a session's `meta.json`.
pub(super) const META: &str = "agent-strace/meta";

/// The kinds of events that version 0.103.0 knows; any other makes it refuse the session.
pub(super) const KINDS: [&str; 14] = [
    "session_start",
    "session_end",
    "tool_call",
    "tool_result",
    "llm_request",
    "llm_response",
    "file_read",
    "file_write",
    "decision",
    "error",
    "user_prompt",
    "assistant_response",
    "subagent_start",
    "subagent_stop",
];

#[cfg(test)]
mod tests;
