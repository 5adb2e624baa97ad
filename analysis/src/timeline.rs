//! How a run went in time: phases, idleness, retries, slow steps, and what went on at once.
//!
//! A *phase* is a stretch of steps of one kind, within one prompt where prompts are known, and
//! without idleness in it. *Idle* is a run while nothing is under way: no request is open. HTTP
//! streams and subscriptions, which stay open for as long as the session, do not count.
//! A *retry* is a call of the same tool with the same arguments after that failed. *Slow* is
//! what takes longer than a fixed time, or [much longer](SLOW_FACTOR) than the run's median.

use crate::outcomes;
use crate::parts::arguments;
use crate::scalars::digest;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_wire::message::stays_open;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// How many times the run's median a slow step takes.
pub const SLOW_FACTOR: u64 = 5;

/// What takes less is not slow by the run's median, in nanoseconds.
pub const SLOW_LEAST: u64 = 100_000_000;

/// What overlaps for no longer is not said to go on at once, in nanoseconds: clocks are not so
/// exact.
pub const OVERLAP: u64 = 1_000_000;

/// How many answered requests it takes to speak of a median.
pub const SLOW_SAMPLE: usize = 5;

/// What is meant by idle and slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A pause of at least so many nanoseconds is idleness.
    pub idle: u64,
    /// What takes at least so many nanoseconds is slow.
    pub slow: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: 10_000_000_000,
            slow: outcomes::SLOW,
        }
    }
}

/// A run in time. Moments are nanoseconds since its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When it began, in nanoseconds since 1970.
    pub started: u64,
    /// From the beginning of its first session to the last record of any.
    pub duration: u64,
    /// Its phases in their order.
    pub phases: Vec<Phase>,
    /// Where nothing was under way for long.
    pub idle: Vec<Idle>,
    /// For how long a request was open.
    pub busy: u64,
    /// How many requests were open at once at most, and the number of the step with which it
    /// came to that.
    pub most: Option<(usize, usize)>,
    /// The median of its answered requests, in nanoseconds.
    pub median: Option<u64>,
}

/// What a phase is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseKind {
    /// Client and server get to know each other.
    Connect,
    /// The client asks what there is.
    List,
    /// Everything else.
    Work,
    /// Nothing but the end comes.
    Close,
}

/// A stretch of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it is about.
    pub kind: PhaseKind,
    /// Position of its prompt among those of the run.
    pub turn: Option<usize>,
    /// When it began.
    pub started: u64,
    /// When the last of its steps ended.
    pub ended: u64,
    /// Its steps.
    pub bars: Vec<Bar>,
}

/// A step in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Position of the step in the run.
    pub step: usize,
    /// When it began.
    pub started: u64,
    /// When it ended; none of what has no answer.
    pub ended: Option<u64>,
    /// How many requests were open when it had begun, itself included; 0 of what is no
    /// request.
    pub at_once: usize,
    /// The earlier call that it repeats.
    pub retry: Option<Retry>,
    /// Why it is slow.
    pub slow: Option<Slow>,
}

/// That a call was made before and failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Retry {
    /// Number of the first such step.
    pub of: usize,
    /// Which attempt this is: 2 is the first repetition.
    pub attempt: u32,
}

/// Why a step is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slow {
    /// It took longer than the fixed limit.
    Limit,
    /// It took so many times the run's median.
    Median(u64),
}

/// A pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Idle {
    /// When it began.
    pub started: u64,
    /// When it ended.
    pub ended: u64,
    /// Number of the step that ended it.
    pub before: usize,
}

/// How a run went in time.
#[must_use]
pub fn of(story: &Story, limits: Limits) -> Timeline {
    // A session is noted a moment after its first message was read.
    let first = story.steps.iter().map(|step| step.wall).min();
    let last = story.steps.iter().map(Step::ended).max().unwrap_or(0);
    let started = first.map_or(story.started(), |first| first.min(story.started()));
    let median = median(&story.steps);
    let mut line = Timeline {
        started,
        duration: story.last().max(last).saturating_sub(started),
        median,
        ..Timeline::default()
    };
    let mut open = Open::default();
    let mut attempts = Attempts::default();
    let mut covered = 0;
    for (position, step) in story.steps.iter().enumerate() {
        let begun = step.wall.saturating_sub(started);
        let ended = step.duration.map(|took| begun.saturating_add(took));
        let is_request = is_awaited(step);
        let idle = position > 0 && begun > covered && begun - covered >= limits.idle;
        if idle {
            line.idle.push(Idle {
                started: covered,
                ended: begun,
                before: step.number,
            });
        }
        let end = ended.filter(|_| is_request).unwrap_or(begun);
        line.busy += end.saturating_sub(begun.max(covered));
        covered = covered.max(end);
        let at_once = if is_request {
            open.begin(begun, end)
        } else {
            0
        };
        if at_once > line.most.map_or(0, |(most, _)| most) {
            line.most = Some((at_once, step.number));
        }
        let bar = Bar {
            step: position,
            started: begun,
            ended,
            at_once,
            retry: attempts.next(story, step),
            slow: slow(step, limits, median),
        };
        add(&mut line.phases, step, bar, end, idle);
    }
    close(&mut line, covered, story);
    line
}

