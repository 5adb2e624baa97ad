//! What is counted in a part of a session and in a run.
//!
//! Everything here can be added up in any order with the same result.

use super::compact;
use super::scan::CodeTally;
use super::sketch::Sketch;
use agent_trace_model::step::StepKind;
use agent_trace_model::{Outcome, SessionId, Stream};
use serde::{Deserialize, Serialize};

/// The most tools, methods, codes, … that are counted apart. What comes beyond them is in the
/// totals alone.
pub const MOST_APART: usize = 1_000;
/// The most failures that are named.
pub const MOST_NAMED: usize = 20;

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Steps.
    pub steps: u64,
    /// Of them requests, of either side.
    pub requests: u64,
    /// Of them notifications, of either side.
    pub notifications: u64,
    /// Of the steps, those that are no message of the protocol: stray bytes, other JSON,
    /// answers to nothing.
    pub odd: u64,
    /// Steps by what came of them.
    pub outcomes: Counts,
    /// Bytes of frames on the wire, by stream: client to server, server to client.
    pub bytes: [u64; 2],
    /// Lines of standard error.
    pub stderr: u64,
    /// Calls of tools, sorted by server and tool.
    pub tools: Vec<ToolTally>,
    /// All other steps, whoever began them, sorted by server, kind, side and method: filters
    /// are answered from these groups, so that none may be missing.
    pub methods: Vec<MethodTally>,
    /// The codes of JSON-RPC errors, as their JSON text, and how often each was answered.
    pub codes: Vec<(String, u64)>,
    /// The HTTP statuses from 400 on, and how many steps had each.
    pub statuses: Vec<(u16, u64)>,
    /// The longest request of the client.
    pub longest: Option<(u64, StepAt)>,
    /// Requests of the client that were never answered: how many, and the first of them.
    pub unanswered: u64,
    /// The first of these.
    pub unanswered_at: Vec<StepAt>,
    /// Posts over HTTP that carry no message, sorted by server and target.
    pub posts: Vec<PostTally>,
    /// What was not recorded, and what cannot be read.
    pub marks: Marks,
    /// Whether the client asked for anything but what it takes to connect and to list.
    pub acts: bool,
    /// What scans found, sorted by code and severity. A list that a session is told again does
    /// not count again.
    pub found: Vec<CodeTally>,
}

/// How many steps ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// With a result, or they were no requests.
    pub ok: u64,
    /// With an error of JSON-RPC, or of HTTP.
    pub error: u64,
    /// With an error that the tool reports of itself.
    pub tool_error: u64,
    /// Refused by who decides what may be called.
    pub denied: u64,
    /// Given up by who asked, since it took too long.
    pub timeout: u64,
    /// Cancelled before there was an answer.
    pub cancelled: u64,
    /// Open when the server crashed.
    pub crashed: u64,
    /// Never answered.
    pub unanswered: u64,
    /// Nobody knows: something is missing.
    pub not_recorded: u64,
    /// Not yet.
    pub pending: u64,
}

/// What is missing, or cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Gaps.
    pub gaps: u64,
    /// Frames that were decoded and not written.
    pub gap_frames: u64,
    /// Bytes that were relayed and are in no record.
    pub gap_bytes: u64,
    /// Records that are missing between those that can be read.
    pub missing: u64,
    /// Places that cannot be read.
    pub damaged: u64,
    /// Bytes in them.
    pub damaged_bytes: u64,
    /// Files that cannot be read at all.
    pub unreadable: u64,
}

/// Where a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "compact::Step", into = "compact::Step")]
pub struct StepAt {
    /// When it began, in nanoseconds since 1970.
    pub wall: u64,
    /// Its session.
    pub session: SessionId,
    /// When it began, on the monotonic clock of the session's recorder, in nanoseconds.
    pub monotonic: u64,
    /// Its number in its session, from 1.
    pub number: u64,
}

