//! The wire checks that lie beside this repository, where they do: they know nothing of this
//! program and are passed by a bare byte pump too.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Home, Said, skip};

const STDIO: &[&str] = &["record", "--"];
const HTTP: &[&str] = &["relay", "--listen", "127.0.0.1:{port}", "--to", "{origin}"];

fn check(script: &str, options: &[&str], relay: &[&str]) {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/wire");
    let path = folder.join(script);
    if !path.exists() {
        return skip(script, "there is no ../shared/wire here");
    }
    let home = Home::new();
    let mut command = home.with_environment(Command::new(support::server::python()));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    // Its limits are for an idle machine.
    command.env("WIRE_SLOW", "4");
    command.arg(path).args(options).arg("--");
    command.arg(env!("CARGO_BIN_EXE_agent-trace")).args(relay);
    let said = Said::by(&mut command, b"");
    let failed: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.contains("\"ok\": false"))
        .collect();
    assert_eq!(failed, [""; 0], "{}", said.err);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains(" passed, 0 failed"), "{said:?}");
}

#[test]
fn transparency_of_stdio() {
    check("transparency_stdio.py", &["--large"], STDIO);
}

#[test]
fn life_cycle_timing_and_load_of_stdio() {
    check("probe_stdio.py", &[], STDIO);
}

#[test]
fn transparency_and_policy_of_http() {
    let options = ["--policy", "--idle", "5"];
    check("transparency_http.py", &options, HTTP);
}
