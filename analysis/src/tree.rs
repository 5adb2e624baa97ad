//! What led to what: sessions, their prompts, their steps, and under a request what happened
//! because of it.
//!
//! What the server asks in the middle of a call (sampling, elicitation, roots) belongs to the
//! call whose HTTP exchange it came in. On stdio nothing says which call it belongs to: it is
//! the one that is open, if one alone is. Progress and cancellations name their request.

use crate::parts::params;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_model::{Outcome, Stream};
use agent_trace_wire::message::{member, member_at, stays_open};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A session with what happened in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// Position of the session in the run.
    pub session: usize,
    /// Its steps by prompts, in the order in which they began; one part without a prompt
    /// where none are known.
    pub turns: Vec<Limb>,
}

/// What belongs to one prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limb {
    /// Position of the prompt among those of the run.
    pub turn: Option<usize>,
    /// Its steps.
    pub steps: Vec<Twig>,
}

/// A step with what happened because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twig {
    /// Position of the step in the run.
    pub step: usize,
    /// How it is known to belong where it is.
    pub by: Option<By>,
    /// What happened because of it.
    pub under: Vec<Self>,
}

/// How it is known that a step happened because of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// It came in the HTTP exchange of that.
    Exchange,
    /// Nothing else was open: it may have come by itself.
    OnlyOneOpen,
    /// It names that.
    Name,
}

/// What led to what in a run.
#[must_use]
pub fn of(story: &Story) -> Vec<Branch> {
    let parents = parents(story);
    let mut under: Vec<Vec<usize>> = vec![Vec::new(); story.steps.len()];
    for (step, parent) in parents.iter().enumerate() {
        if let Some((parent, _)) = parent {
            under[*parent].push(step);
        }
    }
    let branch = |session| Branch {
        session,
        turns: Vec::new(),
    };
    let mut branches: Vec<Branch> = (0..story.sessions.len()).map(branch).collect();
    for (at, step) in story.steps.iter().enumerate() {
        if parents[at].is_some() {
            continue;
        }
        let Some(branch) = branches.get_mut(step.session) else {
            continue;
        };
        let twig = twig(at, &parents, &under);
        match branch.turns.last_mut() {
            Some(limb) if limb.turn == step.turn => limb.steps.push(twig),
            _ => branch.turns.push(Limb {
                turn: step.turn,
                steps: vec![twig],
            }),
        }
    }
    branches
}

/// A parent is a request, and only one of the client has children with children: this goes no
/// deeper than three.
fn twig(step: usize, parents: &[Option<(usize, By)>], under: &[Vec<usize>]) -> Twig {
    Twig {
        step,
        by: parents[step].map(|(_, by)| by),
        under: under[step]
            .iter()
            .map(|at| twig(*at, parents, under))
            .collect(),
    }
}

/// The request that led to each step, where that can be told: always an earlier one.
fn parents(story: &Story) -> Vec<Option<(usize, By)>> {
    let mut calls: Vec<Calls<'_>> = Vec::new();
    calls.resize_with(story.sessions.len(), Calls::default);
    let mut parents = Vec::with_capacity(story.steps.len());
    for (at, step) in story.steps.iter().enumerate() {
        let calls = calls.get_mut(step.session);
        parents.push(calls.and_then(|calls| {
            let parent = calls.parent(step);
            calls.begin(at, step);
            parent
        }));
    }
    parents
}

