//! A question that takes long tells how far it is, and ends when nobody waits for it any more:
//! told so over stdio, and over HTTP of 2026-07-28 by a client that closes the stream.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../benches/common/generate.rs"]
#[allow(unused_imports, reason = "what is made is not counted here")]
mod generate;
#[path = "support/support.rs"]
mod support;

use generate::Plan;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use support::asking::Asking;
use support::daemon::ADMIN;
use support::http::post_with;
use support::{Home, wait_for};

/// So many that looking through all of them takes seconds.
const PLAN: Plan = Plan {
    runs: 3_000,
    events: 150_000,
    seed: 7,
};

/// What no filter of words can tell, so that every run is opened, and what is in none of them.
fn question() -> Value {
    json!({ "name": "search_steps", "arguments": {
        "filter": "~b /[a-z]+[0-9]+[a-z]+zzqq$/", "last": 10_000
    }, "_meta": { "progressToken": 7 } })
}

fn made() -> Home {
    let home = Home::new();
    generate::generate(&home.store(), PLAN, 2).unwrap();
    // The index is there already: it is the question that takes long.
    home.ok(["runs"]);
    home
}

/// What the audit log says of the question.
fn outcome(home: &Home) -> String {
    wait_for("the end of the question", || {
        let audit = std::fs::read_to_string(home.at("store/state/audit")).ok()?;
        let line = audit.lines().find(|line| line.contains("search_steps"))?;
        let call: Value = serde_json::from_str(line).unwrap();
        Some(call["outcome"].as_str().unwrap().to_owned())
    })
}

#[test]
fn a_question_that_is_cancelled_ends() {
    let home = made();
    let mut asking = Asking::all(&home);
    let id = asking.begin("tools/call", &question());
    let first = asking.next();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    assert_eq!(first["params"]["progressToken"], 7);
    let cancel = json!({ "requestId": id, "reason": "enough" });
    asking.tell("notifications/cancelled", &cancel);
    assert_eq!(outcome(&home), "cancelled");
    // Others are answered as before; what was cancelled is not.
    let listed = asking.request("tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array());
}

#[test]
fn how_far_it_is_only_rises() {
    let home = made();
    let mut asking = Asking::all(&home);
    let mut asked = question();
    asked["arguments"]["last"] = json!(500);
    asked["arguments"]["filter"] = json!("~b zq9");
    let id = asking.begin("tools/call", &asked);
    let mut told = Vec::new();
    loop {
        let message = asking.next();
        if message["id"] == id {
            assert_eq!(message["result"]["isError"], false, "{message}");
            break;
        }
        told.push(message["params"]["progress"].as_f64().unwrap());
    }
    assert!(told.len() > 2 && told.is_sorted(), "{told:?}");
}

#[test]
fn a_question_whose_stream_is_closed_ends() {
    let home = made();
    let words = ["key", "create", "--name", "k", "--scopes", "runs:read"];
    let key = home.ok(words).trim().to_owned();
    let daemon = home.daemon(ADMIN);
    let mut params = question();
    let meta = params["_meta"].as_object_mut().unwrap();
    meta.insert(
        "io.modelcontextprotocol/protocolVersion".into(),
        json!("2026-07-28"),
    );
    meta.insert(
        "io.modelcontextprotocol/clientCapabilities".into(),
        json!({}),
    );
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: search_steps\r\n\
         Authorization: Bearer {key}\r\n"
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let address = daemon.status()["admin"]["address"].clone();
    let mut stream = TcpStream::connect(address.as_str().unwrap()).unwrap();
    stream
        .write_all(&post_with(&headers, body.to_string()))
        .unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let told = lines.find(|line| line.as_ref().unwrap().contains("notifications/progress"));
    assert!(told.is_some(), "it tells how far it is");
    // Meanwhile others are answered.
    assert_eq!(daemon.get("/healthz").status(), 200);
    drop((lines, stream));
    assert_eq!(outcome(&home), "cancelled");
}
