//! Values that were given to the wrong server, and values whose meaning a step in between may
//! have changed. Both are told of calls that failed, were empty, or were not clean.

use crate::scalars::hash;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::{Call, View};
use crate::suspects::walk::{self, Leaf};
use crate::suspects::weights::Rule;
use std::collections::HashMap;

/// The shortest value that is followed, in bytes of JSON text.
const SHORTEST: usize = 4;

/// Values of one call that are followed.
const VALUES: usize = 50;

/// Bytes of all answers in which values are looked for.
const BYTES: usize = 16 << 20;

/// Words in the names of tools that read only; what a server says of a tool counts more.
const READS: [&str; 14] = [
    "get", "read", "list", "search", "find", "show", "fetch", "query", "open", "log", "status",
    "diff", "describe", "tree",
];

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
            for (pointer, value) in &values {
                let by = changed.get(value).map(|by| &view.calls[*by]);
                if let Some(by) = by.filter(|by| by.kind != call.kind) {
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
            other_server(view, call, &mut budget, found);
        } else if !is_reading(view, call) {
            changed.extend(values.into_iter().map(|(_, value)| (value, index)));
        }
    }
}

/// The values that a call was given, with their pointers.
fn values(call: &Call<'_>) -> Vec<(String, u64)> {
    let mut values = Vec::new();
    walk::leaves(call.arguments, &mut |way, leaf, range| {
        let raw = &call.arguments[range];
        let is_value = matches!(leaf, Leaf::String | Leaf::Number) && raw.len() >= SHORTEST;
        if is_value {
            values.push((way.pointer(), hash((leaf == Leaf::String, raw))));
        }
        values.len() < VALUES
    });
    values
}

fn is_reading(view: &View<'_>, call: &Call<'_>) -> bool {
    let tool = call.tool.unwrap_or_default();
    let definition = view.definitions.last_of(call.server, tool);
    if definition.is_some_and(|tool| tool.is_read_only()) {
        return true;
    }
    let lower = tool.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| READS.contains(&word))
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
    // The values that it was given, in what another server with that tool answered before.
    let Some(index) = view.index(call.at) else {
        return;
    };
    for earlier in view.calls[..index].iter().rev() {
        let Some(response) = earlier.step.response.as_ref() else {
            continue;
        };
        if !others.contains(&earlier.server) || !earlier.is_ok() {
            continue;
        }
        let Some(left) = budget.checked_sub(response.text.len()) else {
            break;
        };
        *budget = left;
        let mut given = None;
        walk::leaves(call.arguments, &mut |way, leaf, range| {
            let raw = &call.arguments[range];
            let value = match leaf {
                Leaf::String => walk::inside(raw),
                Leaf::Number => raw,
                _ => return true,
            };
            if value.len() + 1 >= SHORTEST
                && let Some(at) = contains(&response.text, value)
            {
                given = Some((way.pointer(), at..at + value.len()));
            }
            given.is_none()
        });
        if let Some((pointer, range)) = given {
            let because = format!(
                "another server has a tool of this name, and had given the value, at step {}",
                earlier.step.number
            );
            let spots = [call.argument(&pointer), earlier.answer_at(Some(&range))];
            found.add(
                call.at,
                Rule::OtherServer,
                because,
                spots.into_iter().flatten(),
            );
            return;
        }
    }
    let because = "another server has a tool of this name";
    found.add_weighing(call.at, Rule::OtherServer, 40, because, call.asked());
}

/// Where a value stands in a text, not as a part of a longer word.
fn contains(text: &[u8], value: &[u8]) -> Option<usize> {
    let word = |at: Option<&u8>| at.is_some_and(|b| b.is_ascii_alphanumeric());
    let finder = aho_corasick::AhoCorasick::new([value]).ok()?;
    let alone =
        |at: usize| !word(text.get(at.wrapping_sub(1))) && !word(text.get(at + value.len()));
    let mut found = finder.find_iter(text).map(|found| found.start());
    found.find(|at| alone(*at))
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
            .tool_error("ENOENT")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [3, 2]);
        assert_eq!(ranked.rules(2), [Rule::ChangedBetween]);
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
