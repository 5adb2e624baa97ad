//! Tests of the whole.

use super::*;
use crate::testing::Tale;

/// The differences in a few words.
fn told(a: &Story, b: &Story) -> Vec<String> {
    let diff = of(a, b);
    let entries = diff.entries.iter();
    let told = entries.map(|entry| match entry {
        Entry::OnlyA(at) => format!("-{}", at + 1),
        Entry::OnlyB(at) => format!("+{}", at + 1),
        Entry::Both(both) => {
            let places = |changes: &Changes| -> Vec<String> {
                changes
                    .told
                    .iter()
                    .map(|change| change.at.to_string())
                    .collect()
            };
            let mut text = format!("{}:{}", both.a + 1, both.b + 1);
            for (is, word) in [
                (both.moved, " moved"),
                (both.duration.is_some(), " duration"),
            ] {
                text.push_str(if is { word } else { "" });
            }
            for (word, changes) in [("arguments", &both.arguments), ("answer", &both.answer)] {
                if !changes.is_empty() {
                    text.push_str(&format!(" {word} {}", places(changes).join(" ")));
                }
            }
            if let Some((a, b)) = both.outcome {
                text.push_str(&format!(" {a} {b}"));
            }
            text
        }
    });
    told.collect()
}

fn run() -> Tale {
    Tale::new()
        .request("initialize", r#"{"_meta":{"progressToken":1}}"#)
        .result(r#"{"serverInfo":{"name":"notes"}}"#)
        .call("list", r#"{"state":"open","page":2}"#)
        .text(r#"[{"n":1},{"n":2}]"#)
        .call("get", r#"{"n":1}"#)
        .text("one")
}

#[test]
fn how_sessions_ended_is_compared_where_it_is_known() {
    use agent_trace_model::Ending::{Idle, RelayStopped, ServerExited};
    let ends = |change: &dyn Fn(&mut Session)| {
        let tale = run().session(|session| change(session));
        of(&run().told(), &tale.told())
    };
    let crashed = ends(&|session| {
        session.standing = Standing::Crashed;
        let end = session.end.as_mut().unwrap();
        (end.ending, end.exit_code) = (ServerExited, Some(3));
    });
    let (a, b) = (Some(0), Some(0));
    assert_eq!(crashed.endings, [Ended { a, b }]);
    assert!(!crashed.is_same() && crashed.entries.is_empty());
    let status = ends(&|session| session.end.as_mut().unwrap().exit_code = Some(1));
    assert!(!status.is_same());
    let unknown = ends(&|session| {
        session.standing = Standing::CutOff;
        session.end = None;
    });
    assert!(unknown.is_same());
    let quiet = |ending| run().session(|s| s.end.as_mut().unwrap().ending = ending);
    assert!(of(&quiet(Idle).told(), &quiet(RelayStopped).told()).is_same());

    // One that is in one run only counts where it crashed.
    let more = |standing| {
        let tale = run().on("other").session(|s| s.standing = standing);
        of(&run().told(), &tale.told()).endings
    };
    assert_eq!(more(Standing::Ended), []);
    let (a, b) = (None, Some(1));
    assert_eq!(more(Standing::Crashed), [Ended { a, b }]);
}

#[test]
fn a_run_is_the_same_as_itself_whenever_it_ran() {
    let later = run().step(|step| step.wall += 1_000_000_000).told();
    let diff = of(&run().told(), &later);
    assert_eq!((diff.is_same(), diff.same), (true, 3));
    assert_eq!(diff.entries, []);
}

#[test]
fn steps_that_only_one_run_has_are_told() {
    let a = run().call("drop", "{}").text("gone").told();
    let b = run()
        .tells("notifications/progress", "{}")
        .call("add", "{}")
        .text("new")
        .told();
    assert_eq!(told(&a, &b), ["-4", "+5"]);
    assert_eq!(told(&run().told(), &b), ["+5"]);
    assert!(!of(&a, &b).is_same());
}

#[test]
fn arguments_answers_and_outcomes_are_compared() {
    let a = run().call("get", r#"{"n":2}"#).text("two").told();
    let b = run().call("get", r#"{"n":3}"#).tool_error("no").told();
    assert_eq!(
        told(&a, &b),
        ["4:4 arguments /n answer /content/0/text /isError ok tool_error"]
    );
    assert!(!of(&a, &b).is_same());
}

#[test]
fn the_same_steps_in_another_order_have_moved() {
    let two = |first: &str, second: &str| {
        run()
            .call(first, "{}")
            .text("x")
            .call(second, "{}")
            .text("x")
            .told()
    };
    let told = told(&two("a", "b"), &two("b", "a"));
    assert!(told == ["4:5 moved"] || told == ["5:4 moved"], "{told:?}");
}

#[test]
fn a_duration_alone_makes_no_difference() {
    let a = run().call("slow", "{}").text("x").takes(100).told();
    let b = run().call("slow", "{}").text("x").takes(500).told();
    assert_eq!(told(&a, &b), ["4:4 duration"]);
    let diff = of(&a, &b);
    assert!(diff.is_same());
    let c = run().call("slow", "{}").text("x").takes(150).told();
    assert_eq!(of(&a, &c).entries, []);
}

#[test]
fn servers_and_digits_matter() {
    let a = Tale::new().call("t", r#"{"n":1}"#).text("x").told();
    let b = Tale::new()
        .on("other")
        .call("t", r#"{"n":1}"#)
        .text("x")
        .told();
    assert_eq!(told(&a, &b), ["-1", "+1"]);
    let c = Tale::new().call("t", r#"{"n":1.0}"#).text("x").told();
    assert_eq!(told(&a, &c), ["1:1 arguments /n"]);
}
