//! Reads the newest session through the library and prints the tool calls that failed.
//!
//! `cargo run --example failed_calls -- DIR`, where DIR is a data directory (`agent-trace
//! config` tells yours).
#![allow(clippy::print_stdout)]

use agent_trace_analysis::parts;
use agent_trace_store::Store;
use agent_trace_store::trace::{Sessions, story};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("usage: failed_calls DIR")?;
    let store = Store::at(folder);
    let sessions = store.list()?.runs;
    let newest = sessions.first().ok_or("nothing has been recorded yet")?;
    let story = story::of(newest.id, Vec::new(), &[&store.open(newest)?]);
    for step in story.steps.iter().filter(|step| step.outcome.is_failure()) {
        let Some(tool) = step.tool() else { continue };
        // Everything recorded is hostile: `{:?}` escapes what could steer a terminal.
        let answer = String::from_utf8_lossy(parts::answer(step).unwrap_or_default());
        println!(
            "step {}: {tool:?} {}: {answer:?}",
            step.number, step.outcome
        );
    }
    Ok(())
}
