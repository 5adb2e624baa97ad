//! Asking what was recorded, and finding the run that a command is about.

use crate::config::Config;
use crate::error::{CommandError, discreet};
use crate::render::escape;
use crate::serving::signals::runtime;
use agent_trace_index::protocol::{Query, Reply};
use agent_trace_index::{Access, Runs, Settings};
use agent_trace_model::story::Story;
use agent_trace_store::trace::{self, Sessions};
use owo_colors::OwoColorize;
use std::io::Write;

/// Asks whoever owns the index; this process, if nobody else does.
pub(crate) fn ask(config: &Config, query: Query) -> Result<Reply, CommandError> {
    let access = Access::brief(&config.store(), settings());
    Ok(runtime()?.block_on(access.ask(query))?)
}

/// How a command has the index.
fn settings() -> Settings {
    Settings::new(env!("CARGO_PKG_VERSION"), |line| {
        let line = escape::text(discreet(line).as_bytes(), 0);
        let _ = writeln!(anstream::stderr(), "{} {line}", "warning:".yellow());
    })
}

/// The run that is meant by `latest`, an id or a prefix of one.
pub(crate) fn story(config: &Config, name: &str) -> Result<Story, CommandError> {
    let store = config.store();
    let entry = store.find(name)?;
    let session = store.open(&entry)?;
    Ok(trace::story::of(entry.id, Vec::new(), &[session]))
}
