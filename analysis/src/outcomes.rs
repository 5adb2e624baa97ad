//! What happened to a run: whether it failed, why, and what it recovered from.
//!
//! A run *failed* if it was judged wrong, a server crashed, a request was never answered, or a
//! tool's last call ended in an error; and, since a client cannot do what it asked, if HTTP
//! refused the last request of a method, or that request took too long. Errors that a later
//! success of the same kind made good are [recovered] from.
//!
//! Tools and methods are those of a server: a run may have several sessions with one.

use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{Session, Standing, Story};
use agent_trace_model::{Ending, Finish, Outcome, Verdict};
use std::collections::{BTreeMap, HashMap};

/// From which duration on a step is slow unless that is set, in nanoseconds.
pub const SLOW: u64 = 10_000_000_000;

/// Why a run counts as failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A server could not be started, or exited by itself with an error.
    Crashed {
        /// Position of its session in the run.
        session: usize,
    },
    /// A request was never answered.
    Unanswered {
        /// Number of the step.
        step: usize,
    },
    /// The last call of a tool ended in an error.
    LastCallFailed {
        /// The tool.
        tool: String,
        /// Number of the step.
        step: usize,
    },
    /// HTTP refused the last request of a method, or broke off.
    RefusedInHttp {
        /// The method.
        method: String,
        /// Number of the step.
        step: usize,
    },
    /// The client gave up on the last request of a method because it took too long.
    TimedOut {
        /// The method.
        method: String,
        /// Number of the step.
        step: usize,
    },
}

impl Failure {
    /// Number of the step that failed, where it is one.
    #[must_use]
    pub fn step(&self) -> Option<usize> {
        match self {
            Self::Crashed { .. } => None,
            Self::Unanswered { step }
            | Self::LastCallFailed { step, .. }
            | Self::RefusedInHttp { step, .. }
            | Self::TimedOut { step, .. } => Some(*step),
        }
    }
}

/// An error that was made good later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Number of the step that failed.
    pub step: usize,
    /// Number of the next step of its kind that went well.
    pub by: usize,
}

/// Whether a run failed, with what was decided about it: that counts before what happened.
#[must_use]
pub fn is_failed(story: &Story, verdict: Verdict) -> bool {
    match verdict {
        Verdict::Right => false,
        Verdict::Wrong => true,
        Verdict::Unjudged => !failures(story).is_empty(),
    }
}

/// Why a run counts as failed by what happened in it; empty where it does not.
#[must_use]
pub fn failures(story: &Story) -> Vec<Failure> {
    let mut failures = Vec::new();
    for (session, told) in story.sessions.iter().enumerate() {
        if told.standing == Standing::Crashed && !told.is_own() {
            failures.push(Failure::Crashed { session });
        }
    }
    // The last attempt of each kind says how it went.
    let mut last: BTreeMap<Attempt<'_>, &Step> = BTreeMap::new();
    for step in &story.steps {
        if is_left_alone(story, step) {
            failures.push(Failure::Unanswered { step: step.number });
        } else if let Some(attempt) = attempt(story, step) {
            last.insert(attempt, step);
        }
    }
    let mut passed = None;
    for (attempt, step) in last {
        let number = step.number;
        let method = || step.method.clone().unwrap_or_default();
        match attempt.kind {
            Kind::Tool if step.outcome.is_failure() => {
                let tool = attempt.name.to_owned();
                failures.push(Failure::LastCallFailed { tool, step: number });
            }
            Kind::Tool => {}
            Kind::Post
                if failed_in_http(step)
                    && passed
                        .get_or_insert_with(|| Passed::of(story))
                        .is_after(step) => {}
            Kind::Method | Kind::Post if failed_in_http(step) => {
                let method = method();
                failures.push(Failure::RefusedInHttp {
                    method,
                    step: number,
                });
            }
            // How a client finds out which era a server speaks.
            Kind::Method if attempt.name == "server/discover" => {}
            Kind::Method if step.outcome == Outcome::Timeout => {
                let method = method();
                failures.push(Failure::TimedOut {
                    method,
                    step: number,
                });
            }
            Kind::Method | Kind::Post => {}
        }
    }
    failures
}

/// The errors that were made good later, in the order in which they happened.
#[must_use]
pub fn recovered(story: &Story) -> Vec<Recovered> {
    let mut next: BTreeMap<Attempt<'_>, usize> = BTreeMap::new();
    let mut recovered = Vec::new();
    for step in story.steps.iter().rev() {
        let Some(attempt) = attempt(story, step).filter(|_| !is_left_alone(story, step)) else {
            continue;
        };
        if !step.outcome.is_failure() {
            next.insert(attempt, step.number);
        } else if let Some(by) = next.get(&attempt) {
            let (step, by) = (step.number, *by);
            recovered.push(Recovered { step, by });
        }
    }
    recovered.reverse();
    recovered
}