/// How attempts of one kind went: calls of a tool, requests of a method, posts to a target.
/// Those that are pending or cancelled, and those of which nobody knows, have no say; nor have
/// requests that were never answered, which count by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tries {
    /// The last one.
    pub last: Option<Call>,
    /// The last one that went well.
    pub good: Option<StepAt>,
    /// How many failed.
    pub bad: u64,
    /// How many failed after the last one that went well.
    pub unmended: u64,
    /// The first of these, at most [`MOST_NAMED`].
    pub unmended_at: Vec<StepAt>,
}

/// A call of a tool, or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Where it is.
    pub at: StepAt,
    /// How it failed, if it did.
    pub failed: Option<Failed>,
}

/// How a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failed {
    /// An error of JSON-RPC.
    Error,
    /// An error that the tool reports of itself.
    ToolError,
    /// HTTP refused it, or broke off.
    Http,
    /// It took too long for who asked.
    Timeout,
    /// Who decides what may be called refused it.
    Denied,
}

/// The calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolTally {
    /// Its server: the position among the servers of the run.
    pub server: u16,
    /// Its name.
    pub tool: String,
    /// How often it was called.
    pub calls: u64,
    /// What came of that.
    pub outcomes: Counts,
    /// The shortest call that was answered, in nanoseconds.
    pub shortest: u64,
    /// The longest.
    pub longest: u64,
    /// All of them.
    pub durations: Sketch,
    /// Bytes of calls and answers on the wire.
    pub bytes: u64,
    /// How that went.
    pub tries: Tries,
}

/// The steps of one kind and method that are no calls of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodTally {
    /// Its server: the position among the servers of the run.
    pub server: u16,
    /// What they are.
    pub kind: StepKind,
    /// Who began them.
    pub from: Stream,
    /// The method; none where they have none.
    pub method: Option<String>,
    /// How many there were.
    pub calls: u64,
    /// What came of them.
    pub outcomes: Counts,
    /// How many of them have a duration.
    pub timed: u64,
    /// The shortest of these, in nanoseconds.
    pub shortest: u64,
    /// The longest.
    pub longest: u64,
    /// Bytes of requests and answers on the wire.
    pub bytes: u64,
    /// How that went; of notifications and requests of the client alone.
    pub tries: Tries,
}

/// Posts over HTTP to one target that carry no message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostTally {
    /// Its server: the position among the servers of the run.
    pub server: u16,
    /// Path and query.
    pub target: String,
    /// The last one. It did not fail if a later exchange with the same target went well.
    pub last: Call,
}

/// Why a run counts as failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// A server could not be started, or exited by itself with an error.
    Crashed {
        /// The session.
        #[serde(with = "compact::session")]
        session: SessionId,
        /// The server: the position among those of the run.
        server: u16,
    },
    /// A request was never answered.
    Unanswered {
        /// The request.
        at: StepAt,
    },
    /// The last call of a tool ended in an error.
    LastCallFailed {
        /// The server: the position among those of the run.
        server: u16,
        /// The tool.
        tool: String,
        /// How it failed.
        failed: Failed,
        /// The call.
        at: StepAt,
    },
    /// HTTP refused the last request of a method, or broke off.
    RefusedInHttp {
        /// The server: the position among those of the run.
        server: u16,
        /// The method; `POST` for an exchange without a message.
        method: String,
        /// The request.
        at: StepAt,
    },
    /// The client gave up on the last request of a method because it took too long.
    TimedOut {
        /// The server: the position among those of the run.
        server: u16,
        /// The method.
        method: String,
        /// The request.
        at: StepAt,
    },
}

impl Tries {
    /// Takes one more.
    pub(crate) fn tell(&mut self, call: Call) {
        let one = match call.failed {
            None => Self {
                good: Some(call.at),
                ..Self::default()
            },
            Some(_) => Self {
                bad: 1,
                unmended: 1,
                unmended_at: vec![call.at],
                ..Self::default()
            },
        };
        self.merge(&Self {
            last: Some(call),
            ..one
        });
    }

