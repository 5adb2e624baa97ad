//! What servers said of their tools, and when.

use super::quotes::Spot;
use super::result::Side;
use super::view;
use super::walk;
use crate::scalars::{digest, hash};
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;
use agent_trace_wire::message::{member, member_at, string};
use std::collections::{BTreeSet, HashMap};

/// An answer to `tools/list`: a list of tools, or one more page of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// Position of the step that it was answered to.
    pub(super) at: usize,
    /// The list that it is a page of, by the position of the first page.
    list: usize,
    /// Whether with this page the list is all that there is.
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

/// What servers said of their tools in a run. Each tool of each page is kept once, whatever the
/// number of pages, and found by numbers for what it is looked up by.
#[derive(Debug, Default)]
pub(super) struct Definitions<'a> {
    /// By session, in the order of the run.
    by_session: HashMap<usize, Vec<Offer>>,
    /// By server, in the order of the run.
    by_server: HashMap<&'a str, Vec<Offer>>,
    /// By list and name, in the order of pages.
    in_lists: HashMap<u64, Vec<Tool<'a>>>,
    /// By server and name, in the order of the run; only where it is another one than before.
    of_servers: HashMap<u64, Vec<Tool<'a>>>,
    /// Servers that have a tool of this name.
    servers: HashMap<u64, BTreeSet<&'a str>>,
}

impl<'a> Definitions<'a> {
    pub(super) fn of(story: &'a Story) -> Self {
        let mut all = Self::default();
        for (at, step) in story.steps.iter().enumerate() {
            if step.method.as_deref() != Some("tools/list") || !step.is_clients() {
                continue;
            }
            let response = step.response.as_ref();
            if let Some(result) = response.and_then(|m| member(&m.text, "result")) {
                all.page(story, at, step, result);
            }
        }
        all
    }

    fn page(&mut self, story: &'a Story, at: usize, step: &'a Step, result: &'a [u8]) {
        let server = view::server(story, step);
        let request = step.request.as_ref();
        let cursor = request.and_then(|m| member_at(&m.text, &["params", "cursor"]));
        let is_page = cursor.is_some_and(|cursor| cursor != b"null");
        let offers = self.by_session.entry(step.session).or_default();
        let before = offers.last().map(|offer| offer.list);
        let next = member(result, "nextCursor");
        let offer = Offer {
            at,
            list: before.filter(|_| is_page).unwrap_or(at),
            is_whole: next.is_none_or(|next| next == b"null"),
        };
        offers.push(offer);
        self.by_server.entry(server).or_default().push(offer);
        for text in walk::items(member(result, "tools").unwrap_or_default()) {
            let Some(name) = member(text, "name").and_then(string) else {
                continue;
            };
            let known = before.and_then(|list| self.in_lists.get(&in_list(list, &name))?.last());
            let same = known.filter(|tool| tool.text == text);
            let digest = same.map_or_else(|| digest(text, &["_meta"]), |t| t.digest);
            let tool = Tool { at, text, digest };
            let listed = self.in_lists.entry(in_list(offer.list, &name)).or_default();
            listed.push(tool);
            let served = self.of_servers.entry(of_server(server, &name)).or_default();
            if served.last().is_none_or(|last| last.digest != digest) {
                served.push(tool);
            }
            self.servers.entry(hash(&*name)).or_default().insert(server);
        }
    }

    /// What the server of this session last said before this step; where it said nothing in it,
    /// what it last said in another session of the run.
    pub(super) fn before(&self, at: usize, session: usize, server: &str) -> Option<Offer> {
        let last = |offers: &Vec<Offer>| {
            let before = offers.partition_point(|offer| offer.at < at);
            offers[..before].last().copied()
        };
        let own = self.by_session.get(&session).and_then(last);
        own.or_else(|| self.by_server.get(server).and_then(last))
    }

    /// What a list says of a tool, up to this page of it.
    pub(super) fn tool(&self, offer: &Offer, name: &str) -> Option<&Tool<'a>> {
        let tools = self.in_lists.get(&in_list(offer.list, name))?;
        let known = tools.partition_point(|tool| tool.at <= offer.at);
        tools[..known].last()
    }

    /// What the server had said of a tool before the list that this is a page of, where that is
    /// something else.
    pub(super) fn other_before(
        &self,
        offer: &Offer,
        server: &str,
        name: &str,
        now: &Tool<'a>,
    ) -> Option<&Tool<'a>> {
        let tools = self.of_servers.get(&of_server(server, name))?;
        let before = tools.partition_point(|tool| tool.at < offer.list);
        // No two that follow each other are the same: this looks at two at most.
        let mut before = tools[..before].iter().rev();
        before.find(|tool| tool.digest != now.digest)
    }

    /// What any session of this server last said of a tool.
    pub(super) fn last_of(&self, server: &str, tool: &str) -> Option<&Tool<'a>> {
        self.of_servers.get(&of_server(server, tool))?.last()
    }

    /// Servers other than this one that have a tool of this name, each once.
    pub(super) fn others_with(&self, server: &str, tool: &str) -> Vec<&'a str> {
        let servers = self.servers.get(&hash(tool)).into_iter().flatten();
        servers.copied().filter(|other| *other != server).collect()
    }
}

fn in_list(list: usize, name: &str) -> u64 {
    hash((list, name))
}

fn of_server(server: &str, name: &str) -> u64 {
    hash((server, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tale;
    use std::fmt::Write;

    fn page(tale: Tale, from: usize, tools: usize, next: Option<usize>) -> Tale {
        let mut names = String::new();
        for n in from..from + tools {
            let _ = write!(names, ",{{\"name\":\"t{n}\"}}");
        }
        let cursor = if from == 0 { "{}" } else { r#"{"cursor":"c"}"# };
        let next = next.map_or("null".to_owned(), |next| format!("\"{next}\""));
        let list = format!("{{\"tools\":[{}],\"nextCursor\":{next}}}", &names[1..]);
        tale.request("tools/list", cursor).result(&list)
    }

    #[test]
    fn many_pages_are_kept_once() {
        let (pages, tools) = (500, 20);
        let mut tale = Tale::new();
        for n in 0..pages {
            tale = page(tale, n * tools, tools, (n + 1 < pages).then_some(n));
        }
        let story = tale.call("t7", "{}").text("x").told();
        let definitions = Definitions::of(&story);
        let kept: usize = definitions.in_lists.values().map(Vec::len).sum();
        assert_eq!(kept, pages * tools);
        let half = definitions.before(pages / 2, 0, "notes").unwrap();
        assert!(!half.is_whole);
        assert!(definitions.tool(&half, "t7").is_some());
        assert!(definitions.tool(&half, "t9999").is_none());
        let whole = definitions.before(pages, 0, "notes").unwrap();
        assert!(whole.is_whole);
        assert!(definitions.tool(&whole, "t9999").is_some());
    }

    #[test]
    fn a_new_list_takes_the_place_of_the_old_one() {
        let tale = page(page(Tale::new(), 0, 2, None), 0, 1, None);
        let story = tale.call("t1", "{}").text("x").told();
        let definitions = Definitions::of(&story);
        let offer = definitions.before(2, 0, "notes").unwrap();
        assert!(definitions.tool(&offer, "t0").is_some());
        assert!(definitions.tool(&offer, "t1").is_none());
        assert!(definitions.last_of("notes", "t1").is_some());
        assert_eq!(definitions.others_with("tasks", "t1"), ["notes"]);
        assert_eq!(definitions.others_with("notes", "t1"), [] as [&str; 0]);
    }
}
