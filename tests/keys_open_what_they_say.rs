//! A key opens the tools of its scopes on the runs of its workspace, and nothing else: what is
//! closed is neither listed nor callable, and what is not there is answered like what is not
//! open.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::{RunId, Stream};
use agent_trace_store::import::Import;
use agent_trace_store::import::session::Opening;
use agent_trace_store::journal::Bodies;
use agent_trace_store::journal::header::Imported;
use agent_trace_store::recorder::{Durability, Options};
use serde_json::{Value, json};
use support::Home;
use support::asking::Asking;
use support::daemon::{ADMIN, Daemon};
use support::http::{Message, post_with};

/// Runs in a workspace: in each a call of a tool named after it fails.
fn runs_of(home: &Home, workspace: &str, count: u64) -> Vec<RunId> {
    let options = Options {
        redact: true,
        user_rules: Vec::new(),
        bodies: Bodies::Full,
        durability: Durability::Timer,
        workspace: workspace.into(),
    };
    let mut import = Import::begin(&home.store(), &options).unwrap();
    let mut runs = Vec::new();
    for number in 0..count {
        let name = format!("{workspace}-{number}");
        let process = import.process("f", &name);
        let wall = 1_790_000_000_000_000_000 + number * 1_000_000_000;
        let opening = Opening {
            started: wall,
            client: Some(format!("client-of-{workspace}")),
            server: Some(format!("server-of-{workspace}")),
            imported: Imported {
                format: "f".into(),
                session: name.clone(),
                digest: name,
                ..Imported::default()
            },
            ..Opening::default()
        };
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": format!("tool-of-{workspace}"), "arguments": { "text": format!("word-of-{workspace}") }
        }});
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -1, "message": "no" } });
        let mut writer = import.session(process, opening).unwrap();
        let (call, answer) = (call.to_string(), answer.to_string());
        writer
            .frame(Stream::ClientToServer, wall, call.as_bytes())
            .unwrap();
        writer
            .frame(Stream::ServerToClient, wall + 1, answer.as_bytes())
            .unwrap();
        writer.finish(None).unwrap();
        runs.push(import.run(process));
    }
    import.publish().unwrap();
    runs
}

fn key(home: &Home, name: &str, workspace: &str, scopes: &str) -> String {
    let words = [
        "key",
        "create",
        "--name",
        name,
        "--workspace",
        workspace,
        "--scopes",
        scopes,
    ];
    home.ok(words).trim().to_owned()
}

/// A request of revision 2026-07-28, which needs nothing before it.
fn request(key: Option<&str>, method: &str, mut params: Value, more: &str) -> Vec<u8> {
    let name = params["name"]
        .as_str()
        .or(params["uri"].as_str())
        .map(|name| format!("Mcp-Name: {name}\r\n"));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let key = key.map(|key| format!("Authorization: Bearer {key}\r\n"));
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{}{}{more}",
        name.unwrap_or_default(),
        key.unwrap_or_default()
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    post_with(&headers, body.to_string())
}

fn send(daemon: &Daemon<'_>, request: Vec<u8>) -> Message {
    daemon.ask(&String::from_utf8(request).unwrap())
}

