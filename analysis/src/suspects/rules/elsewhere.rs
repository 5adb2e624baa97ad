//! Values that were given to the wrong server, and values whose meaning a step in between may
//! have changed. The latter are told of calls that failed, or whose answer was lacking, and whose
//! answer names the value.

use super::share;
use crate::scalars::hash;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::{Call, View};
use crate::suspects::walk::{self, Leaf};
use crate::suspects::weights::Rule;
use aho_corasick::AhoCorasick;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// The shortest value that is followed, in bytes of JSON text.
const SHORTEST: usize = 4;

/// The longest value that is looked for in other servers' answers.
const LONGEST: usize = 200;

/// Bytes of an answer in which a value that was given must be named.
const ANSWER: usize = 4 << 10;

/// Answers before a call that are looked at.
const BACK: usize = 50;

/// Values of one call that are followed.
const VALUES: usize = 50;

/// Bytes of all answers in which values are looked for.
const BYTES: usize = 16 << 20;

pub(super) fn find(view: &View<'_>, found: &mut Evidence) {
    // Where a value was last given to a step that may have changed what it stands for.
    let mut changed: HashMap<u64, usize> = HashMap::new();
    let mut budget = BYTES;
    for (index, call) in view.calls.iter().enumerate() {
        if !call.step.is_clients() || call.tool.is_none() {
            continue;
        }
        let values = values(call);
        if !call.is_clean() {
            let response = call.step.response.as_ref();
            let said = response
                .map(|message| &message.text[..])
                .unwrap_or_default();
            let said = String::from_utf8_lossy(&said[..said.len().min(ANSWER)]);
            for (pointer, value, text) in &values {
                let by = changed.get(value).map(|by| &view.calls[*by]);
                let by = by.filter(|by| by.kind != call.kind && said.contains(&**text));
                if let Some(by) = by {
                    let because = format!(
                        "it was given the same value as step {}, and may have changed what that stands for",
                        call.step.number
                    );
                    let spots = [by.asked(), call.argument(pointer)];
                    found.add(
                        by.at,
                        Rule::ChangedBetween,
                        because,
                        spots.into_iter().flatten(),
                    );
                }
            }
        } else if view.is_reading(call) {
            // What went well with a value shows that it still stands for something.
            for (_, value, _) in &values {
                changed.remove(value);
            }
        } else {
            changed.extend(values.into_iter().map(|(_, value, _)| (value, index)));
        }
        other_server(view, call, &mut budget, found);
    }
}

/// The values that a call was given: pointers, numbers for them, and texts without quotes.
fn values<'a>(call: &Call<'a>) -> Vec<(String, u64, Cow<'a, str>)> {
    let mut values = Vec::new();
    let arguments = call.arguments;
    walk::leaves(arguments, &mut |way, leaf, range| {
        let raw = &arguments[range];
        let is_value = matches!(leaf, Leaf::String | Leaf::Number) && raw.len() >= SHORTEST;
        if is_value {
            let is_text = leaf == Leaf::String;
            let text = String::from_utf8_lossy(if is_text { walk::inside(raw) } else { raw });
            values.push((way.pointer(), hash((is_text, raw)), text));
        }
        values.len() < VALUES
    });
    values
}

/// A call that another server of the run could have taken.
fn other_server(view: &View<'_>, call: &Call<'_>, budget: &mut usize, found: &mut Evidence) {
    let Some(tool) = call.tool else {
        return;
    };
    let others = view.definitions.others_with(call.server, tool);
    if others.is_empty() {
        return;
    }
    let Some((index, values)) = view.index(call.at).zip(Values::of(call)) else {
        return;
    };
    // The last answer that has one of the values, of this server or of another that has the tool.
    let earlier = view.calls[..index].iter().rev().filter(|earlier| {
        let server = earlier.server;
        earlier.is_ok() && (server == call.server || others.contains(&server))
    });
    for earlier in earlier.take(BACK) {
        let Some(response) = earlier.step.response.as_ref() else {
            continue;
        };
        let Some(left) = budget.checked_sub(response.text.len()) else {
            break;
        };
        *budget = left;
        let Some((pointer, range)) = values.find(&response.text) else {
            continue;
        };
        if earlier.server == call.server {
            return;
        }
        let because = format!(
            "another server has a tool of this name, and had given the value, at step {}",
            earlier.step.number
        );
        let spots = [call.argument(pointer), earlier.answer_at(Some(&range))];
        let part = if call.is_clean() { 60 } else { 100 };
        let weight = share(Rule::OtherServer.weight(), part);
        let spots = spots.into_iter().flatten();
        found.add_weighing(call.at, Rule::OtherServer, weight, because, spots);
        return;
    }
    if !call.is_clean() {
        let because = "another server has a tool of this name";
        let weight = share(Rule::OtherServer.weight(), 25);
        found.add_weighing(call.at, Rule::OtherServer, weight, because, call.asked());
    }
}

