//! Runs go out as JSONL, CSV, HAR, Chrome trace and agent-strace's folder, and the programs that
//! these are for read them; no secret comes out, and nothing is overwritten.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../store/tests/trace_http/journal.rs"]
mod journal;
#[path = "support/support.rs"]
mod support;

use agent_trace_model::{Ending, Finish};
use agent_trace_store::journal::header::KeyKind;
use journal::Journal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Home, REQUEST, Said, Server, peers, skip, wait_for};

/// Records calls that go well and badly, with a secret and a formula in them.
fn record(home: &Home) -> String {
    let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let call = |id: u32, tool: &str, text: &str| {
        REQUEST
            .replace("\"id\":1,", &format!("\"id\":{id},"))
            .replace("\"t\"", &format!("\"{tool}\""))
            .replace("{}", &format!("{{\"text\":\"{text}\"}}"))
    };
    let lines = [
        call(1, "t", "a \u{2028} b"),
        call(2, "fail", "=HYPERLINK(1)"),
        call(3, "t", &token),
        "=cmd|' /C calc'!A0\n".to_owned(),
    ];
    let record = home.record().option("--server").option("git");
    assert_eq!(record.talk(&Server::mcp(), lines.concat()).code, 0);
    wait_for("the end of the run", || {
        (!home.runs()[0].entry.live).then_some(())
    });
    home.newest()
}

#[test]
fn steps_go_out_as_lines_and_rows() {
    let home = Home::new();
    let run = record(&home);
    let text = home.ok(["export", &run, "--as", "jsonl"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), home.only_run().steps.len());
    assert!(
        lines
            .iter()
            .all(|line| line["schema"] == 1 && line["run"] == run[..])
    );
    let call = lines.iter().find(|line| line["target"] == "t").unwrap();
    assert_eq!(
        (&call["method"], &call["outcome"]),
        (&"tools/call".into(), &"ok".into())
    );
    assert_eq!(
        call["request"]["params"]["arguments"]["text"],
        "a \u{2028} b"
    );
    assert!(call["duration"].is_u64() && call["response"]["result"].is_object());
    let stray = lines.iter().find(|line| line["kind"] == "stray").unwrap();
    assert_eq!(stray["request"], "=cmd|' /C calc'!A0\n");
    assert!(text.contains("[REDACTED:github-token:") && !text.contains("0123456789abcdef"));

    let text = home.ok(["export", &run, "--as", "csv"]);
    assert!(text.starts_with("run,session,") && text.ends_with("\r\n"));
    assert!(text.contains("'=cmd|"), "{text}");
    // Cells as Python's reader of CSV sees them.
    let script = "import csv,sys,json; sys.stdin.reconfigure(newline=''); \
                  print(json.dumps(list(csv.DictReader(sys.stdin))))";
    let mut python = Command::new(support::server::python());
    let said = Said::by(python.args(["-c", script]), text.as_bytes());
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    assert_eq!(rows.len(), lines.len());
    let request: Value = serde_json::from_str(rows[0]["request"].as_str().unwrap()).unwrap();
    assert_eq!(request, lines[0]["request"]);
}