/// Whether it failed for a reason of HTTP: a status from 400 on, or an answer that broke off.
#[must_use]
pub fn failed_in_http(step: &Step) -> bool {
    let broke = matches!(
        step.finish,
        Some(Finish::ServerBroke | Finish::Unreachable | Finish::TimedOut)
    );
    step.outcome.is_failure() && (broke || step.status.is_some_and(|status| status >= 400))
}

/// What is tried, with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Attempt<'a> {
    kind: Kind,
    name: &'a str,
    server: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tool,
    Method,
    /// A POST without a message, by its target.
    Post,
}

/// What a step tries; none where it says nothing of how that goes.
fn attempt<'a>(story: &'a Story, step: &'a Step) -> Option<Attempt<'a>> {
    use Outcome::{Cancelled, NotRecorded, Pending};
    let open = matches!(step.outcome, Pending | Cancelled | NotRecorded);
    if open || !step.is_clients() || is_moved(story, step) || is_of_own(story, step) {
        return None;
    }
    let method = step.method.as_deref();
    let (kind, name) = match (step.tool(), step.kind) {
        (Some(tool), _) => (Kind::Tool, tool),
        (None, StepKind::Http) if method == Some("POST") => {
            (Kind::Post, step.target.as_deref().unwrap_or_default())
        }
        (None, StepKind::Http) => return None,
        (None, _) => (Kind::Method, method?),
    };
    let server = story.session(step).map(|session| &session.server[..]);
    Some(Attempt {
        kind,
        name,
        server: server.unwrap_or_default(),
    })
}

/// Whether it is said to our own server: how that goes says nothing of the run.
fn is_of_own(story: &Story, step: &Step) -> bool {
    story.session(step).is_some_and(Session::is_own)
}

/// Whether it is a request of the client that nobody answered.
fn is_left_alone(story: &Story, step: &Step) -> bool {
    let request = step.is_clients() && step.kind == StepKind::Request;
    let request = request && !is_of_own(story, step);
    request && step.outcome.is_unanswered() && !failed_in_http(step)
}

/// Whether this step only told the client that it has to begin a new session: there it goes
/// on.
fn is_moved(story: &Story, step: &Step) -> bool {
    let end = story.session(step).and_then(|session| session.end.as_ref());
    step.status == Some(404) && end.is_some_and(|end| end.ending == Ending::ServerForgot)
}

/// The last exchange of each session, method and target that went well.
struct Passed<'a>(HashMap<(usize, &'a str, &'a str), u32>);

impl<'a> Passed<'a> {
    fn of(story: &'a Story) -> Self {
        let mut last = HashMap::new();
        for (session, told) in story.sessions.iter().enumerate() {
            for (number, exchange) in &told.exchanges {
                let passed = exchange.status().is_some_and(|status| status < 400);
                if let Some(request) = exchange.request.as_ref().filter(|_| passed) {
                    last.insert((session, &request.method[..], &request.target[..]), *number);
                }
            }
        }
        Self(last)
    }

    /// Whether an exchange like that of this step went well after it.
    fn is_after(&self, step: &Step) -> bool {
        let (Some(method), Some(target)) = (&step.method, &step.target) else {
            return false;
        };
        let last = self.0.get(&(step.session, &method[..], &target[..]));
        last.is_some_and(|last| *last > step.exchange)
    }
}

/// Some outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OutcomeSet(u16);

impl OutcomeSet {
    /// This one.
    #[must_use]
    pub fn one(outcome: Outcome) -> Self {
        Self(1 << position(outcome))
    }

    /// Those of which this holds.
    #[must_use]
    pub fn of(holds: impl Fn(Outcome) -> bool) -> Self {
        Outcome::ALL.into_iter().filter(|o| holds(*o)).collect()
    }

    /// Those with these bits; bits that mean no outcome count for nothing.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self(bits & ((1 << Outcome::ALL.len()) - 1))
    }

    /// A bit for each, the first outcome's the lowest. A number that means the same in every
    /// version that knows the same outcomes in the same order.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Adds one.
    pub fn insert(&mut self, outcome: Outcome) {
        self.0 |= Self::one(outcome).0;
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn has(self, outcome: Outcome) -> bool {
        self.0 & Self::one(outcome).0 != 0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether some are in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of those are among these.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Outcome> {
        Outcome::ALL
            .into_iter()
            .filter(move |outcome| self.has(*outcome))
    }
}

impl FromIterator<Outcome> for OutcomeSet {
    fn from_iter<T: IntoIterator<Item = Outcome>>(outcomes: T) -> Self {
        let mut set = Self::default();
        for outcome in outcomes {
            set.insert(outcome);
        }
        set
    }
}

fn position(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Ok => 0,
        Outcome::Error => 1,
        Outcome::ToolError => 2,
        Outcome::Denied => 3,
        Outcome::Timeout => 4,
        Outcome::Cancelled => 5,
        Outcome::Crashed => 6,
        Outcome::Unanswered => 7,
        Outcome::NotRecorded => 8,
        Outcome::Pending => 9,
    }
}

#[cfg(test)]
mod tests;
