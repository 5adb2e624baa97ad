//! Empty answers, and answers that are only a part, that the run went on with.

use super::share;
use crate::parts::answer;
use crate::suspects::Input;
use crate::suspects::answers::{Answer, Holds};
use crate::suspects::evidence::Evidence;
use crate::suspects::quotes::Spot;
use crate::suspects::result::Side;
use crate::suspects::signs;
use crate::suspects::view::{Call, View};
use crate::suspects::walk::{self, Leaf};
use crate::suspects::weights::Rule;
use agent_trace_model::Outcome;
use std::collections::HashSet;

/// Calls after a partial answer among which the one for the rest is looked for.
const AHEAD: usize = 50;

pub(super) fn find(input: &Input<'_>, view: &View<'_>, found: &mut Evidence) {
    let full = |call: &Call<'_>| call.is_ok() && call.answer.holds == Holds::Something;
    let later = view.next_of_kind(full);
    let with_something = kinds_with_something(input, view);
    let nothing_used = uses_of_nothing(view);
    for (index, call) in view.calls.iter().enumerate() {
        if !call.is_ok() || !call.step.is_clients() {
            continue;
        }
        if call.answer.is_nothing() {
            let has = with_something.contains(&(call.server, call.step.target.as_deref()));
            let used = nothing_used.get(nothing_used.partition_point(|u| u.0 <= index));
            empty(view, call, index, (has, used, later[index]), found);
        }
        partial(view, call, index, found);
    }
}

type Use = (usize, Spot);

/// An empty answer. `has`: whether the same tool gave something elsewhere; `used`: where a
/// later call was given nothing; `later`: a later call of the kind that got something.
fn empty(
    view: &View<'_>,
    call: &Call<'_>,
    index: usize,
    (has, used, later): (bool, Option<&Use>, Option<usize>),
    found: &mut Evidence,
) {
    // A tool that never has anything to say is one that does something.
    let quiet = call.answer.holds == Holds::NoContent;
    if quiet && !has && !view.is_reading(call) {
        return;
    }
    let weight = Rule::EmptyResult.weight();
    let mut spots: Vec<Spot> = Vec::new();
    let whole = || answer(call.step).and_then(|a| Spot::of(call.at, call.step, Side::Response, a));
    spots.extend(call.answer_at(call.answer.nothing.as_ref()).or_else(whole));
    let (mut part, mut because) = match (used, view.goes_on(index)) {
        (Some(used), _) => {
            spots.push(used.1.clone());
            let number = view.calls[used.0].step.number;
            (
                100,
                format!("its answer holds nothing, and step {number} was given nothing"),
            )
        }
        (None, true) => (
            80,
            "its answer holds nothing, and the run went on".to_owned(),
        ),
        (None, false) => (40, "its answer holds nothing".to_owned()),
    };
    if has {
        part += 20;
        because.push_str("; the same tool gave something at other times");
    }
    // That there is nothing was not said, and may well be so.
    if quiet && !has {
        part /= 2;
    }
    if let Some(later) = later {
        part = part * 2 / 5;
        let number = view.calls[later].step.number;
        because.push_str(&format!("; it did so later, at step {number}"));
    }
    spots.extend(call.asked());
    found.add_weighing(
        call.at,
        Rule::EmptyResult,
        share(weight, part),
        because,
        spots,
    );
}

/// An answer that is only a part.
fn partial(view: &View<'_>, call: &Call<'_>, index: usize, found: &mut Evidence) {
    let weight = Rule::TruncatedResult.weight();
    let goes_on = view.goes_on(index);
    let told = call.answer.part.as_ref();
    let limit = || limit(call).filter(|_| goes_on);
    let (spot, part, because) = match (told, goes_on) {
        (Some(part), true) => (
            call.answer_at(Some(part)),
            100,
            "its answer is only a part, and the run went on without the rest",
        ),
        (Some(part), false) => (call.answer_at(Some(part)), 50, "its answer is only a part"),
        (None, _) => match limit() {
            Some(spot) => (
                Some(spot),
                40,
                "its answer has exactly as many items as were asked for: there may be more",
            ),
            None => return,
        },
    };
    if !is_continued(view, call, index) {
        let spots = spot.into_iter().chain(call.asked());
        found.add_weighing(
            call.at,
            Rule::TruncatedResult,
            share(weight, part),
            because,
            spots,
        );
    }
}

/// The argument that says how much is wanted, where the answer has just that.
fn limit(call: &Call<'_>) -> Option<Spot> {
    let mut found = None;
    walk::leaves(call.arguments, &mut |way, leaf, range| {
        let name = way.name();
        let name = name.as_deref().unwrap_or_default();
        if leaf == Leaf::Number && signs::LIMITS.contains(&name) {
            let number = str::from_utf8(&call.arguments[range]).ok();
            let number = number.and_then(|number| number.parse::<usize>().ok());
            if number.is_some_and(|n| n > 0 && n == call.answer.items) {
                found = call.argument(&way.pointer());
            }
        }
        found.is_none()
    });
    found
}

