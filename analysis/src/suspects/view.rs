//! A run as the rules see it: the steps that can be suspects, with what was asked and what the
//! answer says.

use super::answers::{Answer, Holds};
use super::definitions::Definitions;
use super::quotes::Spot;
use super::result::{Called, Side};
use super::walk;
use crate::outcomes;
use crate::parts;
use crate::quote::head;
use crate::scalars::{digest, hash};
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_model::{Outcome, Stream};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Characters of a name that are told.
const NAME: usize = 120;

/// What clients ask for to get connected and to know what there is: no suspects unless it fails.
const CONNECTING: [&str; 11] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
    "subscriptions/listen",
];

/// Words in the names of tools that read only; what a server says of a tool counts more.
const READS: [&str; 14] = [
    "get", "read", "list", "search", "find", "show", "fetch", "query", "open", "log", "status",
    "diff", "describe", "tree",
];

/// A step that can be a suspect.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Position of the step in the run.
    pub(super) at: usize,
    pub(super) step: &'a Step,
    pub(super) server: &'a str,
    pub(super) tool: Option<&'a str>,
    /// JSON text of what it was given.
    pub(super) arguments: &'a [u8],
    /// A number for server, method and target.
    pub(super) kind: u64,
    /// A number for that and the arguments.
    pub(super) same: u64,
    pub(super) answer: Answer,
    /// Whether it ended in an error that a later success made good.
    pub(super) recovered: bool,
}

impl Call<'_> {
    pub(super) fn failed(&self) -> bool {
        self.step.outcome.is_failure()
    }

    /// Whether it ended well as far as the protocol tells.
    pub(super) fn is_ok(&self) -> bool {
        self.step.outcome == Outcome::Ok && self.step.response.is_some()
    }

    /// Whether it ended well as far as the answer tells, too.
    pub(super) fn is_clean(&self) -> bool {
        let fine = matches!(self.answer.holds, Holds::Something | Holds::NoContent);
        self.is_ok() && fine && self.answer.fails.is_none()
    }

    /// A place in its answer.
    pub(super) fn answer_at(&self, range: Option<&Range<usize>>) -> Option<Spot> {
        range.map(|range| Spot::new(self.at, Side::Response, range.clone()))
    }

    /// What it answered first: the error, where it is one.
    pub(super) fn said(&self) -> Option<Spot> {
        self.answer_at(self.answer.said.as_ref()).or_else(|| {
            let part = parts::answer(self.step)?;
            Spot::of(self.at, self.step, Side::Response, part)
        })
    }

    /// What it was given.
    pub(super) fn asked(&self) -> Option<Spot> {
        let given = !matches!(self.arguments, b"" | b"{}");
        given.then(|| Spot::of(self.at, self.step, Side::Request, self.arguments))?
    }

    /// The value of its arguments that this pointer, from the arguments on, names.
    pub(super) fn argument(&self, pointer: &str) -> Option<Spot> {
        let text = super::quotes::text(self.step, Side::Request)?;
        let outer = super::quotes::range_in(text, self.arguments)?;
        let range = walk::locate(self.arguments, pointer)?;
        let range = outer.start + range.start..outer.start + range.end;
        Some(Spot::new(self.at, Side::Request, range))
    }
}

/// A run as the rules see it.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) story: &'a Story,
    /// In the order of the run.
    pub(super) calls: Vec<Call<'a>>,
    /// Position in `calls` by position of the step.
    by_step: HashMap<usize, usize>,
    pub(super) definitions: Definitions<'a>,
    /// Steps that make the run count as failed, as positions.
    pub(super) failures: Vec<usize>,
    /// Sessions whose server crashed, as positions.
    pub(super) crashed: Vec<usize>,
}

impl<'a> View<'a> {
    pub(super) fn of(story: &'a Story) -> Self {
        let recovered: BTreeSet<usize> = outcomes::recovered(story)
            .iter()
            .map(|recovered| recovered.step)
            .collect();
        let candidates = story.steps.iter().enumerate();
        let candidates = candidates.filter(|(_, step)| is_candidate(step));
        let calls: Vec<Call<'_>> = candidates
            .map(|(at, step)| call(story, at, step, recovered.contains(&step.number)))
            .collect();
        let by_step = calls.iter().enumerate();
        let by_step = by_step.map(|(index, call)| (call.at, index)).collect();
        let (mut failures, mut crashed) = (Vec::new(), Vec::new());
        for failure in outcomes::failures(story) {
            match (failure.step(), &failure) {
                (Some(number), _) => failures.extend(story.position(number)),
                (None, outcomes::Failure::Crashed { session }) => crashed.push(*session),
                (None, _) => {}
            }
        }
        failures.sort_unstable();
        failures.dedup();
        Self {
            story,
            calls,
            by_step,
            definitions: Definitions::of(story),
            failures,
            crashed,
        }
    }

