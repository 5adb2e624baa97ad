//! A secret passes the relay unchanged and is nowhere else: not in the store, not on our
//! standard error, not in what any command prints.
//!
//! Looked for is each piece of eight bytes of each secret.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use serde_json::json;
use std::fs;
use support::recorded::{ClientToServer, ServerToClient, Stderr, frames, stream};
use support::secrets::{Draw, Search, Secret};
use support::{Ended, Home, REQUEST, Server, assert_same};

/// Relays these bytes both ways, and looks for the secrets in them.
#[track_caller]
fn hidden_both_ways(bytes: &[u8], secrets: &[Secret]) -> Home {
    let server = Server::new()
        .reads(bytes.len())
        .writes(bytes)
        .reads_to_the_end();
    let home = Home::new();
    let ended = home.record().option("--log=trace").talk(&server, bytes);
    assert_same(&ended.out, bytes, "what the client got");
    assert_same(&server.input(), bytes, "what the server got");
    assert_eq!(ended.code, 0);
    let search = Search::new(secrets);
    search.assert_not_in(&ended.err, "standard error");
    search.assert_nowhere(&home);
    let run = home.only_run();
    for of in [ClientToServer, ServerToClient] {
        let recorded = String::from_utf8_lossy(&stream(&run, of)).into_owned();
        let markers = recorded.matches("[REDACTED:").count();
        assert!(markers >= secrets.len(), "{markers} markers: {recorded}");
    }
    home
}

/// Puts each kind of secret into a line of its own.
fn lines(place: &str, seed: u64, line: impl Fn(&str) -> String) -> (String, Vec<Secret>) {
    let secrets = Draw::new(seed).each_kind(place);
    let lines = secrets.iter().map(|secret| line(&secret.text) + "\n");
    (lines.collect(), secrets)
}

