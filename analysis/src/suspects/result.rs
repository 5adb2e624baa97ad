//! What a ranking says.
//!
//! Bytes that were recorded (names, pointers, pieces of messages) stand under members named
//! `recorded` and nowhere else; they are as hostile as they were.

use super::Rule;
use agent_trace_model::{Outcome, Verdict};
use serde::{Serialize, Serializer};

/// A sum of [weights](super::weights). No probability: it orders the steps of one run and means
/// nothing across runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(pub(super) u32);

impl Score {
    /// As a number; 1.0 is a hundred hundredths.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.value())
    }
}

/// The steps of a run that may have broken it, the most suspect first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranking {
    /// The run.
    pub run: String,
    /// Why it counts as failed.
    pub failed: Failed,
    /// Steps with evidence against them.
    pub suspects: Vec<Suspect>,
    /// How many more steps have evidence against them.
    pub more: usize,
    /// The numbers of steps that could be suspects, and against which nothing was found, in
    /// their order.
    pub others: Vec<usize>,
    /// How many more of these there are.
    pub more_others: usize,
    /// What one would say by place alone.
    pub baseline: Baseline,
    /// What it was compared with.
    pub siblings: Siblings,
    /// What passing siblings have and this run has not.
    pub missing: Vec<Element>,
    /// What was not looked at.
    pub not_looked_at: Vec<Left>,
    /// How many quotes were dropped because they are not word for word what is stored.
    pub dropped_quotes: usize,
}

/// Why a run counts as failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// What was decided about it.
    pub verdict: Verdict,
    /// The numbers of the steps that make it count as failed; the first ones.
    pub steps: Vec<usize>,
    /// How many servers crashed.
    pub crashed: usize,
}

/// A step that may have broken the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suspect {
    /// Its number.
    pub step: usize,
    /// The sum of the weights of its reasons: a score, no probability.
    pub score: Score,
    /// What came of it.
    pub outcome: Outcome,
    /// What it asked of whom.
    pub recorded: Called,
    /// Why it is suspected, the weightiest first.
    pub reasons: Vec<Reason>,
}

/// What a step asked of whom. All of it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Called {
    /// What to call the server.
    pub server: String,
    /// The method.
    pub method: Option<String>,
    /// The tool, prompt or resource.
    pub target: Option<String>,
}

/// Why a step is suspected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// The rule that found it.
    pub rule: Rule,
    /// What it adds to the score.
    pub weight: Score,
    /// In words; nothing in them was recorded.
    pub because: String,
    /// What it is based on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
}

/// A piece of a message, word for word as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quote {
    /// The run, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of the step.
    pub step: usize,
    /// Which of its messages.
    pub message: Side,
    /// Where in the message's stored text, in bytes.
    pub offset: usize,
    /// How long, in bytes.
    pub length: usize,
    /// What stands there.
    pub recorded: Quoted,
}

/// What a quote says. All of it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quoted {
    /// JSON pointer (RFC 6901) in the message to the value that it is, or is a piece of.
    pub pointer: String,
    /// These bytes: JSON text, with the escapes that it has.
    pub text: String,
}

/// Which message of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one that began it.
    Request,
    /// The one that answered it.
    Response,
}

/// Rankings by place alone, as the numbers of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Baseline {
    /// The first step that could be a suspect first.
    pub first: Vec<usize>,
    /// The last one first.
    pub last: Vec<usize>,
}

/// What a run was compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Siblings {
    /// Siblings that passed.
    pub passing: usize,
    /// Siblings that failed, this run included.
    pub failing: usize,
    /// Whether what comes of comparing is weak: fewer than three of each.
    pub weak: bool,
}

/// Something that steps of runs have in common: who was asked for what, with arguments of which
/// shape, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Element {
    /// Failing runs that have it.
    pub ef: usize,
    /// Passing runs that have it.
    pub ep: usize,
    /// Failing runs that do not have it.
    pub nf: usize,
    /// Passing runs that do not have it.
    pub np: usize,
    /// How likely that is by chance: Fisher's exact test, two-sided, with Holm's correction for
    /// all elements that are told. Not how likely it is that this broke the run.
    pub p: f64,
    /// What was asked of whom.
    pub recorded: Called,
}

/// Something that was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Left {
    /// A stable word for it.
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// In words; nothing in them was recorded.
    pub because: &'static str,
}
