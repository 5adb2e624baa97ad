//! What a run was about can be seen: how it went in time, what failed in plain words, where
//! values came from, what is different from another run, what led to what, and once more as it
//! happened.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::{Value, json};
use support::text::steady;
use support::{Home, Said, Server, Session};

fn request(id: u32, method: &str, params: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
}

fn call(id: u32, tool: &str, arguments: &Value) -> String {
    request(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": arguments}),
    )
}

fn result(id: u32, result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
}

fn text(id: u32, text: &str) -> String {
    result(id, &json!({"content": [{"type": "text", "text": text}]}))
}

fn failure(id: u32, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}]);
    result(id, &json!({"content": content, "isError": true}))
}

/// Relays what a client and a server say, in this order, and waits for each.
fn relay(home: &Home, script: &[(char, String)]) {
    let mut server = Server::new();
    for (number, (who, line)) in script.iter().enumerate() {
        server = match who {
            'c' => server.reads_a_line().notes(&format!("heard {number}")),
            's' => server.waits_for(&format!("say {number}")).writes(line),
            _ => panic!("{who}"),
        };
    }
    let server = server.reads_to_the_end();
    let record = home
        .record()
        .option("--client=editor")
        .option("--server=notes");
    let session = record.start(&server);
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

/// A run in which a value is handed on, an error is made good, the server asks back, and one
/// call gets no answer.
fn conversation(note: u32) -> Vec<(char, String)> {
    let hello = json!({"protocolVersion": "2025-11-25", "clientInfo": {"name": "x"}});
    let tools = json!({"tools": [{"name": "find", "inputSchema": {"properties": {"in": {"enum": ["title", "body"]}}}}]});
    let question = json!({"message": "Which folder?"});
    vec![
        ('c', request(0, "initialize", &hello)),
        ('s', result(0, &json!({"serverInfo": {"name": "notes"}}))),
        ('c', request(1, "tools/list", &json!({}))),
        ('s', result(1, &tools)),
        (
            'c',
            call(2, "find", &json!({"for": "water", "in": "title"})),
        ),
        (
            's',
            text(2, &format!("Found note #{note}: Water the plants")),
        ),
        ('c', call(3, "read", &json!({"note": note}))),
        ('s', failure(3, "the notes are locked")),
        ('c', call(4, "read", &json!({"note": note}))),
        ('s', text(4, "Water the plants")),
        ('c', call(5, "move", &json!({"note": note}))),
        ('s', request(1, "elicitation/create", &question)),
        (
            'c',
            result(
                1,
                &json!({"action": "accept", "content": {"folder": "garden"}}),
            ),
        ),
        ('s', text(5, "Moved to garden")),
        (
            'c',
            call(6, "close", &json!({"folder": "garden", "force": true})),
        ),
    ]
}

/// A home with one such run.
fn recorded() -> Home {
    let home = Home::new();
    relay(&home, &conversation(8213));
    home
}

/// The ids of the runs, newest first.
fn ids(home: &Home) -> Vec<String> {
    let lines = home.ok(["runs", "--format", "jsonl"]);
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let id = |run: Value| run["run"].as_str().unwrap().to_owned();
    lines.map(id).collect()
}

/// What a command prints, without what is different each time.
#[track_caller]
fn printed(home: &Home, words: &str) -> String {
    let id = ids(home).remove(0);
    let replace = [(&id[..], "RUN-ID"), (&id[..8], "RUN")];
    steady(&home.ok(words.split(' ')), &replace)
}

#[test]
fn suspects_are_ranked_with_quotes() {
    let home = recorded();
    insta::assert_snapshot!(printed(&home, "suspects latest"), @r#"
    run RUN editor → notes, DATE

    1. step 8, score 6.50
    notes tools/call close({"folder":"garden","force":true}) = ? (unanswered)
    +3.00 it was never answered, and that was not made good
    step 8 asked /params/arguments: {"folder":"garden","force":true}
    +2.50 the server had listed its tools, and none of this name
    step 8 asked /params/name: "close"
    +1.00 nothing failed before it that was not made good

    2. step 4, score 1.10
    notes tools/call read({"note":8213}) = tool error {"content":[{"text":"the notes are locked","type":"text"}],"isError":true} <0.1>
    +0.60 it ended in an error; the same call went well later
    step 4 answered /result/content/0/text: "the notes are locked"
    +0.50 the server had listed its tools, and none of this name; a later call of it went well
    step 4 asked /params/name: "read"

    3. step 5, score 0.50
    notes tools/call read({"note":8213}) = {"content":[{"text":"Water the plants","type":"text"}]} <0.1>
    +0.50 the server had listed its tools, and none of this name; it answered all the same
    step 5 asked /params/name: "read"

    4. step 6, score 0.50
    notes tools/call move({"note":8213}) = {"content":[{"text":"Moved to garden","type":"text"}]} <0.1>
    +0.50 the server had listed its tools, and none of this name; it answered all the same
    step 6 asked /params/name: "move"

    Beside it
    scores are sums of fixed weights: they order the steps of this run and are no probabilities
    by place alone: 3, 4, 5, 6, 7 from the beginning, 8, 7, 6, 5, 4 from the end
    0 runs of the same task that passed are known: nothing was compared
    "#);
    relay(&home, &conversation(8214));
    let first = ids(&home).remove(1);
    home.ok(["verdict", &first, "right"]);
    let words = [
        "suspects",
        "latest",
        "--sibling",
        &first,
        "--format",
        "json",
    ];
    let ranking = home.json(words);
    assert_eq!(
        ranking["siblings"],
        json!({"passing": 1, "failing": 1, "weak": true})
    );
    let quotes = ranking["suspects"].as_array().unwrap().iter();
    let quotes = quotes.flat_map(|suspect| suspect["reasons"].as_array().unwrap());
    let mut quotes = quotes.filter_map(|reason| reason["quotes"].get(0));
    assert!(quotes.all(|quote| quote["recorded"]["text"].is_string()));
    // A run is no sibling of itself.
    let itself = home.json(["suspects", "latest", "--sibling", "latest", "--format=json"]);
    assert_eq!(itself["siblings"]["passing"], 0);
}

#[test]
fn explain_says_what_happened_in_plain_words() {
    let home = recorded();
    insta::assert_snapshot!(printed(&home, "explain latest"), @r#"
    run RUN editor → notes, DATE

    Asked
    editor asked notes 7 times: read twice, close once, find once, initialize once, move once, tools/list once. [steps 1-6, 8]
    notes asked editor: elicitation/create once. [step 7]
    step 7, arguments: {"message":"Which folder?"}

    Made good
    read failed (the tool reported a failure) and then went well with the same arguments. [steps 4-5]
    step 4, arguments: {"note":8213}
    step 4, answer: the notes are locked

    Unanswered
    notes was asked for close and did not answer. [step 8]
    step 8, arguments: {"folder":"garden","force":true}

    Missing in the recording
    As far as the recording can tell, nothing is missing in it.

    Not known
    What the user wanted, and what editor answered, is not in this recording: only what went to and from servers is.
    Whether the results were right is not known: a result that is no error may still be wrong.

    Look at
    agent-trace why RUN 8  where its arguments came from
    agent-trace show RUN -n  all steps
    agent-trace timeline RUN  slow steps, retries and idleness
    "#);
    let told = home.json(["explain", "latest", "--format", "json"]);
    let topics: Vec<&str> = told["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["topic"].as_str().unwrap())
        .collect();
    assert!(
        topics.contains(&"recovered") && topics.contains(&"unanswered"),
        "{told}"
    );
    // What it says to look at can be looked at.
    for look in told["look"].as_array().unwrap() {
        home.ok(look["command"].as_str().unwrap().split(' '));
    }
}

#[test]
fn why_follows_values_back_to_where_they_appeared() {
    let home = recorded();
    insta::assert_snapshot!(printed(&home, "why latest 6"), @r#"
    run RUN editor → notes, DATE

    step 6 notes tools/call move({"note":8213}) = {"content":[{"text":"Moved to garden","type":"text"}]} <0.1>
    /note: 8213
    ← step 3 notes find, result /content/0/text (it may stand there by chance)
    "Found note #8213: Water the plants"

    step 3 notes tools/call find({"for":"water","in":"title"}) = {"content":[{"text":"Found note #8213: Water the plants","type":"text"}]} <0.1>
    /for: water
    from the assistant or the user: it appeared nowhere before
    /in: title
    ← step 2 notes tools/list, definition /tools/0/inputSchema/properties/in/enum/0 (what the server says of itself)
    "title"
    "#);
    insta::assert_snapshot!(printed(&home, "why latest 8"), @r#"
    run RUN editor → notes, DATE

    step 8 notes tools/call close({"folder":"garden","force":true}) = ? (unanswered)
    /folder: garden
    ← step 7 editor elicitation/create, answer /content/folder (answered by the assistant or the user)
    "garden"
    1 value not traced: true, false, null, 0, 1 and the like are everywhere
    "#);
    let told = home.json(["why", "latest", "8", "--format", "json"]);
    let flow = &told["chain"][0]["flows"][0];
    assert_eq!(flow["at"]["pointer"], "/folder");
    assert_eq!(
        (&flow["step"], &flow["origin"]),
        (&json!(7), &json!("answer"))
    );
    assert_eq!(flow["origin_at"]["pointer"], "/content/folder");
    for step in ["0", "99"] {
        let said = home.run(["why", "latest", step]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(
            said.err
                .contains(&format!("has no step {step}: it has 8 steps")),
            "{said:?}"
        );
    }
}

#[test]
fn tree_puts_what_the_server_asks_under_the_call() {
    let home = recorded();
    insta::assert_snapshot!(printed(&home, "tree latest"), @r#"
    run RUN editor → notes, DATE
    └─ notes ok
    ├─ 1 notes initialize({"clientInfo":{"name":"x"},"protocolVersion":"2025-11-25"}) <0.1>
    ├─ 2 notes tools/list({}) <0.1>
    ├─ 3 notes tools/call find({"for":"water","in":"title"}) <0.1>
    ├─ 4 notes tools/call read({"note":8213}) tool error <0.1>
    ├─ 5 notes tools/call read({"note":8213}) <0.1>
    ├─ 6 notes tools/call move({"note":8213}) <0.1>
    │  └─ 7 editor elicitation/create({"message":"Which folder?"}) <0.1> (the only request that was open)
    └─ 8 notes tools/call close({"folder":"garden","force":true}) unanswered
    "#);
    let told = home.json(["tree", "latest", "--format", "json"]);
    let steps = &told["sessions"][0]["turns"][0]["steps"];
    assert_eq!(steps[5]["under"][0]["method"], "elicitation/create");
    assert_eq!(steps[5]["under"][0]["by"], "only_one_open");
}

#[test]
fn timeline_shows_phases_retries_and_what_was_at_once() {
    let home = recorded();
    let told = home.json(["timeline", "latest", "--format", "json"]);
    let phases = told["phases"].as_array().unwrap();
    let kinds: Vec<&str> = phases
        .iter()
        .map(|p| p["phase"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..3], ["connect", "list", "work"]);
    let work = &phases[2]["steps"];
    assert_eq!(work[2]["retry"], json!({"of": 4, "attempt": 2}));
    assert_eq!(work[4]["at_once"], 2);
    assert_eq!(work[5]["outcome"], "unanswered");
    let lines = home.ok(["timeline", "latest", "--format", "jsonl"]);
    assert_eq!(lines.lines().count(), 8);

    let shown = home.ok(["timeline", "latest", "--width", "70"]);
    for word in [
        "connect",
        "list",
        "work",
        "attempt 2, first in step 4",
        "1 retry",
        "2 at once",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let bars = shown.lines().filter(|line| line.contains(['█', '▏', '·']));
    assert_eq!(bars.count(), 8, "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 70),
        "{shown}"
    );
    // What is slow is a setting, and can be said for once.
    home.configure("[steps]\nslow = \"0ms\"\n");
    let shown = home.ok(["timeline", "latest"]);
    assert!(shown.contains("slow steps"), "{shown}");
    let shown = home.ok(["timeline", "latest", "--slow", "1h"]);
    assert!(!shown.contains("slow steps"), "{shown}");
    // Where every pause is idleness, they are told.
    let shown = home.ok(["timeline", "latest", "--idle", "0s"]);
    assert!(shown.contains("── idle "), "{shown}");
}

#[test]
fn diff_tells_two_runs_apart_and_finds_a_run_equal_to_itself() {
    let home = recorded();
    let said = home.run(["diff", "latest", "latest"]);
    assert_eq!((said.code, &said.err[..]), (0, ""), "{said:?}");
    assert!(said.out.ends_with("the same: 8 steps\n"), "{said:?}");

    let mut other = conversation(8213);
    // Another note is read, and there is one call more.
    other[8] = ('c', call(4, "read", &json!({"note": 77})));
    other[9] = ('s', text(4, "Feed the cat"));
    other.insert(10, ('c', call(9, "stamp", &json!({}))));
    other.insert(11, ('s', text(9, "stamped")));
    relay(&home, &other);
    let ids = ids(&home);
    let said = home.run(["diff", &ids[1], &ids[0]]);
    assert_eq!(said.code, 1, "{said:?}");
    let replace = [(&ids[1][..8], "RUN-A"), (&ids[0][..8], "RUN-B")];
    // How long steps took is another thing on each machine.
    let lines: Vec<&str> = said.out.lines().collect();
    let mut lines: Vec<&str> = lines
        .into_iter()
        .filter(|line| !line.trim_start().starts_with("time: "))
        .collect();
    let of_time_alone = |at: usize| {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        lines[at].starts_with('~') && !next.starts_with(' ')
    };
    let gone: Vec<bool> = (0..lines.len()).map(of_time_alone).collect();
    let mut gone = gone.into_iter();
    lines.retain(|_| !gone.next().unwrap());
    insta::assert_snapshot!(steady(&lines.join("\n"), &replace), @r#"
    a run RUN-A editor → notes, DATE
    b run RUN-B editor → notes, DATE
    ~  5  5  notes tools/call read({"note":8213})
    arguments /note: 8213 → 77
    answer /content/0/text: "Water the plants" → "Feed the cat"
    +  6  notes tools/call stamp({}) = {"content":[{"text":"stamped","type":"text"}]} <0.1>
    7 steps the same, 1 different, 0 only in a, 1 only in b
    "#);
    let Said { out, code, .. } = home.run(["diff", &ids[1], &ids[0], "--format", "json"]);
    assert_eq!(code, 1);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&told["is_same"], &told["same_steps"]),
        (&json!(false), &json!(7))
    );
    // How sessions ended is compared, too.
    for code in [3, 4] {
        let record = home.record().option("--client=editor");
        let record = record.option("--server=notes");
        record.talk(&Server::new().reads_to_the_end().exits(code), "");
    }
    let ids = self::ids(&home);
    let said = home.run(["diff", &ids[1], &ids[0]]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("exit status 3) → "), "{said:?}");
    assert!(
        said.out.ends_with("1 session ended otherwise\n"),
        "{said:?}"
    );
    let missing = home.run(["diff", "latest", "ffffffffffff"]);
    assert_eq!(missing.code, 2);
}

#[test]
fn replay_shows_it_once_more_and_stops_when_it_is_told() {
    let home = recorded();
    insta::assert_snapshot!(printed(&home, "replay latest --speed max -s 30"), @r#"
    run RUN editor → notes, DATE
    1 TIME notes initialize({"clientInfo":{"name":"x"},"pr…) = {"serverInfo":{"name":"notes"}… <0.1>
    2 TIME notes tools/list({}) = {"tools":[{"inputSchema":{"pro… <0.1>
    3 TIME notes tools/call find({"for":"water","in":"title"}) = {"content":[{"text":"Found not… <0.1>
    4 TIME notes tools/call read({"note":8213}) = tool error {"content":[{"text":"the notes… <0.1>
    5 TIME notes tools/call read({"note":8213}) = {"content":[{"text":"Water the… <0.1>
    6 TIME notes tools/call move({"note":8213}) <unfinished ...>
    7 TIME editor elicitation/create({"message":"Which folder?"}) = {"action":"accept","content":{… <0.1>
    6 TIME <... notes move resumed> = {"content":[{"text":"Moved to … <0.1>
    8 TIME notes tools/call close({"folder":"garden","force":tru…) = ? (unanswered)
    "#);
    let lines = home.ok([
        "replay", "latest", "--from", "7", "--speed", "max", "--format", "jsonl",
    ]);
    let seen: Vec<(Value, Value)> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| (line["step"].clone(), line["event"].clone()))
        .collect();
    let expected = [(7, "begins"), (7, "ends"), (8, "begins")];
    assert_eq!(
        seen,
        expected.map(|(step, event)| (json!(step), json!(event)))
    );
    // In real time it takes a moment, and is the same.
    let quick = home.ok(["replay", "latest", "--speed", "max"]);
    assert_eq!(home.ok(["replay", "latest"]), quick);

    let mut command = home.program();
    command.args(["replay", "latest", "--speed", "0.0001"]);
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let session = Session::of(&mut command);
    session.wait_for_text("initialize");
    session.signal("INT");
    let ended = session.wait();
    assert_eq!(ended.code, 0);
    let said = String::from_utf8_lossy(&ended.err).into_owned();
    assert!(said.starts_with("stopped before step "), "{said}");
    assert!(
        ended.out.ends_with(b"\n"),
        "{:?}",
        String::from_utf8_lossy(&ended.out)
    );
}

#[test]
fn nothing_that_was_recorded_can_steer_the_terminal() {
    let home = Home::new();
    let bad = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}\u{200b}\u{9b}31m-8213";
    let arguments = json!({bad: bad, "value": bad});
    let script = [
        ('c', call(1, bad, &json!({"a": 1}))),
        ('s', text(1, bad)),
        ('c', call(2, bad, &arguments)),
        ('s', failure(2, bad)),
        ('c', call(3, bad, &arguments)),
        ('s', result(3, &json!({bad: bad}))),
    ];
    relay(&home, &script);
    let mut other = script;
    other[5] = ('s', result(3, &json!({bad: "else"})));
    relay(&home, &other);
    let id = ids(&home).remove(1);
    for words in [
        "timeline latest".to_owned(),
        "explain latest".to_owned(),
        "why latest 3".to_owned(),
        format!("suspects latest --sibling {id}"),
        format!("diff latest {id}"),
        "tree latest".to_owned(),
        "replay latest --speed max".to_owned(),
    ] {
        let said = home.run(words.split(' '));
        assert_ne!(said.code, 2, "{words}: {said:?}");
        let steering = |c: &char| c.is_control() && *c != '\n' || "\u{202e}\u{200b}".contains(*c);
        let found: Vec<char> = said.out.chars().filter(steering).collect();
        assert_eq!(found, [], "{words}: {said:?}");
        assert!(said.out.contains("\\u{1b}[2J"), "{words}: {said:?}");
    }
}
