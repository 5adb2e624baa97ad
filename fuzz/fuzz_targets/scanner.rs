//! Any text is scanned, as a result and as a definition, without panic and with findings whose
//! place is in the text and whose quote holds nothing that steers a terminal.

#![no_main]

use agent_trace_scanners::{Finding, listing, message, result};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    for finding in result("", &text) {
        check(&finding, Some(&text));
    }
    let tool = serde_json::json!([{"name": "tool", "description": text, "inputSchema": {
        "properties": {"a": {"enum": [text], "description": text}}}}]);
    if let Some(found) = listing(None, &tool) {
        found
            .findings
            .iter()
            .for_each(|finding| check(finding, None));
    }
    if let Ok(value) = serde_json::from_str(&text) {
        message(&value)
            .iter()
            .for_each(|finding| check(finding, None));
        let _ = listing(None, &value);
    }
});

fn check(finding: &Finding, text: Option<&str>) {
    assert!(finding.start <= finding.end);
    if let Some(text) = text {
        assert!(text.get(finding.start..finding.end).is_some());
    }
    assert!(!finding.quote.chars().any(char::is_control));
}
