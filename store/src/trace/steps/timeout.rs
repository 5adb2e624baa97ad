//! What tells that a request was given up because it took too long.
//!
//! - The client cancels it and says so: the TypeScript SDK's reason is `McpError: MCP error
//!   -32001: Request timed out`, rmcp's `request timeout`.
//! - The answer is error -32001 (`RequestTimeout` of the TypeScript SDK) and says so. The code
//!   alone is not enough: of HTTP it also means a session that is not known.
//! - HTTP answers 408 or 504, or the relay could not reach the server in time.

use agent_trace_wire::message::{member, string};

/// How people and libraries put it.
const WORDS: [&str; 5] = [
    "timeout",
    "timed out",
    "time out",
    "time-out",
    "deadline exceeded",
];
/// As much of a text is looked at.
const LOOKED_AT: usize = 1000;

/// Whether this JSON string says so.
pub(super) fn is_told(text: &[u8]) -> bool {
    let Some(text) = string(text) else {
        return false;
    };
    let start: String = text.chars().take(LOOKED_AT).collect();
    let start = start.to_ascii_lowercase();
    WORDS.iter().any(|word| start.contains(word))
}

/// Whether this JSON-RPC error is one.
pub(super) fn is_error(error: &[u8]) -> bool {
    member(error, "code") == Some(b"-32001") && member(error, "message").is_some_and(is_told)
}

/// Whether this HTTP status is one.
pub(super) fn is_status(status: Option<u16>) -> bool {
    matches!(status, Some(408 | 504))
}