/// Whether it is a request for which somebody waits.
fn is_awaited(step: &Step) -> bool {
    step.kind == StepKind::Request && !stays_open(step.method.as_deref())
}

fn add(phases: &mut Vec<Phase>, step: &Step, bar: Bar, end: u64, idle: bool) {
    let last = phases.last().map(|phase| phase.kind);
    let kind = kind(step, last);
    match phases.last_mut() {
        Some(phase) if phase.kind == kind && phase.turn == step.turn && !idle => {
            phase.ended = phase.ended.max(end);
            phase.bars.push(bar);
        }
        _ => phases.push(Phase {
            kind,
            turn: step.turn,
            started: bar.started,
            ended: end,
            bars: vec![bar],
        }),
    }
}

fn kind(step: &Step, last: Option<PhaseKind>) -> PhaseKind {
    use PhaseKind::{Connect, List, Work};
    match (step.method.as_deref(), step.kind) {
        (Some("initialize" | "notifications/initialized" | "server/discover"), _) => Connect,
        (
            Some("tools/list" | "prompts/list" | "resources/list" | "resources/templates/list"),
            _,
        ) => List,
        // What is only there beside it.
        (_, StepKind::Http) => last.unwrap_or(Connect),
        (_, StepKind::Stray | StepKind::Notification) => last.unwrap_or(Connect),
        (Some("ping" | "logging/setLevel" | "roots/list"), _) => last.unwrap_or(Connect),
        _ => Work,
    }
}

/// What comes after the last step.
fn close(line: &mut Timeline, covered: u64, story: &Story) {
    if !story.is_live() && !story.steps.is_empty() && line.duration > covered {
        line.phases.push(Phase {
            kind: PhaseKind::Close,
            turn: None,
            started: covered,
            ended: line.duration,
            bars: Vec::new(),
        });
    }
}

/// The ends of the requests that are open.
#[derive(Default)]
struct Open(BinaryHeap<Reverse<u64>>);

impl Open {
    /// A request begins; how many are open then.
    fn begin(&mut self, begun: u64, end: u64) -> usize {
        while self.0.peek().is_some_and(|Reverse(end)| *end <= begun) {
            self.0.pop();
        }
        self.0.push(Reverse(end));
        self.0.len()
    }
}

/// Calls by server, method, target and arguments: the first of those that failed one after
/// another, and how many there were.
#[derive(Default)]
struct Attempts<'a>(HashMap<(&'a str, &'a str, &'a str, u64), (usize, u32)>);

impl<'a> Attempts<'a> {
    fn next(&mut self, story: &'a Story, step: &'a Step) -> Option<Retry> {
        if step.kind != StepKind::Request || !step.is_clients() {
            return None;
        }
        let server = &story.session(step)?.server[..];
        let method = step.method.as_deref()?;
        let target = step.target.as_deref().unwrap_or_default();
        let arguments = digest(arguments(step).unwrap_or_default(), &["_meta"]);
        let key = (server, method, target, arguments);
        let before = self.0.remove(&key);
        if step.outcome.is_failure() {
            let (of, count) = before.unwrap_or((step.number, 0));
            self.0.insert(key, (of, count + 1));
        }
        let (of, count) = before?;
        let attempt = count + 1;
        Some(Retry { of, attempt })
    }
}

/// The nearest-rank median of the answered requests, where there are enough.
fn median(steps: &[Step]) -> Option<u64> {
    let requests = steps.iter().filter(|step| is_awaited(step));
    let mut times: Vec<u64> = requests.filter_map(|step| step.duration).collect();
    times.sort_unstable();
    let median = times.get(times.len().div_ceil(2).saturating_sub(1));
    median.copied().filter(|_| times.len() >= SLOW_SAMPLE)
}

