//! A run is checked for CI: what is wrong in it is found with its place and an exact quote, as
//! text, JSON and JUnit XML, and what was accepted once does not fail the check again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../store/tests/trace_http/journal.rs"]
mod journal;
#[path = "support/support.rs"]
mod support;

use agent_trace_model::Ending;
use agent_trace_store::journal::header::KeyKind;
use journal::Journal;
use serde_json::{Value, json};
use std::fs;
use support::{Home, Said, Server};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const AGREED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Records a session: each line of the client is answered by the next lines of the server.
fn record(home: &Home, exchanges: &[(&str, &str)]) {
    let mut server = Server::new();
    let mut said = String::new();
    for (client, answers) in exchanges {
        server = server.reads_a_line().writes(answers);
        said.push_str(client);
        said.push('\n');
    }
    let server = server.reads_to_the_end();
    let ended = home.record().option("--server=notes").talk(&server, said);
    assert_eq!(ended.code, 0);
}

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A session with most of what can go wrong; `number` is different in each run.
fn bad(home: &Home, number: u32) {
    let call = |id: &str, tool: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#
        )
    };
    let failed = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"isError":true,"content":[{{"type":"text","text":"no row {number}"}}]}}}}"#
    );
    let error = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"gone"}}"#;
    let twice = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
    let unasked = r#"{"jsonrpc":"2.0","id":"2","result":{}}"#;
    let batch = format!("[{}]", call("3", "t"));
    let answer = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
    record(
        home,
        &[
            (
                INITIALIZE,
                &lines(&["\u{1b}[2Jlistening on <x> & \"y\"", AGREED]),
            ),
            (INITIALIZED, ""),
            (&call("1", "query"), &lines(&[&failed])),
            (&call("2", "t"), &lines(&[error, twice, unasked])),
            (&batch, &lines(&[answer])),
            (&call("4", "t"), "{\"jsonrpc\":\"2.0\",\"id\":4,\"res"),
        ],
    );
}

fn codes(said: &Said) -> Vec<String> {
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let found = told["findings"].as_array().unwrap().iter();
    let mut codes: Vec<String> = found
        .map(|f| f["code"].as_str().unwrap().to_owned())
        .collect();
    codes.sort();
    codes
}

const ALL: [&str; 8] = [
    "answer-twice",
    "answer-unasked",
    "batch",
    "error",
    "incomplete-frame",
    "stray-output",
    "tool-error",
    "unanswered",
];

#[test]
fn a_run_without_faults_passes() {
    let home = Home::new();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
    record(
        &home,
        &[
            (INITIALIZE, &lines(&[AGREED])),
            (INITIALIZED, ""),
            (call, &lines(&[answer])),
        ],
    );
    let said = home.run(["check", "latest"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("nothing found in 3 steps"), "{said:?}");
    let junit = home.ok(["check", "latest", "--format", "junit"]);
    assert!(
        junit.contains("failures=\"0\"") && !junit.contains("<failure"),
        "{junit}"
    );
    assert_eq!(
        codes(&home.run(["check", "latest", "--format", "json"])),
        [""; 0]
    );
}

#[test]
fn what_is_wrong_is_found_with_its_place_and_quote() {
    let home = Home::new();
    bad(&home, 7);
    let said = home.run(["check", "latest", "--format", "json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(codes(&said), ALL);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["failed"], &told["errors"]),
        (&json!(true), &json!(8))
    );
    let found = told["findings"].as_array().unwrap();
    let of = |code: &str| found.iter().find(|f| f["code"] == code).unwrap();
    let failed = of("tool-error");
    assert_eq!(
        (&failed["tool"], &failed["server"]),
        (&json!("query"), &json!("notes"))
    );
    assert_eq!(
        failed["quote"]["text"],
        r#"{"isError":true,"content":[{"type":"text","text":"no row 7"}]}"#
    );
    let step = failed["step"].as_u64().unwrap();
    let shown = home.ok(["show", "latest", "-n"]);
    let line = shown
        .lines()
        .find(|line| line.contains("no row 7"))
        .unwrap();
    assert!(line.trim_start().starts_with(&step.to_string()), "{line}");
    assert_eq!(of("batch")["party"], "client");
    // Each is on a line of its own, too.
    let each = home.run(["check", "latest", "--format", "jsonl"]);
    assert_eq!((each.code, each.out.lines().count()), (1, 8));
    let text = home.run(["check", "latest"]);
    assert_eq!(text.code, 1);
    assert!(text.out.contains("8 errors, 0 warnings in"), "{text:?}");
    assert!(text.out.contains("\\u{1b}[2Jlistening on <x>"), "{text:?}");
}

#[test]
fn junit_is_xml_whatever_was_recorded() {
    let home = Home::new();
    bad(&home, 7);
    let said = home.run(["check", "latest", "--format", "junit"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out
            .starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ")
    );
    assert!(
        said.out
            .contains("listening on &lt;x&gt; &amp; &quot;y&quot;"),
        "{said:?}"
    );
    assert!(!said.out.contains('\u{1b}'));
    well_formed(&said.out);
    assert_eq!(said.out.matches("<failure ").count(), 8);
    assert!(said.out.contains("failures=\"8\""));
    let cases = said.out.matches("<testcase ").count();
    assert!(said.out.contains(&format!("tests=\"{cases}\"")), "{said:?}");
}

/// Tags are closed in their order, attributes are quoted, and there is no other markup.
#[track_caller]
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    let mut rest = xml.split_once("?>").unwrap().1;
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        assert!(!tag.contains('<'), "{tag}");
        let quotes = tag.matches('"').count();
        assert!(
            quotes % 2 == 0 && quotes / 2 == tag.matches("=\"").count(),
            "{tag}"
        );
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) => assert_eq!(open.pop(), Some(name)),
            (None, true) => {}
            (None, false) => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert_eq!(open, [""; 0]);
    for entity in xml.split('&').skip(1) {
        let name = entity.split(';').next().unwrap();
        assert!(
            ["amp", "lt", "gt", "quot", "apos"].contains(&name),
            "{name}"
        );
    }
}

#[test]
fn what_was_accepted_does_not_fail_a_new_run() {
    let home = Home::new();
    bad(&home, 7);
    home.ok([
        "check",
        "latest",
        "--baseline",
        "accepted.json",
        "--write-baseline",
    ]);
    let check = || home.run(["check", "latest", "--baseline", "accepted.json"]);
    let said = check();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("nothing found") && said.out.contains("8 accepted"),
        "{said:?}"
    );
    // The same faults in another run: numbers do not matter.
    bad(&home, 4711);
    assert_eq!(check().code, 0);
    // A new one, and old ones that are gone.
    let call = r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1.5,"result":{"tools":[]}}"#;
    record(
        &home,
        &[
            (
                INITIALIZE,
                &lines(&["\u{1b}[2Jlistening on <x> & \"y\"", AGREED]),
            ),
            (INITIALIZED, ""),
            (call, &lines(&[answer])),
        ],
    );
    let said = check();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("id-fractional") && !said.out.contains("stray-output no"));
    assert!(said.out.contains("1 accepted"), "{said:?}");
    assert_eq!(
        said.out.matches("does not occur any more").count(),
        7,
        "{said:?}"
    );
    // A warning is no error.
    let lenient = [
        "check",
        "latest",
        "--baseline",
        "accepted.json",
        "--fail-on",
        "error",
    ];
    assert_eq!(home.run(lenient).code, 0);
    // Reasons that people wrote down stay.
    let path = home.at("work/accepted.json");
    let mut baseline: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let entry = baseline["accepted"].as_array_mut().unwrap();
    let entry = entry
        .iter_mut()
        .find(|entry| entry["code"] == "stray-output")
        .unwrap();
    entry["reason"] = json!("it is a banner");
    fs::write(&path, baseline.to_string()).unwrap();
    home.ok([
        "check",
        "latest",
        "--baseline",
        "accepted.json",
        "--write-baseline",
    ]);
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("it is a banner"), "{written}");
    assert_eq!(check().code, 0);
}

