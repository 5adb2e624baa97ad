//! A step: one entry in a run's ordered list.

use crate::end::Finish;
use crate::outcome::Outcome;
use crate::stream::Stream;
use serde::{Deserialize, Serialize};

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A request with what answered it.
    Request,
    /// A notification.
    Notification,
    /// An answer to a request that was not seen.
    Answer,
    /// JSON that is no JSON-RPC.
    Other,
    /// Bytes that are no JSON.
    Stray,
    /// An HTTP exchange whose request carried no message: the event stream of an older
    /// session, its end, a document that clients look for, a body that is something else.
    Http,
}

impl StepKind {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Answer => "answer",
            Self::Other => "other",
            Self::Stray => "stray",
            Self::Http => "http",
        }
    }
}

/// One entry in a run's list, with what it carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number in the run, from 1.
    pub number: usize,
    /// Position of its session among those of the run.
    pub session: usize,
    /// Position of its turn among those of the run, where prompts are known.
    pub turn: Option<usize>,
    /// What it is.
    pub kind: StepKind,
    /// Who began it.
    pub from: Stream,
    /// The method, where there is one; of an HTTP exchange its own.
    pub method: Option<String>,
    /// The tool, prompt or resource that it is about; of an HTTP exchange path and query.
    pub target: Option<String>,
    /// The id's JSON text.
    pub id: Option<String>,
    /// The message that began it; absent for an HTTP exchange without a request body.
    pub request: Option<Message>,
    /// The message that answered it, or the body of an HTTP answer that is no message.
    pub response: Option<Message>,
    /// The HTTP exchange that it began in, or 0.
    pub exchange: u32,
    /// The HTTP status of that exchange, as far as it is known.
    pub status: Option<u16>,
    /// How that exchange ended, where that has a say in the outcome.
    pub finish: Option<Finish>,
    /// How many requests it took: more than one where the server asked for input and the
    /// client repeated the request with it (MCP 2026-07-28).
    pub rounds: u32,
    /// When it began, in nanoseconds since 1970.
    pub wall: u64,
    /// From the end of the request to the end of its answer, in nanoseconds.
    pub duration: Option<u64>,
    /// How many progress notifications came.
    pub progress: u32,
    /// Whether it was cancelled, answered or not.
    pub cancel_sent: bool,
    /// What came of it.
    pub outcome: Outcome,
}

/// How the end of a frame was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// It was a line of JSON.
    #[default]
    Line,
    /// A Content-Length block announced it, which no revision of MCP defines.
    ContentLength,
    /// It was an event of an event stream.
    Event,
    /// It was the body of an HTTP message.
    Body,
    /// It is no message.
    Stray,
}

/// A message of a step, redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its JSON text, without what is around it on the wire; of a stray body its bytes. Empty
    /// where it was not kept.
    pub text: Vec<u8>,
    /// Length on the wire of the frame that it was in, in bytes.
    pub length: u64,
    /// When the last of it was read from its sender, in nanoseconds since 1970.
    pub wall: u64,
    /// Number of the record that its frame is in its process's journal: messages of one batch
    /// share it.
    pub frame: u64,
    /// How that frame was told from what is around it.
    pub framing: Framing,
    /// The HTTP exchange that it was on, or 0: an answer may come on another one than its
    /// request.
    pub exchange: u32,
    /// Whether the frame was a batch: an array of messages.
    pub batch: bool,
    /// Whether only the first part of the frame was kept.
    pub cut: bool,
    /// Whether bytes of the frame are missing that the recorder had no room for.
    pub lossy: bool,
    /// Whether the stream ended inside the frame.
    pub incomplete: bool,
    /// Whether it was delivered.
    pub delivered: bool,
    /// Whether the relay forwarded something else than it was sent.
    pub altered: bool,
    /// How many secrets were hidden in the frame.
    pub redacted: usize,
}

impl Message {
    /// Whether all of its frame was kept.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.cut && !self.lossy
    }
}

impl Step {
    /// Whether the client began it.
    #[must_use]
    pub fn is_clients(&self) -> bool {
        self.from == Stream::ClientToServer
    }

    /// The tool that it calls.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        let calls = self.method.as_deref() == Some("tools/call");
        self.target.as_deref().filter(|_| calls)
    }

    /// When it ended, in nanoseconds since 1970: its beginning where it has no duration.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.wall.saturating_add(self.duration.unwrap_or(0))
    }

    /// Bytes of both messages on the wire.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let length = |message: &Option<Message>| message.as_ref().map_or(0, |m| m.length);
        length(&self.request) + length(&self.response)
    }
}
