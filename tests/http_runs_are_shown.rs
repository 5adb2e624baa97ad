//! What was recorded of HTTP sessions is printed in full and in safety, as text and as JSON.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../store/tests/trace_http/journal.rs"]
mod journal;
#[path = "support/support.rs"]
mod support;

use agent_trace_model::Stream::{ClientToServer, ServerToClient};
use agent_trace_model::{Ending, Finish};
use agent_trace_store::journal::header::{Altered, KeyKind, Meta, NotDecoded};
use journal::Journal;
use serde_json::json;
use support::Home;
use support::text::steady;

/// A session in which most things happen once.
fn conversation(home: &Home) -> Journal {
    let mut j = Journal::in_folder(&home.store_folder());
    j.open(1, KeyKind::McpSession);
    let initialize = r#"{"id":0,"method":"initialize","params":{"clientInfo":{"name":"editor"}}}"#;
    j.post(1, 1, initialize, 401, "");
    let agreed = r#"{"id":0,"result":{"protocolVersion":"2025-11-25"}}"#;
    j.post(1, 2, initialize, 200, agreed);
    j.post(1, 3, r#"{"method":"notifications/initialized"}"#, 202, "");
    j.stream(1, 4, "");
    j.event(1, 4, "data: {\"id\":1,\"method\":\"roots/list\"}\n\n");
    j.post(1, 5, r#"{"id":1,"result":{"roots":[]}}"#, 202, "");
    let hostile = ("x-note", "\u{1b}[2J");
    j.request(
        1,
        6,
        "POST",
        &[("authorization", "[REDACTED:bearer:0a0b0c0d]"), hostile],
    );
    j.asks(
        1,
        6,
        r#"{"id":2,"method":"tools/call","params":{"name":"search","arguments":{"q":1}}}"#,
    );
    j.response(
        1,
        6,
        200,
        &[
            ("content-type", "text/event-stream"),
            ("content-encoding", "x-odd"),
        ],
    );
    let altered = Altered {
        from: "http://tools.example:9000/x".into(),
        to: "http://127.0.0.1:8000/x".into(),
    };
    j.fact(1, 6, ServerToClient, &Meta::Altered(altered));
    let not_decoded = NotDecoded {
        coding: "x-odd".into(),
        reason: "unknown".into(),
    };
    j.fact(1, 6, ServerToClient, &Meta::NotDecoded(not_decoded));
    j.finish(1, 6, Finish::ServerBroke);
    j.post(
        1,
        7,
        r#"{"id":3,"method":"tools/call","params":{"name":"fetch"}}"#,
        502,
        r#"{"error":"server not reached"}"#,
    );
    j.request(1, 8, "DELETE", &[]);
    j.response(1, 8, 200, &[]);
    j.finish(1, 8, Finish::Complete);
    j.finish(1, 4, Finish::ClientGone);
    j.end(1, Ending::ClientClosed);
    j.close();
    j
}

fn printed(home: &Home, words: &str) -> String {
    let id = home.newest();
    let text = home.ok(words.split(' '));
    steady(&text, &[(&id[..], "RUN-ID"), (&id[..8], "RUN")])
}

#[test]
fn an_http_run_is_printed_in_the_manner_of_strace() {
    let home = Home::new();
    conversation(&home);
    insta::assert_snapshot!(printed(&home, "runs"), @r#"
    RUN  STARTED  TIME  CLIENT  SERVER  CALLS  FAILED  STATUS
    RUN  DATE  1ms  editor  tools.example:9000  2  1  failed: fetch (step 7)
    "#);
    insta::assert_snapshot!(printed(&home, "show latest -n"), @r#"
    run RUN editor → tools.example:9000, DATE
    http: 127.0.0.1:8000 → http://tools.example:9000/mcp
    MCP 2025-11-25, tied together by a session id, inspector/2.0 (linux)
    1 TIME tools.example:9000 initialize({"clientInfo":{"name":"editor"}}) = error HTTP 401 <0.1>
    2 TIME tools.example:9000 initialize({"clientInfo":{"name":"editor"}}) = {"protocolVersion":"2025-11-25"} <0.1>
    3 TIME tools.example:9000 notifications/initialized()
    4 TIME tools.example:9000 GET /mcp = 200 text/event-stream <0.1>
    5 TIME editor roots/list() = {"roots":[]} <0.1>
    6 TIME tools.example:9000 tools/call search({"q":1}) = ? (not recorded) (the server broke off) [x-odd body not decoded: unknown]
    7 TIME tools.example:9000 tools/call fetch() = error HTTP 502 {"error":"server not reached"} <0.1>
    8 TIME tools.example:9000 DELETE /mcp = 200 <0.1>
    end failed: fetch (step 7) (the client closed the session)
    "#);
    insta::assert_snapshot!(printed(&home, "show latest --frames"), @r#"
    FRAME  EXCHANGE  TIME  FROM  FRAMING  BYTES  REDACTED  FLAGS
    3  1  DATE  client  body  72  0
    7  2  DATE  client  body  72  0
    9  2  DATE  server  body  50  0
    12  3  DATE  client  body  38  0
    17  4  DATE  server  event  38  0
    19  5  DATE  client  body  30  0
    23  6  DATE  client  body  77  0
    29  7  DATE  client  body  56  0
    31  7  DATE  server  body  30  0
    "#);
    // One that has ended is followed at once.
    let followed = printed(&home, "show latest -f -n");
    assert_eq!(followed, printed(&home, "show latest -n"));
}

#[test]
fn the_heads_of_exchanges_are_printed_escaped() {
    let home = Home::new();
    conversation(&home);
    let heads = printed(&home, "show latest --http");
    let of = |number: u32| {
        let start = heads.find(&format!("exchange {number} ")).unwrap();
        let end = heads[start..]
            .find("TIME exchange")
            .map_or(heads.len(), |at| start + at);
        heads[start..end].to_owned()
    };
    insta::assert_snapshot!(of(6), @r#"
    exchange 6 from 127.0.0.1:5000, connection 6
    > POST /mcp HTTP/1.1
    > authorization: [REDACTED:bearer:0a0b0c0d]
    > x-note: \u{1b}[2J
    < HTTP/1.1 200
    < content-type: text/event-stream
    < content-encoding: x-odd
    < altered by the relay: http://tools.example:9000/x → http://127.0.0.1:8000/x
    < x-odd body not decoded: unknown
    the server broke off, 0 B sent, 0 B answered <0.1>
    
    "#);
    let lines = home.json(["show", "latest", "--http", "--format", "json"]);
    assert_eq!(lines.as_array().unwrap().len(), 8);
    let sixth = &lines[5];
    assert_eq!(sixth["exchange"], 6);
    assert_eq!(
        sixth["request"]["headers"][1],
        json!(["x-note", "\u{1b}[2J"])
    );
    assert_eq!(sixth["altered"][0]["from"], "http://tools.example:9000/x");
    assert_eq!(sixth["finish"], "server_broke");
    for (stream, name) in [
        (ClientToServer, "client_to_server"),
        (ServerToClient, "server_to_client"),
    ] {
        assert_eq!(json!(stream), name);
    }
}

#[test]
fn the_json_of_an_http_run_has_all_of_it() {
    let home = Home::new();
    let journal = conversation(&home);
    let listed = &home.json(["runs", "--format", "json"])[0];
    let id = journal.run().entry.id.to_string();
    assert!(listed["aliases"].as_array().unwrap().contains(&json!(id)));
    assert_eq!(listed["standing"], "ended");
    let shown = home.json(["show", &id, "--format", "json"]);
    let session = &shown["sessions"][0];
    for (member, value) in [
        ("transport", json!("http")),
        ("client", json!("editor")),
        ("server", json!("tools.example:9000")),
        ("revision", json!("2025-11-25")),
        ("listen", json!("127.0.0.1:8000")),
        ("upstream", json!("http://tools.example:9000/mcp")),
        ("session_key", json!("mcp_session")),
        ("user_agent", json!("inspector/2.0 (linux)")),
        ("exchanges", json!(8)),
        ("standing", json!("ended")),
    ] {
        assert_eq!(session[member], value, "{member}");
    }
    let steps = &shown["steps"];
    assert_eq!(steps[0]["http_status"], 401);
    assert_eq!(steps[0]["exchange"], 1);
    assert_eq!(steps[0].get("rounds"), None);
    let stream = &steps[3];
    assert_eq!(
        (
            &stream["kind"],
            &stream["method"],
            &stream["target"],
            &stream["finish"]
        ),
        (
            &json!("http"),
            &json!("GET"),
            &json!("/mcp"),
            &json!("client_gone")
        )
    );
    assert_eq!(
        (stream.get("request"), stream.get("request_frame")),
        (None, None)
    );
    let frames = home.json(["show", "latest", "--frames", "--format", "json"]);
    assert_eq!(frames[0]["exchange"], 1);
    let said = home.ok(["redact", "--run", "latest"]);
    assert!(said.contains("nothing more to hide"), "{said}");
    assert_eq!(home.run(["doctor"]).code, 0);
}
