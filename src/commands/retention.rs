//! `retention`: seal finished journals, and remove what is beyond the limits.

use crate::cli::Retention;
use crate::config::Config;
use crate::error::{CommandError, exit, in_one_line};
use crate::render::time::bytes;
use agent_trace_store::retention::{self, Limits};
use owo_colors::OwoColorize;
use std::io::Write;

pub(crate) fn run(args: &Retention, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let limits = Limits {
        age: args.max_age.or(config.file.retention.max_age),
        bytes: args.max_bytes.or(config.file.retention.max_bytes),
    };
    let applied = retention::apply(&store, limits).map_err(CommandError::path(store.root()))?;
    writeln!(
        anstream::stdout(),
        "sealed {} files, removed {} runs: {} before, {} now",
        applied.sealed,
        applied.removed.len(),
        bytes(applied.bytes.0),
        bytes(applied.bytes.1)
    )?;
    for error in &applied.failed {
        writeln!(
            anstream::stderr(),
            "{} {}",
            "warning:".yellow(),
            in_one_line(error)
        )?;
    }
    Ok(if applied.failed.is_empty() {
        exit::SUCCESS
    } else {
        exit::FAILURE
    })
}
