//! From frames to steps: which answer belongs to which request, and what came of it.
//!
//! A request is paired with the answer by the side that asked and the exact JSON text of the
//! id: `1`, `1.0` and `"1"` are three ids, and a `1` of the other side is a fourth. An id may
//! be used again once it was answered.

use crate::journal::{Flags, Record};
use agent_trace_model::{Outcome, Stream};
use agent_trace_wire::frame::Framing;
use agent_trace_wire::message::{
    Message, MessageKind, beginning, member, member_at, messages, stays_open, string,
};
use agent_trace_wire::stdio::body;
use std::collections::HashMap;
use std::ops::Range;

/// JSON-RPC codes of an era or header negotiation, which are part of getting connected:
/// `HeaderMismatch` and `UnsupportedProtocolVersion` of MCP 2026-07-28.
const NEGOTIATION: [&[u8]; 2] = [b"-32020", b"-32022"];

/// One frame of a run.
#[derive(Debug)]
pub struct Frame {
    /// As it stands in the journal.
    pub record: Record,
}

impl Frame {
    pub(super) fn new(record: Record) -> Self {
        Self { record }
    }

    /// Its JSON text, without what is around it on the wire.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        body(&self.record.payload, self.record.envelope.framing)
    }

    /// Whether it is no message.
    #[must_use]
    pub fn is_stray(&self) -> bool {
        self.record.envelope.framing == Framing::Stray
    }
}

/// A part of a frame: a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position of the frame in the run.
    pub frame: usize,
    /// Where in its payload the message is.
    pub range: Range<usize>,
}

impl Place {
    /// The message's JSON text.
    #[must_use]
    pub fn text<'a>(&self, frames: &'a [Frame]) -> &'a [u8] {
        frames
            .get(self.frame)
            .and_then(|frame| frame.record.payload.get(self.range.clone()))
            .unwrap_or_default()
    }
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// One entry in a run's list.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number, from 1.
    pub number: usize,
    /// What it is.
    pub kind: StepKind,
    /// Who began it.
    pub from: Stream,
    /// The method, where there is one.
    pub method: Option<String>,
    /// The tool, prompt or resource that it is about.
    pub target: Option<String>,
    /// The id's JSON text.
    pub id: Option<Vec<u8>>,
    /// The message that began it.
    pub opened: Place,
    /// The message that answered it.
    pub closed: Option<Place>,
    /// When it began, in nanoseconds since 1970.
    pub wall: u64,
    /// The same on the recorder's monotonic clock, which durations are measured with.
    pub monotonic: u64,
    /// From the end of the request to the end of its answer, in nanoseconds.
    pub duration: Option<u64>,
    /// How many progress notifications came.
    pub progress: u32,
    /// Whether it was cancelled, answered or not.
    pub cancel_sent: bool,
    /// What came of it.
    pub outcome: Outcome,
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

    /// The request's parameters, as JSON text.
    #[must_use]
    pub fn params<'a>(&self, frames: &'a [Frame]) -> Option<&'a [u8]> {
        member(self.opened.text(frames), "params")
    }

    /// What is worth showing of the parameters: of a call its arguments.
    #[must_use]
    pub fn arguments<'a>(&self, frames: &'a [Frame]) -> Option<&'a [u8]> {
        let params = self.params(frames)?;
        match self.method.as_deref() {
            Some("tools/call" | "prompts/get") => member(params, "arguments"),
            _ => Some(params),
        }
    }

    /// The answer's result or error, as JSON text.
    #[must_use]
    pub fn answer<'a>(&self, frames: &'a [Frame]) -> Option<&'a [u8]> {
        let text = self.closed.as_ref()?.text(frames);
        member(text, "result").or_else(|| member(text, "error"))
    }

    /// The name by which the client introduces itself in this step, if it does.
    pub(super) fn client_name(&self, frames: &[Frame]) -> Option<String> {
        let params = self.params(frames).filter(|_| self.is_clients())?;
        let modern = ["_meta", "io.modelcontextprotocol/clientInfo", "name"];
        let name =
            member_at(params, &["clientInfo", "name"]).or_else(|| member_at(params, &modern));
        name.and_then(string).map(Into::into)
    }
}

/// Whose id, and which.
type Key = (Stream, Vec<u8>);

/// Pairs the frames of a session.
#[derive(Debug, Default)]
pub struct Steps {
    steps: Vec<Step>,
    open: HashMap<Key, usize>,
    /// Steps by the token under which their progress comes.
    progress: HashMap<Key, usize>,
    /// When, on the monotonic clock, something was last lost that may have been an answer.
    lost: Option<u64>,
}

