//! What is counted of a session between two pauses.

use super::{bounded, sorted};
use crate::rows::tally::{MOST_APART, MOST_NAMED};
use crate::rows::{
    Call, Counts, Failed, GroupKey, MethodTally, PartRow, StepAt, Tally, ToolTally, Tries, TurnRow,
};
use agent_trace_model::step::StepKind;
use agent_trace_model::{Finish, Outcome, Stream};
use agent_trace_store::journal::Kind;
use agent_trace_store::trace::flow::Taken;
use agent_trace_store::trace::step::Place;
use agent_trace_store::trace::{Session, Step};
use agent_trace_wire::message::stays_open;
use std::collections::{BTreeMap, BTreeSet};

/// The most traces and the most prompts of a part that are known.
const MOST_TRACES: usize = 64;
const MOST_TURNS: usize = 1_000;
/// What a client asks for to get connected and to know what there is.
const CONNECTING: [&str; 8] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "logging/setLevel",
];

/// Kind, side and method of steps that are no calls of tools.
type Group = (u8, Stream, Option<String>);

#[derive(Clone, Debug)]
pub(super) struct Part {
    /// When it began, on the monotonic clock.
    pub(super) from: u64,
    started: u64,
    pub(super) active: u64,
    last: u64,
    pub(super) conversation: Option<GroupKey>,
    traces: BTreeSet<GroupKey>,
    turns: Vec<TurnRow>,
    /// All that is not in the maps.
    pub(super) tally: Tally,
    tools: BTreeMap<String, Last<ToolTally>>,
    methods: BTreeMap<Group, Last<MethodTally>>,
    codes: BTreeMap<String, u64>,
    statuses: BTreeMap<u16, u64>,
}

/// Something that is counted, and how it went.
#[derive(Clone, Debug)]
struct Last<T> {
    counted: T,
    /// All of them.
    any: Tries,
    /// Those that were not answered with the HTTP status 404: with that a server tells a
    /// client to begin a new session.
    not_moved: Tries,
}

impl Part {
    pub(super) fn new(from: u64, started: u64, last: u64) -> Self {
        Self {
            from,
            started,
            active: started,
            last,
            conversation: None,
            traces: BTreeSet::new(),
            turns: Vec::new(),
            tally: Tally::default(),
            tools: BTreeMap::new(),
            methods: BTreeMap::new(),
            codes: BTreeMap::new(),
            statuses: BTreeMap::new(),
        }
    }

    pub(super) fn trace(&mut self, trace: GroupKey) {
        if self.traces.len() < MOST_TRACES {
            self.traces.insert(trace);
        }
    }

    pub(super) fn turn(&mut self, turn: TurnRow) {
        let known = self.turns.iter().rev().any(|known| known.id == turn.id);
        if !known && self.turns.len() < MOST_TURNS {
            self.turns.push(turn);
        }
    }

    /// Takes what a record alone tells.
    pub(super) fn count(&mut self, record: &Taken) {
        self.last = self.last.max(record.wall);
        match (record.kind, record.stream) {
            (Kind::Frame, Stream::ClientToServer) => self.tally.bytes[0] += record.length,
            (Kind::Frame, _) => self.tally.bytes[1] += record.length,
            (Kind::Stderr, _) => self.tally.stderr += 1,
            _ => {}
        }
    }

    /// A step began.
    pub(super) fn began(&mut self, step: &Step) {
        if !step.is_clients() {
            return;
        }
        let connects = |method: &str| CONNECTING.contains(&method);
        self.tally.acts |= match step.kind {
            StepKind::Request => !step.method.as_deref().is_some_and(connects),
            StepKind::Other | StepKind::Stray => true,
            StepKind::Notification | StepKind::Answer | StepKind::Http => false,
        };
        if step.kind != StepKind::Http {
            self.active = self.active.max(step.wall);
        }
    }

