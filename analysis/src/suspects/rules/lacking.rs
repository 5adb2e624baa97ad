//! Empty answers, and answers that are only a part, that the run went on with.

use super::share;
use crate::parts::answer;
use crate::scalars::{digest, hash};
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
use std::collections::{HashMap, HashSet};

/// Calls after a partial answer among which the one for the rest is looked for.
const AHEAD: usize = 50;

/// Empty values of one call that are looked at.
const EMPTY: usize = 20;

/// The shortest text that leads on under whatever name it is given; a shorter one may be anything.
const TELLING: usize = 4;

pub(super) fn find(input: &Input<'_>, view: &View<'_>, found: &mut Evidence) {
    let full = |call: &Call<'_>| call.is_ok() && call.answer.holds == Holds::Something;
    let later = view.next_of_kind(full);
    let with_something = kinds_with_something(input, view);
    let nothing_used = uses_of_nothing(view);
    let rests: Vec<u64> = view.calls.iter().map(rest).collect();
    for (index, call) in view.calls.iter().enumerate() {
        if !call.is_ok() || !call.step.is_clients() {
            continue;
        }
        if call.answer.is_nothing() {
            let has = with_something.contains(&(call.server, call.step.target.as_deref()));
            let used = nothing_used.get(nothing_used.partition_point(|u| u.0 <= index));
            empty(view, call, index, (has, used, later[index]), found);
        }
        partial(view, call, index, &rests, found);
    }
}

type Use = (usize, Spot);

