//! `forget`: remove runs from the disk.

use crate::cli::Forget;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::render::short;
use agent_trace_store::retention;
use agent_trace_store::trace::Sessions;
use std::io::Write;

pub(crate) fn run(args: &Forget, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    // All names are looked up first: a mistake in one must not leave half of it done.
    let runs: Vec<_> = args
        .runs
        .iter()
        .map(|name| store.find(name))
        .collect::<Result<_, _>>()?;
    for run in runs {
        retention::forget(&store, &run)?;
        writeln!(anstream::stdout(), "forgot run {}", short(run.id))?;
    }
    Ok(exit::SUCCESS)
}