    /// Counts a step. Nothing more will be learned of it, or it is pending and this is a look
    /// at how things are.
    pub(super) fn fold(&mut self, step: &Step, at: StepAt, bytes: u64) {
        let tally = &mut self.tally;
        tally.steps += 1;
        match step.kind {
            StepKind::Request => tally.requests += 1,
            StepKind::Notification => tally.notifications += 1,
            StepKind::Answer | StepKind::Other | StepKind::Stray => tally.odd += 1,
            StepKind::Http => {}
        }
        tally.outcomes.add(step.outcome);
        if let Some(code) = &step.code {
            count(&mut self.codes, code);
        }
        if let Some(status) = step.status.filter(|status| *status >= 400) {
            count(&mut self.statuses, &status);
        }
        let asked = step.is_clients() && step.kind == StepKind::Request;
        let timed = step
            .duration
            .filter(|_| asked && !stays_open(step.method.as_deref()));
        if let Some(duration) = timed {
            tally.longest = longer(tally.longest, Some((duration, at)));
        }
        let unanswered = asked && step.outcome.is_unanswered() && !failed_in_http(step);
        if unanswered {
            tally.unanswered += 1;
            name(&mut tally.unanswered_at, at);
        }
        // The last attempt of each kind says how it went.
        let says = step.is_clients() && !unanswered && has_a_say(step.outcome);
        let says = says && step.kind != StepKind::Http && step.method.is_some();
        let failed = how_it_failed(step);
        let call = says.then_some(Call { at, failed });
        match step.tool().filter(|_| step.is_clients()) {
            Some(tool) => self.tool(tool, step, bytes, call),
            None => self.method(step, bytes, call),
        }
    }

    fn tool(&mut self, tool: &str, step: &Step, bytes: u64, call: Option<Call>) {
        let tool = bounded(tool);
        if !self.tools.contains_key(&tool) && self.tools.len() >= MOST_APART {
            return;
        }
        let name = tool.clone();
        let new = || {
            Last::new(ToolTally {
                server: 0,
                tool: name,
                calls: 0,
                outcomes: Counts::default(),
                shortest: 0,
                longest: 0,
                durations: crate::rows::Sketch::default(),
                bytes: 0,
                tries: Tries::default(),
            })
        };
        let last = self.tools.entry(tool).or_insert_with(new);
        let counted = &mut last.counted;
        counted.calls += 1;
        counted.bytes += bytes;
        counted.outcomes.add(step.outcome);
        if let Some(duration) = step.duration {
            let timed = counted.durations.len();
            within(&mut counted.shortest, &mut counted.longest, timed, duration);
            counted.durations.add(duration);
        }
        last.tell(call, step.status);
    }

    fn method(&mut self, step: &Step, bytes: u64, call: Option<Call>) {
        let method = step.method.as_deref().map(bounded);
        let group = (step.kind as u8, step.from, method.clone());
        if !self.methods.contains_key(&group) && self.methods.len() >= MOST_APART {
            return;
        }
        let new = || {
            Last::new(MethodTally {
                server: 0,
                kind: step.kind,
                from: step.from,
                method,
                calls: 0,
                outcomes: Counts::default(),
                timed: 0,
                shortest: 0,
                longest: 0,
                bytes: 0,
                tries: Tries::default(),
            })
        };
        let last = self.methods.entry(group).or_insert_with(new);
        let counted = &mut last.counted;
        counted.calls += 1;
        counted.bytes += bytes;
        counted.outcomes.add(step.outcome);
        if let Some(duration) = step.duration {
            let timed = counted.timed;
            within(&mut counted.shortest, &mut counted.longest, timed, duration);
            counted.timed += 1;
        }
        last.tell(call, step.status);
    }

