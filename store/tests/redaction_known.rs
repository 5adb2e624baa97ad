//! Secrets that are known beforehand, from a server's environment and arguments or from the
//! user's rules, are hidden wherever they turn up.

#![allow(clippy::unwrap_used)]

#[path = "redaction/support.rs"]
mod support;

use agent_trace_store::redact::{Key, Redactor};
use support::{assert_hidden, leak, places, redact, redactor};

#[test]
fn arguments() {
    let redactor = redactor();
    let secret = "correct-horse";
    let cases: &[&[&str]] = &[
        &["server", "--token", secret],
        &["server", "--token=correct-horse"],
        &["server", "-token", secret],
        &["docker", "run", "-e", "API_KEY=correct-horse", "image"],
        &["docker", "run", "--env=DB_PASSWORD=correct-horse"],
        &["env", "SECRET=correct-horse", "server"],
        &[
            "npx",
            "mcp-remote",
            "https://x",
            "--header",
            "Authorization: Bearer correct-horse",
        ],
        &["curl", "-H", "X-Api-Key: correct-horse"],
        &["curl", "-HX-Api-Key: correct-horse"],
        &["curl", "-u", "user:correct-horse", "https://x"],
        &["curl", "-b", "sid=correct-horse"],
        &["mysql", "-u", "root", "-pcorrect-horse"],
        &["sshpass", "-p", secret, "ssh", "x"],
        &["redis-cli", "-a", secret],
        &["server", "postgres://u:correct-horse@h/db"],
        &["server", "https://x/?token=correct-horse"],
        &["sh", "-c", "DB_PASSWORD=correct-horse exec server"],
        &["server", "--config", "{\"apiKey\":\"correct-horse\"}"],
    ];
    for case in cases {
        let args: Vec<String> = case.iter().map(|&arg| arg.to_owned()).collect();
        let out = redactor.argv(&args);
        assert_eq!(out.len(), args.len());
        assert_hidden(out.join(" ").as_bytes(), secret, &case.join(" "));
        assert_eq!(redactor.argv(&out), out, "twice is more than once");
        let secrets = redactor.argv_secrets(&args);
        assert!(
            secrets
                .iter()
                .any(|found| found.ends_with(secret.as_bytes())),
            "{case:?}: {secrets:?}"
        );
        let mut knowing = Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap();
        knowing.add_argv(&args);
        assert_hidden(
            &redact(&knowing, b"got correct-horse from you"),
            secret,
            "literal",
        );
    }
}

#[test]
fn ordinary_arguments_stay() {
    let args: Vec<String> = [
        "node",
        "server.js",
        "--port",
        "8080",
        "--token-file",
        "/run/secrets/token",
        "--max-tokens",
        "100",
        "--tokenizer",
        "bpe",
        "-u",
        "1000:1000",
        "--key",
        "name",
        "--api-key",
        "${API_KEY}",
        "--log-level=debug",
        "https://example.com/mcp",
        "-e",
        "DEBUG=1",
        "--private-key",
        "./key.pem",
        "--password-stdin",
        "-p",
        "8080:80",
    ]
    .map(str::to_owned)
    .to_vec();
    assert_eq!(redactor().argv(&args), args);
}

#[test]
fn values_of_the_environment_are_hidden_in_every_place() {
    let mut leaks = String::new();
    let mut redactor = redactor();
    let variables = [
        ("MY_API_KEY", "correct-horse-battery"),
        ("SERVICE_TOKEN", "zebra crossing/\"9\""),
        ("DATABASE_URL", "postgres://app:p%40ss-w0rd-x@db/app"),
        ("SOME_KEY", "0f3Kx9-lower"),
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/me"),
        ("DEBUG_TOKEN", "true"),
    ];
    redactor.add_environment(variables);
    for secret in [
        "correct-horse-battery",
        "zebra crossing/\"9\"",
        "p%40ss-w0rd-x",
        "p@ss-w0rd-x",
        "0f3Kx9-lower",
    ] {
        for (place, text) in places(secret) {
            leaks.extend(leak(&redact(&redactor, &text), secret, place));
        }
    }
    assert!(leaks.is_empty(), "{leaks}");
    // `user:correct-horse-battery` and so on in base64.
    for text in [
        "dXNlcjpjb3JyZWN0LWhvcnNlLWJhdHRlcnk=",
        "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5",
        "eHh4OmNvcnJlY3QtaG9yc2UtYmF0dGVyeQ==",
    ] {
        let out = redact(&redactor, text.as_bytes());
        assert!(
            String::from_utf8(out).unwrap().contains("[REDACTED:"),
            "{text}"
        );
    }
    assert_eq!(
        redactor.text("true /usr/bin:/bin /home/me db app"),
        "true /usr/bin:/bin /home/me db app"
    );
}

