//! The run as rules see it: each message taken apart once.

use super::Settings;
use agent_trace_model::exchange::Exchange;
use agent_trace_model::step::{Framing, Message, Step};
use agent_trace_model::story::{Session, Story};
use agent_trace_wire::message::{self, member, member_at, string};
use std::borrow::Cow;

/// The member of `_meta` with which requests of 2026-07-28 and later name the revision
/// (reference: MCP specification 2026-07-28, "Requests").
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What stands for a secret begins so.
const MARKER: &[u8] = b"[REDACTED:";

/// The revisions of the protocol, oldest first.
pub(super) const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];
/// From this one on there is neither `initialize` nor a session.
pub(super) const MODERN: &str = "2026-07-28";

/// A run and what its messages say.
pub(super) struct Context<'a> {
    pub(super) story: &'a Story,
    pub(super) settings: Settings,
    /// One for each step, in their order.
    pub(super) steps: Vec<Fact<'a>>,
    /// Positions of the steps of each session.
    by_session: Vec<Vec<usize>>,
}

/// A step and what its messages say. A message of which a part was not recorded says nothing.
pub(super) struct Fact<'a> {
    pub(super) step: &'a Step,
    pub(super) session: &'a Session,
    pub(super) request: message::Message<'a>,
    pub(super) response: message::Message<'a>,
    /// The revision that it is of, where that is known.
    pub(super) revision: Option<Cow<'a, str>>,
}

impl<'a> Context<'a> {
    pub(super) fn of(story: &'a Story, settings: Settings) -> Self {
        let settled = settled(story);
        let fact = |step: &'a Step| {
            let session = story.sessions.get(step.session)?;
            let request = parsed(step.request.as_ref());
            let response = parsed(step.response.as_ref());
            let own = request
                .params
                .and_then(|params| member_at(params, &["_meta", PROTOCOL_VERSION]))
                .and_then(string);
            let header = || {
                let exchange = session.exchanges.get(&step.exchange)?;
                let version = exchange.request_header("mcp-protocol-version")?;
                Some(Cow::Borrowed(version.trim()))
            };
            let revision = own
                .or_else(header)
                .or_else(|| settled.get(step.session)?.clone());
            Some(Fact {
                step,
                session,
                request,
                response,
                revision,
            })
        };
        let steps: Vec<Fact<'a>> = story.steps.iter().filter_map(fact).collect();
        let mut by_session = vec![Vec::new(); story.sessions.len()];
        for (position, fact) in steps.iter().enumerate() {
            by_session[fact.step.session].push(position);
        }
        Self {
            story,
            settings,
            steps,
            by_session,
        }
    }

    /// The sessions with their positions.
    pub(super) fn sessions(&self) -> impl Iterator<Item = (usize, &'a Session)> {
        self.story.sessions.iter().enumerate()
    }

    /// The steps of a session.
    pub(super) fn of_session(&self, position: usize) -> impl Iterator<Item = &Fact<'a>> {
        let positions = self.by_session.get(position).into_iter().flatten();
        positions.map(|position| &self.steps[*position])
    }
}

impl<'a> Fact<'a> {
    /// The method of what began it.
    pub(super) fn method(&self) -> &'a str {
        self.step.method.as_deref().unwrap_or_default()
    }

    /// Whether it is of a revision from this one on.
    pub(super) fn is_since(&self, revision: &str) -> bool {
        self.revision
            .as_deref()
            .is_some_and(|own| is_since(own, revision))
    }

    /// Whether it is known to be of a revision before this one.
    pub(super) fn is_before(&self, revision: &str) -> bool {
        let own = self.revision.as_deref();
        own.is_some_and(|own| is_dated(own) && own < revision)
    }

    /// The HTTP exchange that it began in.
    pub(super) fn exchange(&self) -> Option<&'a Exchange> {
        self.session.exchanges.get(&self.step.exchange)
    }

    /// A member of what the request is about.
    pub(super) fn param(&self, name: &str) -> Option<&'a [u8]> {
        member(self.request.params?, name)
    }

    /// The messages of the step that are JSON, each with who sent it.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&'a Message, &message::Message<'a>)> {
        let request = self.step.request.as_ref().map(|m| (m, &self.request));
        let response = self.step.response.as_ref().map(|m| (m, &self.response));
        request
            .into_iter()
            .chain(response)
            .filter(|(message, _)| message.framing != Framing::Stray)
    }
}

/// The revision that each session settled on: a client may have tried a later one first.
fn settled(story: &Story) -> Vec<Option<Cow<'_, str>>> {
    let of = |session: &Session| session.revision.clone().map(Cow::Owned);
    let mut settled: Vec<Option<Cow<'_, str>>> = story.sessions.iter().map(of).collect();
    let initialize = |step: &&Step| step.method.as_deref() == Some("initialize");
    // The first of a session counts, so from behind.
    for step in story.steps.iter().rev().filter(initialize) {
        let answer = step.response.as_ref().map(|answer| &answer.text[..]);
        let version = answer.and_then(|text| member_at(text, &["result", "protocolVersion"]));
        if let (Some(version), Some(of)) = (version.and_then(string), settled.get_mut(step.session))
        {
            *of = Some(version);
        }
    }
    settled
}

/// Whether revision `own`, a date, is this one or a later one.
pub(super) fn is_since(own: &str, revision: &str) -> bool {
    is_dated(own) && own >= revision
}

/// Whether a revision is a date, as all of them are.
pub(super) fn is_dated(revision: &str) -> bool {
    let bytes = revision.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Whether something of a session is missing, so that what was not seen may have been there.
pub(super) fn is_lossy(session: &Session) -> bool {
    !session.gaps.is_empty() || !session.is_whole() || session.clipped
}

/// Whether a text holds what stands for a secret: it can't be compared.
pub(super) fn is_redacted(text: &[u8]) -> bool {
    text.windows(MARKER.len()).any(|window| window == MARKER)
}

/// A message taken apart, if all of it was recorded.
fn parsed(message: Option<&Message>) -> message::Message<'_> {
    let whole = message.filter(|m| m.is_whole() && !m.incomplete && m.framing != Framing::Stray);
    let text = whole.map(|message| &message.text[..]).unwrap_or_default();
    let mut messages = message::messages(text).into_iter().flatten();
    messages.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_dates_and_compare_as_such() {
        assert!(is_since("2026-07-28", MODERN) && is_since("2027-01-01", MODERN));
        assert!(!is_since("2025-11-25", MODERN) && !is_since("DRAFT-2026-v1", MODERN));
        assert!(!is_since("zzzz", MODERN) && !is_dated("2025-1-1"));
        assert!(REVISIONS.is_sorted());
    }
}