/// The answer to a request: the message of the protocol.
#[track_caller]
fn ask(daemon: &Daemon<'_>, key: &str, method: &str, params: Value) -> Value {
    let answer = send(daemon, request(Some(key), method, params, ""));
    let text = answer.text();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let message = lines.rfind(|line| line.starts_with('{')).unwrap_or(text);
    serde_json::from_str(message).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// What each tool is asked, so that it would tell of what it sees.
fn arguments(tool: &str, run: RunId) -> Value {
    let run = run.to_string();
    match tool {
        "list_failed_runs" | "list_runs" | "tool_stats" => json!({}),
        "search_steps" => json!({ "text": "word" }),
        "get_step" | "trace_value" => json!({ "run": run, "step": 1 }),
        "compare_runs" => json!({ "a": run, "b": run }),
        _ => json!({ "run": run }),
    }
}

#[test]
fn every_key_with_every_tool_on_every_workspace() {
    let home = Home::new();
    let (of_a, of_b) = (runs_of(&home, "a", 3), runs_of(&home, "b", 5));
    let everything = key(
        &home,
        "all",
        "a",
        "runs:read,suspects:read,scan:run,experiments:start,experiments:cancel,admin",
    );
    let daemon = home.daemon(ADMIN);
    let list = |key: &str| {
        let answer = ask(&daemon, key, "tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let all = list(&everything);
    assert!(all.len() >= 9, "{all:?}");
    let mut opened = 0;
    for workspace in ["a", "b"] {
        let (own, foreign) = if workspace == "a" {
            (&of_a, &of_b)
        } else {
            (&of_b, &of_a)
        };
        for scope in ["runs:read", "suspects:read", "scan:run", "ingest:write"] {
            let key = key(&home, &format!("{workspace} {scope}"), workspace, scope);
            let open = list(&key);
            opened += open.len();
            for tool in &all {
                let call = |run| json!({ "name": tool, "arguments": arguments(tool, run) });
                let answer = ask(&daemon, &key, "tools/call", call(own[0]));
                if !open.contains(tool) {
                    assert_eq!(answer["error"]["code"], -32602, "{scope} {tool}: {answer}");
                    continue;
                }
                assert_eq!(
                    answer["result"]["isError"], false,
                    "{scope} {tool}: {answer}"
                );
                // Nothing of the other workspace, not even how much there is of it.
                let other = if workspace == "a" { "-of-b" } else { "-of-a" };
                let text = answer.to_string();
                assert!(!text.contains(other), "{tool}: {text}");
                for run in foreign {
                    assert!(!text.contains(&run.to_string()), "{tool}: {text}");
                }
                let told = &answer["result"]["structuredContent"];
                if let Some(runs) = told["runs"].as_array() {
                    assert_eq!(runs.len(), own.len(), "{tool}");
                }
                if tool == "tool_stats" {
                    assert_eq!(told["runs"], own.len());
                }
                // A foreign id is answered like one that nobody has.
                let nobody: RunId = "f".repeat(32).parse().unwrap();
                if call(own[0]) != call(foreign[0]) {
                    let of = |run: RunId| {
                        let answer = ask(&daemon, &key, "tools/call", call(run));
                        answer.to_string().replace(&run.to_string(), "RUN")
                    };
                    assert_eq!(of(foreign[0]), of(nobody), "{tool}");
                }
            }
        }
    }
    assert!(opened > 0);
}

#[test]
fn beginnings_of_foreign_ids_say_nothing() {
    let home = Home::new();
    let (of_a, of_b) = (runs_of(&home, "a", 40), runs_of(&home, "b", 40));
    let key = key(&home, "k", "a", "runs:read");
    let daemon = home.daemon(ADMIN);
    for run in of_b {
        for length in [4, 5, 6, 8, 16, 32] {
            let begin = run.to_string()[..length].to_owned();
            let own = of_a
                .iter()
                .filter(|run| run.to_string().starts_with(&begin));
            let own = own.count();
            let call = json!({ "name": "get_run", "arguments": { "run": begin } });
            let answer = ask(&daemon, &key, "tools/call", call);
            let text = answer["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned();
            let expected = match own {
                0 => "not_found",
                1 => "\"steps\"",
                _ => "ambiguous",
            };
            assert!(text.contains(expected), "{begin}: {text}");
        }
    }
}

#[test]
fn who_has_no_key_gets_nothing_and_a_revoked_one_counts_no_longer() {
    let home = Home::new();
    runs_of(&home, "default", 1);
    let daemon = home.daemon(ADMIN);
    let key = key(&home, "k", "default", "runs:read");
    let status = |request: Vec<u8>| send(&daemon, request).status();
    let list = |key: Option<&str>, more: &str| request(key, "tools/list", json!({}), more);
    assert_eq!(status(list(Some(&key), "")), 200);
    assert_eq!(status(list(None, "")), 401);
    let wrong = format!(
        "{}{}",
        &key[..key.len() - 1],
        if key.ends_with('0') { '1' } else { '0' }
    );
    let refused = send(&daemon, list(Some(&wrong), ""));
    assert_eq!(
        (
            refused.status(),
            refused.header("www-authenticate").is_some()
        ),
        (401, true)
    );
    // Addresses get into logs: there a key does not count.
    let in_address = String::from_utf8(list(None, "")).unwrap();
    let in_address = in_address.replace("POST /mcp", &format!("POST /mcp?key={key}"));
    assert_eq!(daemon.ask(&in_address).status(), 401);
    // Nor does a page that a browser shows, unless this machine has it, nor another name.
    assert_eq!(
        status(list(Some(&key), "Origin: https://evil.example\r\n")),
        403
    );
    assert_eq!(
        status(list(Some(&key), "Origin: http://localhost:5173\r\n")),
        200
    );
    let elsewhere = String::from_utf8(list(Some(&key), "")).unwrap();
    let elsewhere = elsewhere.replace("Host: localhost", "Host: evil.example");
    assert_eq!(daemon.ask(&elsewhere).status(), 403);

    home.ok(["key", "revoke", "k"]);
    assert_eq!(status(list(Some(&key), "")), 401);
    assert!(home.ok(["key", "list"]).contains("revoked"));
    // It is nowhere to be found.
    let secret = key.rsplit('_').next().unwrap();
    assert!(!daemon.log().contains(secret));
    home.ok(["daemon", "stop"]);
    for (path, bytes) in home.store_files() {
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn an_older_revision_is_answered_without_a_session() {
    let home = Home::new();
    runs_of(&home, "default", 1);
    let daemon = home.daemon(ADMIN);
    let key = key(&home, "k", "default", "runs:read");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "list_runs", "arguments": {}
    }});
    let headers = format!("MCP-Protocol-Version: 2025-11-25\r\nAuthorization: Bearer {key}\r\n");
    let answer = send(&daemon, post_with(&headers, call.to_string()));
    assert_eq!(answer.status(), 200);
    assert!(answer.header("mcp-session-id").is_none());
    assert!(
        answer.text().contains("tool-of-default") || answer.text().contains("server-of-default")
    );
}

#[test]
fn a_limit_is_told_with_when_to_try_again() {
    let home = Home::new();
    runs_of(&home, "default", 1);
    let words = [
        "key",
        "create",
        "--name",
        "k",
        "--limit",
        "2/h",
        "--scopes",
        "runs:read",
    ];
    let key = home.ok(words).trim().to_owned();
    let call = json!({ "name": "list_runs", "arguments": {} });
    let daemon = home.daemon(ADMIN);
    for _ in 0..2 {
        let answer = ask(&daemon, &key, "tools/call", call.clone());
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let refused = |daemon: &Daemon<'_>| {
        let answer = ask(daemon, &key, "tools/call", call.clone());
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["error"], "rate_limited");
        assert!(told["retry_after"].as_u64().unwrap() > 3_000, "{told}");
    };
    refused(&daemon);
    // Another process and another start change nothing.
    home.ok(["daemon", "stop"]);
    refused(&home.daemon(ADMIN));
    let audit = std::fs::read_to_string(home.at("store/state/audit")).unwrap();
    assert!(
        audit.lines().count() >= 3 && audit.contains("refused: too often"),
        "{audit}"
    );
}

#[test]
fn lists_prompts_and_resources_count_like_tools() {
    let home = Home::new();
    runs_of(&home, "default", 1);
    let limited = |name: &str| {
        let words = ["key", "create", "--scopes", "runs:read", "--limit", "1/h"];
        home.ok(words.into_iter().chain(["--name", name]))
    };
    let daemon = home.daemon(ADMIN);
    let requests = [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "why_did_run_fail" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "run://latest" })),
        ("resources/read", json!({ "uri": "other://latest" })),
    ];
    for (number, (method, params)) in requests.into_iter().enumerate() {
        let key = limited(&format!("k{number}")).trim().to_owned();
        ask(&daemon, &key, method, params.clone());
        let refused = ask(&daemon, &key, method, params);
        let told = &refused["error"]["data"];
        assert_eq!(told["error"], "rate_limited", "{method}: {refused}");
        assert!(told["retry_after"].as_u64() > Some(3_000), "{refused}");
        let audit = std::fs::read_to_string(home.at("store/state/audit")).unwrap();
        let lines = audit
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let own = lines.filter(|line: &Value| line["who"] == format!("k{number}"));
        let own: Vec<Value> = own.collect();
        let names = (&own[0]["tool"], &own[1]["outcome"]);
        let name = match method {
            "resources/read" if number == 5 => "get_run",
            method => method,
        };
        assert_eq!(names, (&json!(name), &json!("refused: too often")));
    }
}

