//! The server gets the arguments, folder and environment that it would get without the relay;
//! one that cannot be started is named, with what was looked for where.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::Ending;
use agent_trace_store::process::RUN_MARK;
use agent_trace_store::trace::session::Standing;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use support::{ANSWER, Ended, Home, REQUEST, Server, assert_same};

const ODD_WORDS: [&str; 16] = [
    "a b", "q\"uote", "it's", "%PATH%", "$HOME", "*", "", "é", "--", "-x=1", "--store", "\\",
    "a\nb", "`id`", "{cmd}", "--help",
];

#[test]
fn w48_arguments_folder_and_environment_are_the_ones_that_were_given() {
    let home = Home::new();
    let folder = home.at("a folder with blanks");
    fs::create_dir(&folder).unwrap();
    let odd = "odd value\tc=\"d\" $x é";
    let started = |through_relay: bool| -> Value {
        let server = Server::new().notes_how_it_started().with_words(&ODD_WORDS);
        let words = server.command();
        let mut command = if through_relay {
            home.record().command(words)
        } else {
            let mut direct = home.with_environment(Command::new(&words[0]));
            direct.args(&words[1..]);
            direct
        };
        command
            .env_remove(RUN_MARK)
            .current_dir(&folder)
            .env("WIRE_ODD", odd)
            .env("EMPTY", "");
        let said = support::Said::by(&mut command, b"");
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&server.note("started")[0]).unwrap()
    };
    let (direct, relayed) = (started(false), started(true));
    assert_eq!(relayed, direct);
    assert_eq!(relayed["arguments"], serde_json::json!(ODD_WORDS));
    assert_eq!(relayed["environment"]["WIRE_ODD"], odd);
    let run = home.only_run();
    assert!(run.opening.command.ends_with(&ODD_WORDS.map(String::from)));
    assert_eq!(run.opening.cwd, folder.to_str().unwrap());
    assert!(run.opening.env.contains(&"WIRE_ODD".to_owned()));
    assert!(!format!("{:?}", run.opening).contains("odd value"));
}

#[test]
fn w48_words_that_are_no_text_reach_the_server_too() {
    let home = Home::new();
    let script = "printf %s \"$1$ODD\"";
    let words = ["sh", "-c", script, "sh"].map(OsStr::new);
    let odd = OsStr::from_bytes(b"\xff\xfe");
    let ended = home
        .record()
        .env("ODD", odd)
        .start_command(words.into_iter().chain([odd]))
        .wait();
    assert_same(&ended.out, b"\xff\xfe\xff\xfe", "what the server printed");
    assert_eq!(ended.code, 0);
}

/// A command that cannot be started: status 127 within moments, one line, and a run that says so.
#[track_caller]
fn not_started(home: &Home, command: &str, line: &[&str]) {
    let session = home.record().start_command([command, "argument"]);
    // The input stays open: nobody waits for its end.
    let ended = session.wait();
    assert_eq!(ended.code, 127);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    assert_same(&ended.out, b"", "nothing is written to the client");
    let said = one_line(&ended);
    for part in line.iter().chain(&[command]) {
        assert!(said.contains(part), "no {part:?} in {said:?}");
    }
    let run = home.only_run();
    assert_eq!(run.standing(), Standing::Crashed);
    let end = &run.end.as_ref().unwrap().end;
    assert_eq!((end.ending, end.exit_code), (Ending::NotStarted, None));
    let shown = home.ok(["show", "latest"]);
    assert!(shown.contains("the server could not be started"), "{shown}");
    assert!(shown.contains(command), "{shown}");
    let failed = home.json(["runs", "--failed", "--format", "json"]);
    assert_eq!(failed[0]["failures"][0], "the server crashed");
}

fn one_line(ended: &Ended) -> String {
    let said = String::from_utf8(ended.err.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.ends_with('\n'), "{said}");
    said
}

#[test]
fn w48_an_unknown_command_is_named_with_the_path_that_was_searched() {
    let home = Home::new();
    let path = format!("PATH={}", std::env::var("PATH").unwrap());
    not_started(&home, "no-such-mcp-server", &["No such file", &path]);
}

#[test]
fn w48_a_path_that_leads_nowhere_is_named() {
    let home = Home::new();
    not_started(&home, "./bin/no-such-server", &["PATH was not searched"]);
}

#[test]
fn w48_a_script_whose_interpreter_is_missing_is_told_from_a_missing_script() {
    let home = Home::new();
    let script = home.at("work/server");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    not_started(&home, "./server", &["the file exists", "#!"]);
}

#[test]
fn w48_a_file_that_is_no_program_and_a_folder_are_named() {
    let home = Home::new();
    fs::write(home.at("work/notes"), "text").unwrap();
    not_started(&home, "./notes", &["ermission denied"]);
    let home = Home::new();
    fs::create_dir(home.at("work/folder")).unwrap();
    not_started(&home, "./folder", &["ermission denied"]);
}

#[test]
fn w48_without_a_path_that_is_said() {
    let home = Home::new();
    let ended = home
        .record()
        .with(|command| {
            command.env_remove("PATH");
        })
        .start_command(["no-such-mcp-server"])
        .wait();
    assert_eq!(ended.code, 127);
    assert!(one_line(&ended).contains("PATH is not set"));
}

#[test]
fn a_command_line_that_makes_no_sense_is_refused_with_2() {
    let home = Home::new();
    for words in [
        &["record"][..],
        &["record", "--"],
        &["record", "server"],
        &["record", "--no-such-option", "--", "true"],
        &["no-such-command"],
        &[],
    ] {
        let said = home.run(words);
        assert_eq!(said.code, 2, "{words:?}: {said:?}");
        assert_eq!(said.out, "");
        assert!(said.err.contains("Usage:"), "{said:?}");
    }
    assert!(!home.store_folder().exists());
}

#[test]
fn the_words_after_the_dashes_are_the_servers_alone() {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER).with_words(&[
        "--store",
        "elsewhere",
        "--no-redact",
        "--",
        "record",
    ]);
    let ended = home.record().talk(&server, REQUEST);
    assert_eq!(ended.code, 0);
    let run = home.only_run();
    assert!(run.entry.header.redaction.on);
    assert!(!home.at("work/elsewhere").exists());
}
