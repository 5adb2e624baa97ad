//! From frames to steps: which answer belongs to which request, and what came of it.
//!
//! A request is paired with the answer by the side that asked and the exact JSON text of the
//! id: `1`, `1.0` and `"1"` are three ids, and a `1` of the other side is a fourth. An id may
//! be used again once it was answered.
//!
//! Over HTTP an answer on the same exchange comes first. Where a session id (or the endpoint
//! of MCP 2024-11-05) ties the exchanges together, it may come on any of them; where nothing
//! does, ids of two clients may be equal, and each exchange stands for itself.
//!
//! Steps grow record by record, in the order of the monotonic clock, so that a session can be
//! followed without reading it anew.
//!
//! - `at`: the messages in a frame
//! - `compact`: steps about which nothing more is learned are let go
//! - `http`: what the exchanges say about the steps
//! - `timeout`: what tells that something took too long
//! - `rounds`: requests that are repeated with the input that the server asked for

mod at;
mod compact;
mod http;
mod rounds;
mod timeout;

use super::step::{Frame, PROTOCOL_VERSION, Place, Step, StepKind};
use crate::journal::header::KeyKind;
use crate::journal::{Envelope, Flags};
use agent_trace_model::{Outcome, Stream};
use agent_trace_wire::frame::Framing;
use agent_trace_wire::message::{
    Message, MessageKind, member, member_at, messages, stays_open, string,
};
use at::At;
use http::Running;
use rounds::Rounds;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Deref;

/// JSON-RPC codes of an era or header negotiation, which are part of getting connected:
/// `HeaderMismatch` and `UnsupportedProtocolVersion` of MCP 2026-07-28.
const NEGOTIATION: [&[u8]; 2] = [b"-32020", b"-32022"];
/// The longest code of an error that is kept, in bytes.
const LONGEST_CODE: usize = 32;
/// How a client of MCP 2026-07-28 finds out what the server speaks.
const DISCOVER: &str = "server/discover";

/// Whose id (or token), and which.
type Key = (Stream, Vec<u8>);

/// The steps of a session, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    all: Vec<Step>,
    /// How many steps were let go.
    dropped: usize,
    /// Open requests by id: the exchange that each was on, and the step.
    open: HashMap<Key, Vec<(u32, usize)>>,
    /// Likewise by the token under which progress comes.
    progress: HashMap<Key, Vec<(u32, usize)>>,
    /// The tokens of steps that are not settled.
    tokens: HashMap<usize, Vec<Key>>,
    /// What ties the exchanges together (HTTP).
    tie: Option<KeyKind>,
    exchanges: HashMap<u32, Running>,
    rounds: Rounds,
    /// Hashes of the events with an id that were seen: (id, data).
    events: HashSet<[u8; 16]>,
    /// When, on the monotonic clock, something was last lost that may have been an answer.
    lost: Option<u64>,
    unsettled: BTreeSet<usize>,
    settled: Vec<usize>,
}

impl Deref for Steps {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.all
    }
}

impl<'a> IntoIterator for &'a Steps {
    type Item = &'a Step;
    type IntoIter = std::slice::Iter<'a, Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.iter()
    }
}

