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
    /// The client cancelled it before it was answered.
    Cancelled,
    /// The session ended before it was answered.
    Unanswered,
    /// Whether it was answered is not known: a part of the session was not recorded.
    NotRecorded,
    /// It has not been answered yet, and the session goes on.
    Pending,
}

impl Outcome {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::ToolError => "tool_error",
            Self::Cancelled => "cancelled",
            Self::Unanswered => "unanswered",
            Self::NotRecorded => "not_recorded",
            Self::Pending => "pending",
        }
    }

    /// Whether the caller did not get what it asked for.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::ToolError | Self::Unanswered)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
