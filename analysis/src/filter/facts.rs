//! Whether a run matches, as far as a summary tells.
//!
//! A summary has the run's steps in groups. Of a group some facts are the same for all of its
//! steps, of others it is known what occurs. A run matches for sure if a group is known to
//! have a step that does, and does not if no group can have one.

#[cfg(test)]
mod tests;

use super::text::Text;
use super::units::Comparison;
use super::{Atom, Expression, Filter, Ternary};
use crate::outcomes::OutcomeSet;
use agent_trace_model::{Outcome, RunId, Verdict};
use std::borrow::Cow;

/// A summary of a run. What it says must be so: what is not known is left open.
pub trait RunFacts {
    /// Its id.
    fn id(&self) -> RunId;
    /// Ids that it also goes by.
    fn aliases(&self) -> Cow<'_, [RunId]>;
    /// When it began, as its story says: nanoseconds since 1970.
    fn started(&self) -> u64;
    /// When the last of it was recorded, likewise.
    fn last(&self) -> u64;
    /// What was decided about it.
    fn verdict(&self) -> Verdict;
    /// Whether it [failed](crate::outcomes::is_failed), with this verdict.
    fn failed(&self) -> Ternary;
    /// The task that it was started for.
    fn task(&self) -> Name<'_>;
    /// Whether scans found something with this code in any of its steps.
    fn found(&self, code: &str) -> Ternary;
    /// The clients of its sessions.
    fn clients(&self) -> Box<dyn Iterator<Item = &str> + '_>;
    /// The servers of its sessions.
    fn servers(&self) -> Box<dyn Iterator<Item = &str> + '_>;
    /// All of its steps, each in one group. The finer the groups, the more they tell; a group
    /// for each server, method and target decides nearly everything but what bodies hold.
    fn groups(&self) -> Box<dyn Iterator<Item = Group<'_>> + '_>;
}

/// Some steps of a run.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// How many there are.
    pub count: u64,
    /// What their server is called.
    pub server: Name<'a>,
    /// Their method.
    pub method: Name<'a>,
    /// What they are about.
    pub target: Name<'a>,
    /// Their outcomes, each of at least one of them.
    pub outcomes: OutcomeSet,
    /// How many have a duration; none where that is not known.
    pub timed: Option<u64>,
    /// The shortest and the longest of these durations, in nanoseconds; none where they are
    /// not known.
    pub duration: Option<(u64, u64)>,
    /// The least and the greatest number of bytes; none where they are not known.
    pub bytes: Option<(u64, u64)>,
    /// The [codes](super::codes) of them, each of at least one of them.
    pub codes: Cow<'a, [i64]>,
    /// Whether these are all codes.
    pub all_codes: bool,
}

/// A name that steps have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// None of them has one.
    None,
    /// All of them have this one.
    Is(&'a str),
    /// They differ, or it is not known.
    Various,
}

impl<'a> From<Option<&'a str>> for Name<'a> {
    fn from(name: Option<&'a str>) -> Self {
        name.map_or(Self::None, Self::Is)
    }
}

impl Name<'_> {
    fn matches(self, text: &Text) -> Ternary {
        match self {
            Self::None => Ternary::No,
            Self::Is(name) => text.matches(name.as_bytes()).into(),
            Self::Various => Ternary::Maybe,
        }
    }
}

pub(super) fn decide(filter: &Filter, facts: &dyn RunFacts) -> Ternary {
    let root = &filter.root;
    // What can be said of runs alone is said without looking at the groups.
    let run = root.ask(&mut |atom| of_run(atom, facts).unwrap_or(Ternary::Maybe));
    if run != Ternary::Maybe {
        return run;
    }
    let (mut any, mut decided) = (false, Ternary::No);
    for group in facts.groups().filter(|group| group.count > 0) {
        any = true;
        decided = decided.max(of_group(filter, facts, &group));
        if decided == Ternary::Yes {
            return decided;
        }
    }
    if any {
        return decided;
    }
    without_steps(root, facts)
}

/// A run without steps matches where what is known of it is enough.
fn without_steps(root: &Expression, facts: &dyn RunFacts) -> Ternary {
    let (started, last) = range(facts);
    let with = |server: Option<&str>| {
        let mut unsure = false;
        let answer = root.ask(&mut |atom| match (atom, server) {
            (Atom::Server(text), Some(server)) => text.matches(server.as_bytes()).into(),
            (Atom::Since(moment), _) => (last >= *moment).into(),
            (Atom::Until(moment), _) => (started < *moment).into(),
            _ => {
                let known = of_run(atom, facts);
                unsure |= known == Some(Ternary::Maybe);
                known.unwrap_or(Ternary::Maybe)
            }
        });
        match answer {
            // What steps would say cannot be known; what the summary leaves open could.
            Ternary::Maybe if !unsure => Ternary::No,
            answer => answer,
        }
    };
    let mut servers = facts.servers().peekable();
    if servers.peek().is_none() {
        return with(None);
    }
    servers
        .map(|server| with(Some(server)))
        .max()
        .unwrap_or(Ternary::No)
}

