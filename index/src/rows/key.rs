//! What joins parts of sessions to runs.

use serde::{Deserialize, Serialize};

/// Something that several sessions of one conversation have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GroupKey {
    /// A token by which the user or an experiment marked the run. Nothing records one yet.
    Marked(String),
    /// The conversation that the client names in each call (`_meta.sessionId` of Codex).
    Conversation(String),
    /// The process of the client: machine, start of the machine, number and start.
    Client {
        /// The machine's name.
        host: String,
        /// What tells one start of the machine from another.
        boot: String,
        /// The number of the process.
        pid: u32,
        /// When it started, in clock ticks since the machine did.
        started: u64,
    },
    /// The trace id of `_meta.traceparent` (W3C Trace Context), 32 hexadecimal digits.
    Trace(String),
    /// The keyed fingerprint of an `Mcp-Session-Id`.
    McpSession(String),
    /// Nothing: the session is a run of its own.
    Session,
}

impl GroupKey {
    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Marked(_) => "marked",
            Self::Conversation(_) => "conversation",
            Self::Client { .. } => "client",
            Self::Trace(_) => "trace",
            Self::McpSession(_) => "mcp_session",
            Self::Session => "session",
        }
    }

    /// Its value as one text; what it is made of cannot be told from it in all cases.
    #[must_use]
    pub fn value(&self) -> String {
        match self {
            Self::Marked(text)
            | Self::Conversation(text)
            | Self::Trace(text)
            | Self::McpSession(text) => text.clone(),
            Self::Client {
                host,
                boot,
                pid,
                started,
            } => format!("{host}\n{boot}\n{pid}\n{started}"),
            Self::Session => String::new(),
        }
    }

    /// Whether it names the conversation itself, so that a pause does not end it.
    #[must_use]
    pub fn is_explicit(&self) -> bool {
        matches!(self, Self::Marked(_) | Self::Conversation(_))
    }

    /// What it is found by: kind and value, hashed.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        let value = self.value();
        for part in [self.kind(), &value] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        digest
    }
}
