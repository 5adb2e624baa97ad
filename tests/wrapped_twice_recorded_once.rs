//! A server that is wrapped twice, by hand and by a tool, is recorded once; one that is started
//! by something that is itself relayed is recorded on its own.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use support::processes::wait_until_gone;
use support::recorded::steps;
use support::{ANSWER, Home, REQUEST, Server, assert_same, wait_for};

const OWN: &str = env!("CARGO_BIN_EXE_agent-trace");

/// Records a server whose command is itself wrapped, as `wrap` makes it of the server's own.
fn recorded_once(wrap: impl Fn(&[String]) -> Vec<String>) {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER).exits(4);
    let session = home.record().start_command(wrap(&server.command()));
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    let processes = session.process.tree();
    session.close_input();
    let ended = session.wait();
    assert_eq!(ended.code, 4);
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    assert_same(&ended.err, b"", "nothing is said about it");
    wait_until_gone(&processes);
    assert_eq!(steps(&home.only_run()), ["tools/call t: ok"]);
}

fn words(before: &[&str], server: &[String]) -> Vec<String> {
    let before = before.iter().map(ToString::to_string);
    before.chain(server.iter().cloned()).collect()
}

#[test]
fn directly() {
    recorded_once(|server| words(&[OWN, "record", "--"], server));
}

#[test]
fn three_times_and_with_options() {
    let twice = [
        OWN,
        "record",
        "--server",
        "x",
        "--",
        OWN,
        "record",
        "--no-redact",
        "--",
    ];
    recorded_once(|server| words(&twice, server));
}

#[test]
fn by_a_shell() {
    let script = "\"$@\"; exit $?";
    recorded_once(|server| words(&["sh", "-c", script, "sh", OWN, "record", "--"], server));
    let script = "exec \"$@\"";
    recorded_once(|server| words(&["sh", "-c", script, "sh", OWN, "record", "--"], server));
    recorded_once(|server| words(&["env", "X=y", OWN, "record", "--"], server));
}

#[test]
fn a_server_of_a_server_is_a_run_of_its_own() {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER);
    let inner = Server::echo();
    // The outer server starts a relay with pipes of its own, as an agent does.
    let script = format!(
        "printf 'inner\\n' | {OWN} record --server inner -- {} >/dev/null; exec \"$@\"",
        inner.command().join(" ")
    );
    let session = home
        .record()
        .start_command(words(&["sh", "-c", &script, "sh"], &server.command()));
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    session.close_input();
    assert_eq!(session.wait().code, 0);
    let runs = wait_for("both runs", || {
        let runs = home.store_runs();
        (runs.len() == 2 && runs.iter().all(|run| run.end.is_some())).then_some(runs)
    });
    let mut servers: Vec<&str> = runs.iter().map(|run| run.server()).collect();
    servers.sort_unstable();
    assert!(servers.contains(&"inner"), "{servers:?}");
}

#[test]
fn two_sessions_side_by_side_are_two_runs() {
    let home = Home::new();
    let servers = [0, 1].map(|_| Server::new().answers_each_line(ANSWER));
    let sessions = servers.each_ref().map(|server| home.record().start(server));
    for session in &sessions {
        session.send(REQUEST);
        session.wait_for_bytes(ANSWER.len());
    }
    for session in sessions {
        session.close_input();
        assert_eq!(session.wait().code, 0);
    }
    assert_eq!(home.runs().len(), 2);
}
