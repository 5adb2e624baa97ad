//! What HTTP exchanges say about the steps.
//!
//! A status from 400 on without an answer for a request is its answer. What the end of an
//! exchange means for a request without one depends: where exchanges are tied together the
//! answer may still come on another one; else there will be none. In MCP 2026-07-28 a client
//! that goes away cancels its request with that, in older revisions it does not.
//!
//! An exchange whose request carries no message is a step itself.

use super::super::step::{Frame, Place, Step, StepKind};
use super::{At, DISCOVER, Steps, timeout};
use crate::journal::header::{Finished, Meta, NotDecoded, Request, Response};
use crate::journal::{Envelope, Flags};
use agent_trace_model::{Finish, Outcome, Stream};
use agent_trace_wire::frame::Framing;
use agent_trace_wire::message::{Message, MessageKind, stays_open};
use agent_trace_wire::sse;

/// From this revision on there are no sessions, and a client cancels by going away.
const MODERN: &str = "2026-07-28";

/// An exchange that is not finished.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    method: String,
    target: String,
    wall: u64,
    monotonic: u64,
    /// The head of the request was seen.
    known: bool,
    /// The client names a revision without sessions.
    modern: bool,
    /// It goes on with an event stream that broke off.
    resumed: bool,
    status: Option<u16>,
    /// The answer is an event stream.
    events: bool,
    /// The client sent messages in it.
    speaks: bool,
    /// The steps that these began or went on with.
    pub(super) asked: Vec<usize>,
    /// The step that the exchange is itself.
    pub(super) step: Option<usize>,
    /// A body of the request that is no message.
    pub(super) body: Option<Place>,
    /// A body of the answer that is none, or none that could be given to a request yet.
    pub(super) answer: Option<Place>,
    /// The body of the answer could not be decoded.
    undecoded: bool,
}

impl Steps {
    /// Takes what a record says of an exchange.
    pub(in super::super) fn exchange(
        &mut self,
        frames: &[Frame],
        envelope: &Envelope,
        meta: &Meta,
    ) {
        match meta {
            Meta::Request(request) => self.begins(envelope, request),
            Meta::Response(response) => self.answered(envelope, response),
            Meta::NotDecoded(NotDecoded { .. }) if envelope.stream == Stream::ServerToClient => {
                self.running(envelope).undecoded = true;
            }
            Meta::Finished(finished) => self.finished(frames, envelope, finished),
            _ => {}
        }
    }

    fn running(&mut self, envelope: &Envelope) -> &mut Running {
        let new = || Running {
            wall: envelope.wall,
            monotonic: envelope.monotonic,
            ..Running::default()
        };
        self.exchanges.entry(envelope.exchange).or_insert_with(new)
    }

    fn begins(&mut self, envelope: &Envelope, request: &Request) {
        let running = self.running(envelope);
        running.known = true;
        running.method.clone_from(&request.method);
        running.target.clone_from(&request.target);
        (running.wall, running.monotonic) = (envelope.wall, envelope.monotonic);
        for (name, value) in &request.headers {
            if name.eq_ignore_ascii_case("mcp-protocol-version") {
                running.modern |= is_modern(value);
            }
            running.resumed |= name.eq_ignore_ascii_case("last-event-id");
        }
        // A request with a body may turn out to carry messages.
        if matches!(&request.method[..], "GET" | "HEAD" | "DELETE" | "OPTIONS") {
            self.is_step_itself(envelope.exchange);
        }
    }

    /// The exchange is a step itself.
    fn is_step_itself(&mut self, exchange: u32) -> Option<usize> {
        let running = self.exchanges.get(&exchange)?;
        let step = self.push(Step {
            number: 0,
            kind: StepKind::Http,
            from: Stream::ClientToServer,
            method: running.known.then(|| running.method.clone()),
            target: running.known.then(|| running.target.clone()),
            id: None,
            opened: running.body.clone(),
            closed: running.answer.clone(),
            exchange,
            status: running.status,
            finish: None,
            rounds: 1,
            wall: running.wall,
            monotonic: running.monotonic,
            duration: None,
            progress: 0,
            cancel_sent: false,
            code: None,
            outcome: Outcome::Pending,
        });
        if let Some(running) = self.exchanges.get_mut(&exchange) {
            running.step = Some(step);
        }
        Some(step)
    }

