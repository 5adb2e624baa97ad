//! How a session ended.

use serde::{Deserialize, Serialize};

/// What made a session end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The server exited by itself while the client was still connected.
    ServerExited,
    /// The client ended its stream, and the server then exited by itself.
    ClientClosed,
    /// The client ended its stream and the server did not exit within the grace period.
    GraceExpired,
    /// The client stopped reading.
    ClientStoppedReading,
    /// The relay was told to end by a signal.
    Signalled,
    /// The process that started the relay is gone.
    ClientDied,
    /// The server could not be started.
    NotStarted,
    /// Nothing was heard of the client for a long time (HTTP).
    Idle,
    /// The server does not know the session any more (HTTP).
    ServerForgot,
    /// The relay was stopped (HTTP).
    RelayStopped,
}

/// The end of a session, as it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// What made it end.
    pub ending: Ending,
    /// The server's exit status, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the server, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether the server had to be killed because it ignored the request to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killed: bool,
    /// Why the server could not be started, where it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How an HTTP exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The answer was forwarded to its end.
    Complete,
    /// The client went away before that.
    ClientGone,
    /// The client's request broke off or was no HTTP.
    ClientBroke,
    /// The server went away before the end of its answer, or answered something that is no
    /// HTTP.
    ServerBroke,
    /// The server could not be reached; the relay answered 502.
    Unreachable,
    /// The server could not be reached in time; the relay answered 504.
    TimedOut,
    /// The relay did not forward the request; it answered 403 or another status of its own.
    Refused,
    /// Nothing moved for longer than the idle bound allows.
    Idle,
    /// The relay was stopped.
    RelayStopped,
}
