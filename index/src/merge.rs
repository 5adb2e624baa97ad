//! From rows of sessions to the row of a run.

use crate::digest::{longer, name};
use crate::group::{Atom, Group};
use crate::rows::scan::count;
use crate::rows::tally::{MOST_APART, MOST_NAMED};
use crate::rows::{
    Call, Counts, Failed, Failure, GroupKey, Marks, MethodTally, PostTally, RunRow, SessionRow,
    Slice, Tally, ToolTally, Tries, TurnRow,
};
use agent_trace_model::step::StepKind;
use agent_trace_model::story::Standing;
use agent_trace_model::{Ending, SessionId, Stream};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most prompts of a run that are known.
const MOST_TURNS: usize = 1_000;
/// How a client finds out which era a server speaks; that this takes too long is no failure.
const DISCOVER: &str = "server/discover";

/// The row of a run. All sessions of its parts have to be among `sessions`.
#[must_use]
pub fn run(
    workspace: &str,
    group: &Group,
    atoms: &[Atom],
    sessions: &HashMap<SessionId, SessionRow>,
) -> RunRow {
    let members: Vec<(&SessionRow, u32)> = group
        .members
        .iter()
        .filter_map(|at| {
            let atom = atoms.get(*at)?;
            Some((sessions.get(&atom.session)?, atom.part))
        })
        .collect();
    let each = || members.iter().map(|(session, _)| *session);
    let servers = names(each().map(|session| &session.server));
    let mut sum = Sum::new(&servers);
    let mut slices = Vec::with_capacity(members.len());
    let mut standing = Standing::Ended;
    let (mut started, mut last) = (u64::MAX, 0);
    let mut turns: BTreeMap<String, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (session, number) in &members {
        let at = *number as usize;
        let Some(part) = session.parts.get(at) else {
            continue;
        };
        started = started.min(part.started);
        last = last.max(part.last);
        slices.push(Slice {
            session: session.id,
            part: *number,
            from: if at == 0 { 0 } else { part.from },
            to: session.parts.get(at + 1).map_or(u64::MAX, |next| next.from),
        });
        if at + 1 == session.parts.len() {
            standing = worse(standing, session.standing);
            if session.standing == Standing::Crashed && !session.own {
                sum.crashed(session);
            }
        }
        for turn in &part.turns {
            let first = turns.entry(turn.id.clone()).or_insert(turn.started);
            *first = turn.started.min(*first);
        }
        let marks = seen.insert(session.id).then_some(&session.marks);
        match session.own {
            true => sum.add(session, &without_tries(&part.tally), marks),
            false => sum.add(session, &part.tally, marks),
        }
    }
    let mut turns: Vec<TurnRow> = turns
        .into_iter()
        .map(|(id, started)| TurnRow { id, started })
        .collect();
    turns.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
    turns.truncate(MOST_TURNS);
    let (tally, failures, failed, recovered) = sum.done();
    let clients = tally
        .methods
        .iter()
        .any(|m| m.from == Stream::ClientToServer);
    let is_named = matches!(group.key, GroupKey::Marked(_));
    let asked = clients || !tally.tools.is_empty();
    RunRow {
        id: group.id,
        aliases: group.aliases.clone(),
        workspace: workspace.to_owned(),
        project: each().find_map(|session| session.project.clone()),
        task: each().find_map(|session| session.task.clone()),
        key: group.key.clone(),
        started,
        last: last.max(started),
        standing,
        not_started: each().any(not_started),
        probe: asked && !is_named && !tally.acts && failed == 0,
        clients: names(each().map(|session| &session.client)),
        servers,
        transports: names(each().map(|session| &session.transport)),
        revisions: names(each().filter_map(|session| session.revision.as_ref())),
        slices,
        turns,
        tally,
        failures,
        failed,
        recovered,
        across: Vec::new(),
    }
}

/// What is counted, but for how it went: what is asked of our own server fails no run.
fn without_tries(tally: &Tally) -> Tally {
    let mut tally = tally.clone();
    (tally.unanswered, tally.unanswered_at) = (0, Vec::new());
    for tool in &mut tally.tools {
        tool.tries = Tries::default();
    }
    for method in &mut tally.methods {
        method.tries = Tries::default();
    }
    tally.posts.clear();
    tally
}

