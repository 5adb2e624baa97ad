//! Any bytes are redacted without panic; JSON stays JSON, and twice is once.

#![no_main]

use agent_trace_store::redact::{Carry, Key, Redactor};
use agent_trace_wire::json::is_valid;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let mut redactor = Redactor::new(Key::from_bytes([7; 32]), &[]).expect("built-in rules");
    redactor.add_literals([&b"s3cr3t-l1teral"[..]]);
    redactor
});

fuzz_target!(|text: &[u8]| {
    let (mut once, mut spans) = (Vec::new(), Vec::new());
    if REDACTOR.bytes(text, &mut once, &mut spans) {
        assert!(!spans.is_empty());
        assert!(!is_valid(text) || is_valid(&once));
        let mut twice = Vec::new();
        let again = REDACTOR.bytes(&once, &mut twice, &mut Vec::new());
        assert!(!again, "twice: {}", String::from_utf8_lossy(&twice));
    }
    let mut carry = Carry::default();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        REDACTOR.line(&mut carry, line, &mut Vec::new(), &mut Vec::new());
    }
});
