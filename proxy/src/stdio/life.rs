//! Who ends when, and how: the life of one stdio session after its start.
//!
//! ```text
//! client ends its stream   close the server's input; after a grace: TERM, later KILL
//! client stops reading     TERM at once, later KILL
//! our parent dies          TERM at once, later KILL
//! a signal arrives         pass it on; after a TERM, later KILL
//! server exits             pass on what is left in its pipes, then end
//! ```

use super::pump::{Progress, Pumped};
use crate::os::group::Group;
use crate::os::watch::{LOOK_AGAIN, Sighting};
use agent_trace_model::{End, Ending, Tap};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a server may go on in silence after the client ended its stream.
const GRACE: Duration = Duration::from_secs(5);
/// The same while it still owes the client an answer.
const GRACE_WITH_UNANSWERED: Duration = Duration::from_secs(60);
/// How long a server may take to obey a TERM.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How long the pipes of a server that exited may stay empty while something it started
/// still holds them open.
const EMPTY: Duration = Duration::from_millis(200);
/// How long a client that told us to end may leave us waiting for it to read the rest.
const BLOCKED_AT_END: Duration = Duration::from_secs(1);
/// How often a condition is looked at that nothing reports.
const LOOK: Duration = Duration::from_millis(20);

/// How long to sleep when nothing can become due.
const IDLE: Duration = Duration::from_secs(3600);

/// Something that happened in a session.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Sighting(Sighting),
    InputEnded {
        how: Pumped,
        /// The server had ended its output before: the client saw that, and closed too.
        in_answer: bool,
    },
    OutputEnded(Pumped),
    ErrorsEnded,
}

/// One running session.
pub(super) struct Life {
    pub(super) group: Group,
    pub(super) source: u32,
    pub(super) tap: Arc<dyn Tap>,
    pub(super) output: Option<Arc<Progress>>,
    pub(super) errors: Option<Arc<Progress>>,
}

/// How it went.
pub(super) struct Outcome {
    pub(super) end: End,
    /// The server left by itself while its client was still there: what it started may stay.
    pub(super) leave_group: bool,
}

/// What has happened so far.
#[derive(Default)]
struct State {
    ending: Option<Ending>,
    client_closed: Option<Instant>,
    terminated: Option<Instant>,
    killed: bool,
    exited: Option<Instant>,
}

