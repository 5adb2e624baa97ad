//! Whether a step or a run matches, exactly.

use super::{Atom, Filter, Sides, Ternary};
use crate::outcomes;
use agent_trace_model::Verdict;
use agent_trace_model::step::{Message, Step};
use agent_trace_model::story::Story;
use agent_trace_wire::message::member;
use std::cell::OnceCell;

/// A filter for one run: what is the same for all of its steps is found out once.
#[derive(Debug)]
pub struct Matcher<'a> {
    filter: &'a Filter,
    story: &'a Story,
    verdict: Verdict,
    started: u64,
    last: u64,
    failed: OnceCell<bool>,
    found: &'a [(usize, String)],
}

impl<'a> Matcher<'a> {
    pub(super) fn new(filter: &'a Filter, story: &'a Story, verdict: Verdict) -> Self {
        Self {
            filter,
            story,
            verdict,
            started: story.started().min(story.last()),
            last: story.last(),
            failed: OnceCell::new(),
            found: &[],
        }
    }

    /// Likewise, where scans found something with these codes in the steps of these numbers.
    #[must_use]
    pub fn with(self, found: &'a [(usize, String)]) -> Self {
        Self { found, ..self }
    }

    /// Whether this step matches.
    #[must_use]
    pub fn step(&self, step: &Step) -> bool {
        let mut atom = |atom: &Atom| Ternary::from(self.atom(atom, step));
        self.filter.root.ask(&mut atom) == Ternary::Yes
    }

    /// The steps that match.
    pub fn steps(&self) -> impl Iterator<Item = &'a Step> {
        self.story.steps.iter().filter(|step| self.step(step))
    }

    /// Whether the run matches.
    #[must_use]
    pub fn run(&self) -> bool {
        if !self.story.steps.is_empty() {
            return self.steps().next().is_some();
        }
        let mut servers = self
            .story
            .sessions
            .iter()
            .map(|session| &session.server[..]);
        let matches = |server| {
            let mut atom = |atom: &Atom| self.without_steps(atom, server);
            self.filter.root.ask(&mut atom) == Ternary::Yes
        };
        match self.story.sessions.is_empty() {
            true => matches(None),
            false => servers.any(|server| matches(Some(server))),
        }
    }

    /// What is the same for all steps; none where it is not.
    fn of_run(&self, atom: &Atom) -> Option<bool> {
        Some(match atom {
            Atom::Run(prefix) => {
                let mut ids = [self.story.id]
                    .into_iter()
                    .chain(self.story.aliases.iter().copied());
                ids.any(|id| id.to_string().starts_with(prefix))
            }
            Atom::Client(text) => {
                let mut sessions = self.story.sessions.iter();
                sessions.any(|session| text.matches(session.client.as_bytes()))
            }
            Atom::Task(text) => {
                let task = self.story.task.as_deref();
                task.is_some_and(|task| text.matches(task.as_bytes()))
            }
            Atom::Verdict(verdict) => self.verdict == *verdict,
            Atom::RunFailed => *self
                .failed
                .get_or_init(|| outcomes::is_failed(self.story, self.verdict)),
            _ => return None,
        })
    }

    fn atom(&self, atom: &Atom, step: &Step) -> bool {
        if let Some(known) = self.of_run(atom) {
            return known;
        }
        let named = |text: &super::Text, name: Option<&str>| {
            name.is_some_and(|name| text.matches(name.as_bytes()))
        };
        match atom {
            Atom::Name(text) => {
                named(text, step.target.as_deref()) || named(text, step.method.as_deref())
            }
            Atom::Tool(text) => named(text, step.tool()),
            Atom::Method(text) => named(text, step.method.as_deref()),
            Atom::Server(text) => named(
                text,
                self.story.session(step).map(|session| &session.server[..]),
            ),
            Atom::Body(sides, text) => {
                let holds = |message: &Option<Message>| {
                    let message = message.as_ref();
                    message.is_some_and(|message| text.matches(&message.text))
                };
                (*sides != Sides::Response && holds(&step.request))
                    || (*sides != Sides::Request && holds(&step.response))
            }
            Atom::Header(text) => self.header(text, step),
            Atom::Outcome(set) => set.has(step.outcome),
            Atom::Duration(comparison, bound) => {
                step.duration.is_some_and(|d| comparison.holds(d, *bound))
            }
            Atom::Size(comparison, bound) => comparison.holds(step.bytes(), *bound),
            Atom::Code(code) => codes(step).any(|known| known == *code),
            Atom::Found(code) => {
                let mut found = self.found.iter();
                found.any(|(number, known)| *number == step.number && known == code)
            }
            Atom::Since(moment) => self.time(step) >= *moment,
            Atom::Until(moment) => self.time(step) < *moment,
            Atom::Run(_) | Atom::Client(_) | Atom::Task(_) | Atom::Verdict(_) | Atom::RunFailed => {
                false
            }
        }
    }

    /// When a step began. Clocks of several sessions may differ, but no step is outside its
    /// run.
    fn time(&self, step: &Step) -> u64 {
        step.wall.max(self.started).min(self.last)
    }

    fn header(&self, text: &super::Text, step: &Step) -> bool {
        let session = self.story.session(step).filter(|_| step.exchange > 0);
        let exchange = session.and_then(|session| session.exchanges.get(&step.exchange));
        let Some(exchange) = exchange else {
            return false;
        };
        let request = exchange.request.iter().flat_map(|head| &head.headers);
        let response = exchange.response.iter().flat_map(|head| &head.headers);
        let trailers = exchange.trailers.iter().flat_map(|(_, t)| &t.headers);
        let mut lines = request.chain(response).chain(trailers);
        lines.any(|(name, value)| text.matches(format!("{name}: {value}").as_bytes()))
    }

    /// What is known of a run without steps, seen from one of its servers.
    fn without_steps(&self, atom: &Atom, server: Option<&str>) -> Ternary {
        match (atom, server) {
            (Atom::Server(text), Some(server)) => text.matches(server.as_bytes()).into(),
            (Atom::Since(moment), _) => (self.last >= *moment).into(),
            (Atom::Until(moment), _) => (self.started < *moment).into(),
            _ => self.of_run(atom).map_or(Ternary::Maybe, Ternary::from),
        }
    }
}

/// What `~x` finds a step by: its HTTP status and the code of its JSON-RPC error.
pub fn codes(step: &Step) -> impl Iterator<Item = i64> {
    let code = || {
        let error = member(&step.response.as_ref()?.text, "error")?;
        let code = std::str::from_utf8(member(error, "code")?).ok()?;
        code.parse::<i64>().ok()
    };
    let status = step.status.map(i64::from);
    [status, code()].into_iter().flatten()
}
