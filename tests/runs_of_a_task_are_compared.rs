//! Runs that were started for the same task are siblings: they are found by its name, and a run
//! that failed is compared with them without being told which they are.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use support::asking::Asking;
use support::{Home, Server};

fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    format!("{message}\n")
}

/// A run for a task, of one call.
fn run(home: &Home, task: &str, tool: &str, state: &str) -> String {
    let input = call(tool, &json!({ "state": state, "text": "x" }));
    let record = home.record().option("--task").option(task);
    record.talk(&Server::mcp(), input);
    home.newest()
}

#[test]
fn a_task_is_told_by_an_option_a_variable_or_the_command_above() {
    let home = Home::new();
    let input = call("echo", &json!({}));
    run(&home, "by-option", "echo", "all");
    let by_variable = home.record().env("AGENT_TRACE_TASK", "by-variable");
    by_variable.talk(&Server::mcp(), &input);
    // Some clients start servers with an environment of their own: the mark is looked for above.
    let server = Server::mcp();
    let record = home.record().command(server.command());
    let mut command = home.program();
    command
        .args(["run", "--task", "from-above", "--", "sh", "-c"])
        .arg(r#"env -u AGENT_TRACE_TASK -u AGENT_TRACE_RUN "$@""#)
        .arg("sh")
        .arg(record.get_program())
        .args(record.get_args());
    let said = support::Said::by(&mut command, input.as_bytes());
    assert_eq!(said.code, 0, "{}", said.err);
    home.record().talk(&Server::mcp(), &input);

    let runs = home.json(["runs", "--format", "json"]);
    let runs = runs.as_array().unwrap().iter();
    let tasks: Vec<_> = runs.map(|run| run["task"].as_str()).collect();
    let told = [
        None,
        Some("from-above"),
        Some("by-variable"),
        Some("by-option"),
    ];
    assert_eq!(tasks, told);
    let of = |filter: &str| {
        let lines = home.ok(["runs", filter, "--format", "jsonl"]);
        lines.lines().count()
    };
    assert_eq!([of("~k BY-"), of("~k /^above/"), of("!~k by")], [2, 0, 2]);
    let shown = home.ok(["show", "latest"]);
    assert!(!shown.contains("task:"), "{shown}");
    let shown = home.ok(["show", &home.run_ids()[1]]);
    assert!(shown.contains("task: from-above"), "{shown}");
    // A secret in a name is hidden like any other.
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    run(&home, secret, "echo", "all");
    let shown = home.ok(["show", "latest"]);
    assert!(!shown.contains(secret), "{shown}");
    assert_eq!(home.ok(["index", "verify"]).lines().count(), 1);
}

#[test]
fn siblings_are_found_by_the_task() {
    let home = Home::new();
    let passed: Vec<String> = (0..2)
        .map(|_| run(&home, "report", "echo", "all"))
        .collect();
    // Another task, and the beginning of its name.
    run(&home, "repo", "echo", "other");
    let failed = run(&home, "report", "fail", "open");
    run(&home, "report", "fail", "open");

    let ranked = home.json(["suspects", &failed, "--format", "json"]);
    let siblings = &ranked["siblings"];
    let counts = (&siblings["passing"], &siblings["failing"]);
    assert_eq!(counts, (&json!(2), &json!(2)), "{ranked}");
    // Named ones count alone.
    let named = home.json([
        "suspects",
        &failed,
        "--sibling",
        &passed[0],
        "--format",
        "json",
    ]);
    assert_eq!(named["siblings"]["passing"], 1);
    assert_eq!(named["siblings"]["failing"], 1);

    let mut asking = Asking::all(&home);
    let ranked = asking.ok("rank_suspects", &json!({ "run": failed }));
    assert_eq!(ranked["siblings"]["passing"], 2, "{ranked}");
    assert_eq!(ranked["siblings"]["failing"], 2);
    let shown = asking.ok("get_run", &json!({ "run": failed }));
    assert_eq!(shown["run"]["recorded"]["task"], "report");
    let of_task = asking.ok("list_runs", &json!({ "filter": "~k /^report$/" }));
    assert_eq!(of_task["runs"].as_array().unwrap().len(), 4);
    // The nearest that passed, unless one is named.
    let compared = asking.ok("compare_runs", &json!({ "b": failed }));
    assert_eq!(compared["a"], passed[1]);
    home.record().talk(&Server::mcp(), call("fail", &json!({})));
    let alone = asking.call("compare_runs", &json!({ "b": "latest" }));
    assert_eq!(
        (alone.is_error, &alone.value["error"]),
        (true, &json!("not_found"))
    );
}
