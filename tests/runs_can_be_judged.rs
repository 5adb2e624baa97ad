//! Runs are judged by people and by the check command of the configuration. What was decided
//! counts before what happened, is kept apart from it, and survives.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::state::{Entry, State};
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;
use support::text::steady;
use support::{Home, REQUEST, Server};

fn call(tool: &str) -> String {
    REQUEST.replace("\"t\"", &format!("\"{tool}\""))
}

/// A run that went well, and after it one that failed.
fn two_runs(home: &Home) {
    home.record().talk(&Server::mcp(), call("echo"));
    home.record().talk(&Server::mcp(), call("fail"));
}

/// Declares a check command: a shell script.
fn configure(home: &Home, script: &str, timeout: &str) {
    let folder = home.at("home/.config/agent-trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("check.sh"), script).unwrap();
    let text = format!(
        "[check]\ncommand = [\"sh\", {:?}]\ntimeout = {timeout:?}\n",
        { folder.join("check.sh") }
    );
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

#[test]
fn a_verdict_counts_before_what_happened_and_is_shown_beside_it() {
    let home = Home::new();
    two_runs(&home);
    let runs = home.run_ids();
    let (failed, well) = (runs[0].clone(), runs[1].clone());
    let failed_runs = || {
        home.ok(["runs", "--failed", "--format", "jsonl"])
            .lines()
            .count()
    };
    assert_eq!(failed_runs(), 1);

    let said = home.ok([
        "verdict",
        &well[..8],
        "wrong",
        "--reason",
        "the answer is a lie",
    ]);
    let said = steady(&said, &[(&well[..8], "RUN")]);
    assert_eq!(
        said,
        "run RUN judged wrong by a person: the answer is a lie"
    );
    assert_eq!(failed_runs(), 2);
    home.ok(["verdict", "latest", "right"]);
    assert_eq!(failed_runs(), 1);

    let listed = home.json(["runs", "--format", "json"]);
    assert_eq!(listed[0]["run"], failed);
    assert_eq!(listed[0]["verdict"], "right");
    assert_eq!(listed[0]["verdict_by"], "person");
    // What happened is told all the same.
    assert_eq!(listed[0]["failures"], json!(["fail (step 1)"]));
    assert_eq!(listed[1]["verdict"], "wrong");
    assert_eq!(listed[1]["verdict_reason"], "the answer is a lie");
    assert_eq!(listed[1]["failures"], json!([]));
    let shown = home.json(["show", &well, "--format", "json"]);
    assert_eq!(shown["verdict"], "wrong");
    let table = home.ok(["runs"]);
    assert!(
        table.contains("failed: fail (step 1), judged right"),
        "{table}"
    );
    assert!(table.contains("ok, judged wrong"), "{table}");
    let shown = home.ok(["show", &well]);
    let line = "    judged wrong by a person: the answer is a lie";
    assert_eq!(shown.lines().last(), Some(line));
    let explained = home.ok(["explain", &well]);
    let first = "Judged\n  A person judged the run wrong: it has failed, whatever went well in it.\n      reason: the answer is a lie\n";
    assert!(explained.contains(first), "{explained}");

    home.ok(["verdict", &well, "unjudged"]);
    let listed = home.json(["runs", "--format", "json"]);
    assert_eq!(listed[1]["verdict"], "unjudged");
    let unknown = home.run(["verdict", "ffffffff", "right"]);
    assert_eq!(unknown.code, 2);
}

#[test]
fn a_secret_in_a_reason_does_not_reach_the_disk() {
    let home = Home::new();
    two_runs(&home);
    let secret = ["ghp", "0123456789abcdefghijklmnopqrstuvwxyz"].join("_");
    let reason = format!("it printed {secret}\u{1b}[31m");
    let said = home.ok(["verdict", "latest", "wrong", "--reason", &reason]);
    assert!(
        !said.contains(&secret) && !said.contains('\u{1b}'),
        "{said}"
    );
    for (path, content) in home.store_files() {
        let found = content
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn what_was_said_of_a_run_is_forgotten_with_it() {
    let home = Home::new();
    two_runs(&home);
    let ids = home.run_ids();
    for (id, reason) in [(&ids[0], "reason one"), (&ids[1], "reason two")] {
        home.ok(["verdict", id, "wrong", "--reason", reason]);
    }
    home.ok(["forget", &ids[0]]);
    let log = std::fs::read(State::of(&home.store()).path()).unwrap();
    let log = String::from_utf8_lossy(&log).into_owned();
    assert!(!log.contains("reason one"), "{log}");
    assert!(log.contains("reason two"), "{log}");
}

#[test]
fn a_check_command_judges_by_its_exit_status() {
    let home = Home::new();
    two_runs(&home);
    let none = home.run(["verdict", "latest", "--check"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("declares no check command"), "{none:?}");
    configure(
        &home,
        "grep -q '\"outcome\":\"tool_error\"' && echo \"$AGENT_TRACE_CHECKED_RUN has an error\" && exit 1\n\
         exit 0\n",
        "60s",
    );
    let runs = home.run_ids();
    let (failed, well) = (runs[0].clone(), runs[1].clone());
    let said = home.run(["verdict", &failed, "--check", "--format", "json"]);
    let verdict: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &verdict["verdict"]), (1, &json!("wrong")));
    assert_eq!(verdict["by"], "check");
    assert_eq!(verdict["reason"], format!("{failed} has an error"));
    assert_eq!(home.run(["verdict", &well, "--check"]).code, 0);
    let listed = home.json(["runs", "--format", "json"]);
    let verdicts = [&listed[0]["verdict"], &listed[1]["verdict"]];
    assert_eq!(verdicts, ["wrong", "right"]);

    // A person's word counts before the check's, whichever comes last.
    home.ok(["verdict", &failed, "right"]);
    home.run(["verdict", &failed, "--check"]);
    let listed = home.json(["runs", "--format", "json"]);
    assert_eq!(listed[0]["verdict"], "right");
}

#[test]
fn a_check_that_cannot_tell_leaves_the_run_unjudged() {
    let home = Home::new();
    two_runs(&home);
    let reason = |script: &str, timeout: &str| {
        configure(&home, script, timeout);
        let said = home.run(["verdict", "latest", "--check", "--format", "json"]);
        assert_eq!(said.code, 2, "{said:?}");
        let verdict: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(verdict["verdict"], "unjudged");
        verdict["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        reason("echo no such file >&2; exit 3\n", "60s"),
        "check error: exit status 3: no such file"
    );
    assert_eq!(
        reason("sleep 1000\n", "200ms"),
        "check error: it took too long"
    );
}

#[test]
fn a_check_runs_in_the_folder_of_the_configuration() {
    let home = Home::new();
    two_runs(&home);
    configure(&home, "cat < beside.txt\nexit 1\n", "60s");
    let folder = home.at("home/.config/agent-trace");
    std::fs::write(folder.join("beside.txt"), "beside the file").unwrap();
    // Arguments that are paths, too.
    let text = "[check]\ncommand = [\"sh\", \"check.sh\"]\n";
    std::fs::write(folder.join("config.toml"), text).unwrap();
    let verdict = home.run(["verdict", "latest", "--check", "--format", "json"]);
    assert_eq!(verdict.code, 1, "{verdict:?}");
    assert!(verdict.out.contains("beside the file"), "{verdict:?}");
}

#[test]
fn a_secret_that_a_cut_goes_through_does_not_stay() {
    let home = Home::new();
    two_runs(&home);
    let secret = ["ghp", "0123456789abcdefghijklmnopqrstuvwxyz"].join("_");
    // In one line, so long that the reason's beginning and its end are within a secret.
    for before in [1000 - 20, 1000 - 4] {
        let script = format!(
            "head -c {before} /dev/zero | tr '\\0' 'x'\n\
             echo ' {secret} and'\nexit 1\n"
        );
        configure(&home, &script, "60s");
        home.run(["verdict", "latest", "--check"]);
        let script = format!(
            "echo {secret}\nprintf '{secret} '\n\
             head -c {} /dev/zero | tr '\\0' 'x'\nexit 1\n",
            before + 2
        );
        configure(&home, &script, "60s");
        home.run(["verdict", "latest", "--check"]);
    }
    for entry in State::of(&home.store()).entries().unwrap().all {
        let Entry::Verdict(decision) = entry else {
            panic!("{entry:?}");
        };
        let reason = &decision.reason;
        assert!(reason.len() > 900, "{reason}");
        let whole = secret.as_bytes().windows(6);
        let whole = whole.map(|part| std::str::from_utf8(part).unwrap());
        let parts: Vec<&str> = whole.filter(|part| reason.contains(part)).collect();
        assert!(parts.is_empty(), "{parts:?} in {reason}");
    }
}

#[test]
fn a_verdict_that_was_acknowledged_survives_kill() {
    let home = Home::new();
    two_runs(&home);
    let mut acknowledged = Vec::new();
    for round in 0..40_u32 {
        let reason = format!("round {round}");
        let mut child = home
            .program()
            .args(["verdict", "latest", "wrong", "--reason", &reason])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Every fifth is let be.
        if round % 5 > 0 {
            std::thread::sleep(Duration::from_millis(u64::from(round % 20)));
            let _ = child.kill();
        }
        if child.wait().unwrap().success() {
            acknowledged.push(reason);
        }
    }
    home.ok(["verdict", "latest", "wrong", "--reason", "the last"]);
    let entries = State::of(&home.store()).entries().unwrap();
    assert_eq!(entries.damaged, 0);
    assert!(acknowledged.len() >= 8);
    let reasons: Vec<&str> = entries
        .all
        .iter()
        .map(|entry| match entry {
            Entry::Verdict(decision) => &decision.reason[..],
            entry => panic!("{entry:?}"),
        })
        .collect();
    for reason in &acknowledged {
        assert!(reasons.contains(&&reason[..]), "{reason} is lost");
    }
    assert_eq!(reasons.last(), Some(&"the last"));
}