/// An empty answer. `has`: whether the same tool gave something elsewhere; `used`: where a
/// later call was given an empty value; `later`: a later call of the kind that got something.
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
                format!("its answer holds nothing, and step {number} was given an empty value"),
            )
        }
        (None, true) => (
            80,
            "its answer holds nothing, and the run went on".to_owned(),
        ),
        (None, false) => (40, "its answer holds nothing".to_owned()),
    };
    if has {
        part = (part + 20).min(100);
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
fn partial(view: &View<'_>, call: &Call<'_>, index: usize, rests: &[u64], found: &mut Evidence) {
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
    if !is_continued(view, call, index, rests) {
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

/// Whether a later call asks for the rest: the same tool, given the cursor; or the same call but
/// for a place to go on from that this call had not got.
fn is_continued(view: &View<'_>, call: &Call<'_>, index: usize, rests: &[u64]) -> bool {
    let later = view.calls.iter().enumerate().skip(index + 1);
    let mut later = later.filter(|(_, c)| c.kind == call.kind).take(AHEAD);
    let cursor = call.answer.cursor.as_deref();
    later.any(|(at, later)| {
        later.same != call.same
            && (cursor.is_some_and(|cursor| is_given(later, cursor))
                || rests[at] == rests[index] && goes_further(call, later))
    })
}

/// Whether a call is given this cursor. A number, or a short text, may be anything, unless it
/// stands under the name of a place.
fn is_given(call: &Call<'_>, cursor: &[u8]) -> bool {
    let mut given = false;
    walk::leaves(call.arguments, &mut |way, leaf, range| {
        let raw = &call.arguments[range];
        let name = way.name();
        let is_place = || is_place(name.as_deref().unwrap_or_default());
        given = match leaf {
            Leaf::String => *walk::said(raw) == *cursor && (cursor.len() >= TELLING || is_place()),
            Leaf::Number => raw == cursor && is_place(),
            _ => false,
        };
        !given
    });
    given
}

/// Whether the later call goes on from a place that the call itself does not have, and that is
/// not the beginning.
fn goes_further(call: &Call<'_>, later: &Call<'_>) -> bool {
    let mut further = false;
    walk::leaves(later.arguments, &mut |way, leaf, range| {
        let name = way.name();
        if is_place(name.as_deref().unwrap_or_default()) {
            let raw = |call: &Call<'_>, range: std::ops::Range<usize>| {
                String::from_utf8_lossy(&call.arguments[range]).into_owned()
            };
            let own = walk::locate(call.arguments, &way.pointer()).map(|range| raw(call, range));
            let other = raw(later, range);
            let number = |text: &str| text.parse::<f64>().ok();
            further |= match leaf {
                Leaf::Number => number(&other) > own.as_deref().map_or(Some(0.0), number),
                Leaf::String => other.len() > 2 && own.is_none_or(|own| own != other),
                _ => false,
            };
        }
        !further
    });
    further
}

fn is_place(name: &[u8]) -> bool {
    signs::PLACES.iter().any(|place| place.as_bytes() == name)
}

/// A number for what a call is given, but for places and limits.
fn rest(call: &Call<'_>) -> u64 {
    let limits = signs::LIMITS
        .iter()
        .filter_map(|name| str::from_utf8(name).ok());
    let but: Vec<&str> = signs::PLACES
        .into_iter()
        .chain(limits)
        .chain(["_meta"])
        .collect();
    digest(call.arguments, &but)
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

/// Calls that were given an empty list, object or text, and where. What stands empty in more than
/// one call of a kind is how the client calls it (`"filter":""`), and no use of an empty answer;
/// nor is what is null, or the place to begin from.
fn uses_of_nothing(view: &View<'_>) -> Vec<(usize, Spot)> {
    let mut uses: Vec<(usize, u64, String)> = Vec::new();
    let mut times: HashMap<u64, usize> = HashMap::new();
    for (index, call) in view.calls.iter().enumerate() {
        if !call.step.is_clients() || call.tool.is_none() {
            continue;
        }
        let mut left = EMPTY;
        walk::leaves(call.arguments, &mut |way, leaf, range| {
            let raw = &call.arguments[range];
            let empty = matches!(leaf, Leaf::Array) || raw == b"\"\"";
            let empty = empty || leaf == Leaf::Object && way.depth() > 0;
            if empty && !is_place(way.name().as_deref().unwrap_or_default()) {
                let pointer = way.pointer();
                let place = hash((call.kind, &pointer));
                *times.entry(place).or_default() += 1;
                uses.push((index, place, pointer));
                left -= 1;
            }
            left > 0
        });
    }
    uses.retain(|(_, place, _)| times.get(place) == Some(&1));
    uses.dedup_by_key(|(index, ..)| *index);
    let spot = |(index, _, pointer): (usize, u64, String)| {
        let spot = view.calls[index].argument(&pointer)?;
        Some((index, spot))
    };
    uses.into_iter().filter_map(spot).collect()
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

    #[test]
    fn an_empty_answer_weighs_no_more_than_the_table_says() {
        let story = Tale::new()
            .call("search", r#"{"state":"open"}"#)
            .text(r#"[{"id":7}]"#)
            .call("search", r#"{"state":"clsed"}"#)
            .text("[]")
            .call("report", r#"{"issues":[]}"#)
            .text("written")
            .told();
        assert_eq!(ranked(&story).score(2), 2.5);
    }

    #[test]
    fn what_is_always_empty_is_no_use_of_nothing() {
        let because = |given: &str| {
            let story = Tale::new()
                .call("search", r#"{"state":"clsed"}"#)
                .text("[]")
                .call("list", given)
                .text("ant")
                .call("list", &given.replace("ant", "bee"))
                .text("bee")
                .told();
            ranked(&story).because(1, Rule::EmptyResult).to_owned()
        };
        for given in [
            r#"{"of":"ant","cursor":null}"#,
            r#"{"of":"ant","cursor":""}"#,
            r#"{"of":"ant","filter":{}}"#,
        ] {
            assert_eq!(
                because(given),
                "its answer holds nothing, and the run went on"
            );
        }
        assert!(because(r#"{"ant":[]}"#).ends_with("step 2 was given an empty value"));
    }

    #[test]
    fn the_rest_is_asked_for_by_the_cursor_or_a_later_place() {
        let rules = |first: &str, page: &str, second: &str| {
            let story = Tale::new()
                .call("list", first)
                .text(page)
                .call("list", second)
                .text("bee, cat")
                .told();
            ranked(&story).rules(1)
        };
        let more = r#"{"items":["ant"],"has_more":true}"#;
        let by_number = r#"{"items":["ant"],"next_page":2}"#;
        for (first, page, second) in [
            ("{}", by_number, r#"{"page":2}"#),
            ("{}", by_number, r#"{"page":"2"}"#),
            (r#"{"of":"x","page":1}"#, more, r#"{"of":"x","page":2}"#),
            (r#"{"of":"x"}"#, more, r#"{"of":"x","offset":50}"#),
            (r#"{"from":"a"}"#, more, r#"{"from":"k","limit":9}"#),
        ] {
            assert_eq!(rules(first, page, second), [], "{second}");
        }
        for (first, page, second) in [
            ("{}", by_number, r#"{"limit":2}"#),
            (r#"{"of":"x","page":1}"#, more, r#"{"of":"y","page":1}"#),
            (r#"{"of":"x","page":3}"#, more, r#"{"of":"x","page":1}"#),
            (
                r#"{"from":"ada","to":"b"}"#,
                more,
                r#"{"from":"ada","to":"c"}"#,
            ),
        ] {
            assert_eq!(
                rules(first, page, second),
                [Rule::TruncatedResult],
                "{second}"
            );
        }
    }
}
