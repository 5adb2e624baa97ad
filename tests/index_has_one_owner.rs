//! One process has the index at a time, and whoever asks gets an answer: from the daemon, from
//! the index itself where there is none, and again after its owner was killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::lock::{self, Lock};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::daemon::Daemon;
use support::{Home, Said, Session, wait_for};

const STATUS: [&str; 4] = ["index", "status", "--format", "json"];

/// A home with a data directory.
fn home() -> Home {
    let home = Home::new();
    let store = home.store();
    store.make(store.root()).unwrap();
    home
}

/// Begins to ask.
fn ask(home: &Home) -> Session {
    let mut command = home.program();
    command
        .args(STATUS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Session::of(&mut command)
}

#[track_caller]
fn answer(asked: Session) -> Value {
    let ended = asked.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    serde_json::from_slice(&ended.out).unwrap()
}

/// What is the same whoever has the index.
fn same(answer: &Value) -> Value {
    serde_json::json!([answer["path"], answer["rows"]])
}

/// The daemon, once it has the index.
fn owning<'a>(home: &'a Home) -> Daemon<'a> {
    let daemon = home.daemon("");
    wait_until_it_owns(home, &daemon);
    daemon
}

fn wait_until_it_owns(home: &Home, daemon: &Daemon<'_>) {
    wait_for("a daemon that has the index", || {
        let holder = lock::holder(&home.store().index_lock()).ok()??;
        (holder.pid == Some(daemon.process.pid) && holder.socket.is_some()).then_some(())
    });
}

/// Indexes that were put aside.
fn aside(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.store_folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_string_lossy().contains("index.broken-"))
        .collect()
}

#[test]
fn five_at_once_get_the_same_answer() {
    let home = home();
    let first = home.json(STATUS);
    assert_eq!(first["owner"], Value::Null);
    assert_eq!(first["path"], home.at("store/index").to_str().unwrap());
    let mode = fs::metadata(home.at("store/index")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    for _ in 0..3 {
        let asked: Vec<Session> = (0..5).map(|_| ask(&home)).collect();
        for asked in asked {
            assert_eq!(same(&answer(asked)), same(&first));
        }
    }
    assert!(!home.store().index_lock().exists());
    assert_eq!(aside(&home), [""; 0].map(PathBuf::from));
}

#[test]
fn a_daemon_answers_for_all() {
    let home = home();
    // Makes the index; `status` only looks at it.
    let _ = home.run(["runs"]);
    let alone = home.json(STATUS);
    let daemon = owning(&home);
    let asked: Vec<Session> = (0..5).map(|_| ask(&home)).collect();
    for asked in asked {
        let answer = answer(asked);
        assert_eq!(answer["owner"]["pid"], daemon.process.pid);
        assert_eq!(answer["owner"]["program"], env!("CARGO_PKG_VERSION"));
        assert_eq!(answer["path"], alone["path"]);
    }
    let text = home.ok(["index", "status"]);
    let owner = format!("owner: process {} (agent-trace ", daemon.process.pid);
    assert!(text.starts_with(&owner), "{text}");

    // A second daemon is none, and takes nothing from the first.
    let second = home.run(["daemon", "run"]);
    assert_eq!(second.code, 2, "{second:?}");
    assert_eq!(home.json(STATUS)["owner"]["pid"], daemon.process.pid);

    // After it, nobody.
    home.ok(["daemon", "stop"]);
    assert_eq!(home.json(STATUS)["owner"], Value::Null);
    assert!(!home.at("store/control.sock").exists());
}

#[test]
fn a_killed_owner_is_followed_by_the_next_one() {
    let home = home();
    home.ok(STATUS);
    for round in 0..3 {
        let daemon = owning(&home);
        let mut asked = Vec::new();
        for number in 0..12 {
            asked.push(ask(&home));
            if number == 4 + round {
                daemon.signal("KILL");
            }
        }
        for asked in asked {
            let answer = answer(asked);
            assert!(answer["rows"].is_u64(), "{answer}");
        }
        assert_eq!(home.json(STATUS)["owner"], Value::Null);
    }
}

#[test]
fn a_daemon_waits_for_who_has_the_index() {
    let home = home();
    let lock = Lock::take(&home.store().index_lock()).unwrap();
    lock.sign(None).unwrap();
    let daemon = home.daemon("");
    // It says so itself, where it is asked what it cannot answer.
    let said = daemon.say("{\"version\":1,\"query\":\"status\"}\n");
    assert!(said.contains("does not have the index"), "{said}");
    // Who asks now waits, too.
    let waiting = ask(&home);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!waiting.has_ended());
    drop(lock);
    answer(waiting);
    wait_until_it_owns(&home, &daemon);
    assert_eq!(home.json(STATUS)["owner"]["pid"], daemon.process.pid);
}

#[test]
fn the_socket_answers_what_it_does_not_know() {
    let home = home();
    let daemon = owning(&home);
    let said = daemon.say("{\"version\":1,\"query\":\"status\"}\n");
    assert!(said.contains("\"reply\":{\"status\":{\"pid\":"), "{said}");
    let said = daemon.say("{\"version\":1,\"query\":{\"oracle\":1}}\n");
    assert!(said.contains("does not know such a question"), "{said}");
    assert!(said.contains("oracle"), "{said}");
    let said = daemon.say("{\"version\":99,\"ask\":1}\n");
    assert!(
        said.contains("speaks version 1 of the control protocol, not 99"),
        "{said}"
    );
    for line in [
        "{\"version\":1}\n",
        "{\"version\":1,\"command\":\"status\",\"query\":\"status\"}\n",
        "?\n",
        "\n",
    ] {
        let said = daemon.say(line);
        assert!(said.contains("not a request"), "{line}: {said}");
    }
    // What is too long is not read to its end.
    let long = format!(
        "{{\"version\":1,\"query\":\"{}\"}}\n",
        "x".repeat(200 << 10)
    );
    assert!(daemon.say(&long).contains("does not know such a question"));
    assert_eq!(home.json(STATUS)["owner"]["pid"], daemon.process.pid);
}

