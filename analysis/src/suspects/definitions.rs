//! What servers said of their tools, and when.

use super::quotes::Spot;
use super::result::Side;
use super::view;
use super::walk;
use crate::scalars::digest;
use agent_trace_model::story::Story;
use agent_trace_wire::message::{member, member_at, string};
use std::collections::BTreeMap;

/// What a server said of its tools at one time.
#[derive(Clone, Debug)]
pub(super) struct Offer<'a> {
    /// Position of the step that it was answered to.
    pub(super) at: usize,
    server: &'a str,
    session: usize,
    /// By names. Later pages are added to the first.
    pub(super) tools: BTreeMap<String, Tool<'a>>,
    /// Whether it is all that there is: the last page was seen.
    pub(super) is_whole: bool,
}

/// What a server said of one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool<'a> {
    /// Position of the step.
    pub(super) at: usize,
    /// JSON text.
    pub(super) text: &'a [u8],
    /// A number for what it says.
    pub(super) digest: u64,
}

impl Tool<'_> {
    /// A place of the definition: all of it, or one member.
    pub(super) fn spot(&self, story: &Story, name: Option<&str>) -> Option<Spot> {
        let part = name.map_or(Some(self.text), |name| member(self.text, name))?;
        Spot::of(self.at, story.steps.get(self.at)?, Side::Response, part)
    }

    /// Whether the server says that it changes nothing.
    pub(super) fn is_read_only(&self) -> bool {
        member_at(self.text, &["annotations", "readOnlyHint"]) == Some(b"true")
    }
}

/// What servers said of their tools in a run.
#[derive(Debug, Default)]
pub(super) struct Definitions<'a> {
    /// In the order of the run.
    pub(super) offers: Vec<Offer<'a>>,
}

impl<'a> Definitions<'a> {
    pub(super) fn of(story: &'a Story) -> Self {
        let mut all = Self::default();
        for (at, step) in story.steps.iter().enumerate() {
            if step.method.as_deref() != Some("tools/list") || !step.is_clients() {
                continue;
            }
            let Some(result) = step
                .response
                .as_ref()
                .and_then(|m| member(&m.text, "result"))
            else {
                continue;
            };
            let params = step.request.as_ref();
            let params = params.and_then(|m| member_at(&m.text, &["params", "cursor"]));
            let before = all
                .offers
                .iter()
                .rev()
                .find(|offer| offer.session == step.session);
            let is_page = params.is_some_and(|cursor| cursor != b"null");
            let mut tools = match before {
                Some(before) if is_page => before.tools.clone(),
                _ => BTreeMap::new(),
            };
            for text in walk::items(member(result, "tools").unwrap_or_default()) {
                let name = member(text, "name").and_then(string);
                let known = |name: &str| before.and_then(|b| b.tools.get(name)).copied();
                if let Some(name) = name {
                    let same = known(&name).filter(|tool| tool.text == text);
                    let digest = same.map_or_else(|| digest(text, &["_meta"]), |t| t.digest);
                    tools.insert(name.into_owned(), Tool { at, text, digest });
                }
            }
            let next = member(result, "nextCursor");
            all.offers.push(Offer {
                at,
                server: view::server(story, step),
                session: step.session,
                tools,
                is_whole: next.is_none_or(|next| next == b"null"),
            });
        }
        all
    }

    /// What the server of this session last said before this step; where it said nothing in it,
    /// what it last said in another session of the run.
    pub(super) fn before(&self, at: usize, session: usize, server: &str) -> Option<&Offer<'a>> {
        let before = || self.offers.iter().rev().filter(move |offer| offer.at < at);
        before()
            .find(|offer| offer.session == session)
            .or_else(|| before().find(|offer| offer.server == server))
    }

    /// What the server said before that.
    pub(super) fn earlier(&self, than: &Offer<'a>) -> impl Iterator<Item = &Offer<'a>> {
        let (at, server) = (than.at, than.server);
        let earlier = self.offers.iter().rev().filter(move |offer| offer.at < at);
        earlier.filter(move |offer| offer.server == server && offer.is_whole)
    }

    /// What any session of this server last said of a tool.
    pub(super) fn last_of(&self, server: &str, tool: &str) -> Option<&Tool<'a>> {
        let of = self
            .offers
            .iter()
            .rev()
            .filter(|offer| offer.server == server);
        of.filter_map(|offer| offer.tools.get(tool)).next()
    }

    /// Servers other than this one that have a tool of this name, each once.
    pub(super) fn others_with(&self, server: &str, tool: &str) -> Vec<&'a str> {
        let others = self.offers.iter().filter(|offer| offer.server != server);
        let with = others.filter(|offer| offer.tools.contains_key(tool));
        let mut names: Vec<&str> = with.map(|offer| offer.server).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
