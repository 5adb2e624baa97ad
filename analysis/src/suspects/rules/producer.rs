//! Whose values a failing step was given, by the value flow of [`why`](crate::why).
//!
//! Where nothing failed in the protocol's sense, the last call stands for what came of the run.
//! A value that an error names is worth more than others. A value from nowhere, after an answer
//! that held nothing or not all, is likely to be made up for what was lacking.

use super::share;
use crate::suspects::Input;
use crate::suspects::evidence::Evidence;
use crate::suspects::left::Lefts;
use crate::suspects::quotes::Spot;
use crate::suspects::result::Side;
use crate::suspects::view::{Call, View};
use crate::suspects::walk;
use crate::suspects::weights::Rule;
use crate::why::{self, Flow, Likeness, Origin, Part, Source, Why};
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;
use agent_trace_wire::message::member;
use std::borrow::Cow;

/// Failing steps whose values are followed.
const FOLLOWED: usize = 3;

/// Bytes of messages before each that values are looked for in; those nearest to it first.
const BYTES: usize = 16 << 20;

/// Calls before a failing step among which one is looked for whose answer lacked something.
const LACKING: usize = 5;

/// Bytes of an error in which values are looked for.
const ERROR: usize = 4 << 10;

/// Producers of one step, the nearest first.
const PRODUCERS: usize = 5;

pub(super) fn find(input: &Input<'_>, view: &View<'_>, found: &mut Evidence, left: &mut Lefts) {
    let failing = view.calls.iter().filter(|call| {
        let failed = found.weight(call.at, Rule::Error);
        failed >= share(Rule::Error.weight(), 66)
    });
    let mut followed: Vec<&Call<'_>> = failing.collect();
    if followed.len() > FOLLOWED {
        left.add(
            "failing_steps_not_followed",
            followed.len() - FOLLOWED,
            "failing steps whose values were not followed back: the first ones were",
        );
        followed.truncate(FOLLOWED);
    }
    let failed = !followed.is_empty();
    if !failed {
        let last = view.calls.iter().rev().find(|call| call.step.is_clients());
        followed.extend(last);
    }
    for call in followed {
        let (story, omitted) = near(input.story, call.at);
        left.add(
            "messages_not_followed",
            omitted,
            "messages in which no values were looked for, to keep to a bound",
        );
        if let Some(why) = why::of(&story, call.step.number) {
            producers(view, call, &why, failed, found);
            if failed {
                lacked(view, call, &why, found);
            }
        }
    }
}

/// The run up to a step, without the messages for which there is no room.
fn near(story: &Story, at: usize) -> (Cow<'_, Story>, usize) {
    let before = &story.steps[..=at];
    let length = |step: &Step| -> usize {
        let messages = [&step.request, &step.response];
        messages.into_iter().flatten().map(|m| m.text.len()).sum()
    };
    if before.iter().map(length).sum::<usize>() <= BYTES {
        return (Cow::Borrowed(story), 0);
    }
    let (mut room, mut omitted) = (BYTES, 0);
    let mut steps = Vec::with_capacity(before.len());
    for step in before.iter().rev() {
        let fits = room.checked_sub(length(step));
        let (request, response) = match fits {
            Some(left) => {
                room = left;
                (step.request.clone(), step.response.clone())
            }
            None => {
                omitted += 1;
                (None, None)
            }
        };
        let copy = Step {
            request,
            response,
            method: step.method.clone(),
            target: step.target.clone(),
            id: None,
            ..*step
        };
        steps.push(copy);
    }
    steps.reverse();
    let near = Story {
        steps,
        sessions: story.sessions.clone(),
        aliases: Vec::new(),
        workspace: String::new(),
        project: None,
        task: None,
        turns: Vec::new(),
        id: story.id,
    };
    (Cow::Owned(near), omitted)
}

/// The steps that gave a step its values.
fn producers(view: &View<'_>, call: &Call<'_>, why: &Why, failed: bool, found: &mut Evidence) {
    let full = Rule::Producer.weight();
    let error = error_of(call);
    let mut told: Vec<usize> = Vec::new();
    for (depth, link) in why.chain.iter().enumerate() {
        let mut flows: Vec<(&Flow, &Origin)> = link.flows.iter().filter_map(given).collect();
        flows.sort_by_key(|(flow, origin)| {
            let named = names(&error, &flow.value);
            (!named, std::cmp::Reverse(origin.step))
        });
        for (flow, origin) in flows {
            let at = view.story.position(origin.step);
            let Some((at, producer)) = at.and_then(|at| Some((at, view.call(at)?))) else {
                continue;
            };
            let named = depth == 0 && names(&error, &flow.value);
            let part = match (failed, depth) {
                (false, _) => 30,
                (true, 0) if named => 100,
                (true, 0) => 60,
                (true, _) => 25,
            };
            let part = if origin.likeness == Likeness::Word {
                part * 3 / 5
            } else {
                part
            };
            if !told.contains(&at) {
                if told.len() == PRODUCERS {
                    continue;
                }
                told.push(at);
            }
            let number = call.step.number;
            let because = match (failed, depth, named) {
                (true, 0, true) => {
                    format!("it gave a value to step {number}, which failed and names it")
                }
                (true, 0, false) => format!("it gave a value to step {number}, which failed"),
                (true, ..) => {
                    format!("it gave a value to a step that led to step {number}, which failed")
                }
                (false, ..) => format!("it gave a value that led to the last call, step {number}"),
            };
            let spot = spot(producer, origin);
            found.add_weighing(at, Rule::Producer, share(full, part), because, spot);
        }
    }
}

