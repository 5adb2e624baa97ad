//! Recordings of agent-strace, agenttrace-vcr and assistants come in as runs, all or nothing and
//! once, without their secrets; what is hostile in them is refused by name and place.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_wire::message::member_at;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::{Home, Said, recorded};

/// Writes a session of agent-strace into `work/.agent-traces`.
fn strace(home: &Home, session: &str, events: &str) {
    let folder = home.at("work/.agent-traces").join(session);
    fs::create_dir_all(&folder).unwrap();
    let meta = json!({"session_id": session, "started_at": 1_764_000_000.5, "ended_at": 1_764_000_009.0,
        "agent_name": "codex", "command": "npx -y @scope/server-git"});
    fs::write(folder.join("meta.json"), format!("{meta:#}")).unwrap();
    fs::write(folder.join("events.ndjson"), events).unwrap();
}

const EVENTS: &str = r#"{"event_type":"session_start","timestamp":1764000000.5,"event_id":"e0","session_id":"s","data":{"command":["npx","-y","@scope/server-git"]}}
{"event_type":"user_prompt","timestamp":1764000001,"event_id":"e1","session_id":"s","data":{"prompt":"fix it"}}
{"event_type":"tool_call","timestamp":1764000002,"event_id":"e2","session_id":"s","data":{"tool_name":"log","arguments":{"n":1.50,"token":"TOKEN"},"request_id":1}}
{"event_type":"llm_request","timestamp":1764000002.1,"event_id":"e3","session_id":"s","data":{"model":"m"}}
{"event_type":"tool_result","timestamp":1764000002.25,"event_id":"e4","session_id":"s","parent_id":"e2","duration_ms":250,"data":{"content_preview":"done","request_id":1}}
{"event_type":"tool_call","timestamp":1764000003,"event_id":"e5","session_id":"s","data":{"tool_name":"push","arguments":{},"request_id":2}}
{"event_type":"error","timestamp":1764000003.5,"event_id":"e6","session_id":"s","data":{"code":-32000,"message":"rejected","request_id":2}}
{"event_type":"brand_new","timestamp":1764000004,"event_id":"e7","session_id":"s","data":{},"extra":[1]}
{"event_type":"session_end","timestamp":1764000009,"event_id":"e8","session_id":"s","data":{"exit_code":0}}
"#;

fn token() -> String {
    ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat()
}