/// The values that a call was given, to be looked for in texts.
struct Values {
    pointers: Vec<String>,
    finder: AhoCorasick,
}

impl Values {
    fn of(call: &Call<'_>) -> Option<Self> {
        let (mut pointers, mut values) = (Vec::new(), Vec::new());
        walk::leaves(call.arguments, &mut |way, leaf, range| {
            let raw = &call.arguments[range];
            let value = match leaf {
                Leaf::String => walk::inside(raw),
                Leaf::Number => raw,
                _ => return true,
            };
            if (SHORTEST..=LONGEST).contains(&(value.len() + 1)) {
                pointers.push(way.pointer());
                values.push(value);
            }
            values.len() < VALUES
        });
        let finder = AhoCorasick::new(&values).ok()?;
        (!values.is_empty()).then_some(Self { pointers, finder })
    }

    /// The first value that stands in a text and is no part of a longer word: its pointer, and
    /// where it stands.
    fn find(&self, text: &[u8]) -> Option<(&str, Range<usize>)> {
        let word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
        let before = |at: usize| at.checked_sub(1).and_then(|at| text.get(at));
        let mut found = self.finder.find_overlapping_iter(text);
        let found = found.find(|f| !word(before(f.start())) && !word(text.get(f.end())))?;
        let pointer = self.pointers.get(found.pattern().as_usize())?;
        Some((pointer, found.range()))
    }
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    #[test]
    fn a_step_that_may_have_changed_things_is_told() {
        let story = Tale::new()
            .call("read", r#"{"path":"/a/note.txt"}"#)
            .text("water")
            .call("move", r#"{"source":"/a/note.txt","to":"/b/x.txt"}"#)
            .text("moved")
            .call("read", r#"{"path":"/a/note.txt"}"#)
            .tool_error("ENOENT: /a/note.txt")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [3, 2]);
        assert_eq!(ranked.rules(2), [Rule::ChangedBetween]);
    }

    #[test]
    fn what_every_call_is_given_blames_nobody() {
        let story = |read: bool, error: &str| {
            let mut tale = Tale::new()
                .call("commit", r#"{"repo":"/home/ada/garden","of":"all"}"#)
                .text("done");
            if read {
                tale = tale
                    .call("status", r#"{"repo":"/home/ada/garden"}"#)
                    .text("x y");
            }
            tale.call("push", r#"{"repo":"/home/ada/garden","to":"main"}"#)
                .tool_error(error)
                .told()
        };
        let blamed = |read: bool, error: &str| {
            let rules = ranked(&story(read, error)).rules(1);
            rules.contains(&Rule::ChangedBetween)
        };
        assert!(blamed(false, "cannot push /home/ada/garden"));
        assert!(!blamed(false, "no such branch"));
        assert!(!blamed(true, "cannot push /home/ada/garden"));
    }

    #[test]
    fn a_value_that_the_server_itself_gave_is_no_sign() {
        let tools = r#"{"tools":[{"name":"get"},{"name":"list"}]}"#;
        let mut tale = Tale::new();
        for server in ["tasks", "notes"] {
            tale = tale.on(server).request("tools/list", "{}").result(tools);
            tale = tale.call("list", "{}").text("T-1042: water the plants");
        }
        let story = tale
            .call("get", r#"{"id":"T-1042"}"#)
            .text("twice a day")
            .told();
        assert!(!ranked(&story).rules(5).contains(&Rule::OtherServer));
    }

    #[test]
    fn a_call_to_the_wrong_server_is_told() {
        let tools = r#"{"tools":[{"name":"get"},{"name":"list"}]}"#;
        let story = Tale::new()
            .request("tools/list", "{}")
            .result(tools)
            .on("tasks")
            .request("tools/list", "{}")
            .result(tools)
            .call("list", "{}")
            .text("task T-1042: water the plants")
            .on("notes")
            .call("get", r#"{"id":"T-1042"}"#)
            .tool_error("no such note")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps()[0], 4);
        assert!(ranked.rules(4).contains(&Rule::OtherServer));
    }
}