    /// Position in `calls` of a step.
    pub(super) fn index(&self, at: usize) -> Option<usize> {
        self.by_step.get(&at).copied()
    }

    /// The call that a step is.
    pub(super) fn call(&self, at: usize) -> Option<&Call<'a>> {
        self.calls.get(self.index(at)?)
    }

    /// Whether the client goes on after this call.
    pub(super) fn goes_on(&self, index: usize) -> bool {
        let later = self.calls.get(index + 1..).unwrap_or_default();
        later.iter().any(|call| call.step.is_clients())
    }

    /// Whether the tool that is called changes nothing, as far as its definition or else its name
    /// tells.
    pub(super) fn is_reading(&self, call: &Call<'_>) -> bool {
        let tool = call.tool.unwrap_or_default();
        let definition = self.definitions.last_of(call.server, tool);
        if definition.is_some_and(|tool| tool.is_read_only()) {
            return true;
        }
        let lower = tool.to_ascii_lowercase();
        let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| READS.contains(&word))
    }

    /// For each call the next one, if any, of the same kind of which something holds.
    pub(super) fn next_of_kind(&self, holds: impl Fn(&Call<'_>) -> bool) -> Vec<Option<usize>> {
        self.next(|call| call.kind, holds)
    }

    /// Likewise with the same arguments.
    pub(super) fn next_same(&self, holds: impl Fn(&Call<'_>) -> bool) -> Vec<Option<usize>> {
        self.next(|call| call.same, holds)
    }

    fn next(
        &self,
        key: impl Fn(&Call<'_>) -> u64,
        holds: impl Fn(&Call<'_>) -> bool,
    ) -> Vec<Option<usize>> {
        let mut next: HashMap<u64, usize> = HashMap::new();
        let mut found = vec![None; self.calls.len()];
        for (index, call) in self.calls.iter().enumerate().rev() {
            found[index] = next.get(&key(call)).copied();
            if holds(call) {
                next.insert(key(call), index);
            }
        }
        found
    }
}

/// Whether a step can be a suspect.
pub(super) fn is_candidate(step: &Step) -> bool {
    let method = step.method.as_deref().unwrap_or_default();
    let failed = step.outcome.is_failure();
    match step.kind {
        StepKind::Request if CONNECTING.contains(&method) => failed && !is_probing(step, method),
        StepKind::Request if !step.is_clients() && method == "roots/list" => failed,
        StepKind::Request => true,
        StepKind::Http => failed && method == "POST",
        _ => false,
    }
}

/// Whether it only finds out what the server can do, so that an error is an answer.
fn is_probing(step: &Step, method: &str) -> bool {
    let code = parts::error(step).and_then(|e| agent_trace_wire::message::member(e, "code"));
    method == "server/discover" || code == Some(b"-32601") && method != "initialize"
}

fn call<'a>(story: &'a Story, at: usize, step: &'a Step, recovered: bool) -> Call<'a> {
    let server = server(story, step);
    let arguments = parts::arguments(step).unwrap_or_default();
    let by_client = step.from == Stream::ClientToServer;
    let kind = hash((server, by_client, &step.method, &step.target));
    Call {
        at,
        step,
        server,
        tool: step.tool(),
        arguments,
        kind,
        same: hash((kind, digest(arguments, &["_meta"]))),
        answer: Answer::of(step),
        recovered,
    }
}

/// What to call the server of a step.
pub(super) fn server<'a>(story: &'a Story, step: &Step) -> &'a str {
    let session = story.session(step);
    session.map_or("", |session| &session.server)
}

/// What a step asked of whom.
pub(super) fn called(story: &Story, step: &Step) -> Called {
    let name = |text: &str| head(text.as_bytes(), NAME);
    Called {
        server: name(server(story, step)),
        method: step.method.as_deref().map(name),
        target: step.target.as_deref().map(name),
    }
}
