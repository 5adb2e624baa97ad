//! Tests of the whole.

use super::*;
use crate::testing::Tale;
use agent_trace_model::story::Gap;
use std::fmt::Write;

/// The chain in a few words.
fn told(story: &Story, number: usize) -> String {
    let mut text = String::new();
    let why = of(story, number).unwrap();
    for link in &why.chain {
        let _ = writeln!(text, "step {}", link.step);
        for flow in &link.flows {
            let _ = write!(text, "  {} {:?}", flow.at, flow.value);
            let _ = match &flow.source {
                Source::Nowhere => writeln!(text, " from nowhere"),
                Source::NotSearched => writeln!(text, " not searched everywhere"),
                Source::TooShort => writeln!(text, " too short"),
                Source::Before(from) => writeln!(
                    text,
                    " from {} {:?} {} {:?} {:?}",
                    from.step, from.origin, from.origin_at, from.likeness, from.quote
                ),
            };
        }
    }
    text
}

#[test]
fn values_are_followed_back_through_results() {
    let story = Tale::new()
        .request("tools/list", "{}")
        .result(r#"{"tools":[{"name":"search","inputSchema":{"state":{"enum":["open"]}}}]}"#)
        .call("search", r#"{"owner":"octocat","state":"open"}"#)
        .text("Found:\n#8213 Crash on start\n#8300 Other")
        .call("get", r#"{"number":8213,"full":true}"#)
        .result(r#"{"structuredContent":{"author":"mona.l","file":"src/boot.rs"}}"#)
        .call("other", "{}")
        .text("nothing here")
        .call("read", r#"{"path":"src/boot.rs","owner":"octocat"}"#)
        .text("fn main")
        .told();
    insta::assert_snapshot!(told(&story, 5), @r#"
    step 5
      /path "src/boot.rs" from 3 Result /structuredContent/file Same "src/boot.rs"
      /owner "octocat" from 2 Arguments /owner Same "octocat"
    step 3
      /number "8213" from 2 Result /content/0/text Word "Found:\n#8213 Crash on start\n#8300 Other"
    step 2
      /owner "octocat" from nowhere
      /state "open" from 1 Definition /tools/0/inputSchema/state/enum/0 Same "open"
    "#);
}

#[test]
fn an_answer_is_a_source_of_what_was_asked_right_after_it() {
    let story = Tale::new().call("a", "{}").text("token-123");
    // The clock was set a little later for the answer than for what followed.
    let story = story.step(|step| step.duration = Some(10_200_000));
    let story = story.call("b", r#"{"t":"token-123"}"#).told();
    insta::assert_snapshot!(told(&story, 2), @r#"
    step 2
      /t "token-123" from 1 Result /content/0/text Same "token-123"
    step 1
    "#);
}

#[test]
fn short_values_need_the_same_name() {
    let story = Tale::new()
        .call("list", "{}")
        .text(r#"[{"number":7,"page":2,"on":true}]"#)
        .call(
            "get",
            r#"{"number":7,"count":2,"on":true,"x":0,"y":"a","z":"ab"}"#,
        )
        .told();
    insta::assert_snapshot!(told(&story, 2), @r#"
    step 2
      /number "7" from 1 Result /content/0/text » /0/number Same "7"
      /count "2" too short
      /z "ab" too short
    step 1
    "#);
    assert_eq!(of(&story, 2).unwrap().chain[0].common, 3);
}

#[test]
fn numbers_are_the_same_by_their_text() {
    let story = Tale::new()
        .call("list", "{}")
        .result(r#"{"a":9007199254740993,"b":1.50,"c":"4711"}"#)
        .call("get", r#"{"a":9007199254740992,"b":1.5,"c":4711}"#)
        .told();
    insta::assert_snapshot!(told(&story, 2), @r#"
    step 2
      /a "9007199254740992" from nowhere
      /b "1.5" from nowhere
      /c "4711" from 1 Result /c Same "4711"
    step 1
    "#);
}

#[test]
fn words_of_a_longer_string_are_found() {
    let story = Tale::new()
        .call("whoami", "{}")
        .text("user usr_8f3a, since 2024")
        .call(
            "sql",
            r#"{"query":"SELECT * FROM t WHERE id = 'usr_8f3a'"}"#,
        )
        .told();
    insta::assert_snapshot!(told(&story, 2), @r#"
    step 2
      /query "usr_8f3a" from 1 Result /content/0/text Inside "user usr_8f3a, since 2024"
    step 1
    "#);
}

#[test]
fn what_is_said_later_or_at_the_same_time_is_no_source() {
    let story = Tale::new()
        .call("a", "{}")
        .text("token-123")
        .takes(100)
        .at(10)
        .call("b", r#"{"t":"token-123"}"#)
        .text("token-999")
        .at(200)
        .call("c", r#"{"t":"token-123","u":"token-999"}"#)
        .told();
    insta::assert_snapshot!(told(&story, 3), @r#"
    step 3
      /t "token-123" from 2 Arguments /t Same "token-123"
      /u "token-999" from 2 Result /content/0/text Same "token-999"
    step 2
      /t "token-123" from nowhere
    "#);
}

#[test]
fn that_a_value_was_used_before_does_not_hide_where_it_came_from() {
    let story = Tale::new()
        .call("find", "{}")
        .text("note #8213")
        .call("read", r#"{"note":8213}"#)
        .text("x")
        .call("move", r#"{"note":8213}"#)
        .told();
    insta::assert_snapshot!(told(&story, 3), @r#"
    step 3
      /note "8213" from 1 Result /content/0/text Word "note #8213"
    step 1
    "#);
}

#[test]
fn what_the_server_tells_and_the_user_answers_are_sources() {
    let story = Tale::new()
        .told_by_server("notifications/message", r#"{"data":"build-77 is ready"}"#)
        .call("deploy", "{}")
        .step(|step| step.duration = None)
        .asked_back("elicitation/create", r#"{"message":"Where to?"}"#)
        .result(r#"{"content":{"region":"eu-west-3"}}"#)
        .call("go", r#"{"build":"build-77","region":"eu-west-3"}"#)
        .told();
    insta::assert_snapshot!(told(&story, 4), @r#"
    step 4
      /build "build-77" from 1 Notification /data Inside "build-77 is ready"
      /region "eu-west-3" from 3 Answer /content/region Same "eu-west-3"
    "#);
    assert_eq!(of(&story, 9), None);
    assert_eq!(of(&story, 0), None);
}

#[test]
fn what_was_not_recorded_or_not_searched_is_told() {
    let gap = |wall| Gap {
        wall,
        reason: "queue full".into(),
        frames: 1,
        bytes: 1,
    };
    let tale = Tale::new()
        .call("a", "{}")
        .text("token-123")
        .call("b", r#"{"t":"token-999"}"#);
    let whole = of(&tale.clone().told(), 2).unwrap();
    assert!(whole.is_complete());
    let lacks = |change: fn(&mut Session)| {
        let story = tale.clone().session(change).told();
        of(&story, 2).unwrap().not_recorded
    };
    assert_eq!(lacks(|session| session.digested = true), ["notes"]);
    assert_eq!(lacks(|session| session.clipped = true), ["notes"]);
    assert_eq!(lacks(|session| session.missing = 1), ["notes"]);
    let with_gap = |wall| {
        let story = tale.clone().session(|session| session.gaps.push(gap(wall)));
        of(&story.told(), 2).unwrap().is_complete()
    };
    assert!(!with_gap(crate::testing::START));
    assert!(with_gap(u64::MAX), "it is later than the step");

    // More than is looked for inside texts: what is nearer to the step comes first.
    let value = "quick brown ".repeat(20);
    let source = |fills: usize| {
        let mut tale = Tale::new()
            .call("first", "{}")
            .text(&format!("see: {value} end"))
            .call("use", &format!("{{\"key\":\"{value}\"}}"))
            .text("final-7");
        for number in 0..fills {
            let fill = format!("{number:06}{}", "-".repeat(194));
            tale = tale.call("fill", &format!("{{\"v\":\"{fill}\"}}"));
        }
        let tale = tale.call("go", r#"{"k":"final-7"}"#);
        let why = of(&tale.told(), fills + 3).unwrap();
        why.chain[1].flows[0].source.clone()
    };
    assert!(matches!(source(10), Source::Before(_)));
    assert_eq!(source(6_000), Source::NotSearched);
}

#[test]
fn a_chain_is_bounded_and_a_long_run_takes_no_time() {
    // Each step takes what the one before gave, 4,000 times; one answer is large.
    let mut tale = Tale::new()
        .call("big", "{}")
        .text(&"lorem ipsum 12345 ".repeat(100_000));
    for number in 0..4_000 {
        tale = tale
            .call("next", &format!("{{\"cursor\":\"cursor-{number}\",\"path\":\"/home/user/project/src/file-{number}.rs\"}}"))
            .text(&format!("cursor-{}", number + 1));
    }
    let story = tale.told();
    let begun = std::time::Instant::now();
    let why = of(&story, 4_001).unwrap();
    // Far below what comparing each with each would take.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert_eq!((why.chain.len(), why.more), (CHAIN, 1));
    assert_eq!(why.chain[1].step, 4_000);
}