/// Has the index with a socket on which each line is answered with this one.
fn owner_that_says(home: &Home, answer: &'static str) -> Lock {
    let socket = home.at("tmp/other.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let lock = Lock::take(&home.store().index_lock()).unwrap();
    lock.sign(Some(&socket)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            assert!(line.contains("\"query\":\"status\""), "{line}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    lock
}

#[track_caller]
fn refused(said: &Said, text: &str) {
    assert_eq!(said.code, 2, "{said:?}");
    assert_eq!(said.out, "");
    assert!(said.err.contains(text), "{}", said.err);
    assert!(
        said.err
            .contains("hint: it may be of another version: end it")
    );
}

#[test]
fn an_owner_of_another_version_is_named() {
    let home = home();
    let answer = "{\"version\":99,\"program\":\"7.0\",\"error\":{\"no\":\"text\"}}\n";
    let _lock = owner_that_says(&home, answer);
    let text = format!(
        "the index is in use by agent-trace 7.0 (process {}), which speaks version 99 of the \
         control protocol; this one speaks version 1",
        std::process::id()
    );
    refused(&home.run(STATUS), &text);
}

#[test]
fn an_owner_that_does_not_know_the_question_says_so() {
    let home = home();
    let answer = "{\"version\":1,\"error\":\"I do not know\\u001b[31m\"}\n";
    let _lock = owner_that_says(&home, answer);
    let said = home.run(STATUS);
    refused(&said, "I do not know");
    assert!(!said.err.contains('\u{1b}'), "{}", said.err);
}

#[test]
fn an_owner_that_answers_nonsense_is_told_apart() {
    let home = home();
    let _lock = owner_that_says(&home, "{\"version\":1,\"reply\":{\"oracle\":1}}\n");
    let text = "answered something that is not known here";
    refused(&home.run(STATUS), text);
}

#[test]
fn an_index_that_cannot_be_used_is_put_aside() {
    let home = home();
    home.ok(STATUS);
    let index = home.at("store/index");
    let spoil: [(&str, &dyn Fn()); 7] = [
        ("it is of version 0, not", &|| {
            fs::write(index.join("schema"), "agent-trace index 0\n").unwrap();
        }),
        ("it is none of this program's", &|| {
            fs::remove_file(index.join("schema")).unwrap();
        }),
        ("it is none of this program's", &|| {
            fs::remove_dir_all(&index).unwrap();
            fs::create_dir(&index).unwrap();
            fs::write(index.join("photo.jpg"), "x").unwrap();
        }),
        ("it is no folder", &|| {
            fs::remove_dir_all(&index).unwrap();
            fs::write(&index, "x").unwrap();
        }),
        ("a part of it could not be read", &|| {
            fs::write(index.join("schema"), "agent-trace index damaged").unwrap();
        }),
        ("index cannot be used", &|| {
            fs::write(index.join("conf"), [0xff; 100]).unwrap();
        }),
        ("index cannot be used", &|| {
            fs::remove_file(index.join("db")).unwrap();
            fs::create_dir(index.join("db")).unwrap();
        }),
    ];
    for (why, spoil) in spoil {
        spoil();
        let said = home.run(STATUS);
        assert_eq!(said.code, 0, "{why}: {said:?}");
        let warnings: Vec<&str> = said.err.lines().collect();
        assert_eq!(warnings.len(), 1, "{why}: {said:?}");
        assert!(
            warnings[0].starts_with("warning: the index cannot be used"),
            "{said:?}"
        );
        assert!(warnings[0].contains(why), "{why}: {said:?}");
        let kept = aside(&home);
        assert_eq!(kept.len(), 1, "{why}: {kept:?}");
        assert!(warnings[0].ends_with(kept[0].to_str().unwrap()), "{said:?}");
        // Begun anew it is a usual one.
        let said = home.run(STATUS);
        assert_eq!((said.code, &*said.err), (0, ""));
    }
}

#[test]
fn a_store_that_cannot_be_written_is_answered_from_memory() {
    let home = home();
    let root = home.store_folder();
    let set_mode = |mode| fs::set_permissions(&root, PermissionsExt::from_mode(mode)).unwrap();
    set_mode(0o500);
    let is_root = fs::write(root.join("try"), "").is_ok();
    let answered = home.run(STATUS);
    set_mode(0o700);
    if is_root {
        support::skip(
            "a store that cannot be written",
            "root may write everywhere",
        );
        return;
    }
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.out.contains("\"path\": null"), "{answered:?}");
}

#[test]
fn without_a_store_there_is_no_index() {
    let home = Home::new();
    let begun = Instant::now();
    let said = home.run(["index", "status"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.starts_with("error: there is no store at "),
        "{said:?}"
    );
    assert!(!home.store_folder().exists());
    assert!(begun.elapsed() < Duration::from_secs(10));
}
