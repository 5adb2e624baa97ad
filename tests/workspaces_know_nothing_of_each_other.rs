//! A key of one workspace is answered as if there were no other: whatever is asked, the answer is
//! byte for byte that of a store which has never seen the other workspace. So nothing of that can
//! be read, counted or guessed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../benches/common/generate/random.rs"]
#[allow(dead_code, reason = "the benchmarks take more of it")]
mod random;
#[path = "support/support.rs"]
mod support;

use agent_trace_model::{RunId, Stream};
use agent_trace_store::import::Import;
use agent_trace_store::import::session::Opening;
use agent_trace_store::journal::Bodies;
use agent_trace_store::journal::header::Imported;
use agent_trace_store::recorder::{Durability, Options};
use random::Random;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use support::Home;
use support::asking::Asking;
use support::daemon::{ADMIN, Daemon};
use support::http::{Wire, post_with};

/// Tools, servers, clients and tasks have the same names in both workspaces.
const NAMES: [&str; 3] = ["read", "write", "search"];

/// Some runs in a workspace, whatever they are.
fn record(home: &Home, workspace: &str, draw: &mut Random, runs: u64) -> Vec<RunId> {
    let options = Options {
        redact: true,
        user_rules: Vec::new(),
        bodies: Bodies::Full,
        durability: Durability::Timer,
        workspace: workspace.into(),
    };
    let mut import = Import::begin(&home.store(), &options).unwrap();
    let mut ids = Vec::new();
    for number in 0..runs {
        let name = format!("{workspace}-{number}");
        let process = import.process("f", &name);
        let started = 1_790_000_000_000_000_000 + (draw.below(1_000) as u64) * 1_000_000_000;
        let pick = |draw: &mut Random| NAMES[draw.below(3)];
        let opening = Opening {
            started,
            task: (draw.below(2) == 0).then(|| pick(draw).into()),
            client: Some(pick(draw).into()),
            server: Some(pick(draw).into()),
            imported: Imported {
                format: "f".into(),
                session: name.clone(),
                digest: name,
                ..Imported::default()
            },
            ..Opening::default()
        };
        let mut writer = import.session(process, opening).unwrap();
        for id in 1..=1 + draw.below(4) as u64 {
            let at = started + id * 1_000_000;
            let text = format!("{} of {workspace}", pick(draw));
            let turn = format!("turn-{}", draw.below(3));
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": pick(draw), "arguments": { "text": text },
                "_meta": { "sessionId": format!("c-{}", draw.below(4)),
                    "x-codex-turn-metadata": { "session_id": "c", "turn_id": turn } }
            }});
            let answer = match draw.below(3) {
                0 => {
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": text } })
                }
                1 => json!({ "jsonrpc": "2.0", "id": id, "result": { "isError": true,
                    "content": [{ "type": "text", "text": text }] } }),
                _ => json!({ "jsonrpc": "2.0", "id": id, "result": {
                    "content": [{ "type": "text", "text": text }] } }),
            };
            let frames = [
                (Stream::ClientToServer, call),
                (Stream::ServerToClient, answer),
            ];
            for (stream, message) in frames {
                writer
                    .frame(stream, at, message.to_string().as_bytes())
                    .unwrap();
            }
        }
        writer.finish(None).unwrap();
        ids.push(import.run(process));
    }
    import.publish().unwrap();
    ids
}

/// A copy of a store.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Damages some files of this home that are not in the other.
fn damage(home: &Home, alone: &Home, draw: &mut Random) {
    for (path, mut bytes) in home.journal_files() {
        let path_there = alone
            .store_folder()
            .join(path.strip_prefix(home.store_folder()).unwrap());
        if !path_there.exists() && draw.below(2) == 0 {
            let at = draw.below(bytes.len());
            bytes[at] ^= 0xff;
            std::fs::write(path, bytes).unwrap();
        }
    }
}

/// Everything that can be asked about a run of this name.
fn about(name: &str, other: &str) -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        (
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    };
    let mut all: Vec<_> = ["get_run", "explain_run", "rank_suspects", "mcp_scan"]
        .map(|tool| call(tool, json!({ "run": name })))
        .into();
    for tool in ["get_step", "trace_value"] {
        all.push(call(tool, json!({ "run": name, "step": 1 })));
    }
    all.push(call(
        "rank_suspects",
        json!({ "run": other, "siblings": [name] }),
    ));
    all.push(call("compare_runs", json!({ "a": name, "b": other })));
    all.push(call("compare_runs", json!({ "b": name })));
    all.push(call("search_steps", json!({ "text": "of", "run": name })));
    for filter in [format!("~r {name}"), format!("~r {name} | ~e")] {
        all.push(call("list_runs", json!({ "filter": filter })));
        all.push(call("tool_stats", json!({ "filter": filter })));
    }
    for uri in [format!("run://{name}"), format!("step://{name}/1")] {
        all.push(("resources/read", json!({ "uri": uri })));
    }
    let why = json!({ "name": "why_did_run_fail", "arguments": { "run": name } });
    all.push(("prompts/get", why));
    all
}

