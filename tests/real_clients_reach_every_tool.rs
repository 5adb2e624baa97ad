//! The Inspector and the official Python client list the tools of our MCP server and call each of
//! them, over stdio and over HTTP with a key, in both eras.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use std::process::Command;
use support::daemon::ADMIN;
use support::http_peers::inspect_url;
use support::peers::Peers::{Node, Python};
use support::peers::{folder, inspect, missing};
use support::{Home, Said, Server, skip};

/// Asks our server one thing, and has what the client said.
type Way<'a> = &'a dyn Fn(&[&str]) -> Said;

/// A store in which a call went well and one failed.
fn recorded() -> Home {
    let home = Home::new();
    let call = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "arguments": { "text": "there is no note-4711" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let input = format!("{list}\n{}\n{}\n", call(2, "echo"), call(3, "fail"));
    home.record().talk(&Server::mcp(), input);
    home
}

/// Each tool with what it is asked.
fn calls() -> Value {
    let run = json!({ "run": "latest" });
    json!({
        "list_failed_runs": {},
        "list_runs": { "limit": 1 },
        "get_run": run,
        "rank_suspects": run,
        "get_step": { "run": "latest", "step": 3 },
        "search_steps": { "text": "note-4711" },
        "explain_run": run,
        "trace_value": { "run": "latest", "step": 3 },
        "compare_runs": { "a": "latest", "b": "latest" },
        "tool_stats": {},
        "mcp_scan": run,
    })
}

fn names(of: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = of.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The command that serves this home's store.
fn command() -> Vec<std::ffi::OsString> {
    [env!("CARGO_BIN_EXE_agent-trace"), "mcp"]
        .map(Into::into)
        .to_vec()
}

/// A key for all that is called, in a file.
fn key(home: &Home) -> String {
    let path = home.at("key").to_str().unwrap().to_owned();
    let scopes = "runs:read,suspects:read,scan:run";
    let words = ["key", "create", "--name", "k", "--scopes", scopes];
    home.ok(words.iter().chain(&["--key-file", path.as_str()]));
    path
}

#[test]
fn the_python_client() {
    if let Some(reason) = missing(Python) {
        return skip("every tool by the Python client", reason);
    }
    let home = recorded();
    let key = key(&home);
    let daemon = home.daemon(ADMIN);
    let address = daemon.status()["admin"]["address"].clone();
    let url = format!("http://{}/mcp", address.as_str().unwrap());
    for (era, revision) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let ask = |key: &[&str], server: &[std::ffi::OsString]| {
            let mut command =
                home.with_environment(Command::new(folder().join(".venv/bin/python")));
            command.arg(folder().join("ask_all.py")).arg(era);
            command.arg(calls().to_string()).args(key).arg("--");
            let said = Said::by(command.args(server), b"");
            assert_eq!(said.code, 0, "{era} {server:?}: {said:?}");
            serde_json::from_str::<Value>(&said.out).unwrap()
        };
        let over_stdio = ask(&[], &command());
        let over_http = ask(&[&key], &[url.clone().into()]);
        for told in [&over_stdio, &over_http] {
            assert_eq!(told["revision"], revision);
            let mut tools: Vec<&str> = told["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap())
                .collect();
            tools.sort_unstable();
            assert_eq!(tools, names(&calls()), "a tool is not called here");
            for (tool, told) in told["answers"].as_object().unwrap() {
                assert_eq!(told["error"], false, "{tool}: {told}");
                assert!(told["answer"].is_object(), "{tool}: {told}");
            }
        }
        assert_eq!(over_stdio["answers"], over_http["answers"], "{era}");
    }
}

#[test]
fn the_inspector() {
    let name = "every tool by the Inspector";
    if let Some(reason) = missing(Node) {
        return skip(name, reason);
    }
    let home = recorded();
    let header = {
        let key = std::fs::read_to_string(key(&home)).unwrap();
        format!("Authorization: Bearer {}", key.trim())
    };
    let daemon = home.daemon(ADMIN);
    let address = daemon.status()["admin"]["address"].clone();
    let url = format!("http://{}/mcp", address.as_str().unwrap());
    let over_stdio = |options: &[&str]| inspect(&home, options, &command());
    let over_http = |options: &[&str]| {
        let with_key = [&["--header", &header], options].concat();
        inspect_url(&home, &url, &with_key)
    };
    let ways: [Way; 2] = [&over_stdio, &over_http];
    for ask in ways {
        // It knows what other clients make of a schema.
        let said = ask(&["--method", "tools/list", "--strict"]);
        if said.code == 77 {
            return skip(name, "it needs Node 20");
        }
        assert_eq!(said.code, 0, "{said:?}");
        let listed: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(listed.get("schemaFindings"), None, "{}", said.err);
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), names(&calls()).len());
        for (tool, arguments) in calls().as_object().unwrap() {
            let pairs = arguments.as_object().unwrap().iter();
            let pairs: Vec<String> = pairs
                .map(|(name, value)| match value.as_str() {
                    Some(text) => format!("{name}={text}"),
                    None => format!("{name}={value}"),
                })
                .collect();
            let mut options = vec!["--method", "tools/call", "--tool-name", tool];
            for pair in &pairs {
                options.extend(["--tool-arg", pair]);
            }
            let said = ask(&options);
            assert_eq!(said.code, 0, "{tool}: {said:?}");
            let told: Value = serde_json::from_str(&said.out).unwrap();
            assert!(
                told["result"]["structuredContent"].is_object(),
                "{tool}: {told}"
            );
        }
    }
}