#[test]
fn parts_of_known_secrets_are_hidden() {
    let mut redactor = redactor();
    redactor.add_environment([("MY_TOKEN", "k3v9x1q7z0b2n8m4w6")]);
    for text in [
        "using k3v9x1q7z0... for it",
        "token ending in z0b2n8m4w6",
        "first: k3v9x1q7",
    ] {
        let out = redact(&redactor, text.as_bytes());
        assert_hidden(&out, "k3v9x1q7z0b2n8m4w6", text);
    }
}

#[test]
fn equal_secrets_have_equal_markers() {
    let mut redactor = redactor();
    redactor.add_environment([("DB_PASSWORD", "hunter2hunter2")]);
    let marker = redactor.text("hunter2hunter2");
    assert!(marker.starts_with("[REDACTED:password:"), "{marker}");
    for text in [
        "{\"password\":\"hunter2hunter2\"}",
        "{\"password\":\"hunter2\\u0068unter2\"}",
        "{\"a\":\"{\\\"password\\\":\\\"hunter2hunter2\\\"}\"}",
        "DB_PASSWORD=hunter2hunter2",
        "postgres://u:hunter2hunter2@h/db",
        "?password=hunter2hunter2&x=1",
    ] {
        let out = redactor.text(text);
        let digits = &marker[marker.len() - 9..];
        assert!(out.contains(digits), "{out}");
    }
    assert!(
        redactor.argv(&["--password".to_owned(), "hunter2hunter2".to_owned()])[1]
            .ends_with(&marker[marker.len() - 9..])
    );
    let other = Redactor::new(Key::from_bytes([8; 32]), &[]).unwrap();
    assert_ne!(
        other.text("password=hunter2hunter2"),
        redactor.text("password=hunter2hunter2")
    );
    assert_ne!(Key::from_bytes([7; 32]).id(), Key::from_bytes([8; 32]).id());
}

#[test]
fn a_private_key_printed_line_by_line_is_hidden() {
    use agent_trace_store::redact::Carry;
    let redactor = redactor();
    let mut carry = Carry::default();
    let lines = [
        "starting",
        "-----BEGIN RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAxK3cB9hQ5tVw2Yz7Lm4NpRsTuVwXyZ0123456789abcdefgh",
        "short+line==",
        "-----END RSA PRIVATE KEY-----",
        "MIIEowIBAAKCAQEAxK3cB9",
        "done",
    ];
    let out: Vec<String> = lines
        .iter()
        .map(|line| {
            let mut out = Vec::new();
            if !redactor.line(&mut carry, line.as_bytes(), &mut out, &mut Vec::new()) {
                out = line.as_bytes().to_vec();
            }
            String::from_utf8(out).unwrap()
        })
        .collect();
    for (at, hidden) in [false, true, true, true, true, false, false]
        .into_iter()
        .enumerate()
    {
        assert_eq!(out[at] != lines[at], hidden, "{}", out[at]);
    }
}

#[test]
fn user_rules() {
    use agent_trace_store::redact::UserRule;
    let rules = [
        UserRule {
            kind: "customer".into(),
            pattern: r"CUST-\d{6}".into(),
        },
        UserRule {
            kind: "ssn".into(),
            pattern: r#""ssn":\s*"?([0-9-]+)"#.into(),
        },
    ];
    let redactor = Redactor::new(Key::from_bytes([7; 32]), &rules).unwrap();
    for (text, secret) in [
        ("for CUST-123456!", "CUST-123456"),
        (r#"{"a":"CUST-123456"}"#, "CUST-123456"),
        (r#"{"a":"CUST\u002d123456"}"#, "CUST-123456"),
        (r#"{"ssn":"123-45-6789"}"#, "123-45-6789"),
        (r#"{"ssn":123456789}"#, "123456789"),
        (r#"{"a":"{\"ssn\":\"123-45-6789\"}"}"#, "123-45-6789"),
    ] {
        assert_hidden(&redact(&redactor, text.as_bytes()), secret, text);
    }
}
