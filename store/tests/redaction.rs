//! No secret reaches the disk: each kind, in each place it can turn up, leaves no eight bytes
//! of itself behind. And what is no secret stays as it is (`redaction_leaves_alone.rs`).
//!
//! All secrets here are made up, and put together from pieces so that scanners of repositories
//! do not take them for real ones.

use agent_trace_store::redact::{Key, Redaction, Redactor};
use proptest::prelude::*;
use serde_json::{Value, json};

fn redactor() -> Redactor {
    Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap()
}

/// Redacts, and checks what must hold for every text.
fn redact(redactor: &Redactor, text: &[u8]) -> Vec<u8> {
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
fn check_spans(text: &[u8], out: &[u8], spans: &[Redaction]) {
    let (mut end, mut len) = (0, out.len());
    for span in spans {
        let (at, marker) = (span.at as usize, span.marker as usize);
        assert!(at >= end);
        end = at + marker;
        let marker_text = String::from_utf8_lossy(&out[at..end]).into_owned();
        let start = format!("[REDACTED:{}:", span.kind);
        assert!(
            marker_text.trim_matches('"').starts_with(&start),
            "{marker_text}"
        );
        len = len - marker + span.original as usize;
    }
    assert_eq!(len, text.len());
}

/// `text` and what it says when its escapes are resolved, layer by layer.
fn layers(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![text.to_vec(), percent_decoded(text)];
    for _ in 0..4 {
        let last = &all[all.len() - 1];
        let unescaped = agent_trace_wire::json::unescape(last).bytes;
        all.push(percent_decoded(&unescaped));
        all.push(unescaped);
    }
    all
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
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

fn assert_hidden(out: &[u8], secret: &str, place: &str) {
    let width = secret.len().min(8);
    for layer in layers(out) {
        for window in secret.as_bytes().windows(width) {
            assert!(
                !layer.windows(width).any(|part| part == window),
                "{place}: {:?} of {secret:?} is left in {}",
                String::from_utf8_lossy(window),
                String::from_utf8_lossy(out)
            );
        }
    }
}

/// Every way a text can stand in what a peer sends.
fn places(text: &str) -> Vec<(&'static str, Vec<u8>)> {
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

/// Secrets that are recognised by themselves.
const SHAPES: &[&str] = &[
    concat!("sk", "-ant-abcdefghijklmnopqrstuvwxyz12"),
    concat!("sk", "-ant-api03-Qw3rTy_uI0pAsDf-GhJkLzXcVbNm1234567890AA"),
    concat!("sk", "-proj-Abc123_def456-GHI789jklMNO012pqrSTU345"),
    concat!("sk", "-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"),
    concat!("sk", "-svcacct-abcdefghij1234567890"),
    concat!("AI", "zaSyA1234567890abcdefghijklmnopqrstuvw"),
    concat!("ya", "29.a0AfH6SMBx1234567890abcdefghij"),
    concat!("GOC", "SPX-abcdefghijklmnopqrstuvwx1234"),
    concat!("npm", "_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!(
        "py",
        "pi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTkwYWItY2RlZi0xMjM0NTY3ODkwYWI"
    ),
    concat!("h", "f_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    concat!("gh", "p_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "o_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "u_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "s_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "r_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!(
        "github",
        "_pat_11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz01234567"
    ),
    concat!("gl", "pat-abcdefghij1234567890"),
    concat!("gl", "dt-abcdefghij1234567890"),
    concat!("gl", "rt-t1_abcdefghij1234567890"),
    concat!("gl", "cbt-64_abcdefghij1234567890"),
    concat!("gl", "ptt-abcdefghij1234567890abcdefghij1234567890"),
    concat!(
        "xo",
        "xb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx"
    ),
    concat!(
        "xo",
        "xp-123456789012-123456789012-123456789012-abcdef0123456789abcdef0123456789"
    ),
    concat!("xo", "xe.xoxp-1-abcdefghijklmnopqrstuvwxyz"),
    concat!("xa", "pp-1-A0123456789-1234567890123-abcdef0123456789"),
    concat!("sk", "_live_abcdefghijklmnopqrstuvwx"),
    concat!("sk", "_test_abcdefghijklmnopqrstuvwx"),
    concat!("rk", "_live_abcdefghijklmnopqrstuvwx"),
    concat!("wh", "sec_abcdefghijklmnopqrstuvwxyz012345"),
    concat!("AK", "IAIOSFODNN7EXAMPLE"),
    concat!("AS", "IAIOSFODNN7EXAMPLE"),
    concat!(
        "IQ",
        "oJb3JpZ2luX2VjEHoaCXVzLWVhc3QtMSJHMEUCIQDabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnop"
    ),
    concat!("abc8", "Q~abcdefghijklmnopqrstuvwxyz012345678"),
    concat!(
        "ey",
        "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
    ),
    concat!(
        "ey",
        "JhbGciOiJSU0EtT0FFUCJ9.OKOawDo13gRp2ojaHV7LFpZcgV7T6DVZKTyKOMTYUmKoTCVJRgckCL9kiMT03JGe.48V1_ALb6US04U3b.5eym8TW_c8SuK0ltJ3rpYIzOeDQz7TALvtu6UG9oMo4vpzs9tX_EFShS8iB7j6ji.XFBoMYUZodetZdvTiFvSkQ"
    ),
    concat!(
        "S",
        "G.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
    ),
    concat!(
        "dop",
        "_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    ),
    concat!("sh", "pat_0123456789abcdef0123456789abcdef"),
    concat!("da", "pi0123456789abcdef0123456789abcdef"),
    concat!("hv", "s.CAESIJabcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gl", "sa_abcdefghijklmnopqrstuvwxyzABCDEF_01234567"),
    concat!("lin", "_api_abcdefghijklmnopqrstuvwxyz0123456789ABCD"),
    concat!("nt", "n_123456789012abcdefghijklmnopqrstuvwxyzABCDEF"),
    concat!("SK", "0123456789abcdef0123456789abcdef"),
    concat!("tv", "ly-abcdefghijklmnopqrstuvwxyz012345"),
    concat!(
        "gs",
        "k_abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnop"
    ),
    concat!(
        "AGE-SECRET",
        "-KEY-1QQPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQG"
    ),
    concat!("123456789", ":AAabcdefghijklmnopqrstuvwxyz0123456"),
];

/// Texts with a secret that their structure gives away, and the secret part.
fn structures() -> Vec<(String, Vec<&'static str>)> {
    let body = concat!(
        "MIIEowIBAAKCAQEAxK3cB9hQ5tVw2Yz7Lm4NpRsT\nuVwXyZ0123456789",
        "abcdefghijklmnopqrstuvwx"
    );
    let lines = vec![&body[..40], &body[41..]];
    let pem = |label: &str| {
        (
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----"),
            lines.clone(),
        )
    };
    let aws = concat!("wJalrXUtnFEMI/K7MDENG/bPx", "RfiCYEXAMPLEKEY");
    let azure = concat!(
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/",
        "K1SZFPTOtr/KBHBeksoGMGw=="
    );
    let sig = "wT3nV9k2bQ7zL5mX8cR1pY4sA6dF0gH2jK3lZ8vN5oE%3D";
    let mut all = vec![
        pem("PRIVATE KEY"),
        pem("RSA PRIVATE KEY"),
        pem("EC PRIVATE KEY"),
        pem("OPENSSH PRIVATE KEY"),
        pem("ENCRYPTED PRIVATE KEY"),
        pem("PGP PRIVATE KEY BLOCK"),
        (
            format!("-----BEGIN PRIVATE KEY-----\n{body}"),
            lines.clone(),
        ),
        (format!("AWS_SECRET_ACCESS_KEY={aws}"), vec![aws]),
        (format!("aws_secret_access_key = {aws}"), vec![aws]),
        (
            format!(
                "id {} and key {aws} of it",
                concat!("AK", "IAIOSFODNN7EXAMPLE")
            ),
            vec![aws],
        ),
        (
            format!(
                "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={azure};EndpointSuffix=core.windows.net"
            ),
            vec![azure],
        ),
        (
            format!(
                "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={azure}"
            ),
            vec![azure],
        ),
        (
            format!(
                "https://x.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig={sig}&se=2030-01-01"
            ),
            vec![sig],
        ),
    ];
    let texts: &[(&str, &str)] = &[
        (
            "Authorization: Bearer abcdef1234567890abcdef",
            "abcdef1234567890abcdef",
        ),
        ("authorization: bearer Zx9Kq2Lm8Vb4", "Zx9Kq2Lm8Vb4"),
        ("sent Bearer Zx9Kq2Lm8Vb4Nc6 to it", "Zx9Kq2Lm8Vb4Nc6"),
        (
            "Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        (
            "with Basic dXNlcjpodW50ZXIyaHVudGVyMg== it",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        (
            "Authorization: Token 9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b",
            "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b",
        ),
        (
            "Proxy-Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        (
            "Cookie: session=abc123def456ghi789; theme=dark",
            "session=abc123def456ghi789; theme=dark",
        ),
        (
            "Set-Cookie: sid=abc123def456ghi789; Path=/; HttpOnly",
            "sid=abc123def456ghi789",
        ),
        ("X-Api-Key: 5f2b8c1d9e4a7036", "5f2b8c1d9e4a7036"),
        (
            "postgres://app:S3cr3tPassw0rd@db.example.com:5432/app",
            "S3cr3tPassw0rd",
        ),
        (
            "postgresql+asyncpg://app:S3cr3tPassw0rd@db/app?ssl=1",
            "S3cr3tPassw0rd",
        ),
        ("mysql://root:p@ss/w0rd#1x@10.0.0.1/db", "p@ss/w0rd#1x"),
        (
            "mongodb+srv://u:S3cr3tPassw0rd@c0.mongodb.net/?w=majority",
            "S3cr3tPassw0rd",
        ),
        ("redis://:S3cr3tPassw0rd@cache:6379/0", "S3cr3tPassw0rd"),
        ("amqp://guest:S3cr3tPassw0rd@mq", "S3cr3tPassw0rd"),
        (
            "https://user:S3cr3tPassw0rd@example.com/x",
            "S3cr3tPassw0rd",
        ),
        (
            "https://aB3dE5fG7hI9jK1lM3nO5pQ7@example.com/x.git",
            "aB3dE5fG7hI9jK1lM3nO5pQ7",
        ),
        ("root:S3cr3tPassw0rd@tcp(db:3306)/app", "S3cr3tPassw0rd"),
        (
            "jdbc:sqlserver://h:1433;user=sa;password=S3cr3tPassw0rd;encrypt=true",
            "S3cr3tPassw0rd",
        ),
        (
            "Server=h;Database=d;User Id=sa;Password=S3cr3tPassw0rd;",
            "S3cr3tPassw0rd",
        ),
        ("Server=h;Uid=sa;Pwd=S3cr3tPassw0rd", "S3cr3tPassw0rd"),
        (
            "https://api.example.com/v1?api_key=abcdef123456&x=1",
            "abcdef123456",
        ),
        (
            "https://api.example.com/v1?x=1&access_token=abcdef123456",
            "abcdef123456",
        ),
        (
            "https://example.com/cb#access_token=abcdef123456&token_type=bearer",
            "abcdef123456",
        ),
        (
            "http://127.0.0.1:33418/callback?code=SplxlOBeZQQYbYS6&state=xyz",
            "SplxlOBeZQQYbYS6",
        ),
        (
            "grant_type=authorization_code&code=SplxlOBeZQQYbYS6&redirect_uri=x",
            "SplxlOBeZQQYbYS6",
        ),
        (
            "client_id=x&client_secret=abcdef123456&grant_type=refresh_token",
            "abcdef123456",
        ),
        (
            "curl -u admin:S3cr3tPassw0rd https://example.com",
            "S3cr3tPassw0rd",
        ),
        (
            "//registry.npmjs.org/:_authToken=abcdef12-3456-7890-abcd-ef1234567890",
            "abcdef12-3456-7890-abcd-ef1234567890",
        ),
        ("export API_KEY=abcdef123456", "abcdef123456"),
        (
            "export DB_PASSWORD='correct horse battery staple'",
            "correct horse battery staple",
        ),
        ("password=hunter2hunter2", "hunter2hunter2"),
        ("password: hunter2hunter2", "hunter2hunter2"),
        ("password hunter2hunter2", "hunter2hunter2"),
        ("the password is hunter2hunter2.", "hunter2hunter2"),
        ("Password: Tr0ub4dor&3zebra", "Tr0ub4dor&3zebra"),
        ("**Password**: hunter2hunter2", "hunter2hunter2"),
        ("API key: 5f2b8c1d9e4a7036", "5f2b8c1d9e4a7036"),
        (
            "Incorrect API key provided: 5f2b8c1d9e4a7036",
            "5f2b8c1d9e4a7036",
        ),
        ("const apiKey = \"abcdef123456\";", "abcdef123456"),
        ("self.secret_key = 'abcdef123456'", "abcdef123456"),
        ("password: str = \"abcdef123456\"", "abcdef123456"),
        (
            "{\"password\":\"correct horse battery staple\"}",
            "correct horse battery staple",
        ),
        ("{'api_key': 'abcdef123456'}", "abcdef123456"),
        ("server --api-key abcdef123456 --port 80", "abcdef123456"),
        ("server --api-key=abcdef123456", "abcdef123456"),
        ("<password>hunter2hunter2</password>", "hunter2hunter2"),
        (
            "<add key=\"ApiKey\" value=\"abcdef123456\"/>",
            "abcdef123456",
        ),
        ("CREATE USER x IDENTIFIED BY 'abcdef123456'", "abcdef123456"),
        (
            "\"name\": \"API_KEY\", \"value\": \"abcdef123456\"",
            "abcdef123456",
        ),
        (
            "https://hooks.slack.com/services/T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx",
            "T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx",
        ),
        (
            "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&issuer=x",
            "JBSWY3DPEHPK3PXP",
        ),
    ];
    all.extend(
        texts
            .iter()
            .map(|(text, secret)| ((*text).to_owned(), vec![*secret])),
    );
    all
}

#[test]
fn shapes_are_hidden_in_every_place() {
    let redactor = redactor();
    for secret in SHAPES {
        for (place, text) in places(secret) {
            assert_hidden(&redact(&redactor, &text), secret, place);
        }
    }
}

#[test]
fn structures_are_hidden_in_every_place() {
    let redactor = redactor();
    for (structure, secrets) in structures() {
        for (place, text) in places(&structure) {
            let out = redact(&redactor, &text);
            for secret in &secrets {
                assert_hidden(&out, secret, place);
            }
        }
    }
}

#[test]
fn values_of_secret_names_are_hidden_whatever_they_are() {
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
                assert_hidden(
                    &redact(&redactor, text.as_bytes()),
                    secret,
                    &format!("{name} {place}"),
                );
            }
        }
    }
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
            assert_hidden(&redact(&redactor, &text), secret, place);
        }
    }
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