#[test]
fn w44_in_arguments() {
    let (text, secrets) = lines("an argument", 1, |secret| {
        let arguments = json!({"path": "/tmp/x", "text": format!("say {secret} twice")});
        let params = json!({"name": "echo", "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    });
    hidden_both_ways(text.as_bytes(), &secrets);
}

#[test]
fn w44_in_results_and_errors() {
    let (mut text, mut secrets) = lines("a result", 2, |secret| {
        let content = json!([{"type": "text", "text": secret}]);
        json!({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).to_string()
    });
    let (more, others) = lines("an error", 3, |secret| {
        let error = json!({"code": -1, "message": format!("bad: {secret}"), "data": [secret]});
        json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string()
    });
    text.push_str(&more);
    secrets.extend(others);
    hidden_both_ways(text.as_bytes(), &secrets);
}

#[test]
fn w44_in_json_within_json_within_json() {
    let (text, secrets) = lines("nested JSON", 4, |secret| {
        let inner = json!({"deep": [{"note": secret}]}).to_string();
        let middle = json!({"body": inner}).to_string();
        json!({"jsonrpc": "2.0", "id": 1, "result": {"text": middle}}).to_string()
    });
    hidden_both_ways(text.as_bytes(), &secrets);
}

#[test]
fn w44_in_batches_and_either_framing() {
    let (text, secrets) = lines("a batch", 5, |secret| {
        let note = json!({"jsonrpc": "2.0", "method": "note", "params": {"text": secret}});
        let batch = json!([note, {"jsonrpc": "2.0", "id": 1, "result": {"x": 1}}]).to_string();
        format!("Content-Length: {}\r\n\r\n{batch}", batch.len())
    });
    let home = hidden_both_ways(text.as_bytes(), &secrets);
    let frames = frames(&home.only_run(), ServerToClient);
    assert!(frames.contains(&"content-length".to_owned()), "{frames:?}");
}

#[test]
fn w44_in_stray_lines() {
    let (text, secrets) = lines("a stray line", 6, |secret| format!("[info] using {secret}"));
    hidden_both_ways(text.as_bytes(), &secrets);
}

#[test]
fn w44_in_broken_json() {
    let (text, secrets) = lines("broken JSON", 7, |secret| {
        let text = json!({"jsonrpc": "2.0", "id": 1, "result": {"text": secret}}).to_string();
        text[..text.len() - 1].to_owned()
    });
    hidden_both_ways(text.as_bytes(), &secrets);
}

#[test]
fn w44_under_names_that_say_so() {
    let mut draw = Draw::new(8);
    let mut secrets = Vec::new();
    let mut value = |name: &str| {
        let secret = draw.value(&format!("the member {name}"));
        secrets.push(secret.clone());
        json!({name: secret.text})
    };
    let members: Vec<serde_json::Value> = [
        "password",
        "token",
        "api_key",
        "apiKey",
        "X-Api-Key",
        "client_secret",
        "access_token",
        "refreshToken",
        "AUTH_TOKEN",
        "private_key",
        "secret",
        "db_password",
        "Authorization",
    ]
    .into_iter()
    .map(&mut value)
    .collect();
    let text = json!({"jsonrpc": "2.0", "id": 1, "result": {"all": members}}).to_string();
    hidden_both_ways(format!("{text}\n").as_bytes(), &secrets);
}

#[test]
fn w44_as_a_name_and_as_an_id() {
    let mut draw = Draw::new(9);
    let (name, id) = (draw.token("a member's name"), draw.token("an id"));
    let params = json!({&name.text: 1, "name": "t"});
    let ask = json!({"jsonrpc": "2.0", "id": id.text, "method": "tools/call", "params": params});
    let answer = json!({"jsonrpc": "2.0", "id": id.text, "result": {&name.text: 2}});
    let text = format!("{ask}\n{answer}\n");
    let home = hidden_both_ways(text.as_bytes(), &[name, id]);
    let outcomes = support::recorded::outcomes(&home.only_run());
    assert!(
        outcomes.contains(&agent_trace_model::Outcome::Ok),
        "an id that was hidden still pairs: {outcomes:?}"
    );
}

#[test]
fn w44_escaped_and_split_over_many_writes() {
    let mut draw = Draw::new(10);
    let (escaped, split) = (draw.token("escapes"), draw.token("pieces"));
    let escapes: String = escaped
        .text
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let line =
        |text: &str| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\"{text}\"]}}\n");
    let text = line(&escapes) + &line(&split.text);
    let server = Server::new()
        .writes_in_pieces(&text, 3, 0.0005)
        .reads_to_the_end();
    let home = Home::new();
    let ended = home.record().talk(&server, "");
    assert_same(&ended.out, text.as_bytes(), "what the client got");
    let recorded = stream(&home.only_run(), ServerToClient);
    let recorded = String::from_utf8(recorded).unwrap();
    assert!(!recorded.contains(&escapes[40..90]), "{recorded}");
    assert_eq!(recorded.matches("[REDACTED:").count(), 2, "{recorded}");
    Search::new(&[escaped, split]).assert_nowhere(&home);
}

#[test]
fn w44_on_standard_error() {
    let home = Home::new();
    let (text, secrets) = lines("standard error", 11, |secret| format!("warn: {secret}"));
    let server = Server::new().complains(&text).reads_to_the_end();
    let ended = home.record().talk(&server, "");
    assert_same(
        &ended.err,
        text.as_bytes(),
        "standard error passes unchanged",
    );
    let recorded = stream(&home.only_run(), Stderr);
    let recorded = String::from_utf8(recorded).unwrap();
    assert!(
        recorded.matches("[REDACTED:").count() >= secrets.len(),
        "{recorded}"
    );
    Search::new(&secrets).assert_nowhere(&home);
}

#[test]
fn w44_a_private_key_that_is_printed_line_by_line() {
    let home = Home::new();
    let secrets: Vec<Secret> = ["output", "standard error"]
        .iter()
        .zip(12..)
        .map(|(place, seed)| {
            let mut all = Draw::new(seed).each_kind(place);
            all.retain(|secret| secret.label.starts_with("private key"));
            all.remove(0)
        })
        .collect();
    let mut server = Server::new();
    for (out, error) in secrets[0].text.lines().zip(secrets[1].text.lines()) {
        server = server
            .writes(format!("{out}\n"))
            .complains(format!("{error}\n"))
            .sleeps(0.02);
    }
    let server = server
        .writes("after\n")
        .complains("after\n")
        .reads_to_the_end();
    home.record().talk(&server, "");
    Search::new(&secrets).assert_nowhere(&home);
    let run = home.only_run();
    for of in [ServerToClient, Stderr] {
        let recorded = String::from_utf8(stream(&run, of)).unwrap();
        assert!(recorded.ends_with("after\n"), "{recorded}");
        assert!(recorded.contains("[REDACTED:private-key:"), "{recorded}");
    }
}

#[test]
fn w44_where_a_long_message_is_cut() {
    let mut all = Draw::new(14).each_kind("the place of the cut");
    all.retain(|secret| secret.label.starts_with("private key"));
    let key = json!(all[0].text).to_string();
    let kept = agent_trace_store::recorder::KEPT_OF_A_FRAME;
    for before in [0, 100, 300, 16_000, 17_000] {
        let filler = "y".repeat(kept - before - 40);
        let rest = "z".repeat(1 << 20);
        let text = format!("{{\"jsonrpc\":\"2.0\",\"result\":[\"{filler}\",{key},\"{rest}\"]}}\n");
        let home = Home::new();
        let ended = home.record().talk(&Server::that_writes(&text), "");
        assert_same(&ended.out, text.as_bytes(), "what the client got");
        let run = home.only_run();
        assert_eq!(frames(&run, ServerToClient), ["newline cut"]);
        let recorded = stream(&run, ServerToClient);
        Search::new(&all).assert_not_in(&recorded, &format!("{before} before the cut"));
    }
}

/// Records a server with these words, and looks for secrets in all that is known of it.
#[track_caller]
fn started_with(words: &[&str], secrets: &[Secret]) -> (Home, Ended) {
    let home = Home::new();
    // What a server is told it may print.
    let echo = words.join("\n") + "\n";
    let server = Server::new()
        .writes(&echo)
        .complains(&echo)
        .answers_each_line(format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": 1, "result": {"words": words}})
        ))
        .notes_how_it_started()
        .with_words(words);
    let ended = home.record().option("--log=trace").talk(&server, REQUEST);
    let started: serde_json::Value = serde_json::from_str(&server.note("started")[0]).unwrap();
    assert_eq!(
        started["arguments"],
        json!(words),
        "the server gets them all"
    );
    Search::new(secrets).assert_nowhere(&home);
    (home, ended)
}

#[test]
fn w44_in_arguments_of_the_command() {
    let mut draw = Draw::new(20);
    let mut secrets = Vec::new();
    let mut word = |place: &str| {
        let secret = draw.value(place);
        secrets.push(secret.clone());
        secret.text
    };
    let words = [
        "--token".into(),
        word("--token X"),
        format!("--api-key={}", word("--api-key=X")),
        "-e".into(),
        format!("SERVICE_TOKEN={}", word("-e KEY=X")),
        format!("--env=DB_PASSWORD={}", word("--env=KEY=X")),
        "-H".into(),
        format!("Authorization: Bearer {}", word("-H header")),
        format!("--header=X-Api-Key: {}", word("--header=")),
        "-u".into(),
        format!("me:{}", word("-u name:X")),
        format!(
            "postgres://app:{}@db.example.com/x",
            word("a URL's password")
        ),
        format!(
            "https://x.example.com/cb?access_token={}",
            word("a URL's parameter")
        ),
        json!({"password": word("JSON in an argument")}).to_string(),
        "--password".into(),
        word("--password X"),
        "--".into(),
    ];
    let words: Vec<&str> = words.iter().map(|word| &word[..]).collect();
    let (home, _) = started_with(&words, &secrets);
    let command = home.only_run().opening.command;
    let command = command.join(" ");
    assert_eq!(
        command.matches("[REDACTED:").count(),
        secrets.len(),
        "{command}"
    );
    assert!(command.contains("--api-key=[REDACTED:"), "{command}");
}

#[test]
fn w44_tokens_of_every_shape_in_arguments_of_the_command() {
    let mut secrets = Draw::new(21).each_kind("an argument of the command");
    // A word of a command has no lines.
    secrets.retain(|secret| !secret.text.contains('\n'));
    let words: Vec<&str> = secrets.iter().map(|secret| &secret.text[..]).collect();
    started_with(&words, &secrets);
}

#[test]
fn w44_in_the_environment() {
    let mut draw = Draw::new(22);
    let named = |draw: &mut Draw, name: &'static str| (name, draw.value(name));
    let variables = [
        named(&mut draw, "GITHUB_TOKEN"),
        named(&mut draw, "SERVICE_API_KEY"),
        named(&mut draw, "DB_PASSWORD"),
        named(&mut draw, "CLIENT_SECRET"),
        ("PLAIN_NAME", draw.token("PLAIN_NAME")),
    ];
    let url = draw.value("DATABASE_URL");
    let home = Home::new();
    let mut secrets: Vec<Secret> = variables.iter().map(|(_, secret)| secret.clone()).collect();
    secrets.push(url.clone());
    // Without its name a value is known because it stands in the environment.
    let values: Vec<&str> = secrets.iter().map(|secret| &secret.text[..]).collect();
    let echo = values.join("\n") + "\n";
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": {"values": values}});
    let server = Server::new()
        .writes(&echo)
        .complains(&echo)
        .answers_each_line(format!("{body}\n"))
        .notes_how_it_started();
    let mut record = home.record().option("--log=trace");
    for (name, secret) in &variables {
        record = record.env(name, &secret.text);
    }
    let address = format!("postgres://app:{}@db.example.com/x", url.text);
    record = record.env("DATABASE_URL", &address);
    let ended = record.talk(&server, REQUEST);
    assert_same(
        &ended.out,
        format!("{echo}{body}\n").as_bytes(),
        "what the client got",
    );
    let started: serde_json::Value = serde_json::from_str(&server.note("started")[0]).unwrap();
    assert_eq!(started["environment"]["DATABASE_URL"], address);
    Search::new(&secrets).assert_nowhere(&home);
    let run = home.only_run();
    assert!(
        run.opening.env.contains(&"GITHUB_TOKEN".to_owned()),
        "names are kept"
    );
    let recorded = String::from_utf8(stream(&run, ServerToClient)).unwrap();
    assert_eq!(
        recorded.matches("[REDACTED:").count(),
        2 * secrets.len(),
        "{recorded}"
    );
}

#[test]
fn w44_in_folders_and_labels() {
    let mut draw = Draw::new(23);
    let (folder, client, server_label) = (
        draw.token("a folder's name"),
        draw.token("--client"),
        draw.token("--server"),
    );
    let home = Home::new();
    let place = home.at(format!("work/{}/inner", folder.text));
    fs::create_dir_all(place.join(".git")).unwrap();
    let server = Server::that_writes("x\n");
    let ended = home
        .record()
        .option("--client")
        .option(&client.text)
        .option("--server")
        .option(&server_label.text)
        .with(|command| {
            command.current_dir(&place);
        })
        .talk(&server, "");
    assert_eq!(ended.code, 0);
    let run = home.only_run();
    assert!(run.opening.cwd.contains("[REDACTED:"), "{:?}", run.opening);
    let project = run.entry.header.project.clone().unwrap();
    assert!(project.contains("[REDACTED:"), "{project}");
    assert!(run.client().contains("[REDACTED:"));
    assert!(run.server().contains("[REDACTED:"));
    Search::new(&[folder, client, server_label]).assert_nowhere(&home);
}

#[test]
fn w44_in_a_command_that_cannot_be_started() {
    let mut draw = Draw::new(24);
    let (name, word) = (draw.token("the command"), draw.value("its argument"));
    let home = Home::new();
    let command = [
        &format!("./{}/server", name.text)[..],
        "--token",
        &word.text,
    ];
    let ended = home.record().start_command(command).wait();
    assert_eq!(ended.code, 127);
    let secrets = [name, word];
    let search = Search::new(&secrets);
    search.assert_nowhere(&home);
    search.assert_not_in(&ended.err, "standard error");
}

#[test]
fn equal_secrets_have_equal_markers_in_one_store_and_others_in_another() {
    let secret = Draw::new(25).token("two runs");
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\"{}\"]}}\n",
        secret.text
    );
    let recorded = |home: &Home| {
        home.record().talk(&Server::that_writes(&line), "");
        stream(&home.runs()[0], ServerToClient)
    };
    let (home, other) = (Home::new(), Home::new());
    let first = recorded(&home);
    assert!(first.windows(10).any(|w| w == b"[REDACTED:"));
    assert_eq!(first, recorded(&home));
    assert_eq!(home.runs().len(), 2);
    assert_ne!(
        first,
        recorded(&other),
        "markers are made with the store's key"
    );
}

#[test]
fn a_rule_of_the_user_is_followed() {
    let home = Home::new();
    let folder = home.at("home/.config/agent-trace");
    fs::create_dir_all(&folder).unwrap();
    let rule = "[[redact.rule]]\nkind = \"employee\"\npattern = 'EMP-(\\d{12})'\n";
    fs::write(folder.join("config.toml"), rule).unwrap();
    let line = "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[\"EMP-123456789012\"]}\n";
    home.record().talk(&Server::that_writes(line), "");
    let run = home.only_run();
    let recorded = String::from_utf8(stream(&run, ServerToClient)).unwrap();
    assert!(recorded.contains("EMP-[REDACTED:employee:"), "{recorded}");
    assert_eq!(run.entry.header.redaction.user_rules, 1);
}

#[test]
fn without_redaction_the_trace_says_so() {
    let home = Home::new();
    let secret = Draw::new(26).token("an unredacted run");
    let server = Server::that_writes(format!("{}\n", secret.text));
    home.record().unredacted().talk(&server, "");
    let run = home.only_run();
    assert!(!run.entry.header.redaction.on);
    let shown = home.ok(["show", "latest"]);
    assert!(shown.contains("recorded without redaction"), "{shown}");
    assert!(shown.contains(&secret.text), "{shown}");
    let document = home.json(["show", "latest", "--format", "json"]);
    assert_eq!(document["sessions"][0]["redacted"], false);
    let found = home.run(["redact", "--run", "latest"]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.out.contains("[REDACTED:github-token:"), "{found:?}");
    let secrets = [secret];
    let search = Search::new(&secrets);
    search.assert_not_in(found.out.as_bytes(), "what redact prints");
    assert_ne!(
        search.left_in(shown.as_bytes()),
        [""; 0],
        "the search finds things"
    );
}

#[test]
fn of_digested_bodies_nothing_is_kept_but_what_ran() {
    let home = Home::new();
    let words = ["correct", "horse", "battery", "staple"].join(" of the ");
    let call = |id: u32, tool: &str| {
        let params = json!({"name": tool, "arguments": {"text": words}});
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        )
    };
    let server = Server::mcp();
    let input = call(1, "echo") + &call(2, "fail") + &call(3, "refuse") + &call(4, "print");
    let ended = home
        .record()
        .option("--bodies=digest")
        .talk(&server, &input);
    assert!(String::from_utf8_lossy(&ended.out).contains(&words));
    assert_same(&server.input(), input.as_bytes(), "what the server got");
    let run = home.only_run();
    let mut steps = support::recorded::steps(&run);
    steps.sort();
    let expected = [
        "stray",
        "tools/call echo: ok",
        "tools/call fail: tool_error",
        "tools/call print: ok",
        "tools/call refuse: error",
    ];
    assert_eq!(steps, expected);
    for (path, content) in home.store_files() {
        let content = String::from_utf8_lossy(&content).into_owned();
        for word in ["correct", "horse of", "battery", "staple"] {
            assert!(!content.contains(word), "{word} in {}", path.display());
        }
    }
    let shown = home.ok(["show", "latest"]);
    assert!(shown.contains("recorded as digests only"), "{shown}");
    let digests: Vec<&str> = shown
        .split("({\"digest\":\"")
        .skip(1)
        .map(|d| &d[..32])
        .collect();
    assert_eq!(
        digests, [digests[0]; 4],
        "equal arguments have equal digests"
    );
}