    /// Its row. Whether the server told the client to begin a new session: then a 404 is no
    /// failure.
    pub(super) fn row(self, moved: bool) -> PartRow {
        let mut tally = self.tally;
        let tools = self.tools.into_values();
        tally.tools = tools
            .map(|mut tool| ToolTally {
                tries: tool.tries(moved),
                ..tool.counted
            })
            .collect();
        let methods = self.methods.into_values();
        tally.methods = methods
            .map(|mut method| MethodTally {
                tries: method.tries(moved),
                ..method.counted
            })
            .collect();
        tally.codes = self.codes.into_iter().collect();
        tally.statuses = self.statuses.into_iter().collect();
        PartRow {
            from: self.from,
            started: self.started,
            active: self.active,
            last: self.last,
            conversation: self.conversation,
            traces: sorted(&self.traces),
            turns: self.turns,
            tally,
            in_run: false,
        }
    }
}

impl<T> Last<T> {
    fn new(counted: T) -> Self {
        Self {
            counted,
            any: Tries::default(),
            not_moved: Tries::default(),
        }
    }

    fn tell(&mut self, call: Option<Call>, status: Option<u16>) {
        let Some(call) = call else {
            return;
        };
        self.any.tell(call);
        if status != Some(404) {
            self.not_moved.tell(call);
        }
    }

    fn tries(&mut self, moved: bool) -> Tries {
        let (any, not_moved) = (&mut self.any, &mut self.not_moved);
        std::mem::take(if moved { not_moved } else { any })
    }
}

/// Whether a step that ended so says how it went.
pub(super) fn has_a_say(outcome: Outcome) -> bool {
    use Outcome::{Cancelled, NotRecorded, Pending};
    !matches!(outcome, Pending | Cancelled | NotRecorded)
}

/// Bytes of both messages of a step on the wire.
pub(super) fn bytes(session: &Session, step: &Step) -> u64 {
    let length = |place: &Option<Place>| {
        let frame = session.frames.get(place.as_ref()?.frame)?;
        Some(frame.record.envelope.length)
    };
    length(&step.opened).unwrap_or(0) + length(&step.closed).unwrap_or(0)
}

/// Whether it failed for a reason of HTTP: a status from 400 on, or an answer that broke off.
pub(super) fn failed_in_http(step: &Step) -> bool {
    let broke = matches!(
        step.finish,
        Some(Finish::ServerBroke | Finish::Unreachable | Finish::TimedOut)
    );
    step.outcome.is_failure() && (broke || step.status.is_some_and(|status| status >= 400))
}

/// The longer one of two steps; of equal ones the earlier.
pub(crate) fn longer(
    one: Option<(u64, StepAt)>,
    other: Option<(u64, StepAt)>,
) -> Option<(u64, StepAt)> {
    let rank = |(duration, at): &(u64, StepAt)| (*duration, std::cmp::Reverse(*at));
    one.into_iter().chain(other).max_by_key(rank)
}

/// Keeps the first places, as many as are named.
pub(crate) fn name(places: &mut Vec<StepAt>, at: StepAt) {
    let position = places.partition_point(|known| *known < at);
    if position < MOST_NAMED {
        places.insert(position, at);
        places.truncate(MOST_NAMED);
    }
}

fn how_it_failed(step: &Step) -> Option<Failed> {
    if failed_in_http(step) {
        return Some(Failed::Http);
    }
    match step.outcome {
        Outcome::ToolError => Some(Failed::ToolError),
        Outcome::Timeout => Some(Failed::Timeout),
        Outcome::Denied => Some(Failed::Denied),
        outcome if outcome.is_failure() => Some(Failed::Error),
        _ => None,
    }
}

fn within(shortest: &mut u64, longest: &mut u64, known: u64, duration: u64) {
    *longest = duration.max(*longest);
    *shortest = match known {
        0 => duration,
        _ => duration.min(*shortest),
    };
}

fn count<T: Ord + Clone>(counts: &mut BTreeMap<T, u64>, what: &T) {
    if let Some(count) = counts.get_mut(what) {
        *count += 1;
    } else if counts.len() < MOST_APART {
        counts.insert(what.clone(), 1);
    }
}