#[test]
fn what_cannot_be_checked_is_told_from_what_fails() {
    let home = Home::new();
    assert_eq!(home.run(["check", "latest"]).code, 2);
    record(&home, &[(INITIALIZE, &lines(&[AGREED])), (INITIALIZED, "")]);
    assert_eq!(home.run(["check"]).code, 2);
    assert_eq!(home.run(["check", "ffffffff"]).code, 2);
    assert_eq!(home.run(["check", "latest", "--write-baseline"]).code, 2);
    let missing = home.run(["check", "latest", "--baseline", "none.json"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("none.json"), "{missing:?}");
    for wrong in ["", "[]", "{\"version\":99,\"accepted\":[]}"] {
        fs::write(home.at("work/wrong.json"), wrong).unwrap();
        let said = home.run(["check", "latest", "--baseline", "wrong.json"]);
        assert_eq!(said.code, 2, "{said:?}");
    }
}

#[test]
fn rules_are_listed_with_where_they_are_written() {
    let home = Home::new();
    let text = home.ok(["check", "--list"]);
    assert!(
        text.contains("stray-output") && text.contains("source: MCP 2024-11-05"),
        "{text}"
    );
    let rules = home.json(["check", "--list", "--format", "json"]);
    assert!(rules.as_array().unwrap().len() > 40);
    for rule in rules.as_array().unwrap() {
        for member in ["code", "severity", "about", "why", "source"] {
            assert!(rule[member].is_string(), "{rule}");
        }
    }
}

#[test]
fn headers_and_bodies_of_http_are_compared() {
    let home = Home::new();
    let mut j = Journal::in_folder(&home.store_folder());
    j.open(1, KeyKind::Caller);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let json = ("content-type", "application/json");
    let mut call = |exchange: u32, name: &str, media: &str, body: &str| {
        j.request(
            1,
            exchange,
            "POST",
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", name),
                json,
            ],
        );
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{exchange},"method":"tools/call","params":{{"name":"search",{meta}}}}}"#
        );
        j.asks(1, exchange, &text);
        j.response(1, exchange, 200, &[("content-type", media)]);
        j.answers(1, exchange, body);
        j.finish(1, exchange, agent_trace_model::Finish::Complete);
    };
    let right =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}"#);
    call(1, "search", "application/json", &right(1));
    call(2, "fetch", "application/json", &right(2));
    call(3, "search", "text/plain", &right(3));
    j.end(1, Ending::ClientClosed);
    j.close();
    let said = home.run(["check", "latest", "--format", "json"]);
    assert_eq!(codes(&said), ["content-type", "header-mismatch"]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        told["findings"][0]["quote"]["text"],
        "Mcp-Name: fetch (body: search)"
    );
}