/// A value that a result gave, and by which step.
fn given(flow: &Flow) -> Option<(&Flow, &Origin)> {
    match &flow.source {
        Source::Before(origin) if matches!(origin.origin, Part::Result | Part::Error) => {
            Some((flow, origin))
        }
        _ => None,
    }
}

/// Values from nowhere, and the answer before that held nothing, or not all.
fn lacked(view: &View<'_>, call: &Call<'_>, why: &Why, found: &mut Evidence) {
    let Some(own) = why.chain.first() else {
        return;
    };
    let mut nowhere = own
        .flows
        .iter()
        .filter(|flow| flow.source == Source::Nowhere);
    let Some(first) = nowhere.next() else {
        return;
    };
    let error = error_of(call);
    let named = std::iter::once(first)
        .chain(nowhere)
        .find(|flow| names(&error, &flow.value));
    if let Some(flow) = named {
        let because = "its error names a value that appeared nowhere before";
        let spot = call.argument(&flow.at.pointer);
        found.add(call.at, Rule::ValueFromNowhere, because, spot);
    }
    // What does not fit the tool's definition is the call's own fault.
    let own_fault = found.weight(call.at, Rule::InvalidArguments) > 0;
    let Some(index) = view.index(call.at).filter(|_| !own_fault) else {
        return;
    };
    let before = view.calls[..index].iter().rev();
    let mut before = before.filter(|c| c.step.is_clients()).take(LACKING);
    let lacking = before.find(|earlier| {
        let full = |rule: Rule| found.weight(earlier.at, rule) >= share(rule.weight(), 50);
        full(Rule::EmptyResult) || full(Rule::TruncatedResult) || full(Rule::SwallowedError)
    });
    if let Some(earlier) = lacking {
        let because = format!(
            "its answer lacked something, and step {}, which failed, was given a value from nowhere",
            call.step.number
        );
        let spot = call.argument(&first.at.pointer);
        found.add(earlier.at, Rule::LackedBeforeFailure, because, spot);
    }
}

/// What a failing call was answered.
fn error_of(call: &Call<'_>) -> String {
    let response = call.step.response.as_ref().filter(|_| call.failed());
    let text = response
        .map(|message| &message.text[..])
        .unwrap_or_default();
    String::from_utf8_lossy(&text[..text.len().min(ERROR)]).into_owned()
}

/// Whether an error names a value. Short ones stand everywhere.
fn names(error: &str, value: &str) -> bool {
    let value = value.trim_end_matches('…');
    value.chars().count() >= 3 && error.contains(value)
}

/// Where a producer gave a value.
fn spot(producer: &Call<'_>, origin: &Origin) -> Option<Spot> {
    let text = super::super::quotes::text(producer.step, Side::Response)?;
    let name = match origin.origin {
        Part::Error => "error",
        _ => "result",
    };
    let part = member(text, name)?;
    let mut spot = Spot::of(producer.at, producer.step, Side::Response, part)?;
    let range = walk::locate(part, &origin.origin_at.pointer)?;
    spot.range = spot.range.start + range.start..spot.range.start + range.end;
    Some(spot)
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    #[test]
    fn the_step_that_gave_the_value_is_told() {
        let story = Tale::new()
            .call("list", "{}")
            .text("three folders")
            .call("find", r#"{"for":"plants"}"#)
            .text("Found note #8213")
            .call("read", r#"{"note":8213}"#)
            .tool_error("There is no note 8213")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [3, 2]);
        assert_eq!(ranked.rules(2), [Rule::Producer]);
        assert_eq!(ranked.quote(2), "\"Found note #8213\"");
    }

    #[test]
    fn a_producer_with_faults_of_its_own_comes_first() {
        let page = r#"{"items":["note-8213"],"nextCursor":"c2"}"#;
        let story = Tale::new()
            .call("list", r#"{"of":"notes"}"#)
            .text(page)
            .call("read", r#"{"note":"note-8213"}"#)
            .tool_error("note-8213 is not the last one")
            .told();
        assert_eq!(ranked(&story).steps(), [1, 2]);
    }

    #[test]
    fn a_value_from_nowhere_after_nothing_blames_the_empty_answer() {
        let story = Tale::new()
            .call("search", r#"{"state":"clsed"}"#)
            .text(r#"{"issues":[]}"#)
            .call("read", r#"{"issue":"issue-17"}"#)
            .tool_error("there is no issue-17")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [1, 2]);
        assert!(ranked.rules(1).contains(&Rule::LackedBeforeFailure));
        assert!(ranked.rules(2).contains(&Rule::ValueFromNowhere));
    }
}