impl Steps {
    /// Takes note that at this moment of the monotonic clock something was not recorded.
    #[must_use]
    pub fn with_loss_at(mut self, monotonic: Option<u64>) -> Self {
        self.lost = self.lost.max(monotonic);
        self
    }

    /// The steps of these frames; `over` tells whether more can come.
    #[must_use]
    pub fn pair(mut self, frames: &[Frame], over: bool) -> Vec<Step> {
        for (position, frame) in frames.iter().enumerate() {
            self.frame(position, frame);
        }
        let lost = self.lost;
        for step in self
            .steps
            .iter_mut()
            .filter(|step| step.outcome == Outcome::Pending)
        {
            if stays_open(step.method.as_deref()) && over {
                step.outcome = Outcome::Ok;
            } else if lost.is_some_and(|at| at >= step.monotonic) {
                step.outcome = Outcome::NotRecorded;
            } else if over {
                step.outcome = Outcome::Unanswered;
            }
        }
        self.steps
    }

    fn frame(&mut self, position: usize, frame: &Frame) {
        let payload = &frame.record.payload[..];
        let envelope = &frame.record.envelope;
        let place = |part: &[u8]| {
            // Every part is a slice of the payload.
            let start = part.as_ptr() as usize - payload.as_ptr() as usize;
            Place {
                frame: position,
                range: start..start + part.len(),
            }
        };
        let mut any = false;
        if envelope.flags.has(Flags::CUT) && !frame.is_stray() {
            let message = beginning(frame.body()).filter(|m| m.kind != MessageKind::Other);
            if let Some(message) = message {
                any = true;
                self.message(frame, place(message.text), &message);
            }
        } else if !frame.is_stray() {
            for message in messages(frame.body()).into_iter().flatten() {
                any = true;
                self.message(frame, place(message.text), &message);
            }
        }
        if !any && (envelope.flags.has(Flags::CUT) || envelope.flags.has(Flags::LOSSY)) {
            self.lost = self.lost.max(Some(envelope.monotonic));
        }
        // An empty batch, a frame that was cut, or no JSON at all: shown as what it is.
        if !any {
            let kind = if frame.is_stray() {
                StepKind::Stray
            } else {
                StepKind::Other
            };
            self.begin(frame, place(payload), kind, None);
        }
    }

    fn message(&mut self, frame: &Frame, place: Place, message: &Message<'_>) {
        let stream = frame.record.envelope.stream;
        match message.kind {
            MessageKind::Request => {
                let step = self.begin(frame, place, StepKind::Request, Some(message));
                if let Some(id) = message.id {
                    self.open.insert((stream, id.to_vec()), step);
                }
                let path = ["_meta", "progressToken"];
                if let Some(token) = message.params.and_then(|params| member_at(params, &path)) {
                    self.progress.insert((stream, token.to_vec()), step);
                }
            }
            MessageKind::Response | MessageKind::Error => {
                let asked = message.id.map(|id| (other(stream), id.to_vec()));
                match asked.and_then(|key| self.open.remove(&key)) {
                    Some(step) => self.close(step, frame, place, message),
                    None => drop(self.begin(frame, place, StepKind::Answer, Some(message))),
                }
            }
            MessageKind::Notification => self.notification(frame, place, message),
            MessageKind::Other => drop(self.begin(frame, place, StepKind::Other, Some(message))),
        }
    }

    fn notification(&mut self, frame: &Frame, place: Place, message: &Message<'_>) {
        let stream = frame.record.envelope.stream;
        let about = |name: &str| {
            let value = member(message.params?, name)?;
            Some(value.to_vec())
        };
        match message.method.as_deref() {
            Some("notifications/progress") => {
                let key = about("progressToken").map(|token| (other(stream), token));
                if let Some(&step) = key.and_then(|key| self.progress.get(&key)) {
                    self.steps[step].progress += 1;
                }
            }
            Some("notifications/cancelled") => {
                let key = about("requestId").map(|id| (stream, id));
                if let Some(&step) = key.and_then(|key| self.open.get(&key)) {
                    self.steps[step].cancel_sent = true;
                    self.steps[step].outcome = Outcome::Cancelled;
                }
            }
            _ => {}
        }
        self.begin(frame, place, StepKind::Notification, Some(message));
    }