    fn answered(&mut self, envelope: &Envelope, response: &Response) {
        // Interim answers come before the real one.
        if (100..200).contains(&response.status) && response.status != 101 {
            return;
        }
        let running = self.running(envelope);
        let status = Some(response.status);
        running.status = status;
        running.events = response.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("content-type")
                && value
                    .trim_start()
                    .get(..17)
                    .is_some_and(|media| media.eq_ignore_ascii_case("text/event-stream"))
        });
        let steps: Vec<usize> = running.asked.iter().copied().chain(running.step).collect();
        for step in steps {
            self.all[step].status = status;
            if self.all[step].kind == StepKind::Notification {
                self.notification_answered(step);
            }
        }
    }

    /// A request of the client, on an exchange that may be one of HTTP.
    pub(super) fn asked(&mut self, exchange: u32, step: usize, version: Option<&str>) {
        if let Some(running) = self.exchanges.get_mut(&exchange) {
            running.speaks = true;
            running.modern |= version.is_some_and(is_modern);
            running.asked.push(step);
            self.all[step].status = running.status;
        }
    }

    /// What this exchange asked goes on in another one.
    pub(super) fn not_asked(&mut self, exchange: u32, step: usize) {
        if let Some(running) = self.exchanges.get_mut(&exchange) {
            running.asked.retain(|asked| *asked != step);
        }
    }

    /// A notification of the client likewise. It is settled when the server took it.
    pub(super) fn notified(&mut self, exchange: u32, step: usize) {
        let Some(running) = self.exchanges.get_mut(&exchange) else {
            return;
        };
        running.speaks = true;
        running.asked.push(step);
        self.all[step].status = running.status;
        if running.status.is_some() {
            self.notification_answered(step);
        } else {
            // It has just begun.
            self.settled.pop_if(|settled| *settled == step);
            self.unsettled.insert(step);
        }
    }

    fn notification_answered(&mut self, step: usize) {
        if self.all[step].status.is_some_and(|status| status >= 400) {
            self.all[step].outcome = failed(self.all[step].status, None);
        }
        self.settle(step);
    }

    /// Whether an event says something that was not said before: comments do not, nor does
    /// where to post to, nor what is repeated on a stream that goes on with another.
    pub(super) fn is_news(&mut self, frame: &Frame) -> bool {
        let fields = sse::fields(&frame.record.payload);
        let flags = frame.record.envelope.flags;
        // One that breaks off counts for nothing, and will be repeated.
        let whole = !flags.has(Flags::INCOMPLETE) && fields.has_data;
        if let Some(id) = fields.id.filter(|_| whole) {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&(id.len() as u64).to_le_bytes());
            hasher.update(id).update(&fields.data);
            let mut hash = [0; 16];
            hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
            let exchange = frame.record.envelope.exchange;
            let resumed = self.exchanges.get(&exchange).is_some_and(|r| r.resumed);
            if !self.events.insert(hash) && resumed {
                return false;
            }
        }
        let flawed = flags.has(Flags::CUT) || flags.has(Flags::LOSSY);
        (!fields.data.is_empty() && fields.event != Some(b"endpoint")) || flawed
    }

    /// Whether this frame is a body without a message of the protocol, which is a part of its
    /// exchange and no step.
    pub(super) fn is_body(&mut self, at: &At<'_>) -> bool {
        let envelope = at.envelope();
        if envelope.framing == Framing::Event {
            return false;
        }
        let mut speaks = false;
        at.messages(|message| speaks |= message.kind != MessageKind::Other);
        let place = at.place(at.frame.body());
        let flawed = envelope.flags.has(Flags::CUT) || envelope.flags.has(Flags::LOSSY);
        let running = self.running(envelope);
        if envelope.stream == Stream::ClientToServer {
            // Also for answers of the client, which begin no step.
            running.speaks |= speaks;
            if !speaks {
                running.body.get_or_insert(place.clone());
            }
        } else if !speaks || !running.speaks {
            speaks = false;
            running.undecoded |= flawed;
            running.answer.get_or_insert(place.clone());
        }
        if let Some(step) = running.step.filter(|_| !speaks) {
            match envelope.stream {
                Stream::ClientToServer => self.all[step].opened.get_or_insert(place),
                _ => self.all[step].closed.get_or_insert(place),
            };
        }
        !speaks
    }

    /// Whether this is an error without id, and with that the answer to all that its exchange
    /// asked.
    pub(super) fn refuses_all(&mut self, at: &At<'_>, message: &Message<'_>) -> bool {
        let nobodys = message.id.is_none_or(|id| id == b"null");
        if !nobodys || message.kind != MessageKind::Error {
            return false;
        }
        let Some(running) = self.exchanges.get(&at.envelope().exchange) else {
            return false;
        };
        let asked: Vec<usize> = running.asked.clone();
        let mut any = false;
        for step in asked {
            match (self.all[step].kind, self.all[step].outcome) {
                (StepKind::Request, Outcome::Pending) if !self.rounds.is_waiting(step) => {
                    self.forget_open(step);
                    self.close(step, at, message);
                    any = true;
                }
                // Its status says the same.
                (StepKind::Notification, _) => {
                    let place = at.place(message.text);
                    self.all[step].closed.get_or_insert(place);
                    any = true;
                }
                _ => {}
            }
        }
        any
    }

    fn finished(&mut self, frames: &[Frame], envelope: &Envelope, finished: &Finished) {
        let exchange = envelope.exchange;
        let running = self.running(envelope);
        let itself = running.step.is_none() && !running.speaks;
        // The answer may have been read before the end of the request.
        let early = running.answer.clone().filter(|_| running.speaks);
        if itself {
            self.is_step_itself(exchange);
        }
        if let Some((place, frame)) =
            early.and_then(|place| frames.get(place.frame).map(|frame| (place, frame)))
        {
            let position = place.frame;
            let at = At {
                frames,
                frame,
                position,
            };
            at.messages(|message| {
                if message.kind != MessageKind::Other {
                    self.message(&at, message);
                }
            });
        }
        let Some(running) = self.exchanges.remove(&exchange) else {
            return;
        };
        let end = End {
            finish: finished.finish,
            monotonic: Some(envelope.monotonic),
        };
        self.end_exchange(&running, end);
    }

    /// Ends the exchanges that have no end in the journal.
    pub(super) fn end_exchanges(&mut self, _: &[Frame]) {
        let mut open: Vec<u32> = self.exchanges.keys().copied().collect();
        open.sort_unstable();
        for exchange in open {
            let silent = |running: &Running| running.step.is_none() && !running.speaks;
            if self.exchanges.get(&exchange).is_some_and(silent) {
                self.is_step_itself(exchange);
            }
            let Some(running) = self.exchanges.remove(&exchange) else {
                continue;
            };
            // A request is dealt with like one of any session that ended; what is left is
            // what the head of the answer says.
            if let Some(step) = running.step.filter(|_| running.status.is_some()) {
                self.all[step].outcome = http_outcome(&running, Finish::Complete);
                self.settle(step);
            }
            for step in running.asked {
                if running.status.is_some_and(|status| status >= 400) {
                    self.refused(step, running.answer.clone(), None);
                }
            }
        }
    }

    fn end_exchange(&mut self, running: &Running, end: End) {
        if let Some(position) = running.step {
            let step = &mut self.all[position];
            step.outcome = http_outcome(running, end.finish);
            step.finish = (end.finish != Finish::Complete).then_some(end.finish);
            step.duration = end.since(step.monotonic);
            self.settle(position);
        }
        for &position in &running.asked {
            let step = &self.all[position];
            if step.kind == StepKind::Notification {
                let broke = matches!(
                    end.finish,
                    Finish::ServerBroke | Finish::Unreachable | Finish::TimedOut
                );
                if running.status.is_none() && broke {
                    self.all[position].outcome = failed(None, Some(end.finish));
                    self.all[position].finish = Some(end.finish);
                }
                self.settle(position);
            } else if step.outcome == Outcome::Pending && !self.rounds.is_waiting(position) {
                self.without_answer(position, running, end);
            }
        }
    }

    /// An exchange is over, and this request of it has no answer.
    fn without_answer(&mut self, position: usize, running: &Running, end: End) {
        use Finish::{ClientBroke, ClientGone, Refused, ServerBroke, TimedOut, Unreachable};
        let finish = end.finish;
        if finish != Finish::Complete {
            self.all[position].finish = Some(finish);
        }
        if running.status.is_some_and(|status| status >= 400) {
            self.refused(position, running.answer.clone(), Some(end));
            return;
        }
        let step = &self.all[position];
        let broke = matches!(finish, ServerBroke | Unreachable | TimedOut);
        let outcome = if stays_open(step.method.as_deref()) && !broke {
            Outcome::Ok
        } else if running.modern && finish == ClientGone && !self.is_tied() {
            Outcome::Cancelled
        } else if running.undecoded {
            Outcome::NotRecorded
        } else if self.is_tied() {
            // An event stream may be resumed, and an answer come on another one.
            if running.events || !(broke || matches!(finish, ClientBroke | Refused)) {
                return;
            }
            self.unanswered(step.monotonic)
        } else if finish == TimedOut {
            Outcome::Timeout
        } else {
            self.unanswered(step.monotonic)
        };
        // Where it was not seen, it may still come once more.
        if outcome != Outcome::NotRecorded {
            self.forget_open(position);
        }
        let step = &mut self.all[position];
        step.cancel_sent |= outcome == Outcome::Cancelled;
        step.outcome = outcome;
        step.closed = running.answer.clone();
        if outcome == Outcome::Ok {
            step.duration = end.since(step.monotonic);
        }
        self.settle(position);
    }

    /// The status is the answer to this step.
    fn refused(&mut self, position: usize, answer: Option<Place>, end: Option<End>) {
        self.forget_open(position);
        let step = &mut self.all[position];
        if step.kind == StepKind::Request && step.outcome != Outcome::Pending {
            return;
        }
        // How a client finds out which era a server speaks; nothing went wrong.
        let probe = step.method.as_deref() == Some(DISCOVER)
            && step.status.is_some_and(|status| status < 500);
        step.outcome = match probe {
            true => Outcome::Ok,
            false => failed(step.status, end.map(|end| end.finish)),
        };
        step.closed = step.closed.take().or(answer);
        step.duration = end.and_then(|end| end.since(step.monotonic));
        self.settle(position);
    }
}