impl Steps {
    /// The positions of the steps about which nothing more will be learned, and that were not
    /// told of before.
    pub fn take_settled(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.settled)
    }

    /// The positions of the steps that are still going on.
    pub fn unsettled(&self) -> impl Iterator<Item = usize> {
        self.unsettled.iter().copied()
    }

    /// Takes note of what ties the exchanges of the session together.
    pub(super) fn tied_by(&mut self, kind: Option<KeyKind>) {
        self.tie = kind;
    }

    /// Takes note that at this moment of the monotonic clock something was not recorded.
    pub(super) fn lose(&mut self, monotonic: u64) {
        self.lost = self.lost.max(Some(monotonic));
    }

    /// Takes the frame at this position.
    pub(super) fn frame(&mut self, frames: &[Frame], position: usize) {
        let Some(frame) = frames.get(position) else {
            return;
        };
        let envelope = &frame.record.envelope;
        let at = At {
            frames,
            frame,
            position,
        };
        if envelope.framing == Framing::Event && !self.is_news(frame) {
            return;
        }
        if envelope.exchange > 0 && self.is_body(&at) {
            return;
        }
        let mut any = false;
        at.messages(|message| {
            any = true;
            self.message(&at, message);
        });
        if any {
            return;
        }
        if envelope.flags.has(Flags::CUT) || envelope.flags.has(Flags::LOSSY) {
            self.lose(envelope.monotonic);
        }
        // An empty batch, a frame that was cut, or no JSON at all: shown as what it is.
        let event = envelope.framing == Framing::Event;
        let kind = if frame.is_stray() || (event && messages(frame.body()).is_err()) {
            StepKind::Stray
        } else {
            StepKind::Other
        };
        self.begin(&at, at.place(frame.body()), kind, None);
    }

    /// Ends the session: nothing more will come. What is open when a server crashed will
    /// not be answered because of that.
    pub(super) fn end(&mut self, frames: &[Frame], crashed: bool) {
        self.end_exchanges(frames);
        for step in std::mem::take(&mut self.unsettled) {
            let waits = self.rounds.is_waiting(step);
            let outcome = match &self.all[step] {
                step if step.outcome != Outcome::Pending => step.outcome,
                // Asked for input, and the client did not go on.
                _ if waits => Outcome::Cancelled,
                step if stays_open(step.method.as_deref()) => Outcome::Ok,
                step => match self.unanswered(step.monotonic) {
                    Outcome::Unanswered if crashed => Outcome::Crashed,
                    outcome => outcome,
                },
            };
            self.all[step].outcome = outcome;
            self.settled.push(step);
        }
    }

    /// What to call a request that began then and has no answer.
    fn unanswered(&self, monotonic: u64) -> Outcome {
        if self.lost.is_some_and(|at| at >= monotonic) {
            Outcome::NotRecorded
        } else {
            Outcome::Unanswered
        }
    }

    /// Whether an answer may come on another exchange than its request.
    fn is_tied(&self) -> bool {
        matches!(self.tie, Some(KeyKind::McpSession | KeyKind::Endpoint))
    }

    fn message(&mut self, at: &At<'_>, message: &Message<'_>) {
        let envelope = at.envelope();
        match message.kind {
            MessageKind::Request => self.request(at, message),
            MessageKind::Response | MessageKind::Error => {
                let asked = message.id.map(|id| (other(envelope.stream), id.to_vec()));
                if let Some(step) = asked.and_then(|key| self.take_open(&key, envelope.exchange)) {
                    self.close(step, at, message);
                } else if !self.refuses_all(at, message) {
                    self.begin(at, at.place(message.text), StepKind::Answer, Some(message));
                }
            }
            MessageKind::Notification => self.notification(at, message),
            MessageKind::Other => {
                self.begin(at, at.place(message.text), StepKind::Other, Some(message));
            }
        }
    }

    fn request(&mut self, at: &At<'_>, message: &Message<'_>) {
        let Envelope {
            stream, exchange, ..
        } = *at.envelope();
        let again = self.rounds.take(message);
        let step = match again.filter(|(step, _)| self.all[*step].from == stream) {
            Some((step, before)) => {
                // How that exchange ends says nothing about this round.
                self.not_asked(before, step);
                self.all[step].rounds += 1;
                self.all[step].id = message.id.map(Into::into);
                self.all[step].closed = None;
                self.all[step].status = None;
                step
            }
            None => self.begin(at, at.place(message.text), StepKind::Request, Some(message)),
        };
        if let Some(id) = message.id {
            let open = self.open.entry((stream, id.to_vec())).or_default();
            open.retain(|(on, _)| *on != exchange);
            open.push((exchange, step));
        }
        let path = ["_meta", "progressToken"];
        let token = message.params.and_then(|params| member_at(params, &path));
        if let Some(token) = token.filter(|_| self.unsettled.contains(&step)) {
            let known = self.progress.entry((stream, token.to_vec())).or_default();
            known.retain(|(on, _)| *on != exchange);
            known.push((exchange, step));
            let tokens = self.tokens.entry(step).or_default();
            tokens.push((stream, token.to_vec()));
        }
        if stream == Stream::ClientToServer {
            let version = ["_meta", PROTOCOL_VERSION];
            let version = message
                .params
                .and_then(|params| member_at(params, &version))
                .and_then(string);
            self.asked(exchange, step, version.as_deref());
        }
    }

    fn notification(&mut self, at: &At<'_>, message: &Message<'_>) {
        let Envelope {
            stream, exchange, ..
        } = *at.envelope();
        let about = |name: &str| Some(member(message.params?, name)?.to_vec());
        match message.method.as_deref() {
            Some("notifications/progress") => {
                let key = about("progressToken").map(|token| (other(stream), token));
                let known = key.and_then(|key| self.progress.get(&key));
                let step = known.and_then(|known| choose(known, exchange, self.is_tied()));
                if let Some(at) = step.and_then(|at| known?.get(at)) {
                    self.all[at.1].progress += 1;
                }
            }
            Some("notifications/cancelled") => {
                let key = about("requestId").map(|id| (stream, id));
                let known = key.and_then(|key| self.open.get(&key));
                // It comes in a request of its own: where nothing ties them together, only
                // if there is no doubt.
                let sure = known.is_some_and(|known| known.len() == 1);
                let step = known.and_then(|known| choose(known, exchange, self.is_tied() || sure));
                if let Some(&(_, step)) = step.and_then(|at| known?.get(at)) {
                    self.all[step].cancel_sent = true;
                    self.all[step].outcome = match about("reason") {
                        Some(reason) if timeout::is_told(&reason) => Outcome::Timeout,
                        _ => Outcome::Cancelled,
                    };
                    self.settle(step);
                }
            }
            _ => {}
        }
        let place = at.place(message.text);
        let step = self.begin(at, place, StepKind::Notification, Some(message));
        if stream == Stream::ClientToServer {
            self.notified(exchange, step);
        }
    }

    /// The open request with this id that an answer on this exchange answers.
    fn take_open(&mut self, key: &Key, exchange: u32) -> Option<usize> {
        let tied = self.is_tied();
        let open = self.open.get_mut(key)?;
        let (_, step) = open.remove(choose(open, exchange, tied)?);
        if open.is_empty() {
            self.open.remove(key);
        }
        Some(step)
    }

    /// An answer will not be taken for one to this request any more.
    fn forget_open(&mut self, step: usize) {
        let Step { from, id, .. } = &self.all[step];
        let Some(id) = id else { return };
        let key = (*from, id.clone());
        if let Some(open) = self.open.get_mut(&key) {
            open.retain(|(_, open)| *open != step);
            if open.is_empty() {
                self.open.remove(&key);
            }
        }
    }

    fn begin(
        &mut self,
        at: &At<'_>,
        opened: Place,
        kind: StepKind,
        message: Option<&Message<'_>>,
    ) -> usize {
        let envelope = at.envelope();
        // Of HTTP the end of the exchange tells what came of it.
        let undelivered = envelope.exchange == 0 && envelope.flags.has(Flags::UNDELIVERED);
        let outcome = match kind {
            StepKind::Request if undelivered => Outcome::Unanswered,
            StepKind::Request => Outcome::Pending,
            StepKind::Answer if message.is_some_and(|m| m.kind == MessageKind::Error) => {
                Outcome::Error
            }
            _ => Outcome::Ok,
        };
        self.push(Step {
            number: 0,
            kind,
            from: envelope.stream,
            method: message.and_then(|m| m.method.as_deref()).map(Into::into),
            target: message.and_then(target),
            id: message.and_then(|m| m.id).map(Into::into),
            opened: Some(opened),
            closed: None,
            exchange: envelope.exchange,
            status: None,
            finish: None,
            rounds: 1,
            wall: envelope.wall,
            monotonic: envelope.monotonic,
            duration: None,
            progress: 0,
            cancel_sent: false,
            code: message.and_then(code),
            outcome,
        })
    }

    /// Adds a step. One that is pending is not settled.
    fn push(&mut self, mut step: Step) -> usize {
        let position = self.all.len();
        step.number = self.dropped + position + 1;
        if step.outcome == Outcome::Pending {
            self.unsettled.insert(position);
        } else {
            self.settled.push(position);
        }
        self.all.push(step);
        position
    }

    fn settle(&mut self, step: usize) {
        if self.unsettled.remove(&step) {
            self.settled.push(step);
        }
        for token in self.tokens.remove(&step).unwrap_or_default() {
            if let Some(known) = self.progress.get_mut(&token) {
                known.retain(|(_, of)| *of != step);
                if known.is_empty() {
                    self.progress.remove(&token);
                }
            }
        }
    }

    fn close(&mut self, position: usize, at: &At<'_>, message: &Message<'_>) {
        let step = &mut self.all[position];
        step.closed = Some(at.place(message.text));
        step.code = code(message);
        step.finish = None;
        let answered = at.envelope().monotonic;
        step.duration = answered.checked_sub(step.monotonic);
        if step.cancel_sent {
            return;
        }
        let exchange = at.envelope().exchange;
        if self
            .rounds
            .wait(position, step, message, exchange, at.frames)
        {
            return;
        }
        step.outcome = outcome(step, message);
        self.settle(position);
    }
}

/// Which of these, each with its exchange, is meant on this exchange: the one on the same, or
/// if exchanges are tied together the last one.
fn choose(known: &[(u32, usize)], exchange: u32, tied: bool) -> Option<usize> {
    let same = known.iter().rposition(|(on, _)| *on == exchange);
    same.or_else(|| known.len().checked_sub(1).filter(|_| tied))
}

/// The code of an error, as its JSON text. What is longer than any number is none.
fn code(answer: &Message<'_>) -> Option<String> {
    if answer.kind != MessageKind::Error {
        return None;
    }
    let code = member(answer.error?, "code")?;
    let short = code.len() <= LONGEST_CODE;
    short.then(|| String::from_utf8_lossy(code).into_owned())
}

fn outcome(step: &Step, answer: &Message<'_>) -> Outcome {
    if let Some(error) = answer.error {
        let code = member(error, "code").unwrap_or_default();
        let probe = step.method.as_deref() == Some(DISCOVER);
        // How a client finds out which era a server speaks; nothing went wrong.
        return if probe || NEGOTIATION.contains(&code) {
            Outcome::Ok
        } else if timeout::is_error(error) || timeout::is_status(step.status) {
            Outcome::Timeout
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
mod tests;
