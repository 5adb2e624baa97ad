//! A run in plain words, made without a model: what was asked of whom, what failed, what was
//! made good, what got no answer, what is missing in the recording, what is not known, and what
//! to look at next.
//!
//! Each sentence names its steps and quotes what it is based on. Sentences and quotes hold
//! recorded text, cut, and as hostile as it was.
//!
//! What was decided about the run comes first, since it counts before what happened.
//!
//! - `evidence`: quotes of steps
//! - `failed`: what failed and what became of it
//! - `lost`: what is missing, and what cannot be known

mod evidence;
mod failed;
mod lost;

use crate::quote::head;
use crate::timeline::{self, Limits};
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{Session, Story};
use agent_trace_model::{Judge, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;

/// Sentences of one topic that are told.
const TOLD: usize = 12;

/// Steps of one sentence that are named.
const STEPS: usize = 12;

/// Characters of a name.
const NAME: usize = 60;

/// A run in plain words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What there is to say, in the order of [`Topic`].
    pub points: Vec<Point>,
    /// What to look at next.
    pub look: Vec<Look>,
}

/// What a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What was decided about the run.
    Judged,
    /// What was asked of whom.
    Asked,
    /// What failed and was not made good.
    Failed,
    /// What failed and was made good.
    Recovered,
    /// What got no answer.
    Unanswered,
    /// What is missing in the recording.
    Lost,
    /// What the recording cannot tell.
    Unknown,
}

/// A sentence with what it is based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// What it is about.
    pub topic: Topic,
    /// The sentence.
    pub text: String,
    /// The numbers of the first steps that it is about.
    pub steps: Vec<usize>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_steps: usize,
    /// What it is based on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
}

/// A piece of what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quote {
    /// The number of the step; none of a line on standard error and of a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// What of it: `arguments`, `answer`; `stderr`; of a verdict its `reason`.
    pub of: &'static str,
    /// The text, cut.
    pub text: String,
}

/// A command that shows more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// What to type after the program's name.
    pub command: String,
    /// What it shows.
    pub because: String,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What was decided about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged<'a> {
    /// The verdict.
    pub verdict: Verdict,
    /// Who decided.
    pub by: Judge,
    /// Why; may be empty.
    pub reason: &'a str,
}

/// A run in plain words.
#[must_use]
pub fn of(story: &Story, judged: Option<Judged<'_>>, limits: Limits) -> Explanation {
    let mut points = Points::default();
    let line = timeline::of(story, limits);
    if let Some(judged) = judged {
        points.say(Topic::Judged, verdict(judged), [], reason(judged));
    }
    asked(story, &mut points);
    failed::tell(story, &line, &mut points);
    let verdict = judged.map_or(Verdict::Unjudged, |judged| judged.verdict);
    lost::tell(story, verdict, &mut points);
    Explanation {
        points: points.done(),
        look: failed::look(story, &line),
    }
}

fn verdict(judged: Judged<'_>) -> String {
    let by = match judged.by {
        Judge::Person => "A person",
        Judge::Check => "The check command",
        Judge::Eval => "An evaluation",
    };
    match judged.verdict {
        Verdict::Right => {
            format!("{by} judged the run right: it has not failed, whatever went wrong in it.")
        }
        Verdict::Wrong => {
            format!("{by} judged the run wrong: it has failed, whatever went well in it.")
        }
        Verdict::Unjudged => format!("{by} left the run unjudged."),
    }
}

fn reason(judged: Judged<'_>) -> Vec<Quote> {
    let reason = Some(judged.reason).filter(|reason| !reason.is_empty());
    let quote = |reason: &str| Quote {
        step: None,
        of: "reason",
        text: head(reason.as_bytes(), 400),
    };
    reason.map(quote).into_iter().collect()
}

/// Sentences as they are found.
#[derive(Debug, Default)]
struct Points(BTreeMap<Topic, (Vec<Point>, usize)>);