#[test]
fn what_matches_a_filter_goes_out() {
    let home = Home::new();
    let first = record(&home);
    let second = record(&home);
    let lines = |words: &[&str]| -> Vec<(String, String)> {
        let text = home.ok([&["export", "--as", "jsonl"], words].concat());
        let lines = text.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = |member: &str| line[member].as_str().unwrap_or_default().to_owned();
            (text("run"), text("target"))
        });
        lines.collect()
    };
    let step = |run: &str, target: &str| (run.to_owned(), target.to_owned());
    assert_eq!(lines(&[&second, "~t fail"]), [step(&second, "fail")]);
    let both = [step(&first, "fail"), step(&second, "fail")];
    assert_eq!(lines(&["~t fail"]), both);
    // Files hold whole runs.
    let said = home.ok(["export", "~t fail"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    for run in [&first, &second] {
        assert!(
            home.at("work")
                .join(format!("{}.atrace", &run[..8]))
                .exists(),
            "{said}"
        );
    }
    for (words, code) in [
        (["export", "~t nothing"], 2),
        (["export", "~t ("], 2),
        (["export", "ffffffff"], 2),
    ] {
        let said = home.run(words);
        assert_eq!((said.code, &said.out[..]), (code, ""), "{said:?}");
    }
}

#[test]
fn a_trace_for_perfetto_has_spans_that_do_not_overlap_on_a_thread() {
    let home = Home::new();
    record(&home);
    home.ok(["export", "latest", "--as", "chrome", "-o", "trace.json"]);
    let trace: Value =
        serde_json::from_slice(&fs::read(home.at("work/trace.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(
        spans
            .iter()
            .filter(|span| span["cat"] == "tools/call")
            .count(),
        3
    );
    let mut ends = std::collections::BTreeMap::new();
    for span in spans {
        let (from, length) = (span["ts"].as_f64().unwrap(), span["dur"].as_f64().unwrap());
        let end = ends
            .insert(span["tid"].as_u64(), from + length)
            .unwrap_or(0.0);
        assert!(from + 0.001 >= end, "{trace:#}");
    }
    let names = events
        .iter()
        .filter(|event| event["name"] == "process_name");
    assert_eq!(names.count(), 1);
}

#[test]
fn only_runs_over_http_are_archives_and_nothing_is_overwritten() {
    let home = Home::new();
    record(&home);
    let said = home.run(["export", "latest", "--as", "har", "-o", "x.har"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("it has no HTTP exchanges"),
        "{}",
        said.err
    );
    assert!(
        !home.at("work/x.har").exists(),
        "half a file would look like a whole one"
    );
    fs::write(home.at("work/taken"), "mine").unwrap();
    for format in ["jsonl", "csv", "chrome", "portable"] {
        let said = home.run(["export", "latest", "--as", format, "-o", "taken"]);
        assert!(
            said.code == 2 && said.err.contains("taken is there already"),
            "{said:?}"
        );
    }
    assert_eq!(fs::read(home.at("work/taken")).unwrap(), b"mine");
}

#[test]
fn exchanges_go_out_as_an_archive() {
    let home = Home::new();
    let mut j = Journal::in_folder(&home.store_folder());
    j.open(1, KeyKind::McpSession);
    let asked = r#"{"id":2,"method":"tools/call","params":{"name":"search"}}"#;
    let answered = r#"{"id":2,"result":{"content":[]}}"#;
    j.post(1, 1, asked, 200, answered);
    let again = asked.replace('2', "3");
    j.post(1, 2, &format!("[{again},{{\"method\":\"x\"}}]"), 202, "");
    j.request(1, 3, "DELETE", &[]);
    j.response(1, 3, 204, &[]);
    j.finish(1, 3, Finish::Complete);
    j.end(1, Ending::ClientClosed);
    j.close();
    home.ok(["export", "latest", "--as", "har", "-o", "x.har"]);
    let archive: Value = serde_json::from_slice(&fs::read(home.at("work/x.har")).unwrap()).unwrap();
    let log = &archive["log"];
    assert_eq!(
        (&log["version"], &log["creator"]["name"]),
        (&"1.2".into(), &"agent-trace".into())
    );
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    let [first, second, third] = &entries[..] else {
        panic!("three")
    };
    assert_eq!(first["request"]["postData"]["text"], asked);
    assert_eq!(first["response"]["content"]["text"], answered);
    assert!(
        first["request"]["url"]
            .as_str()
            .unwrap()
            .starts_with("http"),
        "{first:#}"
    );
    let batch: Value =
        serde_json::from_str(second["request"]["postData"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(batch.as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&third["request"]["method"], &third["response"]["status"]),
        (&"DELETE".into(), &204.into())
    );
    // Members that the format demands.
    for entry in entries {
        for name in [
            "startedDateTime",
            "time",
            "request",
            "response",
            "cache",
            "timings",
        ] {
            assert!(!entry[name].is_null(), "{name}");
        }
        for name in [
            "method",
            "url",
            "httpVersion",
            "cookies",
            "headers",
            "queryString",
            "headersSize",
            "bodySize",
        ] {
            assert!(!entry["request"][name].is_null(), "{name}");
        }
        for name in [
            "status",
            "statusText",
            "httpVersion",
            "cookies",
            "headers",
            "content",
            "redirectURL",
            "headersSize",
            "bodySize",
        ] {
            assert!(!entry["response"][name].is_null(), "{name}");
        }
    }
}

#[test]
fn agent_strace_takes_what_goes_out() {
    let home = Home::new();
    let run = record(&home);
    home.ok(["export", &run, "--as", "agent-strace"]);
    let folder = home.at("work/.agent-traces").join(&run[..16]);
    let text = fs::read_to_string(folder.join("events.ndjson")).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"session_start"));
    assert_eq!(kinds.last(), Some(&"session_end"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "tool_call").count(), 3);
    let again = home.run(["export", &run, "--as", "agent-strace"]);
    assert!(
        again.code == 2 && again.err.contains("is there already"),
        "{again:?}"
    );

    // In and out again, byte for byte.
    let other = Home::new();
    other.ok([Path::new("import"), &home.at("work/.agent-traces")]);
    other.ok(["export", "latest", "--as", "agent-strace", "-o", "back"]);
    let back = other.at("work/back").join(&run[..16]).join("events.ndjson");
    assert_eq!(fs::read_to_string(back).unwrap(), text);

    let program = peers::folder().join(".venv/bin/agent-strace");
    if !program.exists() {
        let reason = "tests/peers/install has not installed agent-strace";
        return skip("agent_strace_takes_what_goes_out", reason);
    }
    for (words, expected) in [
        (&["verify"][..], "Chain intact"),
        (&["health"], "Evidence health"),
        (&["lint"], "0 error(s)"),
        (
            &["export", "--format", "otlp", "--output", "otlp.json"],
            "OTLP payload written",
        ),
        (&["explain"], "Session"),
    ] {
        let mut command = home.with_environment(Command::new(&program));
        command
            .env_remove("AGENT_TRACE_DIR")
            .env("DO_NOT_TRACK", "1")
            .args(words);
        let said = Said::by(&mut command, b"");
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains(expected), "{words:?}: {said:?}");
        assert!(!all.contains("Traceback"), "{said:?}");
    }
    let sent = fs::read_to_string(home.at("work/otlp.json")).unwrap();
    assert!(
        sent.contains("tool/fail") && !sent.contains("0123456789abcdefghij"),
        "{sent}"
    );
}
