//! Any bytes are scanned, unescaped and classified without panic, and what is told about
//! them agrees with itself.

#![no_main]

use agent_trace_wire::json::{Scanner, is_valid, unescape};
use agent_trace_wire::message::{member, messages};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut scanner = Scanner::new(text);
    let mut end = 0;
    let mut valid = true;
    while let Some(item) = scanner.next() {
        match item {
            Ok(item) => {
                assert!(end <= item.start && item.start < item.end && item.end <= text.len());
                end = item.end;
            }
            Err(invalid) => {
                assert!(end <= invalid.at && invalid.at <= text.len());
                valid = false;
            }
        }
    }
    assert_eq!(valid, is_valid(text));
    assert!(!valid || scanner.depth() == 0);

    assert_eq!(messages(text).is_ok(), valid);
    for message in messages(text).into_iter().flatten() {
        assert!(is_valid(message.text));
        for value in [message.id, message.params, message.result, message.error]
            .into_iter()
            .flatten()
        {
            assert!(is_valid(value));
        }
        assert_eq!(member(message.text, "id"), message.id);
    }

    let content = unescape(text);
    assert!(content.bytes.len() <= text.len());
    let mut at = 0;
    for byte in 0..content.bytes.len() {
        let range = content.raw_range(byte..byte + 1);
        assert!(range.start <= at && at <= range.end && range.start < range.end);
        at = range.end;
    }
    assert_eq!(at, text.len());
});
