//! What is different between two runs.
//!
//! Steps belong together that ask the same of the same server, in an order that both runs have;
//! what is left over between these, if at least server, method and target are the same. Then
//! arguments, answers, outcomes and durations are compared. `_meta`, ids and times are not: no
//! two runs would be the same. Sessions with the same server belong together in their order;
//! how they ended is compared where that is known of both.
//!
//! - `values`: the differences of two JSON texts

mod values;

use crate::align;
use crate::parts::{answer, arguments};
use crate::scalars::{digest, hash};
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{Session, Standing, Story};
use agent_trace_model::{End, Ending, Outcome};
use std::collections::{HashMap, VecDeque};
pub use values::{Change, Changes, changes};

/// A duration is told when it became so many times longer or shorter.
pub const DURATION_FACTOR: u64 = 2;

/// And when the difference is at least this, in nanoseconds.
pub const DURATION_LEAST: u64 = 100_000_000;

/// Two runs, step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// What is different, in the order of the first run.
    pub entries: Vec<Entry>,
    /// How many steps are the same in both.
    pub same: usize,
    /// Sessions that ended otherwise.
    pub endings: Vec<Ended>,
}

impl Diff {
    /// Whether nothing is different but how long things took.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let is_same = |entry: &Entry| match entry {
            Entry::OnlyA(_) | Entry::OnlyB(_) => false,
            Entry::Both(both) => both.is_same(),
        };
        self.endings.is_empty() && self.entries.iter().all(is_same)
    }
}

/// A session that ended otherwise in the second run, or that crashed and is in one run only.
/// Sessions are given by their positions in their runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The one of the first run.
    pub a: Option<usize>,
    /// The one of the second run.
    pub b: Option<usize>,
}

/// A difference. Steps are given by their positions in their runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A step that is in the first run only.
    OnlyA(usize),
    /// A step that is in the second run only.
    OnlyB(usize),
    /// A step that is in both, and different.
    Both(Box<Both>),
}

/// A step that is in both runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Both {
    /// Where it is in the first run.
    pub a: usize,
    /// Where it is in the second run.
    pub b: usize,
    /// Whether it stands in another place among the others.
    pub moved: bool,
    /// How its arguments differ.
    pub arguments: Changes,
    /// How its answers differ.
    pub answer: Changes,
    /// Its outcomes, where they differ.
    pub outcome: Option<(Outcome, Outcome)>,
    /// Its durations in nanoseconds, where they differ much.
    pub duration: Option<(u64, u64)>,
}

impl Both {
    /// Whether nothing is different but how long it took.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let changes = [&self.arguments, &self.answer];
        !self.moved && self.outcome.is_none() && changes.iter().all(|c| c.is_empty())
    }
}

/// Which of a run's steps are compared, as positions.
fn compared(story: &Story) -> Vec<usize> {
    // How often a server tells of its progress is no matter of what it does.
    let counts = |step: &Step| {
        let progress = step.method.as_deref() == Some("notifications/progress");
        !(progress && step.kind == StepKind::Notification)
    };
    let steps = story.steps.iter().enumerate();
    steps
        .filter(|(_, step)| counts(step))
        .map(|(at, _)| at)
        .collect()
}

/// What is different between two runs.
#[must_use]
pub fn of(a: &Story, b: &Story) -> Diff {
    let (steps_a, steps_b) = (compared(a), compared(b));
    let keys = |story: &Story, steps: &[usize]| -> (Vec<u64>, Vec<u64>) {
        steps
            .iter()
            .map(|at| signatures(story, &story.steps[*at]))
            .unzip()
    };
    let (loose_a, strict_a) = keys(a, &steps_a);
    let (loose_b, strict_b) = keys(b, &steps_b);
    let mut partner: Vec<Option<usize>> = vec![None; steps_a.len()];
    let mut taken = vec![false; steps_b.len()];
    let mut pair = |found: Vec<(usize, usize)>, a_from: usize, b_from: usize| {
        for (at_a, at_b) in found {
            partner[a_from + at_a] = Some(b_from + at_b);
            taken[b_from + at_b] = true;
        }
    };
    let strict = align::pairs(&strict_a, &strict_b);
    let (mut from_a, mut from_b) = (0, 0);
    for (at_a, at_b) in strict
        .iter()
        .copied()
        .chain([(steps_a.len(), steps_b.len())])
    {
        let found = align::pairs(&loose_a[from_a..at_a], &loose_b[from_b..at_b]);
        pair(found, from_a, from_b);
        (from_a, from_b) = (at_a + 1, at_b + 1);
    }
    pair(strict, 0, 0);
    let mut moved = moved(&strict_a, &strict_b, &partner, &taken);
    let mut diff = Diff {
        endings: endings(a, b),
        ..Diff::default()
    };
    let mut next_b = 0;
    for at in 0..steps_a.len() {
        let other = partner[at];
        if let Some(other) = other {
            while next_b < other {
                only_b(&mut diff, next_b, &steps_b, &taken, &moved.0);
                next_b += 1;
            }
            next_b = other + 1;
        }
        let is_moved = moved.1.remove(&at);
        match other.or(is_moved) {
            Some(other) => {
                let mut both = compare((a, steps_a[at]), (b, steps_b[other]));
                both.moved = is_moved.is_some();
                if both.is_same() {
                    diff.same += 1;
                }
                if !both.is_same() || both.duration.is_some() {
                    diff.entries.push(Entry::Both(Box::new(both)));
                }
            }
            None => diff.entries.push(Entry::OnlyA(steps_a[at])),
        }
    }
    for at in next_b..steps_b.len() {
        only_b(&mut diff, at, &steps_b, &taken, &moved.0);
    }
    diff
}

