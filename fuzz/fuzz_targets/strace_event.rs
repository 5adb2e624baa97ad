//! Whatever a line of agent-strace's events holds, it becomes a message from which the same
//! line comes back.

#![no_main]

use agent_trace_index::formats::strace::event::{Event, Messages, source};
use agent_trace_wire::json::is_valid;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut messages = Messages::default();
    for line in input.split(|byte| *byte == b'\n') {
        let parsed = Event::parse(line);
        assert!(parsed.is_err() || is_valid(line.trim_ascii()));
        let Ok(event) = parsed else { continue };
        let (_, message) = messages.next(&event);
        assert!(is_valid(&message));
        assert_eq!(source(&message), Some(event.text));
    }
    let _ = messages.is_any_open();
});