#[test]
fn sessions_of_agent_strace_are_runs_with_calls_outcomes_and_times() {
    let home = Home::new();
    strace(
        &home,
        "aaaa000011112222",
        &EVENTS.replace("TOKEN", &token()),
    );
    let said = home.run(["import", "."]);
    assert_eq!(said.code, 0, "{said:?}");
    let run = home.only_run();
    let id = run.entry.id.to_string();
    let place = "./.agent-traces/aaaa000011112222";
    assert_eq!(
        said.out,
        format!("imported run {} from {place}\n", &id[..8])
    );
    assert!(said.err.contains("1 event of a kind"), "{}", said.err);

    assert_eq!(
        recorded::steps(&run),
        [
            "agent-strace/meta",
            "agent-strace/session_start",
            "agent-strace/user_prompt",
            "tools/call log: ok",
            "agent-strace/llm_request",
            "tools/call push: error",
            "agent-strace/brand_new",
            "agent-strace/session_end",
        ]
    );
    assert_eq!(
        (run.client(), run.server()),
        ("codex".to_owned(), "server-git")
    );
    let call = &run.steps[3];
    assert_eq!(call.wall, 1_764_000_002_000_000_000);
    assert_eq!(call.duration, Some(250_000_000));
    let arguments = String::from_utf8_lossy(
        member_at(call.request(&run.frames), &["params", "arguments"]).unwrap(),
    )
    .into_owned();
    assert!(
        arguments.starts_with(r#"{"n":1.50,"token":"[REDACTED:github-token:"#),
        "{arguments}"
    );
    let secret = token().into_bytes();
    let leaks = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
    // Sealed files are compressed; what is in them is looked at where it is unpacked.
    assert!(!home.store_files().iter().any(|(_, bytes)| leaks(bytes)));
    assert!(!run.frames.iter().any(|frame| leaks(&frame.record.payload)));

    assert!(home.ok(["verify", "--all"]).contains("all proven"));

    // Again: nothing changes.
    let before = home.journal_files();
    let again = home.ok(["import", ".agent-traces"]);
    assert_eq!(
        again,
        format!("has run {} from .agent-traces/aaaa000011112222\n", &id[..8])
    );
    let after = home.journal_files();
    assert_eq!(before.len(), after.len());
    assert!(before.iter().all(|file| after.contains(file)));
}

#[test]
fn a_recording_that_has_grown_is_taken_anew_when_that_is_asked_for() {
    let home = Home::new();
    let (first, _) = EVENTS.split_at(EVENTS.find("{\"event_type\":\"tool_call\"").unwrap());
    strace(&home, "s", first);
    home.ok(["import", "."]);
    let id = home.only_run().entry.id;
    strace(&home, "s", EVENTS);
    let said = home.run(["import", "."]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("has changed since"), "{said:?}");
    assert_eq!(home.only_run().steps.len(), 3);
    let said = home.ok(["import", ".", "--replace"]);
    assert!(said.starts_with("replaced run"), "{said}");
    let run = home.only_run();
    assert_eq!((run.entry.id, run.steps.len()), (id, 8));
}

#[test]
fn one_bad_line_and_nothing_comes_in() {
    let home = Home::new();
    strace(&home, "a", EVENTS);
    strace(
        &home,
        "b",
        &EVENTS.replacen("\"timestamp\":1764000001", "\"timestamp\":", 1),
    );
    let said = home.run(["import", "."]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains(".agent-traces/b/events.ndjson line 2: not JSON at byte"),
        "{}",
        said.err
    );
    assert!(home.runs().is_empty());
    let left = home.store_files();
    let names: Vec<_> = left
        .iter()
        .map(|(path, _)| path.file_name().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "the key and the lock: {names:?}");

    // A last line that was being written is no damage.
    let whole = EVENTS.trim_end();
    strace(&home, "b", &whole[..whole.len() - 20]);
    home.ok(["import", "."]);
    assert_eq!(home.runs().len(), 2);
}

#[test]
fn hostile_folders_cost_neither_memory_nor_patience() {
    let home = Home::new();
    let root = home.at("work/.agent-traces");
    // Deep nesting, invalid UTF-8 and ids that are paths are data like any other.
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let line = format!(
        "{{\"event_type\":\"tool_call\",\"timestamp\":1,\"event_id\":\"../../../x\",\"session_id\":\"../../x\",\"data\":{{\"tool_name\":\"t\",\"arguments\":{deep}}}}}\n"
    );
    strace(&home, "deep", &line);
    let folder = root.join("bytes");
    fs::create_dir(&folder).unwrap();
    let bytes = b"{\"event_type\":\"decision\",\"timestamp\":1,\"data\":{\"x\":\"\xff\xfe\"}}\n";
    fs::write(folder.join("events.ndjson"), bytes).unwrap();
    // What is no file is not opened: a pipe would wait for ever, a link lead away.
    fs::create_dir(root.join("pipe")).unwrap();
    let pipe = root.join("pipe/events.ndjson");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    let said = home.run(["import", "."]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(home.runs().len(), 2);
    home.ok(["show", "latest"]);
    for export in ["jsonl", "csv", "chrome"] {
        home.ok(["export", "latest", "--as", export, "-o", "-"]);
    }
    let said = home.run([Path::new("import"), &pipe]);
    assert!(
        said.code == 2 && said.err.contains("not a plain file"),
        "{said:?}"
    );

    // A line without end is refused as soon as it is too long.
    strace(
        &home,
        "long",
        &format!("{}{{\"a\":\"{}", EVENTS, "x".repeat(17 << 20)),
    );
    let said = home.run(["import", "."]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains("events.ndjson line 10: longer than 16 MiB"),
        "{}",
        said.err
    );
    assert_eq!(home.runs().len(), 2);
}

#[test]
fn transcripts_of_claude_code_come_in_from_its_folder() {
    let home = Home::new();
    let folder = home.at("home/.claude/projects/-home-x-app");
    fs::create_dir_all(&folder).unwrap();
    let session = "0b8e5a52-1111-4222-8333-944444444444";
    let entry = |kind: &str, second: u32, message: Value| {
        json!({"type": kind, "uuid": format!("u{second}"), "sessionId": session, "version": "2.1.332",
            "cwd": "/home/x/app", "timestamp": format!("2026-11-30T12:00:{second:02}.250Z"), "message": message})
        .to_string()
    };
    let lines = [
        json!({"type": "summary", "summary": "Fixing it", "leafUuid": "u9"}).to_string(),
        entry("user", 1, json!({"role": "user", "content": "fix it"})),
        entry(
            "assistant",
            2,
            json!({"role": "assistant", "model": "m", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "mcp__git__log", "input": {"n": 1}}]}),
        ),
        entry(
            "user",
            5,
            json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such file", "is_error": true}]}),
        ),
        entry(
            "assistant",
            6,
            json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "ls"}}]}),
        ),
    ];
    fs::write(
        folder.join(format!("{session}.jsonl")),
        lines.join("\n") + "\n",
    )
    .unwrap();
    fs::write(folder.join("notes.md"), "no transcript").unwrap();
    let projects = home.at("home/.claude/projects");
    let said = home.run([Path::new("import"), &projects]);
    assert!(
        said.code == 0 && said.err.contains("1 other file was passed over"),
        "{said:?}"
    );
    let run = home.only_run();
    assert_eq!(
        recorded::steps(&run),
        [
            "claude-code/summary",
            "claude-code/user",
            "claude-code/assistant",
            "tools/call mcp__git__log: tool_error",
            "tools/call Bash: not_recorded",
        ]
    );
    assert_eq!(run.steps[3].duration, Some(3_000_000_000));
    assert_eq!(run.entry.header.project.as_deref(), Some("/home/x/app"));
}