fn only_b(diff: &mut Diff, at: usize, steps: &[usize], taken: &[bool], moved: &[bool]) {
    if !taken[at] && !moved[at] {
        diff.entries.push(Entry::OnlyB(steps[at]));
    }
}

/// Steps without a partner that are in both runs all the same: whether one of the second run is
/// such a one, and those of the first run with theirs.
fn moved(
    a: &[u64],
    b: &[u64],
    partner: &[Option<usize>],
    taken: &[bool],
) -> (Vec<bool>, HashMap<usize, usize>) {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for at in (0..b.len()).rev().filter(|at| !taken[*at]) {
        places.entry(b[at]).or_default().push(at);
    }
    let mut is_moved = vec![false; b.len()];
    let mut moved = HashMap::new();
    for at in (0..a.len()).filter(|at| partner[*at].is_none()) {
        if let Some(place) = places.get_mut(&a[at]).and_then(Vec::pop) {
            is_moved[place] = true;
            moved.insert(at, place);
        }
    }
    (is_moved, moved)
}

/// Numbers for what a step asks of whom: without its arguments, and with them.
fn signatures(story: &Story, step: &Step) -> (u64, u64) {
    let server = story.session(step).map(|session| &session.server);
    let what = (&step.method, &step.target);
    let loose = hash((server, step.kind, step.from, what));
    (loose, hash((loose, digest(asked(step), &["_meta"]))))
}

/// What a step asks or says.
fn asked(step: &Step) -> &[u8] {
    let whole = || step.request.as_ref().map(|message| &message.text[..]);
    let found = match step.kind {
        StepKind::Request | StepKind::Notification => arguments(step),
        _ => whole(),
    };
    found.unwrap_or_default()
}

fn answered(step: &Step) -> &[u8] {
    let whole = || step.response.as_ref().map(|message| &message.text[..]);
    answer(step).or_else(whole).unwrap_or_default()
}

fn compare((a, at_a): (&Story, usize), (b, at_b): (&Story, usize)) -> Both {
    let (step_a, step_b) = (&a.steps[at_a], &b.steps[at_b]);
    let outcomes = (step_a.outcome, step_b.outcome);
    let durations = step_a.duration.zip(step_b.duration);
    Both {
        a: at_a,
        b: at_b,
        moved: false,
        arguments: changes(asked(step_a), asked(step_b)),
        answer: changes(answered(step_a), answered(step_b)),
        outcome: Some(outcomes).filter(|(a, b)| a != b),
        duration: durations.filter(|(a, b)| {
            let (less, more) = (*a.min(b), *a.max(b));
            more - less >= DURATION_LEAST && more >= less.saturating_mul(DURATION_FACTOR)
        }),
    }
}

/// The sessions that ended otherwise, in the order of the first run.
fn endings(a: &Story, b: &Story) -> Vec<Ended> {
    let mut others: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (at, session) in b.sessions.iter().enumerate() {
        others.entry(&session.server).or_default().push_back(at);
    }
    let mut endings = Vec::new();
    for (at, session) in a.sessions.iter().enumerate() {
        let other = others.get_mut(&session.server[..]);
        let other = other.and_then(VecDeque::pop_front);
        let differs = match other {
            Some(other) => ended_otherwise(session, &b.sessions[other]),
            None => session.standing == Standing::Crashed,
        };
        if differs {
            let (a, b) = (Some(at), other);
            endings.push(Ended { a, b });
        }
    }
    let rest = others.into_values().flatten();
    let crashed = rest.filter(|at| b.sessions[*at].standing == Standing::Crashed);
    let mut crashed: Vec<usize> = crashed.collect();
    crashed.sort_unstable();
    endings.extend(crashed.into_iter().map(|at| Ended {
        a: None,
        b: Some(at),
    }));
    endings
}

/// Whether two sessions ended otherwise, as far as it is known how they did.
fn ended_otherwise(a: &Session, b: &Session) -> bool {
    // That nothing came any more, or that the relay was stopped, is no matter of the two.
    let how = |end: &End| match end.ending {
        Ending::RelayStopped => Ending::Idle,
        ending => ending,
    };
    match (&a.end, &b.end) {
        (Some(end_a), Some(end_b)) => {
            let rest = |end: &End| (end.exit_code, end.signal, end.killed, end.error.clone());
            a.standing != b.standing || how(end_a) != how(end_b) || rest(end_a) != rest(end_b)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
