//! One folder is a plugin of Claude Code, Codex and Copilot CLI: installed by their own commands,
//! it brings our server and skills, and says so where the program is missing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::assistants::{Assistant, Client, missing};
use support::{Home, skip};

/// A run of a project that failed.
fn failed_run(home: &Home, project: &Path) -> String {
    let record = home.record().with(|command| {
        command.current_dir(project);
    });
    let session = record.start_command([env!("CARGO_BIN_EXE_agent-trace"), "demo-server"]);
    for (id, method, params) in [
        (
            1,
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "agent", "version": "1" } }),
        ),
        (
            2,
            "tools/call",
            json!({ "name": "read_note", "arguments": { "number": 7 } }),
        ),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        session.send(format!("{request}\n"));
        session.wait_for_text(&format!("\"id\":{id}"));
    }
    session.close_input();
    session.wait();
    home.newest()
}

/// Asked from its project, the assistant hears of that project's run.
fn brings_our_server(client: Client) {
    if let Some(reason) = missing() {
        return skip(&format!("{client:?} has our plugin"), reason);
    }
    let home = Home::new();
    let program = Path::new(env!("CARGO_BIN_EXE_agent-trace"));
    let assistant = Assistant::new(&home, client).with_plugin(program.parent().unwrap());
    let run = failed_run(&home, &assistant.project());
    failed_run(&home, &home.at("work"));
    let steps = [json!({ "tool": "list_failed_runs", "args": {} })];
    let answered = assistant.ask("why did the last run fail?", &steps);
    let listed = answered.result(0);
    let runs: Vec<&Value> = listed["runs"].as_array().unwrap().iter().collect();
    assert_eq!(runs.len(), 1, "{listed}");
    assert_eq!(runs[0]["run"], run);
    // What the assistant itself wrote down of this comes in too.
    let written = home.at("assistant").join(match client {
        Client::Claude => ".claude/projects",
        Client::Codex => ".codex/sessions",
        Client::Copilot => ".copilot/session-state",
    });
    home.ok([Path::new("import"), &written]);
    let imported = home.ok(["show", "latest"]);
    assert!(imported.contains("list_failed_runs({}) = {"), "{imported}");
    let found = home.ok(["search", "why did the last run fail?"]);
    assert!(!found.is_empty(), "{imported}");
}

/// The plugin denies nothing where the program is not there, and the model is told.
fn says_what_is_missing(client: Client) {
    if let Some(reason) = missing() {
        return skip(&format!("{client:?} has our plugin alone"), reason);
    }
    let home = Home::new();
    let mut assistant = Assistant::new(&home, client).with_plugin(&home.at("work"));
    assistant.options.push("--log-bodies".into());
    let answered = assistant.ask("why did the last run fail?", &[]);
    assert_eq!(answered.answer, "FAKE-MODEL-DONE");
    let ours = |name: &String| name.contains("list_failed_runs");
    assert!(!answered.offered.iter().any(ours), "{answered:?}");
    let asked = std::fs::read_to_string(home.at("out/model.jsonl")).unwrap();
    assert!(asked.contains("agent-trace is not on the PATH"), "{asked}");
}

#[test]
fn claude_code() {
    brings_our_server(Client::Claude);
}

#[test]
fn codex() {
    brings_our_server(Client::Codex);
}

#[test]
fn copilot() {
    brings_our_server(Client::Copilot);
}

#[test]
fn claude_code_without_the_program() {
    says_what_is_missing(Client::Claude);
}

#[test]
fn codex_without_the_program() {
    says_what_is_missing(Client::Codex);
}

#[test]
fn copilot_without_the_program() {
    says_what_is_missing(Client::Copilot);
}
