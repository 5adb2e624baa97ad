//! The differences of two JSON texts.

use crate::quote;
use crate::scalars::{self, Place, Value};
use serde::Serialize;
use std::collections::HashMap;

/// Differences of one text that are told.
const TOLD: usize = 20;

/// Characters of a value that are told.
const QUOTE: usize = 100;

/// What is different between two JSON texts. The order of members does not matter; the items
/// of lists are compared one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The first ones.
    pub told: Vec<Change>,
    /// How many there are beside these.
    pub more: usize,
}

impl Changes {
    /// Whether nothing is different.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

/// A value that is different.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where it stands.
    pub at: Place,
    /// What it was, cut: from a little before the first difference on.
    pub before: Option<String>,
    /// What it is now.
    pub after: Option<String>,
}

/// What is different between two JSON texts.
#[must_use]
pub fn changes(before: &[u8], after: &[u8]) -> Changes {
    let mut changes = Changes::default();
    if before == after || scalars::digest(before, &["_meta"]) == scalars::digest(after, &["_meta"])
    {
        return changes;
    }
    // What a value is by its place; and the place in words, which is long, when it is told.
    let mut left: HashMap<u64, (bool, Vec<u8>)> = HashMap::new();
    each(after, &mut |id, is_string, content, _| {
        left.insert(id, (is_string, content.to_vec()));
    });
    each(before, &mut |id, is_string, content, place| {
        let now = left.remove(&id);
        if now
            .as_ref()
            .is_some_and(|(s, c)| *s == is_string && c == content)
        {
            return;
        }
        changes.add(
            place,
            Some((is_string, content)),
            now.as_ref().map(|(s, c)| (*s, &c[..])),
        );
    });
    each(after, &mut |id, is_string, content, place| {
        if left.remove(&id).is_some() {
            changes.add(place, None, Some((is_string, content)));
        }
    });
    changes
}

type Each<'a> = dyn FnMut(u64, bool, &[u8], &dyn Fn() -> Place) + 'a;

fn each(text: &[u8], each: &mut Each<'_>) {
    scalars::each(text, &mut |spot, value| {
        let is_string = matches!(value, Value::String(_));
        if !matches!(value, Value::Document(_)) && !spot.is_under("_meta") {
            each(spot.id(), is_string, value.content(), &|| spot.place());
        }
    });
}

type Told<'a> = Option<(bool, &'a [u8])>;

impl Changes {
    fn add(&mut self, place: &dyn Fn() -> Place, before: Told<'_>, after: Told<'_>) {
        if self.told.len() == TOLD {
            self.more += 1;
            return;
        }
        let same = match (before, after) {
            (Some((_, a)), Some((_, b))) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
            _ => 0,
        };
        let shown = |(is_string, content): (bool, &[u8])| {
            let from = if same > QUOTE / 2 { same } else { 0 };
            let quote = quote::around(content, from..from, QUOTE);
            match is_string {
                true => format!("\"{quote}\""),
                false => quote,
            }
        };
        self.told.push(Change {
            at: place(),
            before: before.map(shown),
            after: after.map(shown),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> Vec<String> {
        let changes = changes(before.as_bytes(), after.as_bytes());
        let say = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".into());
        let told = changes.told.iter();
        told.map(|c| format!("{}: {} → {}", c.at, say(&c.before), say(&c.after)))
            .collect()
    }

    #[test]
    fn values_are_compared_by_their_place() {
        let none: [&str; 0] = [];
        assert_eq!(told(r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#), none);
        assert_eq!(
            told(r#"{"a":1,"b":[2,3],"c":"x"}"#, r#"{"b":[2,"3",4],"a":1.0}"#),
            [
                "/a: 1 → 1.0",
                "/b/1: 3 → \"3\"",
                "/c: \"x\" → -",
                "/b/2: - → 4"
            ]
        );
        assert_eq!(told("", r#"{"a":{}}"#), ["/a: - → {}"]);
        assert_eq!(
            told(r#"{"text":"{\"n\":1}"}"#, r#"{"text":"{\"n\":2}"}"#),
            ["/text » /n: 1 → 2"]
        );
    }

    #[test]
    fn long_values_are_shown_where_they_part() {
        let text = |end: &str| format!("{{\"t\":\"{}{end}\"}}", "x".repeat(1_000));
        let told = told(&text("yes"), &text("no"));
        assert!(told[0].contains("xyes\" → \"…"), "{told:?}");
        assert!(told[0].chars().count() < 250, "{told:?}");
    }

    #[test]
    fn many_differences_are_counted() {
        let list = |from: usize| {
            let items: Vec<String> = (from..from + 100).map(|n| n.to_string()).collect();
            format!("[{}]", items.join(","))
        };
        let changes = changes(list(0).as_bytes(), list(1).as_bytes());
        assert_eq!((changes.told.len(), changes.more), (TOLD, 80));
    }
}
