//! Claude Code, Codex and Copilot CLI are asked why the last run failed, and find out by our
//! server. Their model is scripted: what it asks comes from what it was answered before.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::assistants::{Answered, Assistant, Client, missing};
use support::peers::{self, Peers, node_server};
use support::{Home, skip};

const QUESTION: &str = "why did the last run fail?";

/// Why this test cannot run here, if it cannot.
#[track_caller]
fn cannot() -> Option<&'static str> {
    missing().or_else(|| peers::missing(Peers::Node))
}

/// A run in which one file is read, and another one is not there.
fn failed_run(home: &Home, project: &Path) -> String {
    let data = home.at("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("notes.txt"), "the year in numbers\n").unwrap();
    let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "report-agent", "version": "1" } });
    let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments });
    let read = |name: &str| call("read_text_file", json!({ "path": data.join(name) }));
    let (first, last) = (read("notes.txt"), read("report.txt"));
    let record = home.record().option("--server").option("files");
    let record = record.with(|command| {
        command.current_dir(project);
    });
    let session = record.start_command(node_server("server-filesystem", &[data.to_str().unwrap()]));
    for (id, method, params) in [
        (1, "initialize", &about),
        (2, "tools/list", &json!({})),
        (3, "tools/call", &first),
        (4, "tools/call", &last),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        session.send(format!("{request}\n"));
        session.wait_for_text(&format!("\"id\":{id}}}\n"));
    }
    session.close_input();
    assert_eq!(session.wait().code, 0);
    home.newest()
}

/// A step of the scripted model.
fn step(tool: &str, arguments: &Value) -> Value {
    json!({ "tool": tool, "args": arguments })
}

/// What the model does: each argument is taken from the answers before.
fn next_step(answered: &Answered, first: usize) -> Value {
    match answered.results.len() - first {
        0 => step("list_failed_runs", &json!({})),
        1 => {
            let run = &answered.result(first)["runs"][0]["run"];
            step("rank_suspects", &json!({ "run": run }))
        }
        _ => {
            let ranked = answered.result(first + 1);
            let quote = &ranked["suspects"][0]["reasons"][0]["quotes"][0];
            let part = json!({ "run": ranked["run"]["run"], "step": quote["step"],
                "part": quote["part"], "offset": quote["offset"], "length": quote["length"] });
            step("get_step", &part)
        }
    }
}

/// Lets the assistant go the whole way, and checks what its model came to know. `before` are
/// steps to be done first.
#[track_caller]
fn finds_out(assistant: &Assistant<'_>, run: &str, before: Vec<Value>) -> Answered {
    let first = before.len();
    let mut steps = before;
    let mut answered = assistant.ask(QUESTION, &steps);
    for _ in 0..3 {
        steps.push(next_step(&answered, first));
        answered = assistant.ask(QUESTION, &steps);
        assert_eq!(answered.results.len(), steps.len(), "{answered:?}");
    }
    let listed = answered.result(first);
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["runs"][0]["run"], run);
    let ranked = answered.result(first + 1);
    let suspect = &ranked["suspects"][0];
    assert_eq!(suspect["recorded"]["target"], "read_text_file", "{ranked}");
    assert_eq!(suspect["step"], listed["runs"][0]["failures"][0]["step"]);
    let found = answered.result(first + 2)["response"].clone();
    let quoted = &suspect["reasons"][0]["quotes"][0]["recorded"]["text"];
    assert_eq!(&found["recorded"]["text"], quoted, "{found}");
    assert!(quoted.as_str().unwrap().contains("ENOENT"), "{quoted}");
    answered
}

/// Who called which tool, and what came of it, as the audit log has it.
fn audited(home: &Home) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(home.at("store/state/audit")).unwrap();
    assert!(!text.contains("ENOENT") && !text.contains("report.txt"));
    let calls = text
        .lines()
        .map(|line| -> Value { serde_json::from_str(line).unwrap() });
    let member = |call: &Value, name: &str| call[name].as_str().unwrap().to_owned();
    calls
        // Lists of tools and the like are asked for as often as the client wants.
        .filter(|call| !call["tool"].as_str().unwrap().contains('/'))
        .map(|call| {
            (
                member(&call, "who"),
                member(&call, "tool"),
                member(&call, "outcome"),
            )
        })
        .collect()
}

