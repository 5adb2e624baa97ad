//! How a rule reports.

use super::finding::{Finding, Quote};
use super::key::key;
use super::rule::{Party, Rule};
use agent_trace_model::Stream;
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;

/// How many characters say what is wrong.
const LONGEST: usize = 200;

/// What one rule found.
pub(super) struct Found<'a> {
    rule: &'a Rule,
    story: &'a Story,
    pub(super) findings: Vec<Finding>,
}

/// What a rule says of a place.
pub(super) struct Said<'a> {
    /// What is wrong, in a line.
    pub(super) what: String,
    /// What tells it from others of the same rule, server and tool, if the quote does not:
    /// the same in another run.
    pub(super) subject: &'a str,
    /// What shows it.
    pub(super) quote: &'a [u8],
}

impl<'a> Found<'a> {
    pub(super) fn new(rule: &'a Rule, story: &'a Story) -> Self {
        Self {
            rule,
            story,
            findings: Vec::new(),
        }
    }

    /// Something is wrong with a step.
    pub(super) fn at(&mut self, step: &Step, party: Party, said: Said<'_>) {
        self.push(step.session, Some(step), party, said);
    }

    /// Something is wrong with a session as a whole.
    pub(super) fn in_session(&mut self, session: usize, party: Party, said: Said<'_>) {
        self.push(session, None, party, said);
    }

    fn push(&mut self, session: usize, step: Option<&Step>, party: Party, said: Said<'_>) {
        let server = self.story.sessions.get(session);
        let server = server.map_or(String::new(), |session| session.server.clone());
        let tool = step.and_then(Step::tool).map(String::from);
        let Said {
            what,
            subject,
            quote,
        } = said;
        self.findings.push(Finding {
            code: self.rule.code,
            severity: self.rule.severity,
            party,
            key: key(self.rule.code, &server, tool.as_deref(), subject, quote),
            what: bounded(what),
            session,
            server,
            step: step.map(|step| step.number),
            tool,
            quote: Quote::of(quote),
        });
    }
}

/// Names in it are as long as peers made them.
fn bounded(mut what: String) -> String {
    if let Some((end, _)) = what.char_indices().nth(LONGEST) {
        what.truncate(end);
        what.push('…');
    }
    what
}

/// Who sends on this stream.
pub(super) fn sender(stream: Stream) -> Party {
    match stream {
        Stream::ClientToServer => Party::Client,
        Stream::ServerToClient | Stream::Stderr => Party::Server,
    }
}

/// The other one.
pub(super) fn other(party: Party) -> Party {
    match party {
        Party::Client => Party::Server,
        Party::Server => Party::Client,
        Party::Recording => Party::Recording,
    }
}