impl Points {
    fn say(
        &mut self,
        topic: Topic,
        text: impl Into<String>,
        steps: impl IntoIterator<Item = usize>,
        quotes: Vec<Quote>,
    ) {
        if self.is_full(topic) {
            return;
        }
        let (told, _) = self.0.entry(topic).or_default();
        let mut steps = steps.into_iter();
        told.push(Point {
            topic,
            text: text.into(),
            steps: steps.by_ref().take(STEPS).collect(),
            more_steps: steps.count(),
            quotes,
        });
    }

    /// Whether nothing more is told of this; then one more is counted.
    fn is_full(&mut self, topic: Topic) -> bool {
        let (told, more) = self.0.entry(topic).or_default();
        let full = told.len() == TOLD;
        *more += usize::from(full);
        full
    }

    fn has(&self, topic: Topic) -> bool {
        self.0.get(&topic).is_some_and(|(told, _)| !told.is_empty())
    }

    fn done(self) -> Vec<Point> {
        let mut points = Vec::new();
        for (topic, (told, more)) in self.0 {
            points.extend(told);
            if more > 0 {
                points.push(Point {
                    topic,
                    text: format!("And {more} more of this kind."),
                    steps: Vec::new(),
                    more_steps: 0,
                    quotes: Vec::new(),
                });
            }
        }
        points
    }
}

/// What was asked of whom.
fn asked(story: &Story, points: &mut Points) {
    let mut servers: Vec<(&Session, Vec<&Step>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for session in &story.sessions {
        places.entry(&session.server).or_insert_with(|| {
            servers.push((session, Vec::new()));
            servers.len() - 1
        });
    }
    for step in &story.steps {
        let place = story.session(step).and_then(|s| places.get(&s.server[..]));
        if let Some(place) = place {
            servers[*place].1.push(step);
        }
    }
    for (session, steps) in servers {
        let requests = |clients: bool| {
            let requests = steps.iter().copied();
            requests.filter(move |s| s.kind == StepKind::Request && s.is_clients() == clients)
        };
        let (client, server) = (client(session), name(&session.server));
        let count = requests(true).count();
        let what = match count {
            0 => format!("{client} asked nothing of {server}."),
            _ => format!(
                "{client} asked {server} {}: {}.",
                times(count),
                kinds(requests(true))
            ),
        };
        points.say(
            Topic::Asked,
            what,
            requests(true).map(|s| s.number),
            Vec::new(),
        );
        if requests(false).next().is_some() {
            let what = format!("{server} asked {client}: {}.", kinds(requests(false)));
            let quotes = requests(false).take(2).filter_map(evidence::arguments);
            let quotes = quotes.collect();
            points.say(
                Topic::Asked,
                what,
                requests(false).map(|s| s.number),
                quotes,
            );
        }
    }
}

/// What requests were about, most frequent first: `read_note 3 times, initialize once`.
fn kinds<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for step in steps {
        *kinds.entry(what(step)).or_default() += 1;
    }
    let mut kinds: Vec<(String, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest = kinds.len().saturating_sub(STEPS);
    let told = kinds.into_iter().take(STEPS);
    let told = told.map(|(kind, count)| format!("{kind} {}", times(count)));
    let mut text = told.collect::<Vec<_>>().join(", ");
    if rest > 0 {
        text.push_str(&format!(" and {rest} other things"));
    }
    text
}

/// The tool that a step calls, or its method and what that is about.
fn what(step: &Step) -> String {
    match (step.tool(), &step.method, &step.target) {
        (Some(tool), _, _) => name(tool),
        (None, Some(method), Some(target)) => format!("{} {}", name(method), name(target)),
        (None, Some(method), None) => name(method),
        (None, None, _) => "something without a method".into(),
    }
}

fn client(session: &Session) -> String {
    match &session.client[..] {
        "" => "The client".into(),
        client => name(client),
    }
}

fn name(text: &str) -> String {
    head(text.as_bytes(), NAME)
}

fn times(count: usize) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests;