    fn begin(
        &mut self,
        frame: &Frame,
        opened: Place,
        kind: StepKind,
        message: Option<&Message<'_>>,
    ) -> usize {
        let envelope = &frame.record.envelope;
        let undelivered = envelope.flags.has(Flags::UNDELIVERED);
        self.steps.push(Step {
            number: self.steps.len() + 1,
            kind,
            from: envelope.stream,
            method: message.and_then(|m| m.method.as_deref()).map(Into::into),
            target: message.and_then(target),
            id: message.and_then(|m| m.id).map(Into::into),
            opened,
            closed: None,
            wall: envelope.wall,
            monotonic: envelope.monotonic,
            duration: None,
            progress: 0,
            cancel_sent: false,
            outcome: match kind {
                StepKind::Request if undelivered => Outcome::Unanswered,
                StepKind::Request => Outcome::Pending,
                StepKind::Answer if message.is_some_and(|m| m.kind == MessageKind::Error) => {
                    Outcome::Error
                }
                _ => Outcome::Ok,
            },
        });
        self.steps.len() - 1
    }

    fn close(&mut self, step: usize, frame: &Frame, place: Place, message: &Message<'_>) {
        let step = &mut self.steps[step];
        step.closed = Some(place);
        let answered = frame.record.envelope.monotonic;
        step.duration = answered.checked_sub(step.monotonic);
        if !step.cancel_sent {
            step.outcome = outcome(step, message);
        }
    }
}

fn outcome(step: &Step, answer: &Message<'_>) -> Outcome {
    if let Some(error) = answer.error {
        let code = member(error, "code").unwrap_or_default();
        let probe = step.method.as_deref() == Some("server/discover");
        // How a client finds out which era a server speaks; nothing went wrong.
        return if probe || NEGOTIATION.contains(&code) {
            Outcome::Ok
        } else {
            Outcome::Error
        };
    }
    match answer.result.and_then(|result| member(result, "isError")) {
        Some(b"true") => Outcome::ToolError,
        _ => Outcome::Ok,
    }
}

/// What a request is about, by the parameter that its method names it with.
fn target(message: &Message<'_>) -> Option<String> {
    let params = message.params?;
    let name = match message.method.as_deref()? {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        _ => return None,
    };
    string(member(params, name)?).map(Into::into)
}

