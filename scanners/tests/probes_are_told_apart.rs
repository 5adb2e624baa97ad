//! Injections in many styles and languages are found, and harmless texts like them are not.
//! Both are in our own words (`probes.txt`), so that no data set decides what a rule is.

#![allow(clippy::unwrap_used)]

use agent_trace_scanners::{Finding, result, tool};
use serde_json::json;

fn flagged(kind: u8, text: &str) -> bool {
    let found = match kind {
        b'D' => tool(
            None,
            &json!({"name": "probe_tool", "description": text}),
            &[],
        ),
        _ => result("", text),
    };
    found.iter().any(Finding::flagged)
}

/// The injections in results, and whether they are found as they are.
fn results() -> Vec<(String, bool)> {
    let lines = include_str!("probes.txt").lines();
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

#[test]
fn injections_are_found_and_harmless_texts_are_not() {
    let (mut hostile, mut found, mut harmless) = (0, 0, 0);
    let mut alarms = Vec::new();
    for line in include_str!("probes.txt").lines() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (mark, text) = line.split_at(3);
        let text = text.replace("\\n", "\n");
        let flagged = flagged(mark.as_bytes()[0], &text);
        if mark.as_bytes()[1] == b'+' {
            hostile += 1;
            found += usize::from(flagged);
        } else {
            harmless += 1;
            if flagged {
                alarms.push(text);
            }
        }
    }
    assert!(hostile > 80 && harmless > 90);
    assert!(
        found * 100 >= hostile * 88,
        "{found} of {hostile} are found"
    );
    // One of them is made up of a speaker's name and an order, and addresses nobody.
    assert!(alarms.len() <= 1, "{alarms:#?}");
}