/// Whether a later call asks for the rest: the same tool, given the cursor, or a place to go on
/// from that this call was not given.
fn is_continued(view: &View<'_>, call: &Call<'_>, index: usize) -> bool {
    const PLACES: [&[u8]; 10] = [
        b"cursor",
        b"page",
        b"offset",
        b"start",
        b"start_index",
        b"startIndex",
        b"from",
        b"after",
        b"skip",
        b"page_token",
    ];
    let later = view.calls[index + 1..].iter();
    let mut later = later.filter(|c| c.kind == call.kind).take(AHEAD);
    let cursor = call.answer.cursor.as_deref();
    later.any(|later| {
        later.same != call.same && {
            let mut leads_on = false;
            walk::leaves(later.arguments, &mut |way, leaf, range| {
                let raw = &later.arguments[range];
                let given = cursor.is_some() && cursor == Some(&*walk::said(raw));
                let name = way.name();
                let is_place = PLACES.contains(&name.as_deref().unwrap_or_default());
                leads_on |= leaf == Leaf::String && given || is_place && cursor.is_none();
                !leads_on
            });
            leads_on
        }
    })
}

/// Tools that gave something somewhere.
fn kinds_with_something<'a>(
    input: &Input<'a>,
    view: &View<'a>,
) -> HashSet<(&'a str, Option<&'a str>)> {
    let own = view.calls.iter();
    let own = own.filter(|call| call.answer.holds == Holds::Something);
    let mut kinds: HashSet<_> = own
        .map(|call| (call.server, call.step.target.as_deref()))
        .collect();
    for sibling in input.passing {
        for step in &sibling.steps {
            let server = super::super::view::server(sibling, step);
            let key = (server, step.target.as_deref());
            if step.outcome == Outcome::Ok
                && step.tool().is_some()
                && !kinds.contains(&key)
                && Answer::of(step).holds == Holds::Something
            {
                kinds.insert(key);
            }
        }
    }
    kinds
}

/// Calls that were given an empty list, object or text, and where.
fn uses_of_nothing(view: &View<'_>) -> Vec<(usize, Spot)> {
    let mut uses = Vec::new();
    for (index, call) in view.calls.iter().enumerate() {
        if !call.step.is_clients() || call.tool.is_none() {
            continue;
        }
        let mut at = None;
        walk::leaves(call.arguments, &mut |way, leaf, range| {
            let raw = &call.arguments[range];
            let empty = matches!(leaf, Leaf::Array) || raw == b"\"\"" || raw == b"null";
            let empty = empty || leaf == Leaf::Object && way.depth() > 0;
            if empty {
                at = call.argument(&way.pointer());
            }
            at.is_none()
        });
        uses.extend(at.map(|at| (index, at)));
    }
    uses
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::{ranked, ranked_with};
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    #[test]
    fn an_empty_answer_that_is_used_is_suspect() {
        let story = Tale::new()
            .call("search", r#"{"state":"clsed"}"#)
            .text("[]")
            .call("report", r#"{"issues":[],"title":"All done"}"#)
            .text("written")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [1]);
        assert_eq!(ranked.rules(1), [Rule::EmptyResult]);
        assert_eq!(ranked.quote(1), "\"[]\"");
    }

    #[test]
    fn an_empty_answer_that_was_asked_again_weighs_less() {
        let story = |second: &str| {
            Tale::new()
                .call("search", r#"{"state":"clsed"}"#)
                .text("No matches found")
                .call("search", r#"{"state":"closed"}"#)
                .text(second)
                .call("report", r#"{"title":"Done"}"#)
                .text("written")
                .told()
        };
        let good = ranked(&story(r#"[{"id":7}]"#));
        let bad = ranked(&story("No matches found"));
        assert!(good.score(1) < bad.score(1));
        assert_eq!(good.steps()[0], 1);
    }

    #[test]
    fn no_content_counts_only_where_there_was_some_elsewhere() {
        let run = |text: &str| Tale::new().call("sync", "{}").text(text);
        let quiet = run("").call("write", r#"{"x":"yz"}"#).text("ok").told();
        assert_eq!(ranked(&quiet).steps(), [] as [usize; 0]);
        let passing = run("three commits").told();
        let ranked = ranked_with(&quiet, &[&passing], &[]);
        assert!(ranked.rules(1).contains(&Rule::EmptyResult));
    }

    #[test]
    fn a_tool_that_only_reads_should_have_something_to_say() {
        let story = Tale::new()
            .call("search_notes", r#"{"for":"x"}"#)
            .text("")
            .told();
        assert_eq!(ranked(&story).rules(1), [Rule::EmptyResult]);
    }

    #[test]
    fn a_part_without_its_rest_is_suspect() {
        let page = r#"{"items":["ant","bee"],"nextCursor":"c2"}"#;
        let begun = || Tale::new().call("list", r#"{"of":"animals"}"#).text(page);
        let write = |tale: Tale| tale.call("write", r#"{"count":2}"#).text("ok").told();
        let ranked_part = ranked(&write(begun()));
        assert_eq!(ranked_part.steps()[0], 1);
        assert_eq!(ranked_part.rules(1), [Rule::TruncatedResult]);
        let rest = begun()
            .call("list", r#"{"of":"animals","cursor":"c2"}"#)
            .text(r#"{"items":["cat"]}"#);
        assert_eq!(ranked(&write(rest)).rules(1), []);
    }

    #[test]
    fn as_many_as_were_asked_for_may_not_be_all() {
        let story = |limit: u32| {
            Tale::new()
                .call("list", &format!("{{\"limit\":{limit}}}"))
                .text(r#"["ant","bee"]"#)
                .call("write", r#"{"count":2}"#)
                .text("ok")
                .told()
        };
        assert_eq!(ranked(&story(2)).rules(1), [Rule::TruncatedResult]);
        assert_eq!(ranked(&story(3)).rules(1), []);
    }
}
