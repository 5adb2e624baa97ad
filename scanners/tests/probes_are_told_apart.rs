//! Injections in many styles and languages are found, and harmless texts like them are not.
//! All are in our own words (`probes/`), so that no data set decides what a rule is.

#![allow(clippy::unwrap_used)]

use agent_trace_scanners::{Finding, result, tool};
use serde_json::{Value, json};

fn flagged(kind: u8, text: &str) -> bool {
    let found = match kind {
        b'P' => tool(None, &with_parameter(&json!({"description": text})), &[]),
        b'V' => tool(
            None,
            &with_parameter(&json!({"enum": ["plain", text]})),
            &[],
        ),
        b'D' => tool(
            None,
            &json!({"name": "probe_tool", "description": text}),
            &[],
        ),
        _ => result("", text),
    };
    found.iter().any(Finding::flagged)
}

fn with_parameter(schema: &Value) -> Value {
    json!({"name": "look_up", "description": "Looks up an entry in the catalogue.",
        "inputSchema": {"type": "object", "properties": {"value": schema}}})
}

/// The injections in results, and whether they are found as they are.
fn results() -> Vec<(String, bool)> {
    let lines = include_str!("probes/plain.txt").lines();
    let texts = lines.filter_map(|line| line.strip_prefix("R+ "));
    let texts = texts.map(|text| text.replace("\\n", "\n"));
    texts
        .map(|text| (text.clone(), flagged(b'R', &text)))
        .collect()
}

#[test]
fn a_long_page_hides_no_injection() {
    let filler = "The harbour lay still that morning, and nobody was on the pier. ".repeat(48);
    let missed = |(text, found): &(String, bool)| {
        *found && !flagged(b'R', &format!("{filler}\n\n{text}\n\n{filler}"))
    };
    let missed: Vec<_> = results().into_iter().filter(missed).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_word_about_attacks_hides_no_injection() {
    let missed = |(text, found): &(String, bool)| {
        *found && !flagged(b'R', &format!("{text}, says our attacker report"))
    };
    let missed: Vec<_> = results().into_iter().filter(missed).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Checks a file of probes: `least` percent of the attacks are found, and not more than `most`
/// harmless texts are flagged.
fn check(probes: &str, least: usize, most: usize) {
    let (mut hostile, mut harmless) = (0, 0);
    let (mut missed, mut alarms) = (Vec::new(), Vec::new());
    for line in probes.lines() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (mark, text) = line.split_at(3);
        let text = text.replace("\\n", "\n");
        let flagged = flagged(mark.as_bytes()[0], &text);
        if mark.as_bytes()[1] == b'+' {
            hostile += 1;
            if !flagged {
                missed.push(text);
            }
        } else {
            harmless += 1;
            if flagged {
                alarms.push(text);
            }
        }
    }
    assert!(hostile > 80 && harmless > 80);
    let found = hostile - missed.len();
    assert!(
        found * 100 >= hostile * least,
        "{found} of {hostile} are found; missed: {missed:#?}"
    );
    assert!(alarms.len() <= most, "{alarms:#?}");
}

#[test]
fn injections_are_found_and_harmless_texts_are_not() {
    // One of them is made up of a speaker's name and an order, and addresses nobody.
    check(include_str!("probes/plain.txt"), 88, 1);
}

#[test]
fn kinds_of_attack_are_found_in_many_languages() {
    check(include_str!("probes/kinds.txt"), 81, 4);
}

#[test]
fn other_styles_are_found_as_well() {
    check(include_str!("probes/styles.txt"), 58, 5);
}