    /// Takes those of another part. Of more than [`MOST_NAMED`] that failed in one part, of
    /// which a success in another made some good and not all, those beyond that number do not
    /// count as mended.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (one, two) = (self.last, other.last);
        self.last = match (one, two) {
            (Some(one), Some(two)) if two.at < one.at => Some(one),
            (one, two) => two.or(one),
        };
        self.good = self.good.max(other.good);
        self.bad += other.bad;
        self.unmended += other.unmended;
        self.unmended_at.extend(&other.unmended_at);
        if self.unmended_at.len() > 1 {
            self.unmended_at.sort_unstable();
        }
        let mended = self.unmended_at.partition_point(|at| Some(*at) < self.good);
        self.unmended_at.drain(..mended);
        self.unmended -= mended as u64;
        self.unmended_at.truncate(MOST_NAMED);
        if self.last.is_some_and(|last| last.failed.is_none()) {
            self.unmended = 0;
            self.unmended_at.clear();
        }
    }

    /// How many failed and were made good later.
    #[must_use]
    pub fn recovered(&self) -> u64 {
        self.bad - self.unmended
    }
}

impl Tally {
    /// How often tools were called.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.tools.iter().map(|tool| tool.calls).sum()
    }

    /// What was counted in the only part of a run, of which this is the tally.
    #[must_use]
    pub fn of_only_part(mut self) -> Self {
        // A part has one server, and what is missing is told of its session.
        self.tools.iter_mut().for_each(|tool| tool.server = 0);
        self.methods.iter_mut().for_each(|method| method.server = 0);
        self.posts.iter_mut().for_each(|post| post.server = 0);
        self.marks = Marks::default();
        self
    }

    /// How many of these calls failed.
    #[must_use]
    pub fn failed_calls(&self) -> u64 {
        self.tools.iter().map(|tool| tool.outcomes.failures()).sum()
    }
}

impl Counts {
    /// Counts one.
    pub fn add(&mut self, outcome: Outcome) {
        *self.of_mut(outcome) += 1;
    }

    /// Counts as many.
    pub fn add_many(&mut self, outcome: Outcome, count: u64) {
        *self.of_mut(outcome) += count;
    }

    /// How many ended so.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        let mut copy = *self;
        *copy.of_mut(outcome)
    }

    /// How many failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        let failures = Outcome::ALL.into_iter().filter(|o| o.is_failure());
        failures.map(|outcome| self.of(outcome)).sum()
    }

    /// What is left without those.
    #[must_use]
    pub fn without(mut self, other: &Self) -> Self {
        for outcome in Outcome::ALL {
            let count = self.of_mut(outcome);
            *count = count.saturating_sub(other.of(outcome));
        }
        self
    }

    fn of_mut(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::Error => &mut self.error,
            Outcome::ToolError => &mut self.tool_error,
            Outcome::Denied => &mut self.denied,
            Outcome::Timeout => &mut self.timeout,
            Outcome::Crashed => &mut self.crashed,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::Unanswered => &mut self.unanswered,
            Outcome::NotRecorded => &mut self.not_recorded,
            Outcome::Pending => &mut self.pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_trace_model::ProcessId;

    #[test]
    fn a_success_makes_all_failures_before_it_good_however_many() {
        let call = |number: u64, failed| Call {
            at: StepAt {
                wall: number,
                session: SessionId {
                    process: ProcessId::from_bytes([1; 16]),
                    ordinal: 1,
                },
                monotonic: number,
                number,
            },
            failed,
        };
        let (mut one, mut other) = (Tries::default(), Tries::default());
        for number in 0..50 {
            one.tell(call(number, Some(Failed::Error)));
        }
        other.tell(call(60, None));
        let mut both = one.clone();
        both.merge(&other);
        assert_eq!((both.recovered(), both.unmended_at.len()), (50, 0));
        other.merge(&one);
        assert_eq!(other, both);
    }
}
