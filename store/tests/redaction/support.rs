//! What the tests of redaction share: the checks that hold for every text, and the places in
//! which a text can stand.

#![allow(dead_code, clippy::unwrap_used)]

use agent_trace_store::redact::{Key, Redaction, Redactor};
use serde_json::{Value, json};

pub(crate) fn redactor() -> Redactor {
    Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap()
}

/// Redacts, and checks what must hold for every text.
pub(crate) fn redact(redactor: &Redactor, text: &[u8]) -> Vec<u8> {
    let (mut out, mut spans) = (Vec::new(), Vec::new());
    if !redactor.bytes(text, &mut out, &mut spans) {
        assert!(out.is_empty() && spans.is_empty());
        return text.to_vec();
    }
    check_spans(text, &out, &spans);
    assert!(
        !redactor.bytes(&out, &mut Vec::new(), &mut Vec::new()),
        "twice is more than once: {}",
        String::from_utf8_lossy(&out)
    );
    if serde_json::from_slice::<Value>(text).is_ok() {
        let after = serde_json::from_slice::<Value>(&out);
        assert!(after.is_ok(), "no JSON: {}", String::from_utf8_lossy(&out));
    }
    out
}

/// Spans tell where the markers are and how long the text was.
pub(crate) fn check_spans(text: &[u8], out: &[u8], spans: &[Redaction]) {
    let (mut end, mut len) = (0, out.len());
    for span in spans {
        let (at, marker) = (span.at as usize, span.marker as usize);
        assert!(at >= end);
        end = at + marker;
        let marker_text = String::from_utf8_lossy(&out[at..end]).into_owned();
        let start = format!("[REDACTED:{}:", span.kind);
        assert!(
            marker_text.trim_matches(['"', '\\']).starts_with(&start),
            "{marker_text}"
        );
        len = len - marker + span.original as usize;
    }
    assert_eq!(len, text.len());
}

/// `text` and what it says when its escapes are resolved, layer by layer.
pub(crate) fn layers(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![text.to_vec(), percent_decoded(text)];
    for _ in 0..4 {
        let last = &all[all.len() - 1];
        let unescaped = agent_trace_wire::json::unescape(last).bytes;
        all.push(percent_decoded(&unescaped));
        all.push(unescaped);
    }
    all
}

pub(crate) fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    out
}

/// What of `secret` is left in `out`, if anything.
pub(crate) fn leak(out: &[u8], secret: &str, place: &str) -> Option<String> {
    let width = secret.len().min(8);
    let layers = layers(out);
    let left = secret.as_bytes().windows(width).find(|window| {
        layers
            .iter()
            .any(|layer| layer.windows(width).any(|part| part == *window))
    })?;
    Some(format!(
        "{place}: {:?} of {secret:?} is left in {}\n",
        String::from_utf8_lossy(left),
        String::from_utf8_lossy(out)
    ))
}

pub(crate) fn assert_hidden(out: &[u8], secret: &str, place: &str) {
    assert_eq!(leak(out, secret, place), None);
}

/// Every way a text can stand in what a peer sends.
pub(crate) fn places(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let message = |text: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"message": text}}}).to_string()
    };
    let nested = json!({"content": text}).to_string();
    let twice = json!([{ "text": nested }]).to_string();
    let escaped: String = text
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let quoted = Value::from(text).to_string();
    let some_escaped = quoted
        .replace('/', "\\/")
        .replace('-', "\\u002d")
        .replace('_', "\\u005F");
    let cut = message(text);
    let cut = &cut[..cut.rfind("\"}").unwrap()];
    let encoded: String = text
        .bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect();
    let strings: Vec<(&'static str, String)> = vec![
        ("JSON value", message(text)),
        (
            "JSON value among words",
            message(&format!("see {text} there")),
        ),
        (
            "JSON value in lines",
            message(&format!("first\n{text}\nlast")),
        ),
        ("JSON in a JSON string", message(&nested)),
        ("JSON in JSON in a JSON string", message(&twice)),
        (
            "JSON in a JSON string among words",
            message(&format!("Result: {twice}")),
        ),
        (
            "JSON array",
            json!({"content": ["a", text, "b"]}).to_string(),
        ),
        ("JSON name", json!({"arguments": {text: 1}}).to_string()),
        ("JSON escapes", format!("{{\"a\":\"{escaped}\"}}")),
        ("some JSON escapes", format!("{{\"a\":{some_escaped}}}")),
        (
            "pretty JSON",
            serde_json::to_string_pretty(&json!({"a": [text]})).unwrap(),
        ),
        ("truncated JSON", cut.to_owned()),
        (
            "two JSON texts",
            format!("{}\n{}", message(text), message("x")),
        ),
        ("bare", text.to_owned()),
        (
            "stderr",
            format!("2026-08-08T12:00:00Z ERROR server: failed with {text}"),
        ),
        (
            "stderr, more behind",
            format!("[server] got {text} (attempt 2)"),
        ),
        ("in parentheses", format!("value ({text})")),
        ("in Markdown", format!("* **Value**: `{text}`")),
        ("after a colour", format!("\u{1b}[31m{text}\u{1b}[0m")),
        (
            "log line with JSON",
            format!("INFO request {{\"a\": {quoted}}}"),
        ),
        ("query", format!("GET /search?q={encoded}&page=2 HTTP/1.1")),
        (
            "query in JSON",
            json!({"url": format!("https://example.com/?next={encoded}#x")}).to_string(),
        ),
    ];
    strings
        .into_iter()
        .map(|(place, text)| (place, text.into_bytes()))
        .collect()
}