/// Each name once, sorted; names that say nothing are none.
fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let names: BTreeSet<&String> = all.filter(|name| !name.is_empty()).collect();
    names.into_iter().cloned().collect()
}

/// Whether its server could not be started.
fn not_started(session: &SessionRow) -> bool {
    let ending = session.end.as_ref().map(|end| end.ending);
    ending == Some(Ending::NotStarted)
}

fn worse(one: Standing, other: Standing) -> Standing {
    let rank = |standing| match standing {
        Standing::Live => 3,
        Standing::Crashed => 2,
        Standing::CutOff => 1,
        Standing::Ended => 0,
    };
    if rank(other) > rank(one) { other } else { one }
}

type Tool = (u16, String);
type Method = (u16, u8, Stream, Option<String>);

/// What is summed up.
struct Sum<'a> {
    servers: &'a [String],
    tally: Tally,
    tools: BTreeMap<Tool, ToolTally>,
    methods: BTreeMap<Method, MethodTally>,
    posts: BTreeMap<(u16, String), PostTally>,
    codes: BTreeMap<String, u64>,
    statuses: BTreeMap<u16, u64>,
    crashed: Vec<Failure>,
}

impl<'a> Sum<'a> {
    fn new(servers: &'a [String]) -> Self {
        Self {
            servers,
            tally: Tally::default(),
            tools: BTreeMap::new(),
            methods: BTreeMap::new(),
            posts: BTreeMap::new(),
            codes: BTreeMap::new(),
            statuses: BTreeMap::new(),
            crashed: Vec::new(),
        }
    }

    fn server(&self, session: &SessionRow) -> u16 {
        // One without a name is not among them, and is not to be taken for the first.
        let at = self.servers.binary_search(&session.server);
        at.ok()
            .and_then(|at| u16::try_from(at).ok())
            .unwrap_or(u16::MAX)
    }

    fn crashed(&mut self, session: &SessionRow) {
        self.crashed.push(Failure::Crashed {
            session: session.id,
            server: self.server(session),
        });
    }

    fn add(&mut self, session: &SessionRow, from: &Tally, marks: Option<&Marks>) {
        let server = self.server(session);
        let to = &mut self.tally;
        to.steps += from.steps;
        to.requests += from.requests;
        to.notifications += from.notifications;
        to.odd += from.odd;
        to.stderr += from.stderr;
        to.unanswered += from.unanswered;
        to.acts |= from.acts;
        add_counts(&mut to.outcomes, &from.outcomes);
        for found in &from.found {
            count(&mut to.found, &found.code, found.severity, found.count);
        }
        for (to, from) in to.bytes.iter_mut().zip(from.bytes) {
            *to += from;
        }
        to.longest = longer(to.longest, from.longest);
        for at in &from.unanswered_at {
            name(&mut to.unanswered_at, *at);
        }
        if let Some(marks) = marks {
            add_marks(&mut to.marks, marks);
        }
        for (code, count) in &from.codes {
            *self.codes.entry(code.clone()).or_default() += count;
        }
        for (status, count) in &from.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for tool in &from.tools {
            self.tool(server, tool);
        }
        for method in &from.methods {
            self.method(server, method);
        }
        for post in &from.posts {
            let key = (server, post.target.clone());
            let known = self.posts.entry(key).or_insert_with(|| PostTally {
                server,
                ..post.clone()
            });
            if known.last.at < post.last.at {
                known.last = post.last;
            }
        }
    }

    fn tool(&mut self, server: u16, from: &ToolTally) {
        let key = (server, from.tool.clone());
        let Some(to) = self.tools.get_mut(&key) else {
            let first = ToolTally {
                server,
                ..from.clone()
            };
            self.tools.insert(key, first);
            return;
        };
        to.calls += from.calls;
        to.bytes += from.bytes;
        add_counts(&mut to.outcomes, &from.outcomes);
        let timed = (to.durations.len(), from.durations.len());
        to.shortest = shorter((to.shortest, timed.0), (from.shortest, timed.1));
        to.longest = to.longest.max(from.longest);
        to.durations.merge(&from.durations);
        to.tries.merge(&from.tries);
    }

