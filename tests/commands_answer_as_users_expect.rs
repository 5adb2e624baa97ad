//! Commands find the run that is meant, say what went wrong and what to do about it, and end with
//! the status that scripts expect.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::{ProcessId, RunId, SessionId};
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::trace::run_id;
use serde_json::json;
use std::collections::HashMap;
use support::text::steady;
use support::{ANSWER, Home, REQUEST, Said, Server};

#[test]
fn who_stops_reading_has_seen_enough() {
    let home = Home::new();
    let server = Server::that_writes(ANSWER.repeat(5000));
    home.record().talk(&server, "");
    for words in [
        "runs",
        "show latest",
        "show latest --frames",
        "show latest --format json",
        "show latest --format jsonl",
        "export latest -o -",
        "completions bash",
        "man",
        "config",
        "doctor",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = home.program();
        let said = command
            .args(words.split(' '))
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(said.status.code(), Some(0), "{words}: {said:?}");
        assert_eq!(said.stderr, b"", "{words}");
    }
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id() {
    let home = Home::new();
    let said = home.run(["show", "latest"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("error: nothing has been recorded yet"),
        "{said:?}"
    );
    assert!(said.err.contains("\n\nhint: "), "{said:?}");

    for _ in 0..2 {
        home.record().talk(&Server::that_writes(ANSWER), "");
    }
    let runs = home.json(["runs", "--format", "json"]);
    let ids = runs.as_array().unwrap().iter();
    let ids: Vec<String> = ids.map(|run| run["run"].as_str().unwrap().into()).collect();
    let shown = |name: &str| home.json(["show", name, "--format", "json"])["run"].clone();
    assert_eq!(shown("latest"), ids[0]);
    for id in &ids {
        assert_eq!(shown(id), *id);
        assert_eq!(shown(&id[..12]), *id);
        assert_eq!(shown(&id[..12].to_uppercase()), *id);
        let with_dashes = format!("{}-{}", &id[..8], &id[8..12]);
        assert_eq!(shown(&with_dashes), *id);
    }
    for name in ["ffffffffffff", "abc", "x", "", "latestt", "../../x"] {
        let said = home.run(["show", name]);
        assert_eq!(said.code, 2, "{name}: {said:?}");
        assert!(said.err.starts_with("error: no run "), "{said:?}");
        assert!(
            said.err.contains("hint: `agent-trace runs` lists"),
            "{said:?}"
        );
    }
}

#[test]
fn an_id_that_names_two_runs_is_refused() {
    let home = Home::new();
    let server = Server::new().complains("a line\n").reads_to_the_end();
    home.record().talk(&server, "");
    let header = home.only_run().entry.header;
    // Draws ids until two begin with the same four digits.
    let mut seen: HashMap<String, ProcessId> = HashMap::new();
    let (prefix, pair) = (0_u64..)
        .find_map(|number| {
            let mut random = [0; 10];
            random[..8].copy_from_slice(&number.to_le_bytes());
            let process = ProcessId::new(1, random);
            let session = SessionId {
                process,
                ordinal: 1,
            };
            let id: RunId = run_id(&header.workspace, session);
            let prefix = id.to_string()[..4].to_owned();
            let other = seen.insert(prefix.clone(), process)?;
            (other != process).then_some((prefix, [process, other]))
        })
        .unwrap();
    let mut first = home.only_run().errors[0].envelope.clone();
    first.sequence = 1;
    for process in pair {
        let mut header = header.clone();
        header.process = process;
        // Of one client they would be one run.
        header.client = None;
        let mut writer = Writer::create(&home.store(), header).unwrap();
        writer.append(&first, b"a line\n").unwrap();
        writer.flush().unwrap();
    }
    let said = home.run(["show", &prefix]);
    assert_eq!(said.code, 2, "{said:?}");
    let line = format!("error: 2 runs begin with {prefix:?}");
    assert!(said.err.starts_with(&line), "{said:?}");
    assert!(said.err.contains("hint: give more digits"), "{said:?}");
}

#[test]
fn an_empty_store_is_no_error_for_a_program() {
    let home = Home::new();
    assert_eq!(home.json(["runs", "--format", "json"]), json!([]));
    assert_eq!(home.ok(["runs", "--format", "jsonl"]), "");
    let said = home.run(["runs"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("hint: "), "{said:?}");
    assert!(!home.store_folder().exists(), "reading makes nothing");
}

#[test]
fn failed_runs_are_listed_apart_and_no_more_than_asked_for() {
    let home = Home::new();
    let tool = |name: &str, id: u32| {
        let id = format!("\"id\":{id},");
        let line = REQUEST.replace("\"id\":1,", &id);
        line.replace("\"t\"", &format!("\"{name}\""))
    };
    for calls in [
        tool("echo", 1),
        tool("fail", 1),
        // An error that was made good.
        tool("fail", 1) + &tool("echo", 2),
        tool("refuse", 1),
    ] {
        home.record().talk(&Server::mcp(), calls);
    }
    let count = |words: &str| {
        let said = home.ok(words.split(' '));
        said.lines().count()
    };
    assert_eq!(count("runs --format jsonl"), 4);
    assert_eq!(count("runs --failed --format jsonl"), 3);
    assert_eq!(count("runs -n 2 --format jsonl"), 2);
    assert_eq!(count("runs -n 1 --failed --format jsonl"), 1);
    let newest = home.json(["runs", "-n", "1", "--format", "json"]);
    assert_eq!(newest[0]["failures"], json!(["refuse (step 1)"]));
}

#[test]
fn colour_is_for_terminals_only() {
    let home = Home::new();
    home.record().talk(&Server::mcp(), REQUEST);
    for words in ["runs", "show latest", "doctor", "demo"] {
        let said = home.run(words.split(' '));
        assert!(!said.out.contains('\u{1b}'), "{words}: {said:?}");
    }
    let mut command = home.program();
    let forced = command.args(["show", "latest"]).env("CLICOLOR_FORCE", "1");
    assert!(Said::by(forced, b"").out.contains('\u{1b}'));
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = home.ok(["completions", shell]);
        assert!(
            text.contains("agent-trace") && text.contains("retention"),
            "{shell}"
        );
    }
    assert!(home.ok(["man"]).contains(".TH agent"));
    home.ok(["man", "--dir", "pages"]);
    let pages = home.at("work/pages").read_dir().unwrap().count();
    assert!(pages >= 10, "{pages} pages");
    for command in [
        "record",
        "relay",
        "daemon",
        "daemon start",
        "runs",
        "show",
        "export",
        "import",
        "forget",
        "redact",
        "retention",
        "doctor",
        "config",
        "demo",
        "completions",
        "man",
    ] {
        let text = home.ok(command.split(' ').chain(["--help"]));
        assert!(text.contains("Usage: agent-trace"), "{text}");
    }
    assert!(home.ok(["--version"]).starts_with("agent-trace "));
}

#[test]
fn redact_shows_what_would_be_hidden() {
    let home = Home::new();
    let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let said = home.run(["redact", "--test", &format!("the token is {token}")]);
    assert_eq!(said.code, 0);
    assert!(
        said.out.starts_with("the token is [REDACTED:github-token:"),
        "{said:?}"
    );
    assert_eq!(said.err, "hidden: 1 github-token\n");
    let said = Said::by(home.program().args(["redact", "--test"]), b"nothing here\n");
    assert_eq!(
        (&said.out[..], &said.err[..]),
        ("nothing here\n", "hidden: nothing\n")
    );
    home.record()
        .talk(&Server::that_writes(format!("{token}\n")), "");
    let said = home.ok(["redact", "--run", "latest"]);
    assert!(said.contains("nothing more to hide"), "{said}");
    assert_eq!(home.run(["redact"]).code, 2);
}

#[test]
fn config_says_where_each_setting_comes_from() {
    let home = Home::new();
    let folder = home.at("home/.config/agent-trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("config.toml"),
        "[record]\nbodies = \"digest\"\n[retention]\nmax_age = \"30d\"\n\
         [daemon]\nworkers = 3\n[[relay]]\nname = \"docs\"\nlisten = \"0.0.0.0:4001\"\n\
         to = \"https://mcp.example.com/mcp\"\nallow_host = [\"Box.lan\"]\nidle = \"1h\"\n",
    )
    .unwrap();
    let place = home.at("").display().to_string();
    let text = home.ok(["config"]);
    let text = steady(&text, &[(&place, "HOME/")]);
    insta::assert_snapshot!(text, @"
    file: HOME/home/.config/agent-trace/config.toml

    SETTING  VALUE  FROM
    store  HOME/store  AGENT_TRACE_DIR
    record.redact  true  default
    record.bodies  digest  file
    record.durability  timer  default
    redact.rule  none  default
    retention.max_age  30d  file
    retention.max_bytes  none  default
    retention.max_sessions  none  default
    check.command  none  default
    check.timeout  1m  default
    steps.slow  10s  default
    mcp.answer  32KiB  default
    judge.url  none  default
    daemon.listen  127.0.0.1:4747  default
    daemon.drain  5s  default
    daemon.workers  3  file
    daemon.session_gap  10m  default
    relay.docs  0.0.0.0:4001 -> https://mcp.example.com/mcp, allow_host box.lan, idle 1h  file
    ");
    let flagged = home.ok(["--store", "elsewhere", "config"]);
    assert!(flagged.contains("flag"), "{flagged}");
}