/// Everything that can be asked without naming a run.
fn at_large(after: &[String]) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "scan_my_servers" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
    ];
    let filters = [
        "",
        "~e",
        "!~failed",
        "~t read",
        "~c write",
        "~k search",
        "~b of",
        "~w read",
    ];
    for filter in filters {
        for (tool, more) in [
            ("list_runs", json!({ "limit": 2 })),
            ("list_failed_runs", json!({})),
            ("tool_stats", json!({ "last": 2 })),
            ("search_steps", json!({ "limit": 3, "last": 4 })),
        ] {
            let mut arguments = more;
            arguments["filter"] = json!(format!("~all {filter}"));
            all.push((
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            ));
        }
    }
    all.push((
        "tools/call",
        json!({ "name": "mcp_scan", "arguments": { "sensitive": true } }),
    ));
    for after in after {
        for tool in ["list_runs", "list_failed_runs", "search_steps"] {
            let mut arguments = json!({ "after": after });
            if tool == "search_steps" {
                arguments["text"] = json!("of");
            }
            all.push((
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            ));
        }
    }
    all
}

/// An answer over HTTP, byte for byte.
fn ask(address: SocketAddr, key: &str, method: &str, params: &Value) -> String {
    let mut params = params.clone();
    let name = params["name"].as_str().or(params["uri"].as_str());
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n"));
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        // The prompt that asks may be one of theirs.
        "x-codex-turn-metadata": { "session_id": "c", "turn_id": "turn-1" },
    });
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{}\
         Authorization: Bearer {key}\r\n",
        name.unwrap_or_default()
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = post_with(&headers, body.to_string());
    let mut client = Wire::to(address);
    client.send(request);
    let answer = client.read_message();
    format!("{} {}", answer.status(), answer.text())
}

fn key(home: &Home, words: &[&str]) -> String {
    let all = [
        "key",
        "create",
        "--name",
        "k",
        "--workspace",
        "b",
        "--limit",
        "10000/s",
    ];
    let scopes = ["--scopes", "runs:read,suspects:read,scan:run,admin"];
    let words = all.iter().chain(&scopes).chain(words);
    home.ok(words).trim().to_owned()
}

#[test]
fn answers_are_those_of_a_store_without_the_other_workspace() {
    for seed in 0..2 {
        let mut draw = Random::new(seed, 1);
        let (both, alone) = (Home::new(), Home::new());
        let of_b = record(&alone, "b", &mut draw, 3 + seed);
        copy(&alone.store_folder(), &both.store_folder());
        let of_a = record(&both, "a", &mut draw, 12);
        let of_default = record(&both, "default", &mut draw, 5);
        damage(&both, &alone, &mut draw);
        // Nor does a verdict tell.
        let _ = both.run(["verdict", &of_default[0].to_string(), "wrong"]);
        let keys = (key(&both, &[]), key(&alone, &[]));

        let nobody = "f".repeat(32);
        let mut names = vec!["latest".to_owned(), "fff".into(), nobody.clone()];
        for run in of_a.iter().chain(&of_default) {
            names.extend([4, 5, 8, 32].map(|digits| run.to_string()[..digits].to_owned()));
        }
        for run in &of_b {
            names.extend([4, 32].map(|digits| run.to_string()[..digits].to_owned()));
        }
        let started = 1_790_000_500_000_000_000_u64;
        let cursors = of_a.iter().take(3).chain(&of_b[..1]);
        let cursors = cursors.map(|run| format!("{started:x}-{run}-1"));
        let cursors: Vec<String> = cursors.chain(["x".into()]).collect();
        let mut questions = at_large(&cursors);
        let own = of_b[0].to_string();
        questions.extend(names.iter().flat_map(|name| about(name, &own)));

        let daemons = (both.daemon(ADMIN), alone.daemon(ADMIN));
        let place = |daemon: &Daemon<'_>| {
            let address = daemon.status()["admin"]["address"].clone();
            address.as_str().unwrap().parse().unwrap()
        };
        let places: (SocketAddr, SocketAddr) = (place(&daemons.0), place(&daemons.1));
        for (method, params) in &questions {
            let one = ask(places.0, &keys.0, method, params);
            let other = ask(places.1, &keys.1, method, params);
            assert_eq!(one, other, "seed {seed}: {method} {params}");
        }
        // What a foreign id is answered is what one that nobody has is.
        for run in of_a.iter().take(4) {
            let foreign = run.to_string();
            for ((method, one), (_, other)) in
                about(&foreign, &own).iter().zip(about(&nobody, &own))
            {
                let told = ask(places.0, &keys.0, method, one);
                let expected = ask(places.0, &keys.0, method, &other);
                let told = told.replace(&foreign, &nobody);
                assert_eq!(told, expected, "seed {seed}: {method} {one}");
            }
        }
        both.ok(["daemon", "stop"]);
        alone.ok(["daemon", "stop"]);
    }
}

#[test]
fn over_stdio_it_is_the_same() {
    let mut draw = Random::new(77, 1);
    let (both, alone) = (Home::new(), Home::new());
    let of_b = record(&alone, "b", &mut draw, 4);
    copy(&alone.store_folder(), &both.store_folder());
    let of_a = record(&both, "a", &mut draw, 12);
    damage(&both, &alone, &mut draw);
    let mut asking = [&both, &alone].map(|home| {
        let file = home.at("key");
        let file = file.to_str().unwrap();
        key(home, &["--key-file", file]);
        Asking::start(home, &home.at("."), &["--key-file", file])
    });
    let own = of_b[0].to_string();
    let mut questions = at_large(&["x".into()]);
    for run in of_a.iter().chain(&of_b) {
        questions.extend(about(&run.to_string(), &own));
    }
    for (method, params) in questions {
        let [one, other] = asking
            .each_mut()
            .map(|asking| asking.request(method, &params));
        assert_eq!(one.to_string(), other.to_string(), "{method} {params}");
    }
}
