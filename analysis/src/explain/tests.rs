//! Tests of the whole.

use super::*;
use crate::testing::Tale;
use agent_trace_model::Outcome;
use agent_trace_model::story::{Gap, Line, Standing};
use std::fmt::Write;

/// The explanation as text.
fn told(story: &Story) -> String {
    let explanation = of(story);
    let mut text = String::new();
    for point in &explanation.points {
        let _ = writeln!(text, "{:?}: {} {:?}", point.topic, point.text, point.steps);
        for quote in &point.quotes {
            let _ = writeln!(text, "  {} {:?}", quote.of, quote.text);
        }
    }
    for look in &explanation.look {
        let _ = writeln!(text, "{}: {}", look.command, look.because);
    }
    text
}

#[test]
fn a_run_that_failed_is_told_in_plain_words() {
    let story = Tale::new()
        .request("initialize", "{}")
        .result("{}")
        .call("read_note", r#"{"number":7}"#)
        .tool_error("There is no note 7")
        .call("read_note", r#"{"number":1}"#)
        .text("Water the plants")
        .call("drop", r#"{"all":true}"#)
        .error(-32602, "not allowed")
        .call("drop", r#"{"all":true}"#)
        .error(-32602, "not allowed")
        .call("sync", r#"{"to":"disk"}"#)
        .told();
    insta::assert_snapshot!(told(&story), @"");
}

#[test]
fn a_run_without_failures_says_what_is_not_known() {
    let story = Tale::new()
        .call("echo", "{}")
        .text("x")
        .asked_back("elicitation/create", r#"{"message":"Sure?"}"#)
        .result(r#"{"action":"accept"}"#)
        .told();
    insta::assert_snapshot!(told(&story), @"");
}

#[test]
fn what_crashed_and_what_was_lost_is_told() {
    let line = |text: &str| Line {
        wall: 0,
        text: text.as_bytes().to_vec(),
    };
    let story = Tale::new()
        .call("a", "{}")
        .outcome(Outcome::NotRecorded)
        .call("b", "{}")
        .outcome(Outcome::Cancelled)
        .session(|session| {
            session.standing = Standing::Crashed;
            session.end.as_mut().unwrap().exit_code = Some(3);
            session.stderr = ["1", "2", "3", "panic: \u{1b}[2J"].map(line).to_vec();
            session.gaps.push(Gap {
                wall: 0,
                reason: "queue full".into(),
                frames: 2,
                bytes: 4_096,
            });
            session.missing = 4;
        })
        .told();
    insta::assert_snapshot!(told(&story), @"");
}

#[test]
fn whatever_was_recorded_the_explanation_is_short() {
    let long = "x".repeat(100_000);
    let mut tale = Tale::new();
    for number in 0..500 {
        let tool = format!("tool{number}{long}");
        tale = tale
            .call(&tool, &format!("{{\"a\":\"{long}\"}}"))
            .tool_error(&long);
        // Enough to be many, and few enough to be quick.
        if number == 40 {
            break;
        }
    }
    let text = told(&tale.told());
    assert!(text.len() < 20_000, "{}", text.len());
    assert!(text.contains("And 29 more of this kind."), "{text}");
}