impl Life {
    pub(super) fn run(&self, events: &Receiver<Event>, server: &mut Child) -> Outcome {
        let mut state = State::default();
        loop {
            match events.recv_timeout(self.patience(&state)) {
                Ok(event) => self.handle(event, &mut state),
                Err(RecvTimeoutError::Timeout) => {}
                // Cannot happen while the caller holds a sender; if it does, do not spin.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
            if LOOK_AGAIN.is_some() && matches!(server.try_wait(), Ok(Some(_)) | Err(_)) {
                state.exited.get_or_insert_with(Instant::now);
            }
            self.act(&mut state);
            if state.exited.is_some_and(|at| self.is_drained(at, &state)) {
                break;
            }
        }
        let status = server.wait().ok();
        Outcome {
            leave_group: state.ending.is_none(),
            end: end(&state, status),
        }
    }

    fn handle(&self, event: Event, state: &mut State) {
        match event {
            Event::InputEnded {
                how: Pumped::ToTheEnd,
                in_answer,
            } => {
                state.client_closed = Some(Instant::now());
                if !in_answer && state.exited.is_none() {
                    state.ending.get_or_insert(Ending::ClientClosed);
                }
            }
            Event::Sighting(Sighting::ServerExited) => state.exited = Some(Instant::now()),
            Event::Sighting(Sighting::Signal(number)) => self.pass_on(number, state),
            Event::Sighting(Sighting::ParentDied) => self.terminate(state, Ending::ClientDied),
            Event::Sighting(Sighting::ClientStoppedReading)
            | Event::OutputEnded(Pumped::ReceiverGone) => {
                self.terminate(state, Ending::ClientStoppedReading);
            }
            // The server closed one of its streams, or the client its errors: that is between
            // the two of them, and the pump has closed the other end.
            Event::InputEnded {
                how: Pumped::ReceiverGone,
                ..
            }
            | Event::OutputEnded(Pumped::ToTheEnd)
            | Event::ErrorsEnded => {}
        }
    }

    fn pass_on(&self, number: i32, state: &mut State) {
        self.group.signal(number);
        if is_request_to_end(number) {
            state.ending = Some(Ending::Signalled);
        }
        if is_term(number) {
            state.terminated.get_or_insert_with(Instant::now);
        }
    }

    fn terminate(&self, state: &mut State, why: Ending) {
        if state.terminated.is_none() && state.exited.is_none() {
            state.ending = Some(why);
            state.terminated = Some(Instant::now());
            self.group.terminate();
        }
    }

    /// Does what has become due.
    fn act(&self, state: &mut State) {
        if state.exited.is_some() {
            return;
        }
        if self
            .grace_ends(state)
            .is_some_and(|at| at <= Instant::now())
        {
            self.terminate(state, Ending::GraceExpired);
        }
        if let Some(at) = state.terminated
            && !state.killed
            && at.elapsed() >= TERM_GRACE
        {
            state.killed = true;
            self.group.kill();
        }
    }

    /// When a client that ended its stream has waited long enough.
    fn grace_ends(&self, state: &State) -> Option<Instant> {
        let closed = state.client_closed.filter(|_| state.terminated.is_none())?;
        let spoke = self
            .output
            .as_ref()
            .map_or(closed, |output| output.changed());
        // Not knowing counts as owing: a slow answer must not be lost.
        let grace = match self.tap.unanswered(self.source) {
            Some(0) => GRACE,
            Some(_) | None => GRACE_WITH_UNANSWERED,
        };
        Some(closed.max(spoke) + grace)
    }

    /// How long nothing can become due.
    fn patience(&self, state: &State) -> Duration {
        let now = Instant::now();
        let due = if state.exited.is_some() {
            Some(now + LOOK)
        } else if let Some(at) = state.terminated {
            (!state.killed).then_some(at + TERM_GRACE)
        } else {
            // An answer shortens the grace, so it is looked at again before it ends.
            self.grace_ends(state).map(|at| at.min(now + GRACE / 5))
        };
        let wait = due.map_or(IDLE, |at| at.saturating_duration_since(now));
        LOOK_AGAIN.map_or(wait, |look| wait.min(look))
    }

    /// Whether all that the exited server wrote has been passed on.
    fn is_drained(&self, exited: Instant, state: &State) -> bool {
        let told_to_end = state.terminated.is_some();
        [&self.output, &self.errors]
            .into_iter()
            .flatten()
            .all(|pump| {
                // In this order: what it does is stored after when it began to.
                let reading = pump.is_reading();
                let rested = pump.changed().max(exited).elapsed();
                pump.has_ended()
                    || (reading && rested >= EMPTY && !pump.has_data())
                    || (told_to_end && !reading && rested >= BLOCKED_AT_END)
            })
    }
}

fn end(state: &State, status: Option<ExitStatus>) -> End {
    #[cfg(unix)]
    let signal = status.and_then(|s| std::os::unix::process::ExitStatusExt::signal(&s));
    #[cfg(not(unix))]
    let signal = None;
    End {
        ending: state.ending.unwrap_or(Ending::ServerExited),
        exit_code: status.and_then(|s| s.code()),
        signal,
        killed: state.killed,
        error: None,
    }
}

#[cfg(unix)]
fn is_term(number: i32) -> bool {
    number == signal_hook::consts::SIGTERM
}

#[cfg(unix)]
fn is_request_to_end(number: i32) -> bool {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(&number)
}

#[cfg(not(unix))]
fn is_term(_: i32) -> bool {
    true
}

#[cfg(not(unix))]
fn is_request_to_end(_: i32) -> bool {
    true
}
