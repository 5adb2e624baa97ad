//! What happened to a step.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What happened to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was answered with a result, or was no request.
    Ok,
    /// It was answered with a JSON-RPC error.
    Error,
    /// The tool ran and reported a failure of its own (`isError`).
    ToolError,
    /// Someone who may decide so did not let it happen. No relay does that; imports and
    /// hooks can tell it.
    Denied,
    /// The caller gave up because it took too long: it said so, or HTTP did.
    Timeout,
    /// The client cancelled it before it was answered.
    Cancelled,
    /// The server failed before it answered: it did not start, or exited with an error.
    Crashed,
    /// The session ended before it was answered.
    Unanswered,
    /// Whether it was answered is not known: a part of the session was not recorded.
    NotRecorded,
    /// It has not been answered yet, and the session goes on.
    Pending,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::Error,
        Self::ToolError,
        Self::Denied,
        Self::Timeout,
        Self::Cancelled,
        Self::Crashed,
        Self::Unanswered,
        Self::NotRecorded,
        Self::Pending,
    ];

    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::ToolError => "tool_error",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Crashed => "crashed",
            Self::Unanswered => "unanswered",
            Self::NotRecorded => "not_recorded",
            Self::Pending => "pending",
        }
    }

    /// Whether the caller did not get what it asked for, and did not choose that itself.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Error | Self::ToolError | Self::Denied | Self::Timeout => true,
            Self::Crashed | Self::Unanswered => true,
            Self::Ok | Self::Cancelled | Self::NotRecorded | Self::Pending => false,
        }
    }

    /// Whether it was a request that nobody answered, and nobody will.
    #[must_use]
    pub fn is_unanswered(self) -> bool {
        matches!(self, Self::Unanswered | Self::Crashed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