fn other(stream: Stream) -> Stream {
    match stream {
        Stream::ClientToServer => Stream::ServerToClient,
        Stream::ServerToClient | Stream::Stderr => Stream::ClientToServer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Envelope, Kind};

    fn frame((n, (stream, text)): (usize, &(Stream, &str))) -> Frame {
        Frame::new(Record {
            envelope: Envelope {
                kind: Kind::Frame,
                stream: *stream,
                framing: if agent_trace_wire::json::is_valid(text.as_bytes()) {
                    Framing::Newline
                } else {
                    Framing::Stray
                },
                flags: Flags::default(),
                session: 1,
                exchange: 0,
                sequence: n as u64 + 1,
                wall: 0,
                monotonic: n as u64 * 10,
                length: text.len() as u64,
                digest: None,
                spans: vec![],
            },
            payload: text.as_bytes().to_vec(),
        })
    }

    fn steps(lines: &[(Stream, &str)]) -> Vec<Step> {
        let frames: Vec<Frame> = lines.iter().enumerate().map(frame).collect();
        Steps::default().pair(&frames, true)
    }

    use Stream::{ClientToServer as C, ServerToClient as S};

    fn outcomes(lines: &[(Stream, &str)]) -> Vec<(Option<Vec<u8>>, Outcome)> {
        let requests = steps(lines)
            .into_iter()
            .filter(|s| s.kind == StepKind::Request);
        requests.map(|s| (s.id, s.outcome)).collect()
    }

    #[test]
    fn w23_ids_that_look_alike_are_kept_apart() {
        let ids = ["1", "\"1\"", "\"01\"", "1.0", "null", "9007199254740993"];
        let asks: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"{{"id":{id},"method":"ping"}}"#))
            .collect();
        let mut lines: Vec<(Stream, &str)> = asks.iter().map(|ask| (C, ask.as_str())).collect();
        lines.push((S, r#"{"id":1.0,"result":{}}"#));
        lines.push((S, r#"{"id":"1","error":{"code":1}}"#));
        let found: Vec<Outcome> = outcomes(&lines).into_iter().map(|(_, o)| o).collect();
        use Outcome::{Error, Ok, Unanswered};
        assert_eq!(
            found,
            [Unanswered, Error, Unanswered, Ok, Unanswered, Unanswered]
        );
    }

    #[test]
    fn w25_every_element_of_a_batch_is_a_step() {
        let found = steps(&[
            (
                C,
                r#"[{"id":1,"method":"tools/call","params":{"name":"t"}},{"id":2,"method":"ping"}]"#,
            ),
            (
                S,
                r#"[{"id":2,"result":{}},{"id":1,"result":{"isError":true}}]"#,
            ),
            (C, "[]"),
        ]);
        assert_eq!(found.len(), 3);
        assert_eq!(
            (found[0].tool(), found[0].outcome),
            (Some("t"), Outcome::ToolError)
        );
        assert_eq!(found[1].outcome, Outcome::Ok);
        assert_eq!(found[2].kind, StepKind::Other);
    }

    #[test]
    fn w27_progress_belongs_to_the_request_with_its_token() {
        let call =
            r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#;
        let progress = r#"{"method":"notifications/progress","params":{"progressToken":"p"}}"#;
        let other = r#"{"method":"notifications/progress","params":{"progressToken":"q"}}"#;
        let found = steps(&[(C, call), (S, progress), (S, other), (S, progress)]);
        assert_eq!(found[0].progress, 2);
    }

    #[test]
    fn w28_both_sides_may_use_the_same_id() {
        let found = outcomes(&[
            (C, r#"{"id":1,"method":"tools/call"}"#),
            (S, r#"{"id":1,"method":"elicitation/create"}"#),
            (C, r#"{"id":1,"error":{"code":1}}"#),
            (S, r#"{"id":1,"result":{}}"#),
        ]);
        let found: Vec<Outcome> = found.into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(found, [Outcome::Ok, Outcome::Error]);
    }

    #[test]
    fn w29_a_cancelled_call_stays_cancelled_and_its_late_result_is_known() {
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
        let found = steps(&[
            (C, r#"{"id":1,"method":"tools/call"}"#),
            (C, cancel),
            (S, r#"{"id":1,"result":{}}"#),
            (C, cancel),
        ]);
        assert_eq!(found[0].outcome, Outcome::Cancelled);
        assert_eq!(found[0].duration, Some(20));
        let done = [
            (C, r#"{"id":1,"method":"ping"}"#),
            (S, r#"{"id":1,"result":{}}"#),
            (C, cancel),
        ];
        assert_eq!(
            outcomes(&done)[0].1,
            Outcome::Ok,
            "a cancel after the answer changes nothing"
        );
    }

    #[test]
    fn finding_out_the_era_is_no_failure() {
        let refused = r#"{"id":1,"error":{"code":-32601,"message":"unknown"}}"#;
        let discover = (C, r#"{"id":1,"method":"server/discover"}"#);
        assert_eq!(outcomes(&[discover, (S, refused)])[0].1, Outcome::Ok);
        let initialize = (C, r#"{"id":1,"method":"initialize"}"#);
        assert_eq!(outcomes(&[initialize, (S, refused)])[0].1, Outcome::Error);
        let locked = (S, r#"{"id":1,"error":{"code":-32022}}"#);
        assert_eq!(outcomes(&[initialize, locked])[0].1, Outcome::Ok);
    }

    #[test]
    fn a_subscription_that_the_session_ends_is_no_failure() {
        let listen = r#"{"id":1,"method":"subscriptions/listen"}"#;
        assert_eq!(outcomes(&[(C, listen)])[0].1, Outcome::Ok);
    }

    #[test]
    fn what_may_have_been_answered_in_a_gap_is_not_called_unanswered() {
        let ask = r#"{"id":1,"method":"a"}"#;
        let pair = |lost| {
            let frames = [frame((0, &(C, ask)))];
            Steps::default().with_loss_at(lost).pair(&frames, true)[0].outcome
        };
        assert_eq!(pair(None), Outcome::Unanswered);
        assert_eq!(pair(Some(5)), Outcome::NotRecorded);
    }

    #[test]
    fn an_answer_of_which_only_the_beginning_was_kept_is_an_answer() {
        let ask = frame((0, &(C, r#"{"id":1,"method":"a"}"#)));
        let mut answer = frame((1, &(S, r#"{"id":1,"result":{"content":["yyyy"#)));
        answer.record.envelope.framing = Framing::Newline;
        answer.record.envelope.flags = Flags::CUT;
        let found = Steps::default().pair(&[ask, answer], true);
        assert_eq!((found.len(), found[0].outcome), (1, Outcome::Ok));
    }

    #[test]
    fn an_id_may_be_used_again() {
        let found = outcomes(&[
            (C, r#"{"id":1,"method":"a"}"#),
            (S, r#"{"id":1,"result":{}}"#),
            (C, r#"{"id":1,"method":"b"}"#),
            (S, r#"{"id":1,"error":{}}"#),
            (S, r#"{"id":1,"result":{}}"#),
        ]);
        assert_eq!(found[0].1, Outcome::Ok);
        assert_eq!(found[1].1, Outcome::Error);
    }
}