#[test]
fn how_large_answers_are_counts_from_a_reload_on() {
    let home = Home::new();
    runs_of(&home, "default", 90);
    let key = key(&home, "k", "default", "runs:read");
    let daemon = home.daemon(&format!("{ADMIN}[mcp]\nanswer = \"40KiB\"\n"));
    let told = || {
        let call = json!({ "name": "list_runs", "arguments": { "limit": 90 } });
        let answer = ask(&daemon, &key, "tools/call", call);
        let runs = answer["result"]["structuredContent"]["runs"].as_array();
        (runs.unwrap().len(), answer.to_string().len())
    };
    let (many, _) = told();
    let said = daemon.reload(&format!("{ADMIN}[mcp]\nanswer = \"24KiB\"\n"));
    assert_eq!(said.code, 0, "{}", said.err);
    let (fewer, bytes) = told();
    assert!(
        fewer < many && bytes <= (24 << 10) + 100,
        "{many} {fewer} {bytes}"
    );
}

#[test]
fn over_stdio_a_key_comes_from_its_file() {
    let home = Home::new();
    runs_of(&home, "a", 2);
    runs_of(&home, "default", 1);
    let file = home.at("key");
    let path = file.to_str().unwrap();
    let entry = home.ok([
        "key",
        "create",
        "--name",
        "k",
        "--workspace",
        "a",
        "--scopes",
        "runs:read",
        "--key-file",
        path,
        "--for",
        "codex",
    ]);
    assert!(entry.contains(path) && !entry.contains("at_"), "{entry}");
    let mut asking = Asking::start(&home, &home.at("."), &["--key-file", path]);
    let runs = asking.ok("list_runs", &json!({}));
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
    home.ok(["key", "revoke", "k"]);
    let refused = asking.request(
        "tools/call",
        &json!({ "name": "list_runs", "arguments": {} }),
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("revoked"),
        "{refused}"
    );
    // A file that others can read gives nothing away.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = home.run(["mcp", "--key-file", path]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("chmod 600"), "{}", said.err);
}

#[test]
fn several_ask_at_once_and_who_has_the_index_is_killed() {
    let home = Home::new();
    runs_of(&home, "default", 3);
    let mut all: Vec<Asking> = (0..5).map(|_| Asking::all(&home)).collect();
    let count = |asking: &mut Asking| {
        let runs = asking.ok("list_failed_runs", &json!({}));
        runs["runs"].as_array().unwrap().len()
    };
    for asking in &mut all {
        assert_eq!(count(asking), 3);
    }
    while let Some(owner) = (!all.is_empty()).then(|| all.remove(0)) {
        // Killed, as it is when it is dropped: whoever had the index, another one has it now.
        drop(owner);
        for asking in &mut all {
            assert_eq!(count(asking), 3);
        }
        assert_eq!(
            home.ok(["runs", "--failed", "--format", "jsonl"])
                .lines()
                .count(),
            3
        );
    }
}
