//! Each rule with runs that it says nothing about and runs that it finds something in.
//!
//! - `case`: runs in a few words
//! - `spoken`: rules about messages and their pairing
//! - `over_http`: rules about what HTTP says

mod case;
mod over_http;
mod spoken;

use super::rules;
use std::collections::BTreeSet;

#[test]
fn each_rule_has_a_code_of_its_own_and_says_where_it_is_written() {
    let codes: BTreeSet<&str> = rules().iter().map(|rule| rule.code).collect();
    assert_eq!(codes.len(), rules().len());
    for rule in rules() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(rule.code.chars().all(plain), "{}", rule.code);
        for text in [rule.about, rule.why, rule.source] {
            assert!(
                text.len() > 10 && !text.contains("  "),
                "{}: {text}",
                rule.code
            );
        }
    }
}

#[test]
fn each_rule_has_an_example() {
    let sources = [
        include_str!("examples/spoken.rs"),
        include_str!("examples/over_http.rs"),
    ];
    for rule in rules() {
        let quoted = format!("\"{}\"", rule.code);
        assert!(
            sources.iter().any(|text| text.contains(&quoted)),
            "{}",
            rule.code
        );
    }
}
