//! Beside the ranking a model can be asked, if the configuration names one and the user says so:
//! through either dialect, and only what it quotes word for word counts. The model in here is a
//! script.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use support::{Home, LIMIT, Said, Server};

/// An endpoint that answers each request with this, and hands out heads and bodies.
fn endpoint(status: &'static str, answer: String) -> (u16, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                let line = line.to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            let _ = told.send((head, body));
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
                answer.len()
            );
        }
    });
    (port, heard)
}

fn failed_run() -> Home {
    let home = Home::new();
    let call = |id: u64, tool: &str, text: &str| {
        let params = json!({ "name": tool, "arguments": { "text": text } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        format!("{call}\n")
    };
    let input = call(1, "echo", "note-4711") + &call(2, "fail", "there is no note-4711");
    home.record().talk(&Server::mcp(), input);
    home
}

fn suspects(home: &Home, words: &[&str], key: Option<&str>) -> Said {
    let mut command = home.program();
    command.args(["suspects", "latest"]).args(words);
    if let Some(key) = key {
        command.env("JUDGE_KEY", key);
    }
    Said::by(&mut command, b"")
}

fn blamed(quotes: &[&str]) -> Value {
    json!({ "step": 2, "because": "Nobody wrote the note.", "quotes": quotes })
}

#[test]
fn it_is_asked_in_either_dialect_and_quotes_are_checked() {
    let arguments = blamed(&["there is no note-4711", "there was a note"]);
    let openai = json!({ "choices": [{ "message": { "tool_calls": [{ "type": "function",
        "function": { "name": "blame_step", "arguments": arguments.to_string() } }] } }] });
    let anthropic = json!({ "content": [
        { "type": "tool_use", "name": "blame_step", "input": arguments }
    ] });
    for (dialect, answer) in [("openai", openai), ("anthropic", anthropic)] {
        let home = failed_run();
        let (port, heard) = endpoint("200 OK", answer.to_string());
        home.configure(&format!(
            "[judge]\nurl = \"http://127.0.0.1:{port}/v1/x\"\nmodel = \"m-1\"\n\
             dialect = \"{dialect}\"\nkey_env = \"JUDGE_KEY\"\n"
        ));
        // Nothing is sent unless it is asked for.
        let alone = suspects(&home, &["--format", "json"], None);
        assert!(heard.try_recv().is_err() && !alone.out.contains("\"judge\""));
        let said = suspects(&home, &["--judge", "--format", "json"], Some("sesame"));
        assert_eq!(said.code, 0, "{}", said.err);
        let told: Value = serde_json::from_str(&said.out).unwrap();
        let judge = &told["judge"];
        assert_eq!(
            (&judge["step"], &judge["dropped_quotes"]),
            (&json!(2), &json!(1))
        );
        let quote = &judge["quotes"][0];
        assert_eq!(quote["recorded"]["text"], "there is no note-4711");
        assert!(
            judge["note"]
                .as_str()
                .unwrap()
                .contains("opinion of a model")
        );
        // The ranking is what it is without.
        let mut ranking = told.clone();
        ranking.as_object_mut().unwrap().remove("judge");
        assert_eq!(ranking, serde_json::from_str::<Value>(&alone.out).unwrap());

        let (head, body) = heard.recv_timeout(LIMIT).unwrap();
        let key = match dialect {
            "openai" => "authorization: bearer sesame",
            _ => "x-api-key: sesame",
        };
        assert!(
            head.starts_with("post /v1/x http/1.1") && head.contains(key),
            "{head}"
        );
        assert_eq!(body["model"], "m-1");
        assert!(!body["tool_choice"].is_null(), "{body}");
        assert!(body.to_string().contains("there is no note-4711"));

        let said = suspects(&home, &["--judge"], Some("sesame"));
        assert!(said.out.contains("A model says: step 2"), "{}", said.out);
        assert!(said.out.contains("1 of its quotes"), "{}", said.out);
    }
}

#[test]
fn what_cannot_be_asked_or_does_not_count_is_said() {
    let home = failed_run();
    let refused = |config: &str, key: Option<&str>, what: &str| {
        home.configure(config);
        let said = suspects(&home, &["--judge"], key);
        assert_eq!(said.code, 2, "{what}: {}", said.out);
        assert!(said.err.contains(what), "{what}: {}", said.err);
        assert!(!said.err.contains("sesame"), "{}", said.err);
    };
    refused("", None, "no model is set");
    let at = |url: &str, more: &str| format!("[judge]\nurl = \"{url}\"\nmodel = \"m\"\n{more}");
    refused(&at("http://models.example.com/v1", ""), None, "in clear");
    let (port, heard) = endpoint("200 OK", "{\"choices\":[]}".into());
    let url = format!("http://127.0.0.1:{port}/v1");
    refused(
        &at(&url, "key_env = \"JUDGE_KEY\"\n"),
        None,
        "JUDGE_KEY has no key",
    );
    std::fs::write(home.at("key"), "sesame\n").unwrap();
    let file = format!("key_file = {:?}\n", home.at("key"));
    std::fs::set_permissions(home.at("key"), PermissionsExt::from_mode(0o644)).unwrap();
    refused(&at(&url, &file), None, "can be read by others");
    assert!(heard.try_recv().is_err());
    std::fs::set_permissions(home.at("key"), PermissionsExt::from_mode(0o600)).unwrap();
    refused(&at(&url, &file), None, "did not call the tool");
    let (head, _) = heard.recv_timeout(LIMIT).unwrap();
    assert!(head.contains("bearer sesame"), "{head}");
    let (port, _heard) = endpoint("302 Found", "{}".into());
    refused(
        &at(&format!("http://127.0.0.1:{port}/"), ""),
        None,
        "HTTP 302",
    );
    let (port, _heard) = endpoint("200 OK", "x".repeat(2 << 20));
    refused(
        &at(&format!("http://127.0.0.1:{port}/"), ""),
        None,
        "length limit",
    );
    // One that accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    refused(&at(&url, "timeout = \"200ms\"\n"), None, "timed out");
    let shown = home.ok(["config"]);
    assert!(shown.contains("judge.url"), "{shown}");
}