#[track_caller]
fn are(calls: &[(String, String, String)], who: &str, tools: &[&str]) {
    let expected: Vec<_> = tools
        .iter()
        .map(|tool| (who.to_owned(), (*tool).to_owned(), "ok".to_owned()))
        .collect();
    assert_eq!(calls, expected);
}

const WAY: [&str; 3] = ["list_failed_runs", "rank_suspects", "get_step"];

/// Without a key: it is told of the project that it works in.
fn without_a_key(client: Client) {
    if let Some(reason) = cannot() {
        return skip(&format!("{client:?} asks"), reason);
    }
    let home = Home::new();
    let assistant = Assistant::new(&home, client);
    let run = failed_run(&home, &assistant.project());
    finds_out(&assistant, &run, Vec::new());
    let calls = audited(&home);
    // It was asked three times over, each time one step further.
    assert_eq!(calls.len(), 6);
    are(&calls[3..], "local", &WAY);
    assert_eq!(home.run_ids(), [run], "asking leaves no run behind");
    // What was recorded elsewhere is not its business.
    let home = Home::new();
    let assistant = Assistant::new(&home, client);
    failed_run(&home, &home.at("work"));
    let answered = assistant.ask(QUESTION, &[step("list_failed_runs", &json!({}))]);
    assert_eq!(answered.result(0)["runs"], json!([]));
}

/// With a key, by the entry that `key create --for` prints.
fn with_a_key(client: Client) {
    if let Some(reason) = cannot() {
        return skip(&format!("{client:?} asks with a key"), reason);
    }
    let home = Home::new();
    let key = |name: &str, scopes: &str| {
        let file = home.at(name);
        let words = ["key", "create", "--name", name, "--scopes", scopes];
        let file = ["--key-file", file.to_str().unwrap(), "--for", client.name()];
        home.ok(words.iter().chain(&file))
    };
    let entry = key("reads", "runs:read,suspects:read");
    let assistant = Assistant::new(&home, client).with_entry(&entry);
    // A key is for all projects.
    let run = failed_run(&home, &home.at("work"));
    finds_out(&assistant, &run, Vec::new());
    are(&audited(&home)[3..], "reads", &WAY);
    // What a key does not open is not offered.
    let entry = key("narrow", "runs:read");
    let assistant = assistant.with_entry(&entry);
    let steps = [
        step("list_failed_runs", &json!({})),
        step("rank_suspects", &json!({})),
    ];
    let answered = assistant.ask(QUESTION, &steps);
    assert_eq!(answered.answer, "FAKE-MODEL-NO-TOOL rank_suspects");
    are(&audited(&home)[6..], "narrow", &WAY[..1]);
}

#[test]
fn claude_code() {
    without_a_key(Client::Claude);
}

#[test]
fn codex() {
    without_a_key(Client::Codex);
}

#[test]
fn copilot() {
    without_a_key(Client::Copilot);
}

#[test]
fn claude_code_with_a_key() {
    with_a_key(Client::Claude);
}

#[test]
fn codex_with_a_key() {
    with_a_key(Client::Codex);
}

#[test]
fn copilot_with_a_key() {
    with_a_key(Client::Copilot);
}

/// Claude Code shows its model the names of tools only, and searches them for it. The question
/// itself must find the way.
#[test]
fn claude_code_with_its_tool_search() {
    if let Some(reason) = cannot() {
        return skip("Claude Code with its tool search", reason);
    }
    let home = Home::new();
    let mut assistant = Assistant::new(&home, Client::Claude);
    // As it is by default: the runner switches the search off.
    assistant.options = vec!["--env".into(), "ENABLE_TOOL_SEARCH=".into()];
    let run = failed_run(&home, &assistant.project());
    let search = |query: &str| step("ToolSearch", &json!({ "query": query, "max_results": 5 }));
    let answered = finds_out(
        &assistant,
        &run,
        vec![search(QUESTION), search("run step evidence")],
    );
    let is_ours = |name: &&String| name.contains("agent-trace");
    assert_eq!(answered.offered.iter().find(is_ours), None, "{answered:?}");
    let found = |number: usize, tool: &str| {
        let found = answered.results[number].contains(&format!("\"mcp__agent-trace__{tool}\""));
        assert!(found, "{tool}: {}", answered.results[number]);
    };
    found(0, "list_failed_runs");
    found(0, "rank_suspects");
    found(1, "get_step");
    are(&audited(&home)[3..], "local", &WAY);
}