/// The requests of a session.
#[derive(Default)]
struct Calls<'a> {
    /// The client's that will be answered, by when.
    open: BinaryHeap<Reverse<(u64, usize)>>,
    /// The client's that will not.
    unanswered: Vec<usize>,
    /// The client's by the HTTP exchange that they began.
    exchanges: HashMap<u32, usize>,
    /// By who asked and progress token.
    tokens: HashMap<(Stream, &'a [u8]), usize>,
    /// By who asked and id.
    ids: HashMap<(Stream, &'a str), usize>,
}

impl<'a> Calls<'a> {
    fn begin(&mut self, at: usize, step: &'a Step) {
        if step.kind != StepKind::Request {
            return;
        }
        if let Some(id) = &step.id {
            self.ids.insert((step.from, id), at);
        }
        let token = params(step).and_then(|params| member_at(params, &["_meta", "progressToken"]));
        if let Some(token) = token {
            self.tokens.insert((step.from, token), at);
        }
        if !step.is_clients() || stays_open(step.method.as_deref()) {
            return;
        }
        if step.exchange > 0 {
            self.exchanges.insert(step.exchange, at);
        }
        match step.duration {
            Some(_) => self.open.push(Reverse((step.ended(), at))),
            // Nobody knows for how long the server worked on it.
            None if step.outcome == Outcome::Cancelled => {}
            None => self.unanswered.push(at),
        }
    }

    fn parent(&mut self, step: &Step) -> Option<(usize, By)> {
        let ended = |Reverse((end, _)): &Reverse<(u64, usize)>| *end < step.wall;
        while self.open.peek().is_some_and(ended) {
            self.open.pop();
        }
        let other = match step.from {
            Stream::ClientToServer => Stream::ServerToClient,
            _ => Stream::ClientToServer,
        };
        let named = match (step.kind, step.method.as_deref()) {
            (StepKind::Notification, Some("notifications/progress")) => {
                let token = member(params(step)?, "progressToken")?;
                self.tokens.get(&(other, token))
            }
            (StepKind::Notification, Some("notifications/cancelled")) => {
                let id = member(params(step)?, "requestId")?;
                self.ids.get(&(step.from, std::str::from_utf8(id).ok()?))
            }
            (StepKind::Request, _) if !step.is_clients() => {
                let exchange = self.exchanges.get(&step.exchange);
                let exchange = exchange.map(|call| (*call, By::Exchange));
                return exchange.or_else(|| Some((self.only_one()?, By::OnlyOneOpen)));
            }
            _ => None,
        };
        named.map(|call| (*call, By::Name))
    }

    fn only_one(&self) -> Option<usize> {
        match (self.open.len(), &self.unanswered[..]) {
            (1, []) => self.open.peek().map(|Reverse((_, at))| *at),
            (0, [one]) => Some(*one),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tale;

    /// The tree in one line: `1 2(3 4)`.
    fn told(story: &Story) -> String {
        fn of_twigs(twigs: &[Twig]) -> String {
            let told = twigs.iter().map(|twig| match twig.under.is_empty() {
                true => format!("{}", twig.step + 1),
                false => format!("{}({})", twig.step + 1, of_twigs(&twig.under)),
            });
            told.collect::<Vec<_>>().join(" ")
        }
        let branches = of(story).into_iter();
        let branches = branches.map(|branch| {
            let limbs = branch.turns.iter().map(|limb| match limb.turn {
                Some(turn) => format!("{turn}: {}", of_twigs(&limb.steps)),
                None => of_twigs(&limb.steps),
            });
            limbs.collect::<Vec<_>>().join(" | ")
        });
        branches.collect::<Vec<_>>().join(" || ")
    }

    fn open(tale: Tale, ms: u64) -> Tale {
        tale.step(|step| step.duration = Some(ms * 1_000_000))
    }

    #[test]
    fn what_the_server_asks_belongs_to_the_call_that_is_open() {
        let tale = Tale::new().call("a", "{}").result("{}");
        let tale = open(tale.after(5).call("ask", "{}"), 100);
        let story = tale
            .after(10)
            .asked_back("elicitation/create", "{}")
            .result("{}")
            .after(500)
            .asked_back("roots/list", "{}")
            .result("{}")
            .told();
        assert_eq!(told(&story), "1 2(3) 4");
        assert_eq!(
            of(&story)[0].turns[0].steps[1].under[0].by,
            Some(By::OnlyOneOpen)
        );
    }

    #[test]
    fn of_two_open_calls_none_is_said_to_have_led_to_it() {
        let tale = open(Tale::new().call("a", "{}"), 100);
        let tale = open(tale.after(5).call("b", "{}"), 100);
        let tale = tale
            .after(5)
            .asked_back("elicitation/create", "{}")
            .result("{}");
        assert_eq!(told(&tale.clone().told()), "1 2 3");
        // In HTTP the exchange tells.
        let mut story = tale.told();
        for (step, exchange) in [(0, 1), (1, 2), (2, 2)] {
            story.steps[step].exchange = exchange;
        }
        assert_eq!(told(&story), "1 2(3)");
    }

    #[test]
    fn progress_and_cancellations_name_their_request() {
        let story = open(
            Tale::new().request("tools/call", r#"{"_meta":{"progressToken":"p"}}"#),
            100,
        );
        let story = story
            .after(1)
            .told_by_server("notifications/progress", r#"{"progressToken":"p"}"#)
            .told_by_server("notifications/progress", r#"{"progressToken":"q"}"#)
            .tells("notifications/cancelled", r#"{"requestId":1}"#)
            .told();
        assert_eq!(told(&story), "1(2 4) 3");
    }

    #[test]
    fn sessions_and_prompts_are_apart() {
        let story = Tale::new()
            .turn("first")
            .call("a", "{}")
            .result("{}")
            .on("other")
            .call("b", "{}")
            .result("{}")
            .turn("second")
            .on("notes")
            .call("a", "{}")
            .result("{}")
            .told();
        assert_eq!(told(&story), "0: 1 | 1: 3 || 0: 2");
    }
}
