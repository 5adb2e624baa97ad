//! `forget`: remove runs from the disk.

use crate::cli::Forget;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::short;
use agent_trace_store::retention;
use std::io::Write;

pub(crate) fn run(args: &Forget, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    // All names are looked up first: a mistake in one must not leave half of it done.
    let runs: Vec<_> = args
        .runs
        .iter()
        .map(|name| query::entries(config, name))
        .collect::<Result<_, _>>()?;
    for (run, sessions) in runs {
        for session in &sessions {
            retention::forget(&store, session)?;
        }
        writeln!(anstream::stdout(), "forgot run {}", short(run.row.id))?;
    }
    Ok(exit::SUCCESS)
}