/// Writes a transcript with one object a line.
fn transcript(home: &Home, path: &str, lines: &[Value]) {
    let path = home.at(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn rollouts_of_codex_come_in_from_its_folder() {
    let home = Home::new();
    let session = "01a22f33-8b3d-7be1-be22-726a5bd6cb99";
    let entry = |second: u32, kind: &str, payload: Value| {
        json!({"timestamp": format!("2026-11-30T12:00:{second:02}.250Z"), "ordinal": second,
            "type": kind, "payload": payload})
    };
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "name": name, "call_id": id, "arguments": arguments});
    let mut of_server = call("call_1", "log", "{\"n\": 1}");
    of_server["namespace"] = json!("mcp__git");
    let item = |item: Value| json!({"type": "item_completed", "item": item});
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    transcript(
        &home,
        "home/.codex/sessions/2026/11/30/rollout.jsonl",
        &[
            entry(
                0,
                "session_meta",
                json!({"id": session, "cwd": "/home/x/app",
                "timestamp": "2026-11-30T12:00:00.000Z", "cli_version": "0.171.0"}),
            ),
            entry(
                1,
                "response_item",
                json!({"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "fix it"}]}),
            ),
            entry(2, "response_item", of_server),
            entry(
                5,
                "event_msg",
                item(json!({"type": "McpToolCall", "id": "call_1",
                "status": "failed", "result": {"isError": true,
                "content": [{"type": "text", "text": "no such file"}]}})),
            ),
            entry(
                6,
                "response_item",
                output(
                    "call_1",
                    json!([
                {"type": "input_text", "text": "Wall time: 3 seconds"}]),
                ),
            ),
            entry(
                7,
                "response_item",
                call("call_2", "exec_command", "{\"cmd\": \"make\"}"),
            ),
            entry(
                8,
                "event_msg",
                item(json!({"type": "CommandExecution", "id": "call_2",
                "status": "failed", "exit_code": 2, "aggregated_output": "stop"})),
            ),
            entry(9, "response_item", call("call_3", "plan", "no JSON")),
            entry(10, "response_item", output("call_3", json!("done"))),
            entry(
                11,
                "response_item",
                json!({"type": "custom_tool_call", "call_id": "call_4",
                "name": "apply_patch", "input": "*** Begin Patch"}),
            ),
        ],
    );
    home.ok([Path::new("import"), &home.at("home/.codex/sessions")]);
    let run = home.only_run();
    assert_eq!(
        recorded::steps(&run),
        [
            "codex/session_meta",
            "codex/user",
            "tools/call mcp__git__log: tool_error",
            "codex/function_call_output",
            "tools/call exec_command: tool_error",
            "tools/call plan: ok",
            "tools/call apply_patch: not_recorded",
        ]
    );
    assert_eq!(run.steps[2].duration, Some(3_000_000_000));
    assert_eq!(run.entry.header.project.as_deref(), Some("/home/x/app"));
    let shown = home.ok(["show", "latest"]);
    assert!(shown.contains("mcp__git__log({\"n\": 1})"), "{shown}");
    assert!(shown.contains("no such file"), "{shown}");
}

#[test]
fn sessions_of_copilot_come_in_from_its_folder() {
    let home = Home::new();
    let session = "365d7659-81af-445c-a872-297af1b87113";
    let entry = |second: u32, kind: &str, data: Value| {
        json!({"type": kind, "data": data, "id": format!("e{second}"), "parentId": null,
            "timestamp": format!("2026-11-30T12:00:{second:02}.250Z")})
    };
    let start =
        |id: &str, name: &str| json!({"toolCallId": id, "toolName": name, "arguments": {"n": 1}});
    transcript(
        &home,
        &format!("home/.copilot/session-state/{session}/events.jsonl"),
        &[
            entry(
                0,
                "session.start",
                json!({"sessionId": session, "copilotVersion": "1.0.102",
                "startTime": "2026-11-30T12:00:00.000Z", "context": {"cwd": "/home/x/app"}}),
            ),
            entry(1, "user.message", json!({"content": "fix it"})),
            entry(2, "tool.execution_start", start("call_1", "git-log")),
            entry(3, "tool.execution_start", start("call_2", "bash")),
            entry(
                4,
                "tool.execution_complete",
                json!({"toolCallId": "call_2", "success": true,
                "shellExecution": {"exitCode": 3}, "result": {"content": "out"}}),
            ),
            entry(
                5,
                "tool.execution_complete",
                json!({"toolCallId": "call_1", "success": false,
                "error": {"message": "MCP server 'git': no such file", "code": "failure"}}),
            ),
            entry(6, "tool.execution_start", start("call_3", "view")),
            entry(
                7,
                "tool.execution_complete",
                json!({"toolCallId": "call_3", "success": true,
                "result": {"content": "text"}}),
            ),
        ],
    );
    home.ok([Path::new("import"), &home.at("home/.copilot/session-state")]);
    let run = home.only_run();
    assert_eq!(
        recorded::steps(&run),
        [
            "copilot-cli/session.start",
            "copilot-cli/user.message",
            "tools/call git-log: tool_error",
            "tools/call bash: tool_error",
            "tools/call view: ok",
        ]
    );
    assert_eq!(run.steps[2].duration, Some(3_000_000_000));
    assert_eq!(run.entry.header.project.as_deref(), Some("/home/x/app"));
}

#[test]
fn recordings_of_agenttrace_vcr_come_in() {
    let home = Home::new();
    let event = |sequence: u32, kind: &str, call: Option<&str>, rest: Value| {
        let mut event = json!({"sequence": sequence, "event_type": kind, "call_id": call,
            "tool_name": null, "arguments": null, "response": null, "duration_ms": null});
        for (name, value) in rest.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    };
    let recording = json!({
        "id": "6a1c7a9e-0000-4000-8000-000000000001", "agent_name": "triage", "agent_version": null,
        "input": {"ticket": 7}, "output": {"value": "ok"}, "status": "completed",
        "started_at": "2026-11-30T12:00:00+00:00", "completed_at": "2026-11-30T12:00:02+00:00",
        "metadata": null, "replay_of_run_id": null,
        "events": [
            event(0, "agent_start", None, json!({})),
            // Not in the order of their numbers.
            event(2, "tool_response", Some("c1"), json!({"response": {"rows": 3}, "duration_ms": 120})),
            event(1, "tool_call", Some("c1"), json!({"tool_name": "query", "arguments": {"q": "x"}})),
            event(3, "tool_call", Some("c2"), json!({"tool_name": "mail", "arguments": {}})),
            event(4, "error", Some("c2"), json!({"response": {"type": "OSError", "message": "down"}, "duration_ms": 30})),
            event(5, "agent_end", None, json!({})),
        ],
    });
    fs::write(home.at("work/run.json"), format!("{recording:#}\n")).unwrap();
    home.ok(["import", "run.json"]);
    let run = home.only_run();
    assert_eq!(
        recorded::steps(&run),
        [
            "agenttrace-vcr/run",
            "agenttrace-vcr/agent_start",
            "tools/call query: ok",
            "tools/call mail: tool_error",
            "agenttrace-vcr/agent_end",
        ]
    );
    let spans: Vec<_> = run.steps.iter().filter_map(|step| step.duration).collect();
    assert_eq!(spans, [120_000_000, 30_000_000]);
    assert!(
        home.ok(["show", "latest", "-s", "0"])
            .contains("OSError: down")
    );
    let again = home.ok(["import", "run.json"]);
    assert!(again.starts_with("has run"), "{again}");
}

#[test]
fn what_other_commands_of_agent_strace_print_comes_in_too() {
    let home = Home::new();
    let events: Vec<Value> = EVENTS
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let inspected =
        json!({"session": {"session_id": "i", "started_at": 1_764_000_000.5}, "events": events});
    fs::write(home.at("work/inspect.json"), format!("{inspected:#}")).unwrap();
    fs::write(home.at("work/export.json"), json!(events).to_string()).unwrap();
    home.ok(["import", "inspect.json"]);
    assert_eq!(home.only_run().steps.len(), 8);
    home.ok(["import", "export.json"]);
    assert_eq!(home.runs().len(), 2);
    let said = Said::by(home.program().args(["import", "-"]), EVENTS.as_bytes());
    assert!(
        said.code == 1 && said.out.starts_with("has changed"),
        "the same session: {said:?}"
    );
}

#[test]
fn what_is_no_recording_is_named() {
    let home = Home::new();
    fs::write(home.at("work/x.json"), "{\"a\":1}").unwrap();
    fs::create_dir(home.at("work/empty")).unwrap();
    for name in ["x.json", "empty"] {
        let said = home.run(["import", name]);
        assert_eq!(said.code, 2);
        let expected = format!("error: {name} holds no recording in a format that is known");
        assert!(said.err.starts_with(&expected), "{}", said.err);
    }
}
