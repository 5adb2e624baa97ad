//! Real servers and real clients notice nothing: a client sees through the relay what it sees
//! without, and the trace has what it did.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::Outcome;
use agent_trace_store::trace::Session as Run;
use std::ffi::OsString;
use support::peers::Peers::{self, Node, Python};
use support::peers::{drive, inspect, missing, node_server, python_server, relayed};
use support::{Home, skip};

/// Takes the client through a scenario without and with the relay. Returns the run, unless the
/// peers are missing.
#[track_caller]
fn unchanged(scenario: &str, peers: Peers, server: &[OsString]) -> Option<Run> {
    if let Some(reason) = missing(peers) {
        skip(&format!("scenario {scenario}"), reason);
        return None;
    }
    let home = Home::new();
    let direct = drive(&home, scenario, server);
    assert_eq!(direct.code, 0, "without the relay: {direct:?}");
    assert!(!home.store_folder().exists());
    let through = drive(&home, scenario, &relayed(server));
    assert_eq!(through.code, 0, "{through:?}");
    let (mut before, mut after) = (direct.out.lines(), through.out.lines());
    loop {
        match (before.next(), after.next()) {
            (None, None) => break,
            (before, after) => assert_eq!(after, before),
        }
    }
    let run = home.only_run();
    assert_eq!(run.client(), "agent-trace-tests");
    assert!(run.gaps.is_empty() && run.damage.is_empty());
    assert!(run.end.is_some());
    let taken = direct
        .out
        .lines()
        .filter(|line| line.contains("\"step\": \"tools/call"));
    let calls = run.steps.iter().filter(|step| step.tool().is_some());
    assert!(calls.count() >= taken.count(), "all calls are there");
    let open = run
        .steps
        .iter()
        .filter(|step| step.outcome == Outcome::Unanswered);
    assert_eq!(open.count(), 0, "{:?}", support::recorded::steps(&run));
    Some(run)
}

#[test]
fn everything_that_a_server_of_2025_can_do() {
    let server = node_server("server-everything", &["stdio"]);
    let Some(run) = unchanged("everything", Node, &server) else {
        return;
    };
    let has = |method: &str, is_clients: bool| {
        let mut steps = run.steps.iter();
        steps.any(|step| step.method.as_deref() == Some(method) && step.is_clients() == is_clients)
    };
    // W27, W28: what the server sends and asks by itself.
    for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        assert!(has(method, false), "{method}");
    }
    assert!(has("notifications/message", false));
    assert!(run.steps.iter().any(|step| step.progress == 5));
    // W29: the client gives up on a call because it takes too long, cancels it and says why.
    let given_up = run.steps.iter().find(|step| step.cancel_sent);
    let outcome = given_up.map(|step| step.outcome);
    assert_eq!(outcome, Some(Outcome::Timeout), "{given_up:?}");
}

#[test]
fn the_filesystem_server() {
    unchanged(
        "filesystem",
        Node,
        &node_server("server-filesystem", &["{dir}"]),
    );
}

#[test]
fn the_memory_server() {
    unchanged("memory", Node, &node_server("server-memory", &[]));
}

#[test]
fn a_client_that_falls_back_to_an_older_revision() {
    let Some(run) = unchanged("fallback", Node, &node_server("server-memory", &[])) else {
        return;
    };
    assert!(
        run.steps
            .iter()
            .any(|s| s.method.as_deref() == Some("server/discover"))
    );
}

#[test]
fn the_git_server_in_both_eras() {
    let server = python_server("mcp-server-git", &["--repository", "{dir}"]);
    unchanged("git", Python, &server);
    unchanged("modern-git", Python, &server);
}

#[test]
fn the_time_server_in_both_eras() {
    let server = python_server("mcp-server-time", &["--local-timezone", "UTC"]);
    unchanged("time", Python, &server);
    unchanged("modern", Python, &server);
}

#[test]
fn the_fetch_server_in_both_eras() {
    let server = python_server("mcp-server-fetch", &["--allow-private-ips"]);
    unchanged("fetch", Python, &server);
    unchanged("modern-fetch", Python, &server);
}

#[test]
fn the_inspector() {
    let name = "the_inspector";
    if let Some(reason) = missing(Node) {
        return skip(name, reason);
    }
    let server = node_server("server-everything", &["stdio"]);
    for (options, code) in [
        (&["--method", "tools/list"][..], 0),
        (
            &[
                "--method",
                "tools/call",
                "--tool-name",
                "echo",
                "--tool-arg",
                "message=hällo",
            ],
            0,
        ),
        (&["--method", "tools/call", "--tool-name", "get-sum"], 5),
    ] {
        let home = Home::new();
        let direct = inspect(&home, options, &server);
        if direct.code == 77 {
            return skip(name, "the inspector needs Node 20");
        }
        assert_eq!(direct.code, code, "without the relay: {direct:?}");
        let through = inspect(&home, options, &relayed(&server));
        assert_eq!((through.code, &through.out), (direct.code, &direct.out));
        let run = home.only_run();
        assert!(
            run.steps
                .iter()
                .any(|s| s.method.as_deref() == Some(options[1]))
        );
    }
}
