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
