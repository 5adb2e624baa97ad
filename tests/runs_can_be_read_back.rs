//! What was recorded is printed in full and in safety, as text and as JSON.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::{Outcome, ProcessId};
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::journal::{Envelope, Kind};
use serde_json::{Value, json};
use support::recorded::{
    ClientToServer, ServerToClient, failures, frames, outcomes, records, steps,
};
use support::text::steady;
use support::{ANSWER, Home, REQUEST, Server, wait_for};

fn request(id: impl std::fmt::Display, method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

fn notification(method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n")
}

fn result(id: impl std::fmt::Display, result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
}

fn call(id: impl std::fmt::Display, tool: &str, text: &str) -> String {
    let params = json!({"name": tool, "arguments": {"text": text}});
    request(id, "tools/call", &params)
}

/// A conversation in which most things happen once, one after another.
fn conversation(home: &Home) {
    let server = Server::mcp();
    let record = home
        .record()
        .option("--client=editor")
        .option("--server=notes");
    let session = record.start(&server);
    let hello = json!({"protocolVersion": "2025-11-25", "clientInfo": {"name": "x"}});
    // Each with what the trace has after it: steps, answers, lines on standard error.
    for (message, steps, answers, errors) in [
        (request(0, "initialize", &hello), 1, 1, 0),
        (
            notification("notifications/initialized", &json!({})),
            2,
            1,
            0,
        ),
        (request(1, "tools/list", &json!({})), 3, 2, 0),
        (call(2, "echo", "hällo"), 4, 3, 0),
        (call(3, "fail", "no such note"), 5, 4, 0),
        (call(4, "refuse", "no such tool"), 6, 5, 0),
        (call(5, "print", "a banner"), 8, 6, 0),
        (call(6, "complain", "a warning"), 9, 7, 1),
        (call(7, "complain", "another"), 10, 8, 2),
        (call(8, "ignore", ""), 11, 8, 2),
    ] {
        session.send(&message);
        // One after another, so that times alone say the order.
        wait_for("the record", || {
            let run = home.store_runs().pop()?;
            let answered = run.steps.iter().filter(|step| step.closed.is_some());
            let counts = (run.steps.len(), answered.count(), run.errors.len());
            (counts == (steps, answers, errors)).then_some(())
        });
    }
    session.close_input();
    assert_eq!(session.wait().code, 0);
}

/// What a command prints, without what is different each time.
fn printed(home: &Home, words: &str) -> String {
    let run = home.runs().remove(0);
    let id = home.newest();
    let command = run.opening.command.join(" ");
    let text = home.ok(words.split(' '));
    let replace = [(&id[..], "RUN-ID"), (&id[..8], "RUN"), (&command, "SERVER")];
    steady(&text, &replace)
}

#[test]
fn a_run_is_printed_in_the_manner_of_strace() {
    let home = Home::new();
    conversation(&home);
    insta::assert_snapshot!(printed(&home, "runs"), @"
    RUN  STARTED  TIME  CLIENT  SERVER  CALLS  FAILED  STATUS
    RUN  DATE  1ms  editor  notes  7  3  failed: step 11 unanswered
    ");
    insta::assert_snapshot!(printed(&home, "show latest"), @r#"
    run RUN editor → notes, DATE
    command: SERVER
    TIME notes initialize({"clientInfo":{"name":"x"},"protocolVersion":"2025-11-25"}) = {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}} <0.1>
    TIME notes notifications/initialized({})
    TIME notes tools/list({}) = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]} <0.1>
    TIME notes tools/call echo({"text":"hällo"}) = {"content":[{"type":"text","text":"hällo"}]} <0.1>
    TIME notes tools/call fail({"text":"no such note"}) = tool error {"content":[{"type":"text","text":"no such note"}],"isError":true} <0.1>
    TIME notes tools/call refuse({"text":"no such tool"}) = error -32602 "no such tool" <0.1>
    TIME notes tools/call print({"text":"a banner"}) = {} <0.1>
    TIME notes stdout: a banner
    TIME notes tools/call complain({"text":"a warning"}) = {} <0.1>
    TIME notes tools/call complain({"text":"another"}) = {} <0.1>
    TIME notes tools/call ignore({"text":""}) = ? (unanswered)
    end failed: step 11 unanswered (the client closed the session, exit status 0)
    failed: fail (step 5)
    failed: refuse (step 6)
    2 lines on standard error (--stderr shows them)
    "#);
    insta::assert_snapshot!(printed(&home, "show latest -n -s 10 --stderr"), @r#"
    run RUN editor → notes, DATE
    command: SERVER
    1 TIME notes initialize({"clientIn…) = {"protocol… <0.1>
    2 TIME notes notifications/initialized({})
    3 TIME notes tools/list({}) = {"tools":[… <0.1>
    4 TIME notes tools/call echo({"text":"h…) = {"content"… <0.1>
    5 TIME notes tools/call fail({"text":"n…) = tool error {"content"… <0.1>
    6 TIME notes tools/call refuse({"text":"n…) = error -32602 "no such to…" <0.1>
    7 TIME notes tools/call print({"text":"a…) = {} <0.1>
    8 TIME notes stdout: a banner
    9 TIME notes tools/call complain({"text":"a…) = {} <0.1>
    TIME notes stderr: a warning
    10 TIME notes tools/call complain({"text":"a…) = {} <0.1>
    TIME notes stderr: another
    11 TIME notes tools/call ignore({"text":""…) = ? (unanswered)
    end failed: step 11 unanswered (the client closed the session, exit status 0)
    failed: fail (step 5)
    failed: refuse (step 6)
    "#);
    // The longest comes first, which may be any.
    insta::assert_snapshot!(sorted(&printed(&home, "show latest -c")), @"
    CALL  CALLS  FAILED  P50  P95  MAX  TOTAL  BYTES
    complain  2  0  0.1  0.1  0.1  0.1  286 B
    echo  1  0  0.1  0.1  0.1  0.1  180 B
    fail  1  1  0.1  0.1  0.1  0.1  207 B
    ignore  1  1  -  -  -  0.1  97 B
    initialize  1  0  0.1  0.1  0.1  0.1  255 B
    print  1  0  0.1  0.1  0.1  0.1  140 B
    refuse  1  1  0.1  0.1  0.1  0.1  182 B
    tools/list  1  0  0.1  0.1  0.1  0.1  151 B
    ");
    // Frames of two streams may stand in either order.
    let frames = printed(&home, "show latest --frames");
    let frames = frames.lines().map(|line| line.split_once("  ").unwrap().1);
    insta::assert_snapshot!(sorted(&frames.collect::<Vec<_>>().join("\n")), @"
    TIME  FROM  FRAMING  BYTES  REDACTED  FLAGS
    DATE  client  newline  102  0
    DATE  client  newline  105  0
    DATE  client  newline  107  0
    DATE  client  newline  108  0
    DATE  client  newline  109  0
    DATE  client  newline  110  0
    DATE  client  newline  115  0
    DATE  client  newline  59  0
    DATE  client  newline  67  0
    DATE  client  newline  98  0
    DATE  server  newline  101  0
    DATE  server  newline  142  0
    DATE  server  newline  37  0
    DATE  server  newline  37  0
    DATE  server  newline  37  0
    DATE  server  newline  74  0
    DATE  server  newline  80  0
    DATE  server  newline  94  0
    DATE  server  stray  9  0
    DATE  stderr  stray  10  0
    DATE  stderr  stray  8  0
    ");
}

/// The lines under a heading in an order of their own.
fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].sort_unstable();
    lines.join("\n")
}

#[test]
fn the_json_of_a_run_has_all_of_it() {
    let home = Home::new();
    conversation(&home);
    let run = home.only_run();
    let listed = home.json(["runs", "--format", "json"]);
    let listed = &listed[0];
    let alias = json!(run.entry.id.to_string());
    assert!(listed["aliases"].as_array().unwrap().contains(&alias));
    let session = json!([run.entry.session.to_string()]);
    assert_eq!(listed["session_ids"], session);
    assert_eq!(listed["clients"], json!(["editor"]));
    assert_eq!(listed["servers"], json!(["notes"]));
    assert_eq!(listed["standing"], "ended");
    assert_eq!(
        (&listed["calls"], &listed["failed_calls"]),
        (&json!(7), &json!(3))
    );
    assert_eq!(
        (&listed["gaps"], &listed["damaged"]),
        (&json!(0), &json!(0))
    );
    assert!(listed["started"].as_str().unwrap().ends_with('Z'));
    assert!(listed["duration"].as_u64().unwrap() > 0);
    let failures = ["step 11 unanswered", "fail (step 5)", "refuse (step 6)"];
    assert_eq!(listed["failures"], json!(failures));
    let lines = home.ok(["runs", "--format", "jsonl"]);
    assert_eq!(serde_json::from_str::<Value>(&lines).unwrap(), *listed);

    let whole = home.json(["show", "latest", "--format", "json"]);
    assert_eq!(whole["run"], listed["run"]);
    let session = &whole["sessions"][0];
    assert_eq!(session["stderr"], json!(["a warning", "another"]));
    assert_eq!(session["exit_code"], 0);
    assert_eq!(session["redacted"], true);
    let lines = home.ok(["show", "latest", "--format", "jsonl"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(whole["steps"], json!(lines));
    let failed = &lines[4];
    assert_eq!(failed["step"], 5);
    assert_eq!(failed["from"], "client_to_server");
    assert_eq!(failed["kind"], "request");
    assert_eq!(failed["method"], "tools/call");
    assert_eq!(failed["target"], "fail");
    assert_eq!(failed["outcome"], "tool_error");
    assert_eq!(
        failed["request"]["params"]["arguments"]["text"],
        "no such note"
    );
    assert_eq!(failed["response"]["result"]["isError"], true);
    assert_eq!(lines[10]["outcome"], "unanswered");
    assert_eq!(lines[10].get("response"), None);

    let frame = failed["request_frame"].to_string();
    let bytes = home.ok(["show", "latest", "--frame", &frame]);
    assert_eq!(bytes, call(3, "fail", "no such note"));
    let listed = home.json(["show", "latest", "--frames", "--format", "json"]);
    let entry = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["frame"] == failed["request_frame"]);
    let entry = entry.unwrap();
    assert_eq!(entry["length"], bytes.len());
    assert_eq!(entry["stream"], "client_to_server");
    assert_eq!(entry["framing"], "newline");
    let summary = home.json(["show", "latest", "-c", "--format", "json"]);
    assert_eq!(summary.as_array().unwrap().len(), 8);
    let missing = home.run(["show", "latest", "--frame", "999"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("has no frame 999"), "{missing:?}");
}

/// Relays what a client and a server say, in this order, and waits for each.
fn exchange(home: &Home, script: &[(char, &str)]) {
    let mut server = Server::new();
    for (number, (who, line)) in script.iter().enumerate() {
        server = match who {
            'c' => server.reads_a_line().notes(&format!("heard {number}")),
            's' => server.waits_for(&format!("say {number}")).writes(line),
            _ => panic!("{who}"),
        };
    }
    let server = server.reads_to_the_end();
    let session = home.record().start(&server);
    let mut said = 0;
    for (number, (who, line)) in script.iter().enumerate() {
        if *who == 'c' {
            session.send(line);
            server.note(&format!("heard {number}"));
        } else {
            said += line.len();
            server.go_on(&format!("say {number}"));
            session.wait_for_bytes(said);
        }
    }
    session.close_input();
    assert_eq!(session.wait().code, 0);
}

#[test]
fn w22_numbers_keep_every_digit_in_text_and_json() {
    let home = Home::new();
    let numbers = r#"{"n":9007199254740993,"m":18446744073709551615,"i":-9223372036854775808,"e":1e400,"f":1.0,"z":-0.0,"k":1,"k":2}"#;
    let params = format!("{{\"name\":\"t\",\"arguments\":{numbers}}}");
    let ask =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}\n");
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{numbers}}}\n");
    exchange(&home, &[('c', &ask), ('s', &answer)]);
    let shown = home.ok(["show", "latest", "-s", "0"]);
    assert!(
        shown.contains(&format!("t({numbers}) = {numbers} <")),
        "{shown}"
    );
    for format in ["json", "jsonl"] {
        let shown = home.ok(["show", "latest", "--format", format]);
        assert!(shown.contains(ask.trim_end()), "{shown}");
        assert!(shown.contains(answer.trim_end()), "{shown}");
    }
}

#[test]
fn w23_answers_in_any_order_belong_to_the_ids_as_they_were_written() {
    let home = Home::new();
    let ids = ["1", "\"1\"", "\"01\"", "1.0", "null", "9007199254740993"];
    let asked: Vec<String> = ids
        .iter()
        .map(|id| call(id, &format!("tool {id}"), ""))
        .collect();
    let answered: Vec<String> = ids
        .iter()
        .map(|id| result(id, &json!({"for": id})))
        .collect();
    let mut script: Vec<(char, &str)> = asked.iter().map(|line| ('c', &line[..])).collect();
    // One stays open: `9007199254740993`.
    script.extend([3, 1, 4, 0, 2].map(|index| ('s', &answered[index][..])));
    exchange(&home, &script);
    let lines = home.ok(["show", "latest", "--format", "jsonl"]);
    for (id, line) in ids.iter().zip(lines.lines()) {
        let step: Value = serde_json::from_str(line).unwrap();
        assert_eq!(step["target"], format!("tool {id}"));
        if id.starts_with('9') {
            assert_eq!(step["outcome"], "unanswered");
        } else {
            assert_eq!(step["response"]["result"]["for"], *id);
        }
    }
}

#[test]
fn w27_notifications_are_in_their_place_and_progress_is_counted() {
    let home = Home::new();
    let token = json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": "p"}});
    let progress = |n: u32| {
        notification(
            "notifications/progress",
            &json!({"progressToken": "p", "progress": n}),
        )
    };
    exchange(
        &home,
        &[
            ('c', &request(1, "tools/call", &token)),
            ('s', &progress(1)),
            (
                's',
                &notification("notifications/message", &json!({"level": "info"})),
            ),
            ('s', &progress(2)),
            (
                's',
                &notification("notifications/tools/list_changed", &json!({})),
            ),
            ('s', &result(1, &json!({}))),
            (
                's',
                &notification("notifications/resources/updated", &json!({"uri": "x:y"})),
            ),
        ],
    );
    let run = home.only_run();
    let expected = [
        "tools/call slow: ok",
        "notifications/progress",
        "notifications/message",
        "notifications/progress",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ];
    assert_eq!(steps(&run), expected);
    assert_eq!(run.steps[0].progress, 2);
    let shown = home.json(["show", "latest", "--format", "json"]);
    assert_eq!(shown["steps"][0]["progress"], 2);
}

#[test]
fn w28_both_sides_may_ask_under_the_same_id() {
    let home = Home::new();
    exchange(
        &home,
        &[
            ('c', &call(1, "ask", "")),
            (
                's',
                &request(1, "elicitation/create", &json!({"message": "who?"})),
            ),
            ('c', &result(1, &json!({"action": "accept"}))),
            ('s', &request(2, "roots/list", &json!({}))),
            (
                'c',
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no roots\"}}\n",
            ),
            ('s', &result(1, &json!({"content": []}))),
        ],
    );
    let run = home.only_run();
    let expected = [
        "tools/call ask: ok",
        "elicitation/create: ok",
        "roots/list: error",
    ];
    assert_eq!(steps(&run), expected);
    let shown = home.ok(["show", "latest"]);
    // The word after the time is who was asked.
    let client = run.client();
    assert!(
        shown.contains(&format!("{client} elicitation/create(")),
        "{shown}"
    );
    assert!(shown.contains("= error -32601 \"no roots\""), "{shown}");
}

#[test]
fn w29_a_cancelled_call_is_no_failure_and_a_late_answer_is_known() {
    let home = Home::new();
    let cancel = |id: u32| notification("notifications/cancelled", &json!({"requestId": id}));
    exchange(
        &home,
        &[
            ('c', &call(1, "slow", "")),
            ('c', &cancel(1)),
            ('s', &result(1, &json!({"late": true}))),
            ('c', &call(2, "slower", "")),
            ('c', &cancel(2)),
        ],
    );
    let run = home.only_run();
    assert_eq!(outcomes(&run), [Outcome::Cancelled, Outcome::Cancelled]);
    assert_eq!(failures(&run), []);
    let shown = home.ok(["show", "latest"]);
    assert!(
        shown.contains("? (cancelled; late: {\"late\":true})"),
        "{shown}"
    );
    assert!(shown.contains("? (cancelled)\n"), "{shown}");
}

#[test]
fn a_clock_that_is_set_back_does_not_change_the_order() {
    let home = Home::new();
    home.record().talk(&Server::that_writes(""), "");
    let mut header = home.only_run().entry.header;
    header.process = ProcessId::new(1, [7; 10]);
    header.started += 1;
    let mut writer = Writer::create(&home.store(), header).unwrap();
    let second = 1_000_000_000;
    // The answer comes one second later, and meanwhile the clock was set back by ten.
    for (sequence, stream, wall, text) in [
        (1, ClientToServer, 20 * second, REQUEST),
        (2, ServerToClient, 11 * second, ANSWER),
    ] {
        let envelope = Envelope {
            kind: Kind::Frame,
            stream,
            framing: agent_trace_wire::frame::Framing::Newline,
            flags: agent_trace_store::journal::Flags::default(),
            session: 1,
            exchange: 0,
            sequence,
            wall,
            monotonic: sequence * second,
            length: text.len() as u64,
            digest: None,
            spans: Vec::new(),
        };
        writer.append(&envelope, text.as_bytes()).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    let run = home.runs().remove(0);
    assert_eq!(steps(&run), ["tools/call t: ok"]);
    assert_eq!(run.steps[0].duration, Some(second));
}

#[test]
fn nothing_that_was_recorded_can_steer_the_terminal() {
    let home = Home::new();
    let bad = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}\u{200b}\u{9b}31m\r";
    let in_json = json!(bad).to_string();
    let tool = format!("{{\"name\":{in_json},\"arguments\":{{\"x\":{in_json}}}}}");
    let ask =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{tool}}}\n");
    let refused = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":{in_json},\"message\":{in_json}}}}}\n"
    );
    let method = format!("{{\"jsonrpc\":\"2.0\",\"method\":{in_json}}}\n");
    let server = Server::new()
        .reads_a_line()
        .complains(format!("{bad}\n"))
        .writes(format!("{bad}\n{refused}{method}"))
        .reads_to_the_end();
    let record = home.record().option("--client").option(bad);
    record.option("--server").option(bad).talk(&server, ask);
    for words in [
        "runs",
        "show latest",
        "show latest -s 0 --stderr -n",
        "show latest -c",
        "show latest --frames",
        "doctor",
    ] {
        let said = home.run(words.split(' '));
        let steering = |c: &char| c.is_control() && *c != '\n' || "\u{202e}\u{200b}".contains(*c);
        let found: Vec<char> = said.out.chars().filter(steering).collect();
        assert_eq!(found, [], "{words}: {said:?}");
    }
    assert!(home.ok(["show", "latest"]).contains("\\u{1b}[2J"));
}

#[test]
fn what_is_no_message_is_shown_with_what_is_wrong_with_it() {
    let home = Home::new();
    let out = "Content-Length: 9999999999\r\n\r\nbanner\n{\"broken\":\n42\n[]\n";
    let record = home
        .record()
        .option("--client=editor")
        .option("--server=notes");
    record.talk(&Server::that_writes(out), "half");
    let shown = printed(&home, "show latest");
    insta::assert_snapshot!(shown, @r#"
    run RUN editor → notes, DATE
    command: SERVER
    TIME notes stdin: half
    TIME notes stdout: [incomplete] Content-Length: 9999999999
    TIME notes stdout: banner
    TIME notes stdout: {"broken":
    TIME notes stdout: 42
    TIME editor not a message: []
    end ok (the client closed the session, exit status 0)
    "#);
    let run = home.only_run();
    assert_eq!(
        records(&run, ServerToClient).len(),
        frames(&run, ServerToClient).len()
    );
}
