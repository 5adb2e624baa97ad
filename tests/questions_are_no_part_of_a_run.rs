//! What an assistant asks us stands in the same run as what it asks about. It is no part of the
//! answer: it makes no run fail, and steps are known by the numbers that everybody else has.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use support::asking::Asking;
use support::{Home, Server};

fn call(id: u64, tool: &str, arguments: &Value, meta: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    format!("{message}\n")
}

/// A recorded session with our own server, in which this is asked.
fn ask_recorded(home: &Home, run: &str, tool: &str, arguments: &Value) {
    let program = home.program().get_program().to_owned();
    let about = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "asking", "version": "1" }
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let question = call(2, tool, arguments, &json!({}));
    let record = home.record().option("--run").option(run);
    let words = [program, "mcp".into(), "--all-projects".into()];
    let session = record.start_command(words);
    session.send(format!("{hello}\n{ready}\n{question}"));
    session.wait_for_text("\"id\":2");
    session.close_input();
    let ended = session.wait();
    assert_eq!(ended.code, 0);
}

fn talk(home: &Home, run: &str, tool: &str, arguments: &Value) {
    let record = home.record().option("--run").option(run);
    record.talk(&Server::mcp(), call(1, tool, arguments, &json!({})));
}

#[test]
fn a_question_that_went_wrong_fails_no_run() {
    let home = Home::new();
    talk(&home, "worked", "echo", &json!({}));
    let nobody = json!({ "run": "f".repeat(32) });
    ask_recorded(&home, "worked", "get_run", &nobody);
    assert_eq!(home.ok(["runs", "--failed"]), "");
    assert_eq!(home.ok(["runs", "~failed"]), "");
    // It happened all the same.
    assert!(home.ok(["show", "latest", "~e"]).contains("get_run"));
    let mut asking = Asking::all(&home);
    assert_eq!(asking.ok("list_failed_runs", &json!({}))["runs"], json!([]));
    let runs = asking.ok("list_runs", &json!({}));
    assert_eq!(runs["runs"][0]["failed"], false);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn steps_have_the_numbers_that_commands_print() {
    let home = Home::new();
    talk(&home, "work", "echo", &json!({ "text": "note-4711" }));
    ask_recorded(&home, "work", "list_runs", &json!({}));
    talk(&home, "work", "fail", &json!({ "text": "no note-4711" }));
    let lines = home.ok(["show", "latest", "--format", "jsonl"]);
    let steps = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let steps: Vec<Value> = steps.collect();
    let number = |tool: &str| {
        let step = steps.iter().find(|step| step["target"] == tool);
        step.unwrap_or_else(|| panic!("{lines}"))["step"].clone()
    };
    let (echo, asked, failed) = (number("echo"), number("list_runs"), number("fail"));
    assert!(
        failed.as_u64() > Some(3),
        "the question stands between them"
    );

    let mut asking = Asking::all(&home);
    let run = asking.ok("get_run", &json!({ "run": "latest" }));
    let told = run["steps"].as_array().unwrap().iter();
    let told: Vec<_> = told.map(|step| step["step"].clone()).collect();
    assert_eq!(told, [echo.clone(), failed.clone()]);
    assert_eq!(run["run"]["failures"][0]["step"], failed);
    let page = asking.ok("get_run", &json!({ "run": "latest", "after_step": echo }));
    assert_eq!(page["steps"].as_array().unwrap().len(), 1);
    let step = asking.ok("get_step", &json!({ "run": "latest", "step": failed }));
    assert_eq!(step["step"]["recorded"]["target"], "fail");
    let none = asking.call("get_step", &json!({ "run": "latest", "step": asked }));
    assert_eq!(none.value["error"], "not_found");
    let ranked = asking.ok("rank_suspects", &json!({ "run": "latest" }));
    let by_command = home.json(["suspects", "latest", "--format", "json"]);
    assert_eq!(ranked["suspects"][0]["step"], failed);
    assert_eq!(by_command["suspects"][0]["step"], failed);
    let quote = &ranked["suspects"][0]["reasons"][0]["quotes"][0];
    assert_eq!(quote["step"], failed);
    let traced = asking.ok("trace_value", &json!({ "run": "latest", "step": failed }));
    assert_eq!(traced["chain"][0]["step"], failed);
    assert_eq!(traced["chain"][0]["values"][0]["from_step"], echo);
    let explained = asking.ok("explain_run", &json!({ "run": "latest" }));
    let points = explained["points"].as_array().unwrap().iter();
    let mut of_failure = points.filter(|point| point["topic"] == "failed");
    assert_eq!(of_failure.next().unwrap()["steps"], json!([failed]));
    let hits = asking.ok("search_steps", &json!({ "text": "no note" }));
    assert_eq!(hits["hits"][0]["step"]["step"], failed);
    let compared = asking.ok("compare_runs", &json!({ "a": "latest", "b": "latest" }));
    assert_eq!(compared["same"], true);
}

#[test]
fn no_run_is_told_twice_where_the_question_stands_between() {
    let home = Home::new();
    let of = |turn: &str| json!({ "sessionId": turn, "x-codex-turn-metadata": { "session_id": turn, "turn_id": turn } });
    // The third of four is the conversation that asks.
    for turn in ["a", "b", "asking", "c"] {
        let input = call(1, "echo", &json!({ "text": "needle" }), &of(turn));
        home.record().talk(&Server::mcp(), input);
    }
    let mut asking = Asking::all(&home);
    let (mut found, mut after) = (Vec::new(), None::<Value>);
    loop {
        let mut arguments = json!({ "text": "needle", "limit": 2 });
        if let Some(after) = after {
            arguments["after"] = after;
        }
        let page = asking.call_with("search_steps", &arguments, &of("asking"));
        for hit in page.value["hits"].as_array().unwrap() {
            found.push(hit["run"].as_str().unwrap().to_owned());
        }
        match page.value.get("next") {
            Some(next) => after = Some(next.clone()),
            None => break,
        }
    }
    let ids = home.run_ids();
    assert_eq!(found, [&ids[0][..], &ids[2], &ids[3]]);
}

#[test]
fn what_cannot_be_read_is_told() {
    let home = Home::new();
    for text in ["first", "second"] {
        let input = call(1, "echo", &json!({ "text": text }), &json!({}));
        home.record().talk(&Server::mcp(), input);
    }
    let mut files = home.journal_files();
    files.sort_by_key(|(path, _)| path.clone());
    // Of the first the header, of the second the last record.
    for ((path, mut bytes), at) in files.into_iter().zip([30, usize::MAX]) {
        let at = at.min(bytes.len() - 20);
        bytes[at] ^= 0xff;
        std::fs::write(path, bytes).unwrap();
    }
    let mut asking = Asking::all(&home);
    let lines = |told: &Value| -> Vec<String> {
        let lines = told["warnings"]["recorded"]["lines"].as_array();
        let lines = lines.unwrap_or_else(|| panic!("{told}")).iter();
        lines
            .map(|line| line.as_str().unwrap().to_owned())
            .collect()
    };
    for tool in ["list_runs", "list_failed_runs", "tool_stats"] {
        let told = lines(&asking.ok(tool, &json!({})));
        assert!(told.iter().any(|line| line.contains("header")), "{told:?}");
    }
    let told = lines(&asking.ok("search_steps", &json!({ "text": "second" })));
    assert!(told.len() >= 2, "{told:?}");
    for tool in ["get_run", "explain_run", "rank_suspects", "mcp_scan"] {
        let told = asking.ok(tool, &json!({ "run": "latest" }));
        let told = lines(&told);
        assert!(
            told.iter().any(|line| line.contains("cannot be read")),
            "{told:?}"
        );
    }
    // Of one project nothing is told of files of which that is not known.
    let mut own = Asking::start(&home, &home.at("."), &[]);
    let told = own.ok("list_runs", &json!({}));
    assert_eq!(told.get("warnings"), None, "{told}");
}
