//! Properties of the JSON scanner: it reads any bytes, and calls JSON what serde_json does.

use agent_trace_wire::json::{Scanner, is_valid};
use proptest::prelude::*;

/// Text that is JSON or nearly so.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just("{"), 4 => Just("}"), 3 => Just("["), 3 => Just("]"), 4 => Just(","),
        4 => Just(":"), 6 => Just("\"k\""), 1 => Just("1"), 1 => Just("-0.5E+1"),
        1 => Just("01"), 1 => Just("true"), 1 => Just("nul"), 1 => Just(" "),
        1 => Just("\"\\u00e9\\n\""), 1 => Just("\"\\x\""), 1 => Just("\"a\u{1}\""),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn agrees(text: &[u8]) -> Result<(), TestCaseError> {
    let parsed: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(text);
    prop_assert_eq!(is_valid(text), parsed.is_ok());
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(text: Vec<u8>) {
        let last = Scanner::new(&text).last();
        prop_assert!(last.is_some());
    }

    #[test]
    fn serde_json_agrees_on_what_is_nearly_json(text in nearly_json()) {
        agrees(&text)?;
    }

    #[test]
    fn serde_json_agrees_on_damaged_json(value in json(), at: prop::sample::Index, byte: u8) {
        let mut text = value.to_string().into_bytes();
        agrees(&text)?;
        let at = at.index(text.len());
        text[at] = byte & 0x7F;
        // serde_json wants UTF-8 in strings, the scanner does not.
        if std::str::from_utf8(&text).is_ok() {
            agrees(&text)?;
        }
    }
}