/// The end of an exchange.
#[derive(Clone, Copy)]
struct End {
    finish: Finish,
    monotonic: Option<u64>,
}

impl End {
    fn since(self, began: u64) -> Option<u64> {
        self.monotonic?.checked_sub(began)
    }
}

/// What came of an exchange that is a step itself.
fn http_outcome(running: &Running, finish: Finish) -> Outcome {
    match (running.status, finish) {
        // A server that offers no event stream says so.
        (Some(405), _) if running.method == "GET" => Outcome::Ok,
        (Some(status), _) if status >= 400 => failed(running.status, Some(finish)),
        (_, Finish::ServerBroke | Finish::Unreachable | Finish::TimedOut) => {
            failed(running.status, Some(finish))
        }
        (Some(_), _) => Outcome::Ok,
        (None, Finish::ClientGone) => Outcome::Cancelled,
        (None, _) => Outcome::Unanswered,
    }
}

/// What to call something that HTTP refused or that broke off.
fn failed(status: Option<u16>, finish: Option<Finish>) -> Outcome {
    if timeout::is_status(status) || finish == Some(Finish::TimedOut) {
        Outcome::Timeout
    } else {
        Outcome::Error
    }
}

/// Whether this is a revision without sessions. Revisions are dates.
fn is_modern(version: &str) -> bool {
    let version = version.trim();
    version.len() == MODERN.len()
        && version.bytes().all(|b| b.is_ascii_digit() || b == b'-')
        && version >= MODERN
}
