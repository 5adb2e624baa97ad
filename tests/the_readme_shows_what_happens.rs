//! What the README says that an example prints is what it prints.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use support::{Home, Said};

/// The first block of a section.
#[track_caller]
fn block<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, section) = text.split_once(heading).expect(heading);
    let (_, block) = section.split_once("```\n").expect("a block");
    block.split_once("```").expect("its end").0
}

/// The same for each run of an example.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let masked = words.map(|word| match word.get(..32) {
        Some(id) if is_id(id) => format!("ID{}", &word[32..]),
        _ => word.to_owned(),
    });
    masked.collect()
}

#[test]
fn when_it_is_asked_why_a_run_failed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = Home::new();
    let mut command = home.with_environment(Command::new(support::server::python()));
    command.arg(root.join("examples/ask-why.py"));
    let said = Said::by(command.arg(env!("CARGO_BIN_EXE_agent-trace")), b"");
    assert_eq!(said.code, 0, "{said:?}");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let shown = block(&readme, "\n### Ask why\n");
    assert!(shown.contains("The model is scripted"));
    assert_eq!(without_ids(&said.out), without_ids(shown));
    // It leaves nothing behind.
    assert_eq!(home.at("tmp").read_dir().unwrap().count(), 0);
    assert!(!home.store_folder().exists());
}
