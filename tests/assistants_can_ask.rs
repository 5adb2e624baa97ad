//! An assistant asks our MCP server about what was recorded: it gets what there is, within the
//! bytes that an answer may have, of its own project, and without its own question.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::asking::Asking;
use support::{Home, Server};

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    with_meta(id, tool, arguments, &json!({}))
}

fn with_meta(id: u64, tool: &str, arguments: &Value, meta: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    format!("{message}\n")
}

/// A run in which a note is told, and reading it fails.
fn failed_run(home: &Home, folder: &Path) {
    let input = call(1, "echo", &json!({ "text": "note-4711" }))
        + &call(2, "fail", &json!({ "text": "there is no note-4711" }));
    let record = home.record().with(|command| {
        command.current_dir(folder);
    });
    record.talk(&Server::mcp(), input);
}

#[test]
fn it_finds_the_failed_run_its_steps_and_where_a_value_came_from() {
    let home = Home::new();
    home.record()
        .talk(&Server::mcp(), call(1, "echo", &json!({})));
    failed_run(&home, &home.at("."));
    let mut asking = Asking::all(&home);
    let failed = asking.ok("list_failed_runs", &json!({}));
    let runs = failed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["failures"][0]["step"], 2);
    assert_eq!(runs[0]["failures"][0]["recorded"]["what"], "fail");
    let run = runs[0]["run"].as_str().unwrap().to_owned();
    assert_eq!(
        asking.ok("list_runs", &json!({}))["runs"]
            .as_array()
            .unwrap()
            .len(),
        2
    );

    let skeleton = asking.ok("get_run", &json!({ "run": "latest" }));
    assert_eq!(skeleton["run"]["run"], run);
    let steps = skeleton["steps"].as_array().unwrap();
    let outcomes: Vec<_> = steps
        .iter()
        .map(|step| step["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["ok", "tool_error"]);
    let failed = asking.ok("get_run", &json!({ "run": &run[..8], "filter": "~e" }));
    assert_eq!(failed["steps"].as_array().unwrap().len(), 1);

    let pointer = json!({ "run": run, "step": 2, "pointer": "/result/content/0/text" });
    let step = asking.ok("get_step", &pointer);
    assert_eq!(
        step["response"]["recorded"]["text"],
        "there is no note-4711"
    );
    assert_eq!(step.get("request"), None);

    let traced = asking.ok("trace_value", &json!({ "run": run, "step": 2 }));
    let value = &traced["chain"][0]["values"][0];
    assert_eq!(
        (&value["source"], &value["from_step"]),
        (&json!("before"), &json!(1))
    );

    let hits = asking.ok(
        "search_steps",
        &json!({ "text": "note-4711", "filter": "~e" }),
    );
    assert_eq!(hits["hits"][0]["step"]["step"], 2);
    assert_eq!(hits["hits"].as_array().unwrap().len(), 1);

    let ranked = asking.ok(
        "rank_suspects",
        &json!({ "run": run, "siblings": ["latest"] }),
    );
    assert_eq!(ranked["suspects"][0]["step"], 2, "{ranked}");
    assert_eq!(
        ranked["siblings"]["failing"], 1,
        "a run is no sibling of itself"
    );
    let quote = &ranked["suspects"][0]["reasons"][0]["quotes"][0];
    let cited = json!({
        "run": run, "step": quote["step"], "part": quote["part"],
        "offset": quote["offset"], "length": quote["length"]
    });
    let part = quote["part"].as_str().unwrap();
    let stored = asking.ok("get_step", &cited)[part]["recorded"]["text"].clone();
    assert_eq!(stored, quote["recorded"]["text"]);

    let explained = asking.ok("explain_run", &json!({ "run": run }));
    let points = explained["points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["topic"] == "failed"));

    let other = asking.ok("list_runs", &json!({ "filter": "!~failed" }));
    let other = other["runs"][0]["run"].as_str().unwrap();
    let compared = asking.ok("compare_runs", &json!({ "a": other, "b": run }));
    assert_eq!(compared["same"], false);
    let stats = asking.ok("tool_stats", &json!({}));
    assert_eq!(stats["tools"][0]["recorded"]["tool"], "fail");
    assert_eq!(asking.end(), 0);
}

#[test]
fn what_is_asked_wrongly_is_said_with_a_remedy() {
    let home = Home::new();
    let mut asking = Asking::all(&home);
    assert_eq!(asking.ok("list_runs", &json!({}))["runs"], json!([]));
    let mut wrong = |tool: &str, arguments: Value| {
        let told = asking.call(tool, &arguments);
        assert!(told.is_error, "{tool} {arguments}: {}", told.value);
        told.value
    };
    assert_eq!(
        wrong("get_run", json!({ "run": "latest" }))["error"],
        "no_runs"
    );
    failed_run(&home, &home.at("."));
    for (tool, arguments, error) in [
        ("get_run", json!({ "run": "abcdef" }), "not_found"),
        (
            "get_step",
            json!({ "run": "latest", "step": 9 }),
            "not_found",
        ),
        (
            "get_step",
            json!({ "run": "latest", "step": 0 }),
            "not_found",
        ),
        (
            "trace_value",
            json!({ "run": "latest", "step": 9 }),
            "not_found",
        ),
        (
            "get_step",
            json!({ "run": "latest", "step": 1, "pointer": "x" }),
            "pointer",
        ),
        ("list_runs", json!({ "after": "x" }), "cursor"),
        ("search_steps", json!({}), "arguments"),
        ("search_steps", json!({ "filter": "~e &" }), "filter"),
        ("list_runs", json!({ "limits": 3 }), "arguments"),
    ] {
        let told = wrong(tool, arguments);
        assert_eq!(told["error"], error, "{told}");
    }
    let message = asking.request(
        "tools/call",
        &json!({ "name": "no_such_tool", "arguments": {} }),
    );
    assert_eq!(message["error"]["code"], -32602);
}

#[test]
fn a_run_of_5000_steps_and_5_mb_fits_piece_by_piece() {
    let home = Home::new();
    let big = "0123456789abcdef\"\\é ".repeat(5 * 1024 * 1024 / 20);
    let mut input = call(1, "fail", &json!({ "text": big }));
    for id in 2..=5_000 {
        input.push_str(&call(id, "echo", &json!({ "text": format!("value {id}") })));
    }
    home.record().talk(&Server::mcp(), input);
    let mut asking = Asking::all(&home);
    let most = 32 << 10;
    let mut ok = |tool: &str, arguments: Value| {
        let told = asking.call(tool, &arguments);
        assert!(!told.is_error, "{tool} {arguments}: {}", told.value);
        assert!(
            told.bytes <= most,
            "{tool} {arguments}: {} bytes",
            told.bytes
        );
        told.value
    };
    // Every step is reached, page by page.
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let page = ok(
            "get_run",
            json!({ "run": "latest", "after_step": after, "limit": 1000 }),
        );
        for step in page["steps"].as_array().unwrap() {
            seen.push(step["step"].as_u64().unwrap());
        }
        match page["next"].as_u64() {
            Some(next) => {
                assert!(next > after && !page["truncated"].as_array().unwrap().is_empty());
                after = next;
            }
            None => break,
        }
    }
    assert_eq!(seen, (1..=5_000).collect::<Vec<u64>>());
    // And every byte of a large result.
    let (mut offset, mut text) = (0, String::new());
    let pointer = "/params/arguments/text";
    while offset < 200_000 {
        let asked = json!({
            "run": "latest", "step": 1, "part": "request", "pointer": pointer, "offset": offset
        });
        let part = &ok("get_step", asked)["request"];
        assert_eq!(part["bytes"], big.len());
        assert_eq!(part["from"], offset);
        text.push_str(part["recorded"]["text"].as_str().unwrap());
        offset = part["to"].as_u64().unwrap();
    }
    assert_eq!(text, big[..text.len()]);
    ok("get_step", json!({ "run": "latest", "step": 1 }));
    ok("explain_run", json!({ "run": "latest" }));
    ok("rank_suspects", json!({ "run": "latest", "limit": 20 }));
    ok("trace_value", json!({ "run": "latest", "step": 5000 }));
    ok("compare_runs", json!({ "a": "latest", "b": "latest" }));
    ok("tool_stats", json!({}));
    ok("list_failed_runs", json!({}));
    let hits = ok(
        "search_steps",
        json!({ "text": "value", "run": "latest", "limit": 200 }),
    );
    assert!(!hits["truncated"].as_array().unwrap().is_empty());
}

#[test]
fn a_text_is_read_on_character_by_character() {
    let home = Home::new();
    home.record().talk(
        &Server::mcp(),
        call(1, "echo", &json!({ "text": "né漢🦀" })),
    );
    let mut asking = Asking::all(&home);
    let (mut offset, mut text) = (0, String::new());
    for _ in 0..4 {
        let asked = json!({
            "run": "latest", "step": 1, "part": "request",
            "pointer": "/params/arguments/text", "offset": offset, "length": 1
        });
        let part = asking.ok("get_step", &asked)["request"].clone();
        text.push_str(part["recorded"]["text"].as_str().unwrap());
        offset = part["to"].as_u64().unwrap();
    }
    assert_eq!((text.as_str(), offset), ("né漢🦀", 10));
}

#[test]
fn differences_that_do_not_fit_are_named_and_gone_past() {
    let home = Home::new();
    home.configure("[mcp]\nanswer = \"24KiB\"\n");
    let many = |mark: &str| -> Value {
        let value = format!("{mark}{}", "\"\\".repeat(400));
        (0..20)
            .map(|n| (format!("k{n}{}", "\"".repeat(100)), json!(value)))
            .collect()
    };
    for mark in ["a", "b"] {
        let input: String = (1..=3).map(|id| call(id, "echo", &many(mark))).collect();
        home.record().talk(&Server::mcp(), input);
    }
    let mut asking = Asking::all(&home);
    let runs = asking.ok("list_runs", &json!({}));
    let [b, a] = [0, 1].map(|at| runs["runs"][at]["run"].clone());
    let (mut after, mut told) = (json!(0), 0);
    loop {
        let answer = asking.call("compare_runs", &json!({ "a": a, "b": b, "after": after }));
        assert!(
            !answer.is_error && answer.bytes <= 24 << 10,
            "{}",
            answer.value
        );
        let differences = answer.value["differences"].as_array().unwrap().len();
        assert!(differences > 0, "{}", answer.value);
        told += differences;
        match answer.value.get("next") {
            Some(next) => after = next.clone(),
            None => break,
        }
    }
    assert!(told >= 3);
}

#[test]
fn numbers_keep_every_digit() {
    let home = Home::new();
    let arguments = r#"{"id":18446744073709551615,"x":1.0,"y":1E400}"#;
    let params = format!(r#"{{"name":"echo","arguments":{arguments}}}"#);
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    home.record().talk(&Server::mcp(), message + "\n");
    let mut asking = Asking::all(&home);
    let asked = json!({ "run": "latest", "step": 1, "pointer": "/params/arguments" });
    let step = asking.ok("get_step", &asked);
    assert_eq!(step["request"]["recorded"]["text"], arguments);
}

#[test]
fn it_sees_its_own_project_alone_unless_told() {
    let home = Home::new();
    let [one, two] = ["one", "two"].map(|name| {
        let folder = home.at(name);
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        failed_run(&home, &folder);
        folder
    });
    let list = |asking: &mut Asking| {
        let runs = asking.ok("list_failed_runs", &json!({}));
        let runs = runs["runs"].as_array().unwrap().iter();
        runs.map(|run| run["run"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let both = list(&mut Asking::all(&home));
    assert_eq!(both.len(), 2);
    let (mut first, mut second) = (
        Asking::start(&home, &one, &[]),
        Asking::start(&home, &two, &[]),
    );
    let (of_one, of_two) = (list(&mut first), list(&mut second));
    assert_eq!((of_one.len(), of_two.len()), (1, 1));
    assert_ne!(of_one, of_two);
    // One of another project is answered as one that nobody recorded.
    let shape = |asking: &mut Asking, run: &str| {
        let told = asking.call("get_run", &json!({ "run": run }));
        assert!(told.is_error);
        told.value.to_string().replace(run, "RUN")
    };
    let unknown = "f".repeat(32);
    assert_eq!(shape(&mut first, &of_two[0]), shape(&mut first, &unknown));
    assert_eq!(
        first.ok("get_run", &json!({ "run": "latest" }))["run"]["run"],
        of_one[0]
    );
    assert_eq!(first.ok("tool_stats", &json!({}))["runs"], 1);
    // Nor does it show how many there are between its own, nor where.
    assert_eq!(first.ok("tool_stats", &json!({ "last": 1 }))["runs"], 1);
    failed_run(&home, &one);
    failed_run(&home, &two);
    let page = first.ok("list_runs", &json!({ "limit": 1 }));
    assert!(page["next"].as_str().unwrap().ends_with("-1"), "{page}");
}

#[test]
fn the_prompt_that_asks_is_no_part_of_the_answer() {
    let home = Home::new();
    let of_turn = |turn: &str| json!({ "sessionId": "c", "x-codex-turn-metadata": { "session_id": "c", "turn_id": turn } });
    // A prompt in which a call fails, and one in which another fails, and the assistant asks.
    let input = with_meta(1, "fail", &json!({ "text": "a" }), &of_turn("t1"))
        + &with_meta(2, "fail", &json!({ "text": "b" }), &of_turn("t2"));
    home.record().talk(&Server::mcp(), input);
    let mut asking = Asking::all(&home);
    let mut ask = |tool: &str, turn: &str| {
        let run = if tool == "get_run" {
            json!({ "run": "latest" })
        } else {
            json!({})
        };
        let told = asking.call_with(tool, &run, &of_turn(turn));
        assert!(!told.is_error, "{}", told.value);
        told.value
    };
    let failed = ask("list_failed_runs", "t2");
    assert_eq!(failed["runs"][0]["this_conversation"], true);
    assert_eq!(failed["runs"][0]["failures"][0]["step"], 1);
    assert_eq!(failed["runs"][0]["calls"], 1);
    let run = ask("get_run", "t2");
    assert_eq!(run["steps"].as_array().unwrap().len(), 1);
    assert_eq!(run["run"]["failures"].as_array().unwrap().len(), 1);
    assert_eq!(ask("get_run", "t3")["steps"].as_array().unwrap().len(), 2);
    // Nothing is left of a conversation that is only the question.
    let only = with_meta(
        1,
        "fail",
        &json!({}),
        &json!({
            "sessionId": "d", "x-codex-turn-metadata": { "session_id": "d", "turn_id": "q" }
        }),
    );
    home.record().talk(&Server::mcp(), only);
    let told = asking.call_with("list_failed_runs", &json!({}), &of_turn("q"));
    assert_eq!(told.value["runs"].as_array().unwrap().len(), 1);
    let told = asking.call_with("get_run", &json!({ "run": "latest" }), &of_turn("q"));
    assert_eq!(told.value["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn prompts_and_resources_lead_to_the_same_answers() {
    let home = Home::new();
    failed_run(&home, &home.at("."));
    let mut asking = Asking::all(&home);
    let prompts = asking.request("prompts/list", &json!({}));
    let names: Vec<_> = prompts["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(names[0]["name"], "why_did_run_fail");
    let prompt = json!({ "name": "why_did_run_fail", "arguments": { "run": "latest" } });
    let prompt = asking.request("prompts/get", &prompt);
    let text = prompt["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(text.contains("run latest"), "{text}");
    let hostile = json!({ "name": "why_did_run_fail", "arguments": { "run": "x. Now do" } });
    assert_eq!(
        asking.request("prompts/get", &hostile)["error"]["code"],
        -32602
    );

    let mut read = |uri: &str| {
        let answer = asking.request("resources/read", &json!({ "uri": uri }));
        let text = answer["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    assert_eq!(read("run://latest")["steps"].as_array().unwrap().len(), 2);
    assert_eq!(read("step://latest/2")["step"]["outcome"], "tool_error");
    let none = asking.request("resources/read", &json!({ "uri": "step://latest/x" }));
    assert!(none["error"]["code"].is_i64(), "{none}");
}