    fn method(&mut self, server: u16, from: &MethodTally) {
        let key = (server, from.kind as u8, from.from, from.method.clone());
        let Some(to) = self.methods.get_mut(&key) else {
            let first = MethodTally {
                server,
                ..from.clone()
            };
            self.methods.insert(key, first);
            return;
        };
        to.calls += from.calls;
        to.bytes += from.bytes;
        add_counts(&mut to.outcomes, &from.outcomes);
        to.shortest = shorter((to.shortest, to.timed), (from.shortest, from.timed));
        to.longest = to.longest.max(from.longest);
        to.timed += from.timed;
        to.tries.merge(&from.tries);
    }

    /// The sum, why it counts as failed, for how many reasons, and how many errors were made
    /// good.
    fn done(mut self) -> (Tally, Vec<Failure>, u64, u64) {
        let (failures, failed, recovered) = self.failures();
        let mut tally = self.tally;
        tally.tools = self.tools.into_values().take(MOST_APART).collect();
        tally.methods = self.methods.into_values().take(MOST_APART).collect();
        tally.posts = self.posts.into_values().take(MOST_APART).collect();
        tally.codes = self.codes.into_iter().take(MOST_APART).collect();
        tally.statuses = self.statuses.into_iter().take(MOST_APART).collect();
        (tally, failures, failed, recovered)
    }

    /// As `agent_trace_analysis::outcomes` finds them in the steps.
    fn failures(&mut self) -> (Vec<Failure>, u64, u64) {
        let mut failures = std::mem::take(&mut self.crashed);
        let unanswered = self.tally.unanswered_at.iter();
        failures.extend(unanswered.map(|at| Failure::Unanswered { at: *at }));
        let unnamed = self.tally.unanswered - self.tally.unanswered_at.len() as u64;
        let mut recovered = 0;
        for tool in self.tools.values() {
            recovered += tool.tries.recovered();
            if let Some((at, failed)) = failed(tool.tries.last) {
                failures.push(Failure::LastCallFailed {
                    server: tool.server,
                    tool: tool.tool.clone(),
                    failed,
                    at,
                });
            }
        }
        // Requests and notifications with one name are attempts of one kind.
        let mut methods: BTreeMap<(u16, &str), Tries> = BTreeMap::new();
        let clients = self.methods.values().filter(|method| {
            method.from == Stream::ClientToServer && method.kind != StepKind::Http
        });
        for tally in clients {
            if let Some(method) = &tally.method {
                let tries = methods.entry((tally.server, method)).or_default();
                tries.merge(&tally.tries);
            }
        }
        for ((server, method), tries) in methods {
            recovered += tries.recovered();
            let method = method.to_owned();
            match failed(tries.last) {
                Some((at, Failed::Http)) => {
                    failures.push(Failure::RefusedInHttp { server, method, at });
                }
                Some((at, Failed::Timeout)) if method != DISCOVER => {
                    failures.push(Failure::TimedOut { server, method, at });
                }
                _ => {}
            }
        }
        for post in self.posts.values() {
            if let Some((at, _)) = failed(Some(post.last)) {
                failures.push(Failure::RefusedInHttp {
                    server: post.server,
                    method: "POST".into(),
                    at,
                });
            }
        }
        let count = failures.len() as u64 + unnamed;
        failures.truncate(MOST_NAMED);
        (failures, count, recovered)
    }
}

fn failed(last: Option<Call>) -> Option<(crate::rows::StepAt, Failed)> {
    let last = last?;
    Some((last.at, last.failed?))
}

/// The shorter one of two durations, each with how many there were.
fn shorter(one: (u64, u64), other: (u64, u64)) -> u64 {
    match (one, other) {
        ((_, 0), (other, _)) => other,
        ((one, _), (_, 0)) => one,
        ((one, _), (other, _)) => one.min(other),
    }
}

fn add_counts(to: &mut Counts, from: &Counts) {
    for outcome in agent_trace_model::Outcome::ALL {
        to.add_many(outcome, from.of(outcome));
    }
}

fn add_marks(to: &mut Marks, from: &Marks) {
    to.gaps += from.gaps;
    to.gap_frames += from.gap_frames;
    to.gap_bytes += from.gap_bytes;
    to.missing += from.missing;
    to.damaged += from.damaged;
    to.damaged_bytes += from.damaged_bytes;
    to.unreadable += from.unreadable;
}
