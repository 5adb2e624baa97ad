//! No secret reaches the disk: each kind, in each place it can turn up, leaves no eight bytes
//! of itself behind.

#![allow(clippy::unwrap_used)]

#[path = "redaction/secrets.rs"]
mod secrets;
#[path = "redaction/support.rs"]
mod support;

use secrets::{SHAPES, structures};
use serde_json::json;
use support::{assert_hidden, leak, places, redact, redactor};

#[test]
fn shapes_are_hidden_in_every_place() {
    let redactor = redactor();
    let mut leaks = String::new();
    for secret in SHAPES {
        for (place, text) in places(secret) {
            leaks.extend(leak(&redact(&redactor, &text), secret, place));
        }
    }
    assert!(leaks.is_empty(), "{leaks}");
}

#[test]
fn structures_are_hidden_in_every_place() {
    let redactor = redactor();
    let mut leaks = String::new();
    for (structure, secrets) in structures() {
        for (place, text) in places(&structure) {
            let out = redact(&redactor, &text);
            for secret in &secrets {
                leaks.extend(leak(&out, secret, place));
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks}");
}

#[test]
fn values_of_secret_names_are_hidden_whatever_they_are() {
    let mut leaks = String::new();
    let redactor = redactor();
    for name in [
        "password",
        "db_password",
        "apiKey",
        "X-Api-Key",
        "client_secret",
        "accessToken",
        "Authorization",
        "Set-Cookie",
        "private_key",
        "credentials",
    ] {
        for secret in [
            "hunter2hunter2",
            "correct horse battery staple",
            "0123456789abcdef",
            "quo\"te\\slash/line\nbreak",
            "päßwörd-ünïcode",
            "secretsecret",
        ] {
            let plain = json!({"params": {"arguments": {name: secret}}}).to_string();
            for (place, text) in [
                ("member", plain.clone()),
                ("array", json!({name: [secret, secret]}).to_string()),
                (
                    "name and value",
                    json!({"env": [{"name": name, "value": secret}]}).to_string(),
                ),
                (
                    "value and name",
                    json!({"value": secret, "name": name}).to_string(),
                ),
                (
                    "pairs",
                    json!({"headers": [["Accept", "x"], [name, secret]]}).to_string(),
                ),
                ("nested", json!({"text": plain}).to_string()),
                (
                    "nested twice",
                    json!({"text": json!({"text": plain}).to_string()}).to_string(),
                ),
                (
                    "nested among words",
                    json!({"text": format!("Error in {plain}")}).to_string(),
                ),
                ("log line", format!("DEBUG {plain} sent")),
                ("truncated", plain[..plain.len() - 4].to_owned()),
                ("nested and truncated", {
                    let text = json!({"text": plain}).to_string();
                    text[..text.len() - 8].to_owned()
                }),
                (
                    "escaped name",
                    plain.replacen(&name[..1], &format!("\\u{:04x}", name.as_bytes()[0]), 1),
                ),
            ] {
                let out = redact(&redactor, text.as_bytes());
                leaks.extend(leak(&out, secret, &format!("{name} {place}")));
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks}");
}

#[test]
fn weak_names_hide_what_looks_random() {
    let redactor = redactor();
    let secret = "aB3dE5fG7hI9jK1lM3nO5pQ7";
    for name in [
        "key",
        "auth",
        "session",
        "code",
        "sig",
        "signature",
        "nonce",
    ] {
        let text = json!({name: secret}).to_string();
        assert_hidden(&redact(&redactor, text.as_bytes()), secret, name);
    }
}

#[test]
fn browser_cookies_are_hidden() {
    let text =
        json!({"cookies": [{"name": "sid", "value": "plain-value", "domain": "example.com"}]})
            .to_string();
    let out = redact(&redactor(), text.as_bytes());
    assert_hidden(&out, "plain-value", "cookies");
    assert!(String::from_utf8(out).unwrap().contains("example.com"));
}