fn slow(step: &Step, limits: Limits, median: Option<u64>) -> Option<Slow> {
    let took = step.duration.filter(|_| is_awaited(step))?;
    if took >= limits.slow {
        return Some(Slow::Limit);
    }
    let times = took / median?.max(1);
    (took >= SLOW_LEAST && times >= SLOW_FACTOR).then_some(Slow::Median(times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tale;
    use agent_trace_model::story::Standing;

    const MS: u64 = 1_000_000;

    fn greeted() -> Tale {
        Tale::new()
            .request("initialize", "{}")
            .result("{}")
            .tells("notifications/initialized", "{}")
            .request("tools/list", "{}")
            .result(r#"{"tools":[]}"#)
    }

    fn phases(line: &Timeline) -> Vec<(PhaseKind, usize)> {
        let phases = line.phases.iter();
        phases.map(|phase| (phase.kind, phase.bars.len())).collect()
    }

    #[test]
    fn phases_part_where_the_kind_changes_and_at_idleness() {
        use PhaseKind::{Close, Connect, List, Work};
        let story = greeted()
            .call("read", r#"{"id":1}"#)
            .result("{}")
            .told_by_server("notifications/message", "{}")
            .at(20_000)
            .call("read", r#"{"id":2}"#)
            .result("{}")
            .after(50)
            .told();
        let line = of(&story, Limits::default());
        assert_eq!(
            phases(&line),
            [(Connect, 2), (List, 1), (Work, 2), (Work, 1), (Close, 0)]
        );
        let idle = Idle {
            started: 30 * MS,
            ended: 20_000 * MS,
            before: 6,
        };
        assert_eq!(line.idle, [idle]);
        assert_eq!((line.busy, line.duration), (40 * MS, 20_060 * MS));
        let live = {
            let mut story = story;
            story.sessions[0].standing = Standing::Live;
            of(&story, Limits::default())
        };
        assert_eq!(live.phases.len(), 4);
    }

    #[test]
    fn a_session_that_was_noted_late_began_with_its_first_step() {
        let mut story = Tale::new().call("a", "{}").result("{}").told();
        for session in &mut story.sessions {
            (session.started, session.last) = (session.started + 5 * MS, session.started);
        }
        let line = of(&story, Limits::default());
        let bar = &line.phases[0].bars[0];
        assert_eq!((bar.started, bar.ended), (0, Some(10 * MS)));
        assert_eq!(line.duration, 10 * MS);
    }

    #[test]
    fn a_pause_of_no_time_is_none() {
        let tale = Tale::new().call("a", "{}").result("{}").takes(100).at(10);
        let story = tale.call("b", "{}").result("{}").call("c", "{}").told();
        let limits = Limits {
            idle: 0,
            ..Limits::default()
        };
        assert_eq!(of(&story, limits).idle, []);
    }

    #[test]
    fn prompts_are_phases_too() {
        let story = Tale::new()
            .turn("a")
            .call("read", "{}")
            .result("{}")
            .turn("b")
            .call("read", "{}")
            .result("{}")
            .told();
        let line = of(&story, Limits::default());
        let turns: Vec<_> = line.phases.iter().map(|phase| phase.turn).collect();
        assert_eq!(turns, [Some(0), Some(1)]);
    }

    #[test]
    fn a_retry_is_the_same_call_after_it_failed() {
        let story = Tale::new()
            .call("read", r#"{"id":1,"all":true}"#)
            .tool_error("busy")
            .call("read", r#"{"id":2,"all":true}"#)
            .result("{}")
            .call("read", r#"{"all":true,"id":1}"#)
            .error(-1, "busy")
            .call("read", r#"{ "id": 1, "all": true }"#)
            .result("{}")
            // It succeeded the last time.
            .call("read", r#"{"id":1,"all":true}"#)
            .result("{}")
            // Another server.
            .on("other")
            .call("read", r#"{"id":1,"all":true}"#)
            .result("{}")
            .told();
        let line = of(&story, Limits::default());
        let retries: Vec<_> = line.phases[0].bars.iter().map(|bar| bar.retry).collect();
        let retry = |attempt| Some(Retry { of: 1, attempt });
        assert_eq!(retries, [None, None, retry(2), retry(3), None, None]);
    }

    #[test]
    fn slow_is_what_takes_long_or_much_longer_than_the_rest() {
        let mut tale = Tale::new();
        for took in [10, 20, 30, 40, 99, 150, 12_000] {
            tale = tale.call("t", "{}").result("{}").takes(took);
        }
        let line = of(&tale.clone().told(), Limits::default());
        assert_eq!(line.median, Some(40 * MS));
        let slow: Vec<_> = line.phases[0].bars.iter().map(|bar| bar.slow).collect();
        assert_eq!(slow[..6], [None; 6]);
        assert_eq!(slow[6], Some(Slow::Limit));
        let limits = Limits {
            slow: 60_000 * MS,
            ..Limits::default()
        };
        let line = of(&tale.call("t", "{}").result("{}").takes(200).told(), limits);
        let slow: Vec<_> = line.phases[0].bars.iter().map(|bar| bar.slow).collect();
        assert_eq!(slow[6..], [Some(Slow::Median(300)), Some(Slow::Median(5))]);
    }

    #[test]
    fn what_goes_on_at_once_is_counted() {
        let story = Tale::new()
            .call("a", "{}")
            .result("{}")
            .takes(100)
            .at(10)
            .call("b", "{}")
            .result("{}")
            .takes(20)
            .at(20)
            .asked_back("elicitation/create", "{}")
            .result("{}")
            .takes(5)
            .at(100)
            .call("c", "{}")
            .outcome(agent_trace_model::Outcome::Unanswered)
            .told();
        let line = of(&story, Limits::default());
        let at_once: Vec<_> = line.phases[0].bars.iter().map(|bar| bar.at_once).collect();
        assert_eq!(at_once, [1, 2, 3, 1]);
        assert_eq!(line.most, Some((3, 3)));
        assert_eq!(line.busy, 100 * MS);
    }
}
