//! Rankings as a whole.

use super::testing::{ranked, ranked_with};
use super::{Input, Quoted, rank};
use crate::testing::Tale;
use agent_trace_model::story::Story;
use proptest::prelude::*;
use std::fmt::Write;

fn failing() -> Story {
    Tale::new()
        .request("initialize", "{}")
        .result("{}")
        .request("tools/list", "{}")
        .result(r#"{"tools":[{"name":"search"},{"name":"read"},{"name":"write"}]}"#)
        .call("search", r#"{"state":"clsed","limit":50}"#)
        .text(r#"{"issues":[]}"#)
        .call("read", r#"{"issue":"issue-17"}"#)
        .tool_error("there is no issue-17")
        .call("write", r#"{"text":"no issue"}"#)
        .text("written")
        .told()
}

#[test]
fn a_quote_that_does_not_stand_where_it_says_is_dropped_and_counted() {
    let mut story = failing();
    let whole = rank(&Input::of(&story));
    assert_eq!(whole.dropped_quotes, 0);
    // Whoever looks the step up by its number finds another one.
    let (first, last) = (story.steps[0].number, story.steps.len() - 1);
    let moved = story.steps[last].number;
    story.steps[0].number = moved;
    story.steps[last].number = first;
    let ranking = rank(&Input::of(&story));
    assert!(ranking.dropped_quotes > 0);
    for quote in ranking
        .suspects
        .iter()
        .flat_map(|s| &s.reasons)
        .flat_map(|r| &r.quotes)
    {
        assert!(quote.stands_in(&story), "{quote:?}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let json = || serde_json::to_string(&rank(&Input::of(&failing()))).unwrap();
    let first = json();
    for _ in 0..5 {
        assert_eq!(json(), first);
    }
}

#[test]
fn a_ranking_tells_what_it_is_based_on() {
    let ranking = rank(&Input::of(&failing()));
    let mut text = String::new();
    for suspect in &ranking.suspects {
        let _ = writeln!(text, "step {}: {}", suspect.step, suspect.score.value());
        for reason in &suspect.reasons {
            let rule = serde_json::to_value(reason.rule).unwrap();
            let (rule, weight) = (rule.as_str().unwrap(), reason.weight.value());
            let _ = writeln!(text, "  {rule} {weight}: {}", reason.because);
            for quote in &reason.quotes {
                let Quoted {
                    pointer,
                    text: said,
                } = &quote.recorded;
                let at = quote.offset;
                let _ = writeln!(text, "    {} {pointer} {at}: {said}", quote.step);
            }
        }
    }
    let others = serde_json::to_string(&ranking.others).unwrap();
    let baseline = serde_json::to_string(&ranking.baseline).unwrap();
    let left = serde_json::to_string(&ranking.not_looked_at).unwrap();
    let _ = writeln!(text, "others {others}\nbaseline {baseline}\nleft {left}");
    insta::assert_snapshot!(text, @r#"
    step 3: 5
      lacked_before_failure 3: its answer lacked something, and step 4, which failed, was given a value from nowhere
        4 /params/arguments/issue 91: "issue-17"
      empty_result 2: its answer holds nothing, and the run went on
        3 /result/content/0/text 67: "{\"issues\":[]}"
        3 /params/arguments 84: {"state":"clsed","limit":50}
    step 4: 4.4
      error 3: the tool reported a failure, and that was not made good
        4 /result/content/0/text 67: "there is no issue-17"
      first_failure 1: nothing failed before it that was not made good
      value_from_nowhere 0.4: its error names a value that appeared nowhere before
        4 /params/arguments/issue 91: "issue-17"
    others [5]
    baseline {"first":[3,4,5],"last":[5,4,3]}
    left [{"what":"passing_siblings","count":0,"because":"runs of the same task that passed are known: nothing was compared"}]
    "#);
}

#[test]
fn what_was_recorded_stands_under_recorded_only() {
    // Every text that a server or a client chose has the canary in it.
    let canary = "CANARY\u{1b}[2J";
    let value = serde_json::Value::from(canary);
    let run = |more: &str| {
        Tale::new()
            .on(canary)
            .request("tools/list", "{}")
            .result(&format!(
                "{{\"tools\":[{{\"name\":{value},\"description\":{value},\"inputSchema\":{{\"properties\":{{{value}:{{\"type\":\"object\"}}}}}}}}]}}"
            ))
            .call("x", &format!("{{{value}:{value},\"more\":\"{more}\"}}"))
            .step(|step| step.target = Some(canary.to_owned()))
            .text(&format!("Error: {canary}"))
            .call("y", &format!("{{\"id\":{value},\"none\":[]}}"))
            .step(|step| step.target = Some(canary.to_owned()))
            .tool_error(canary)
            .told()
    };
    let ranking = ranked_with(&run("a"), &[&run("b")], &[]).ranking;
    let mut json = serde_json::to_value(&ranking).unwrap();
    assert!(json.to_string().contains("CANARY"));
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(members) => {
                members.remove("recorded");
                members.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut json);
    assert!(!json.to_string().contains("CANARY"), "{json:#}");
}

#[test]
fn a_run_of_nothing_has_no_suspects() {
    let ranked = ranked(&Tale::new().told());
    assert_eq!(ranked.steps(), [] as [usize; 0]);
    assert!(ranked.ranking.baseline.first.is_empty());
}

#[test]
fn large_runs_are_ranked_in_time() {
    let large = "lorem ipsum 4711 ".repeat(300_000);
    let mut tale = Tale::new();
    for number in 0..5_000 {
        let call = format!("{{\"id\":\"item-{}\",\"of\":\"x\"}}", number / 2);
        tale = tale.call(["get", "list", "put"][number % 3], &call);
        tale = match number % 50 {
            7 => tale.tool_error(&format!("item-{} is not there", number / 2)),
            9 if number % 1_000 == 9 => tale.text(&large),
            _ => tale.text(&format!("item-{}", number + 1)),
        };
    }
    let story = tale.told();
    let begun = std::time::Instant::now();
    let ranked = ranked(&story);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert_eq!(ranked.ranking.suspects.len(), 20);
    assert!(ranked.left("answers_in_part") > 0);
    assert!(ranked.left("messages_not_followed") > 0);
    let size = serde_json::to_string(&ranked.ranking).unwrap().len();
    assert!(size < 64 << 10, "{size}");
}

#[test]
fn hostile_runs_are_ranked_in_time() {
    // Every rule has something to look at in every step.
    let run = |seed: usize| {
        let mut tale = Tale::new();
        for number in 0..5_000 {
            tale = tale.on(["one", "two"][number % 2]);
            if number % 10 < 2 {
                let tools = format!(
                    "{{\"tools\":[{{\"name\":\"list\",\"title\":\"{number}\",\"inputSchema\":{{\"required\":[\"x\"]}}}}]}}"
                );
                tale = tale.request("tools/list", "{}").result(&tools);
            }
            let values: Vec<String> = (0..20)
                .map(|n| format!("\"{n}\":\"id-{}\"", number + n))
                .collect();
            let call = format!("{{\"seed\":{seed},\"none\":[],{}}}", values.join(","));
            tale = tale.call("list", &call);
            tale = match number % 3 {
                0 => tale.tool_error(&format!("id-{number} is not there")),
                1 => tale.text(&format!(
                    "{{\"items\":[\"id-{number}\"],\"has_more\":true}}"
                )),
                _ => tale.text("[]"),
            };
        }
        tale.told()
    };
    let (story, others) = (run(0), [run(1), run(2), run(3)]);
    let others: Vec<&Story> = others.iter().collect();
    let begun = std::time::Instant::now();
    let ranked = ranked_with(&story, &others, &others);
    let took = begun.elapsed();
    assert!(took.as_secs() < 60, "{took:?}");
    assert_eq!(ranked.ranking.suspects.len(), 20);
    let size = serde_json::to_string(&ranked.ranking).unwrap().len();
    assert!(size < 128 << 10, "{size}");
}

proptest! {
    #[test]
    fn whatever_was_recorded_is_ranked(
        texts in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..80),
                "[\\[\\]{}:,\"a0\\\\uü ]{0,60}".prop_map(String::into_bytes),
                r#"\{"(result|error)":\{"content":\[\{"text":"(\[|\{|Error|No x found|ü|\\n){0,9}"\}\]"#
                    .prop_map(String::into_bytes),
            ],
            0..12,
        ),
    ) {
        let mut tale = Tale::new().request("tools/list", "{}").result("{}");
        for pair in texts.chunks(2) {
            tale = tale.call("get_it", "{}").text("x").step(|step| {
                if let Some(request) = &mut step.request {
                    request.text.clone_from(&pair[0]);
                }
                if let (Some(response), Some(text)) = (&mut step.response, pair.get(1)) {
                    response.text.clone_from(text);
                }
            });
        }
        let story = tale.told();
        // Each quote is compared in there.
        ranked_with(&story, &[&story], &[&story]);
    }
}
