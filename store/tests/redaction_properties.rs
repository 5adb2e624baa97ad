//! What holds for any text: JSON stays JSON, redacting twice is redacting once, and hostile
//! text takes no longer than its length.

#![allow(clippy::unwrap_used)]

#[path = "redaction/secrets.rs"]
mod secrets;
#[path = "redaction/support.rs"]
mod support;

use proptest::prelude::*;
use secrets::{SHAPES, structures};
use serde_json::Value;
use std::time::{Duration, Instant};
use support::{redact, redactor};

fn any_secret() -> impl Strategy<Value = String> {
    let shapes = proptest::sample::select(SHAPES).prop_map(str::to_owned);
    let structures = proptest::sample::select(structures()).prop_map(|(text, _)| text);
    prop_oneof![
        shapes,
        structures,
        "[ -~é😀\n]{0,40}",
        "password=[ -~]{0,20}",
        Just("[REDACTED:password:0123abcd]".to_owned())
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(any_secret(), 0..4).prop_map(|parts| parts.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        proptest::sample::select(
            &[
                "password",
                "token",
                "id",
                "name",
                "value",
                "key",
                "authorization",
                "cookies",
                "text",
                "headers"
            ][..]
        )
        .prop_map(str::to_owned),
        any_text(),
    ];
    let leaf = prop_oneof![
        any_text().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name.clone(), inner.clone(), 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn json_stays_json_and_twice_is_once(value in any_json()) {
        redact(&redactor(), value.to_string().as_bytes());
    }

    #[test]
    fn twice_is_once_in_any_text(text in any_text(), cut in 0..200_usize) {
        redact(&redactor(), text.as_bytes());
        let end = cut.min(text.len());
        redact(&redactor(), &text.as_bytes()[end..]);
    }

    #[test]
    fn any_bytes_are_fine(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"\"\\:={}[],token-/@%u0"[..])], 0..200)) {
        redact(&redactor(), &bytes);
    }
}

#[test]
fn a_text_may_be_cut_anywhere() {
    let redactor = redactor();
    let shapes = SHAPES.iter().map(|&shape| shape.to_owned());
    let structures = structures().into_iter().map(|(text, _)| text);
    for text in shapes.chain(structures) {
        for at in 0..text.len() {
            redact(&redactor, &text.as_bytes()[..at]);
            redact(&redactor, &text.as_bytes()[at..]);
            // With what can follow or precede.
            redact(&redactor, &[&text.as_bytes()[..at], b"\n"].concat());
            redact(&redactor, &[b"{\"a\":\"", &text.as_bytes()[at..]].concat());
        }
    }
}

/// Units that a quadratic rule would stumble over when repeated.
const HOSTILE: &[&str] = &[
    "password=",
    "password: ",
    "password=(",
    "password=\"",
    "password=)",
    "token=a,",
    "token: [\"",
    "token ",
    "key",
    "key = \"a",
    "pass_",
    "secret=(a;",
    "eyJ",
    "eyJaaaaaaaa.",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "://a:b/",
    "://a:b@c",
    "sk-",
    "ghp_",
    "ghp_abcdefghijklmnop ",
    "AZDO",
    "a1Q~",
    "12345678:AA",
    "[",
    "{\"a\":",
    "\\",
    "\\\"",
    "\\u005c",
    "bearer ",
    "cookie: ",
    "cookie: a=\"",
    "authorization: digest ",
    "%41password",
    "%3D",
    "\u{1b}[0mtoken",
    "code=aaaaaa&",
    "identified by '",
    "{\"token\":\"a1b2c3\"}\n",
    "[REDACTED:",
    "[REDACTED:token:0123abcd]",
    "curl -u a ",
    "AKIAIOSFODNN7EXAMPLE ",
    "aB3/",
    "é",
];

#[test]
fn hostile_text_takes_no_longer_than_its_length() {
    const LEN: usize = 512 * 1024;
    let redactor = redactor();
    for unit in HOSTILE {
        let text = unit.repeat(LEN / unit.len());
        for text in [Value::from(text.as_str()).to_string(), text] {
            let start = Instant::now();
            redactor.bytes(text.as_bytes(), &mut Vec::new(), &mut Vec::new());
            // A quadratic rule takes minutes, all others a fraction of a second.
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "{unit:?}: {:?}",
                start.elapsed()
            );
        }
    }
}
