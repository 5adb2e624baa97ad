//! What happens is printed as it happens, by `show --follow` and `runs --follow`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::text::steady;
use support::{Home, LIMIT, Server, Session, wait_for};

fn call(id: u32, tool: &str, text: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"text\":\"{text}\"}}}}}}\n"
    )
}

/// A relay of this server.
fn relay(home: &Home, server: &Server) -> Session {
    let record = home.record().option("--client=editor");
    record.option("--server=notes").start(server)
}

/// A command that prints until something ends it.
fn follow(home: &Home, words: &str) -> Session {
    let mut command = home.program();
    command.args(words.split(' '));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Session::of(&mut command)
}

fn wait_for_a_run(home: &Home) {
    home.wait_for_run("the run", |run| !run.opening.command.is_empty());
}

/// What was printed, without the command and what is different each time.
fn printed(out: &[u8]) -> String {
    let text = steady(&String::from_utf8_lossy(out), &[]);
    let lines = text.lines().skip(2);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_is_printed_as_it_happens() {
    let (home, server) = (Home::new(), Server::mcp());
    let session = relay(&home, &server);
    wait_for_a_run(&home);
    session.send(call(1, "echo", "before"));
    home.wait_for_run("a step", |run| run.steps.len() == 1);
    let following = follow(&home, "show latest -f --stderr");
    following.wait_for_text("before\"}) = ");
    session.send(call(2, "complain", "a warning"));
    following.wait_for_text("stderr: a warning");
    session.send(call(3, "ignore", "no answer"));
    following.wait_for_text("<unfinished ...>");
    session.send(call(4, "fail", "after"));
    following.wait_for_text("tool error");
    session.close_input();
    assert_eq!(session.wait().code, 0);
    let ended = following.wait();
    assert_eq!((ended.code, &ended.err[..]), (0, &b""[..]));
    insta::assert_snapshot!(printed(&ended.out), @r#"
    TIME notes tools/call echo({"text":"before"}) = {"content":[{"type":"text","text":"before"}]} <0.1>
    TIME notes tools/call complain({"text":"a warning"}) = {} <0.1>
    TIME notes stderr: a warning
    TIME notes tools/call ignore({"text":"no answer"}) <unfinished ...>
    TIME notes tools/call fail({"text":"after"}) = tool error {"content":[{"type":"text","text":"after"}],"isError":true} <0.1>
    TIME notes tools/call ignore({"text":"no answer"}) = ? (unanswered)
    end failed: step 3 unanswered (the client closed the session, exit status 0)
    failed: fail (step 4)
    "#);
    // One that has ended is printed and that is all.
    let again = follow(&home, "show latest -f").wait();
    assert!(String::from_utf8_lossy(&again.out).contains("\nend failed"));
}

#[test]
fn a_filter_knows_what_was_decided_about_the_run() {
    let (home, server) = (Home::new(), Server::mcp());
    let session = relay(&home, &server);
    wait_for_a_run(&home);
    session.send(call(1, "echo", "before"));
    home.wait_for_run("a step", |run| run.steps.len() == 1);
    home.ok(["verdict", "latest", "wrong"]);
    let following = follow(&home, "show latest -f ~v\"wrong\"");
    following.wait_for_text("before");
    session.close_input();
    session.wait();
    following.wait();
}

#[test]
fn a_step_is_printed_soon_after_it_settled() {
    let (home, server) = (Home::new(), Server::mcp());
    let session = relay(&home, &server);
    wait_for_a_run(&home);
    let following = follow(&home, "show latest -f --format jsonl");
    session.send(call(0, "echo", "first"));
    following.wait_for_text("first");
    let mut took: Vec<Duration> = (1..=9)
        .map(|id| {
            session.send(call(id, "echo", &format!("text-{id}")));
            session.wait_for_text(&format!("text-{id}"));
            let began = Instant::now();
            following.wait_for_text(&format!("text-{id}"));
            began.elapsed()
        })
        .collect();
    took.sort();
    assert!(took[4] < Duration::from_millis(200), "{took:?}");
    session.close_input();
    session.wait();
    let out = String::from_utf8(following.wait().out).unwrap();
    let steps: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(steps.len(), 10);
    assert_eq!(steps[9]["step"], 10);
    assert_eq!(steps[9]["outcome"], "ok");
    assert_eq!(steps, json_lines(&home), "the same as afterwards");
}

fn json_lines(home: &Home) -> Vec<Value> {
    let out = home.ok(["show", "latest", "--format", "jsonl"]);
    let lines = out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn runs_are_told_when_they_begin_and_when_they_end() {
    let (home, server) = (Home::new(), Server::mcp());
    let other = Server::mcp();
    let early = relay(&home, &other);
    wait_for_a_run(&home);
    let text = follow(&home, "runs --follow");
    let json = follow(&home, "runs -f --format jsonl");
    // Both are ready once they saw this one.
    std::thread::sleep(Duration::from_millis(300));
    let late = relay(&home, &server);
    text.wait_for_text("began");
    json.wait_for_text("\"event\":\"began\"");
    late.send(call(1, "echo", "x"));
    late.wait_for_text("content");
    late.close_input();
    late.wait();
    text.wait_for_text("1 call, ok\n");
    early.close_input();
    early.wait();
    text.wait_for_text("0 calls, ok\n");
    wait_for("all lines", || {
        let out = json.output();
        (out.iter().filter(|byte| **byte == b'\n').count() == 3).then_some(())
    });
    let events: Vec<(Value, Value)> = String::from_utf8(json.output())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .map(|line: Value| (line["event"].clone(), line["run"].clone()))
        .collect();
    let runs = home.runs();
    let id = |at: usize| Value::from(runs[at].entry.id.to_string());
    let expected = [("began", id(0)), ("ended", id(0)), ("ended", id(1))];
    assert_eq!(events, expected.map(|(event, id)| (event.into(), id)));
    let first = String::from_utf8(text.output()).unwrap();
    let first = steady(first.lines().next().unwrap(), &[]);
    let short = &runs[0].entry.id.to_string()[..8];
    assert_eq!(first, format!("TIME began {short} editor → notes"));
    // An interrupt ends them.
    text.signal("INT");
    assert_eq!(text.wait().code, -2);
    json.signal("INT");
    json.wait();
}

#[test]
fn nobody_reading_is_a_quiet_end() {
    let (home, server) = (Home::new(), Server::mcp());
    let session = relay(&home, &server);
    wait_for_a_run(&home);
    for words in ["show latest -f", "runs -f"] {
        let mut command = home.program();
        command.args(words.split(' '));
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(child.try_wait().unwrap().is_none(), "it goes on");
        drop(child.stdout.take());
        let began = Instant::now();
        let out = child.wait_with_output().unwrap();
        assert!(began.elapsed() < LIMIT / 4);
        assert_eq!((out.status.code(), &out.stderr[..]), (Some(0), &b""[..]));
    }
    session.close_input();
    session.wait();
}

#[test]
fn a_document_cannot_be_followed() {
    let (home, server) = (Home::new(), Server::mcp());
    let session = relay(&home, &server);
    wait_for_a_run(&home);
    for words in ["show latest -f --format json", "runs -f --format json"] {
        let said = home.run(words.split(' '));
        assert_eq!(said.code, 2);
        assert!(said.err.contains("--format jsonl"), "{said:?}");
    }
    session.close_input();
    session.wait();
}
