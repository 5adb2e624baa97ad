//! `agent-trace demo` needs the binary and a place to write to: no Node, no Python, no
//! configuration, nothing on PATH.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::Store;
use agent_trace_store::trace::Sessions;
use std::path::Path;
use std::process::Command;
use support::{Home, Said};

/// The demo in an environment that has nothing.
fn demo(home: &Home) -> Command {
    let mut command = home.program();
    command
        .env_clear()
        .env("HOME", home.at("home"))
        .env("TMPDIR", home.at("work"))
        .env("PATH", "")
        .arg("demo");
    command
}

#[test]
fn the_demo_shows_a_run_that_succeeds_and_one_that_fails() {
    let home = Home::new();
    let said = Said::by(&mut demo(&home), b"");
    assert_eq!(said.code, 0, "{said:?}");
    let first = said.out.find("Run ").unwrap();
    let second = said.out[first + 4..].find("Run ").unwrap() + first + 4;
    let (good, bad) = (&said.out[first..second], &said.out[second..]);
    assert!(good.lines().next().unwrap().ends_with(": ok"), "{good}");
    assert!(
        good.contains("tool error"),
        "an error that is made good: {good}"
    );
    assert!(
        bad.lines().next().unwrap().contains("failed: read_note"),
        "{bad}"
    );
    assert!(bad.contains("[REDACTED:github-token:"), "{bad}");
    assert!(!said.out.contains("0123456789abcdefghij"), "{}", said.out);
    assert!(
        said.err.lines().all(|line| line == "notes: serving"),
        "{said:?}"
    );
    // In a folder of its own; the user's store stays as it was.
    let folder = said.out.lines().next().unwrap().rsplit(' ').next().unwrap();
    assert!(Path::new(folder).starts_with(home.at("work")), "{folder}");
    assert_eq!(home.at("home").read_dir().unwrap().count(), 0);
    let runs = Store::at(folder).list().unwrap().runs;
    assert_eq!(runs.len(), 2);
}

#[test]
fn what_the_demo_suggests_works() {
    let home = Home::new();
    let said = Said::by(&mut demo(&home), b"");
    // As they stand there: the program is not on the PATH of this home.
    let commands = said
        .out
        .lines()
        .map(|line| line.trim().split(' ').collect::<Vec<_>>())
        .filter(|words| words.get(1) == Some(&"--store"));
    let commands: Vec<Vec<&str>> = commands.collect();
    assert!(commands.len() >= 5, "{said:?}");
    for words in commands {
        let mut command = home.with_environment(Command::new(words[0]));
        let said = Said::by(command.args(&words[1..]), b"");
        assert!(said.code < 2 && !said.out.is_empty(), "{words:?}: {said:?}");
    }
}

#[test]
fn a_store_that_is_named_is_used() {
    let home = Home::new();
    let store = home.at("a store with blanks");
    let mut command = demo(&home);
    let said = Said::by(command.arg("--store").arg(&store), b"");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(Store::at(&store).list().unwrap().runs.len(), 2);
    let said = Said::by(demo(&home).arg("--store").arg(&store), b"");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(Store::at(&store).list().unwrap().runs.len(), 4);
}
