//! Tests of the whole.

use super::*;
use crate::testing::Tale;
use agent_trace_model::Outcome;
use agent_trace_model::story::{Gap, Line, Standing};
use std::fmt::Write;

/// The explanation as text.
fn told(story: &Story) -> String {
    told_of(story, None)
}

fn told_of(story: &Story, judged: Option<Judged<'_>>) -> String {
    let explanation = of(story, judged, Limits::default());
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
    insta::assert_snapshot!(told(&story), @r#"
    Asked: editor asked notes 6 times: drop twice, read_note twice, initialize once, sync once. [1, 2, 3, 4, 5, 6]
    Failed: The last call of drop on notes failed: error -32602. 2 of its 2 calls failed. [4, 5]
      arguments "{\"all\":true}"
      answer "not allowed"
    Failed: drop was called twice with the same arguments, and failed each time. [4, 5]
    Recovered: read_note failed (the tool reported a failure) and then went well with other arguments (/number: 7 → 1). [2, 3]
      arguments "{\"number\":7}"
      answer "There is no note 7"
    Unanswered: notes was asked for sync and did not answer. [6]
      arguments "{\"to\":\"disk\"}"
    Lost: As far as the recording can tell, nothing is missing in it. []
    Unknown: What the user wanted, and what editor answered, is not in this recording: only what went to and from servers is. []
    Unknown: Whether the results were right is not known: a result that is no error may still be wrong. []
    why abababab 5: where its arguments came from
    why abababab 6: where its arguments came from
    show abababab -n: all steps
    timeline abababab: slow steps, retries and idleness
    "#);
}

#[test]
fn what_was_tried_again_until_it_went_well_did_not_fail_each_time() {
    let story = Tale::new()
        .call("read", r#"{"id":1}"#)
        .tool_error("busy")
        .call("read", r#"{"id":1}"#)
        .tool_error("busy")
        .call("read", r#"{"id":1}"#)
        .text("x")
        .told();
    let text = told(&story);
    assert!(!text.contains("failed each time"), "{text}");
    assert!(
        text.contains("Nothing failed that was not made good."),
        "{text}"
    );
    let recovered = "read failed twice (the tool reported a failure) and then went well with the same arguments. [1, 2, 3]";
    assert!(text.contains(recovered), "{text}");
}

#[test]
fn a_verdict_comes_first_with_its_reason() {
    let story = Tale::new().call("a", "{}").tool_error("no").told();
    let judged = |verdict| Judged {
        verdict,
        by: Judge::Person,
        reason: "the note is there",
    };
    let text = told_of(&story, Some(judged(Verdict::Right)));
    let first = "Judged: A person judged the run right: it has not failed, whatever went wrong in it. []\n  reason \"the note is there\"\nAsked: ";
    assert!(text.starts_with(first), "{text}");
    assert!(!text.contains("Whether the results were right"), "{text}");
    let text = told_of(&story, Some(judged(Verdict::Unjudged)));
    assert!(
        text.starts_with("Judged: A person left the run unjudged."),
        "{text}"
    );
    assert!(text.contains("Whether the results were right"), "{text}");
}

#[test]
fn what_is_slow_is_a_setting() {
    let story = Tale::new().call("a", "{}").text("x").takes(2_000).told();
    let slow = |slow| {
        let limits = Limits {
            slow,
            ..Limits::default()
        };
        let explanation = of(&story, None, limits);
        let mut look = explanation.look.iter();
        look.any(|look| look.command.starts_with("timeline"))
    };
    assert!(slow(1_000_000_000) && !slow(3_000_000_000));
}

#[test]
fn a_run_without_failures_says_what_is_not_known() {
    let story = Tale::new()
        .call("echo", "{}")
        .text("x")
        .asked_back("elicitation/create", r#"{"message":"Sure?"}"#)
        .result(r#"{"action":"accept"}"#)
        .told();
    insta::assert_snapshot!(told(&story), @r#"
    Asked: editor asked notes once: echo once. [1]
    Asked: notes asked editor: elicitation/create once. [2]
      arguments "{\"message\":\"Sure?\"}"
    Failed: Nothing failed that was not made good. []
    Lost: As far as the recording can tell, nothing is missing in it. []
    Unknown: What the user wanted, and what editor answered, is not in this recording: only what went to and from servers is. []
    Unknown: Whether the results were right is not known: a result that is no error may still be wrong. []
    show abababab -n: all steps
    "#);
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
    insta::assert_snapshot!(told(&story), @r#"
    Asked: editor asked notes twice: a once, b once. [1, 2]
    Failed: notes ended by itself with exit status 3. []
      stderr "2"
      stderr "3"
      stderr "panic: \u{1b}[2J"
    Unanswered: 1 request was cancelled before it was answered. [2]
    Unanswered: 1 request may have been answered, but that was not recorded. [1]
    Lost: Of the session with notes, 4096 bytes (2 whole frames) were relayed but not recorded: queue full. []
    Lost: Of the session with notes, 4 records are missing. []
    Unknown: What the user wanted, and what editor answered, is not in this recording: only what went to and from servers is. []
    Unknown: Whether the results were right is not known: a result that is no error may still be wrong. []
    show abababab -n --stderr: all steps, with what servers wrote to standard error
    doctor: why something was not recorded
    "#);
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