/// What is the same for all steps of the run, or holds for all of them or none.
fn of_run(atom: &Atom, facts: &dyn RunFacts) -> Option<Ternary> {
    Some(match atom {
        Atom::Run(prefix) => {
            let starts = |id: &RunId| id.to_string().starts_with(prefix);
            (starts(&facts.id()) || facts.aliases().iter().any(starts)).into()
        }
        Atom::Client(text) => {
            let mut clients = facts.clients();
            clients.any(|client| text.matches(client.as_bytes())).into()
        }
        Atom::Task(text) => facts.task().matches(text),
        Atom::Verdict(verdict) => (facts.verdict() == *verdict).into(),
        Atom::RunFailed => facts.failed(),
        // Of a run in which it was found it is not known in which step.
        Atom::Found(code) if facts.found(code) == Ternary::No => Ternary::No,
        Atom::Since(moment) => {
            let (started, last) = range(facts);
            Ternary::of(last >= *moment, started >= *moment)
        }
        Atom::Until(moment) => {
            let (started, last) = range(facts);
            Ternary::of(started < *moment, last < *moment)
        }
        _ => return None,
    })
}

/// When the run began, and when it was last recorded.
fn range(facts: &dyn RunFacts) -> (u64, u64) {
    let last = facts.last();
    (facts.started().min(last), last)
}

/// What is known of one step beyond what its group says.
#[derive(Clone, Copy, Default)]
struct Known {
    outcome: Option<Outcome>,
    duration: Option<u64>,
    bytes: Option<u64>,
    code: Option<i64>,
}

/// Whether one of the group's steps matches.
fn of_group(filter: &Filter, facts: &dyn RunFacts, group: &Group<'_>) -> Ternary {
    let ask = |known: Known| {
        let mut atom =
            |atom: &Atom| of_run(atom, facts).unwrap_or_else(|| of_some(atom, group, known));
        filter.root.ask(&mut atom)
    };
    // Each step has one of these outcomes, and each of them is one's.
    let outcomes = group.outcomes.iter().map(|outcome| {
        ask(Known {
            outcome: Some(outcome),
            ..Known::default()
        })
    });
    let mut decided = Ternary::No;
    let mut none = true;
    for answer in outcomes {
        none = false;
        decided = decided.max(answer);
    }
    if none {
        decided = ask(Known::default());
    }
    if decided != Ternary::Maybe {
        return decided;
    }
    // Of these it is known that there is one.
    let is_yes = |known| ask(known) == Ternary::Yes;
    let ends = |range: Option<(u64, u64)>, asked: bool| {
        let ends = range.filter(|_| asked).map(|(least, most)| [least, most]);
        ends.into_iter().flatten()
    };
    let timed = group
        .duration
        .filter(|_| group.timed.is_none_or(|timed| timed > 0));
    let mut durations = ends(timed, filter.asks.durations);
    let mut sizes = ends(group.bytes, filter.asks.sizes);
    let mut codes = filter
        .asks
        .codes
        .iter()
        .filter(|code| group.codes.contains(code));
    let sure = durations.any(|duration| {
        is_yes(Known {
            duration: Some(duration),
            ..Known::default()
        })
    }) || sizes.any(|bytes| {
        is_yes(Known {
            bytes: Some(bytes),
            ..Known::default()
        })
    }) || codes.any(|code| {
        is_yes(Known {
            code: Some(*code),
            ..Known::default()
        })
    });
    if sure { Ternary::Yes } else { Ternary::Maybe }
}

/// Whether all of the group's steps of which this is known match, or none.
fn of_some(atom: &Atom, group: &Group<'_>, known: Known) -> Ternary {
    match atom {
        Atom::Name(text) => group.target.matches(text).max(group.method.matches(text)),
        Atom::Method(text) => group.method.matches(text),
        Atom::Server(text) => group.server.matches(text),
        Atom::Tool(text) => {
            let calls = match group.method {
                Name::Is(method) => Ternary::from(method == "tools/call"),
                Name::None => Ternary::No,
                Name::Various => Ternary::Maybe,
            };
            calls.min(group.target.matches(text))
        }
        Atom::Outcome(set) => match known.outcome {
            Some(outcome) => set.has(outcome).into(),
            None if group.outcomes.is_empty() => Ternary::Maybe,
            None => Ternary::of(set.overlaps(group.outcomes), set.covers(group.outcomes)),
        },
        Atom::Duration(comparison, bound) => match (known.duration, group.timed) {
            (Some(duration), _) => comparison.holds(duration, *bound).into(),
            (None, Some(0)) => Ternary::No,
            (None, timed) => {
                let Some(range) = group.duration else {
                    return Ternary::Maybe;
                };
                match within(*comparison, range, *bound) {
                    // Those without a duration do not match.
                    Ternary::Yes if timed != Some(group.count) => Ternary::Maybe,
                    answer => answer,
                }
            }
        },
        Atom::Size(comparison, bound) => match (known.bytes, group.bytes) {
            (Some(bytes), _) => comparison.holds(bytes, *bound).into(),
            (None, Some(range)) => within(*comparison, range, *bound),
            (None, None) => Ternary::Maybe,
        },
        Atom::Code(code) => {
            if known.code == Some(*code) {
                Ternary::Yes
            } else if group.codes.contains(code) {
                Ternary::of(true, group.count == 1)
            } else {
                Ternary::of(!group.all_codes, false)
            }
        }
        _ => Ternary::Maybe,
    }
}

/// Whether the comparison holds for all amounts in a range, or for none.
fn within(comparison: Comparison, (least, most): (u64, u64), bound: u64) -> Ternary {
    let (first, last) = (
        comparison.holds(least, bound),
        comparison.holds(most, bound),
    );
    let some = match comparison {
        Comparison::Equal => (least..=most).contains(&bound),
        _ => first || last,
    };
    Ternary::of(some, first && last)
}
