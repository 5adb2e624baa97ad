//! Hard errors: what the protocol says failed.

use super::share;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::{Call, View};
use crate::suspects::weights::Rule;
use agent_trace_model::Outcome;
use agent_trace_model::step::StepKind;
use agent_trace_wire::message::{member_at, string};
use std::collections::HashMap;

/// Errors of one kind of call that were not made good, one after another.
#[derive(Debug, Default)]
struct Chain {
    first: Option<usize>,
    same: HashMap<u64, usize>,
    count: usize,
}

pub(super) fn find(view: &View<'_>, found: &mut Evidence) {
    let again = view.next_same(|call| call.is_ok());
    let mut chains: HashMap<u64, Chain> = HashMap::new();
    for (index, call) in view.calls.iter().enumerate() {
        let step = call.step;
        if call.failed() && call.recovered {
            recovered(call, again[index].is_some(), found);
        } else if call.failed() {
            error(
                view,
                call,
                index,
                chains.entry(call.kind).or_default(),
                found,
            );
        } else if step.outcome == Outcome::Cancelled {
            let because = "the client cancelled it before it was answered";
            found.add(call.at, Rule::Cancelled, because, call.asked());
        }
        declined(call, found);
    }
    let retried = chains.into_values().filter(|chain| chain.count > 1);
    let mut retried: Vec<(usize, usize)> = retried
        .filter_map(|chain| Some((chain.first?, chain.count - 1)))
        .collect();
    retried.sort_unstable();
    for (first, again) in retried {
        let because = match again {
            1 => "it was tried again and failed again".to_owned(),
            _ => format!("it was tried again {again} times and failed each time"),
        };
        found.add(view.calls[first].at, Rule::BeforeRetries, because, None);
    }
    crashes(view, found);
}

/// An error after which a call of the same kind went well: the same call, or another one, which
/// may not have got what this one was to get.
fn recovered(call: &Call<'_>, same: bool, found: &mut Evidence) {
    let (part, because) = match same {
        true => (50, "it ended in an error; the same call went well later"),
        false => (
            100,
            "it ended in an error; a later call with other arguments went well",
        ),
    };
    let weight = share(Rule::RecoveredError.weight(), part);
    found.add_weighing(call.at, Rule::RecoveredError, weight, because, call.said());
}

/// An error that was not made good.
fn error(view: &View<'_>, call: &Call<'_>, index: usize, chain: &mut Chain, found: &mut Evidence) {
    let weight = Rule::Error.weight();
    let first = *chain.first.get_or_insert(index);
    let same = *chain.same.entry(call.same).or_insert(index);
    chain.count += 1;
    let how = how(call.step.outcome);
    let number = |index: usize| view.calls[index].step.number;
    let (weight, because) = if same != index {
        let because = format!("{how}; so had the same call before, step {}", number(same));
        (share(weight, 33), because)
    } else if first != index {
        let because = format!("{how}; so had another call of this, step {}", number(first));
        (share(weight, 66), because)
    } else {
        (weight, format!("{how}, and that was not made good"))
    };
    let quotes = call.said().or_else(|| call.asked());
    found.add_weighing(call.at, Rule::Error, weight, because, quotes);
}

fn how(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Error => "it was answered with an error",
        Outcome::ToolError => "the tool reported a failure",
        Outcome::Denied => "it was denied",
        Outcome::Timeout => "it took too long and was given up",
        Outcome::Crashed => "its server crashed before it answered",
        Outcome::Unanswered => "it was never answered",
        _ => "it failed",
    }
}

/// The user or the client did not accept what a server asked.
fn declined(call: &Call<'_>, found: &mut Evidence) {
    let step = call.step;
    if step.is_clients() || step.kind != StepKind::Request {
        return;
    }
    let action = step.response.as_ref();
    let action = action.and_then(|m| member_at(&m.text, &["result", "action"]));
    let action = action.and_then(string);
    if matches!(action.as_deref(), Some("decline" | "cancel")) {
        let because = "what the server asked was not accepted";
        found.add(call.at, Rule::Declined, because, call.said());
    }
}

/// A server that crashed with nothing open: the last call before that.
fn crashes(view: &View<'_>, found: &mut Evidence) {
    for session in &view.crashed {
        let last = view.calls.iter().rev().find(|c| c.step.session == *session);
        let Some(call) = last.filter(|call| call.step.outcome != Outcome::Crashed) else {
            continue;
        };
        let because = "it was the last call before its server crashed";
        found.add(call.at, Rule::BeforeCrash, because, call.asked());
    }
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;
    use agent_trace_model::Outcome;
    use agent_trace_model::story::Standing;

    #[test]
    fn the_first_of_a_chain_of_retries_comes_first() {
        let mut tale = Tale::new().call("list", "{}").text("1, 2 and 3");
        for _ in 0..4 {
            tale = tale.call("read", r#"{"id":9}"#).tool_error("busy");
        }
        let ranked = ranked(&tale.told());
        assert_eq!(ranked.steps(), [2, 3, 4, 5]);
        assert_eq!(
            ranked.rules(2),
            [Rule::Error, Rule::FirstFailure, Rule::BeforeRetries]
        );
        assert_eq!(ranked.quote(2), "\"busy\"");
    }

    #[test]
    fn what_was_made_good_weighs_little() {
        let story = Tale::new()
            .call("read", r#"{"id":1}"#)
            .tool_error("busy")
            .call("read", r#"{"id":1}"#)
            .text("water")
            .call("write", r#"{"to":"disk"}"#)
            .error(-32000, "disk full")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps()[..2], [3, 1]);
        assert_eq!(ranked.rules(1), [Rule::RecoveredError]);
        assert!(ranked.score(1) < 1.0);
    }

    #[test]
    fn what_only_other_arguments_got_was_not_quite_made_good() {
        let story = Tale::new()
            .call("read", r#"{"id":71}"#)
            .tool_error("locked")
            .call("read", r#"{"id":72}"#)
            .text("water")
            .call("write", r#"{"text":"only water"}"#)
            .text("written")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps()[0], 1);
        assert!(ranked.score(1) > 1.0);
    }

    #[test]
    fn crashes_are_blamed_on_the_call_that_was_open_or_came_last() {
        let crashed = |tale: Tale| tale.session(|s| s.standing = Standing::Crashed).told();
        let calls = || {
            Tale::new()
                .call("a", r#"{"n":12}"#)
                .text("x y")
                .call("b", "{}")
        };
        let ranked_open = ranked(&crashed(calls().outcome(Outcome::Crashed)));
        assert_eq!(ranked_open.steps()[0], 2);
        let ranked_last = ranked(&crashed(calls().text("fine")));
        assert_eq!(ranked_last.rules(2), [Rule::BeforeCrash]);
    }

    #[test]
    fn what_was_declined_or_cancelled_is_told() {
        let story = Tale::new()
            .asked_back("elicitation/create", r#"{"message":"Sure?"}"#)
            .result(r#"{"action":"decline"}"#)
            .call("a", "{}")
            .outcome(Outcome::Cancelled)
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.rules(1), [Rule::Declined]);
        assert_eq!(ranked.rules(2), [Rule::Cancelled]);
    }
}
