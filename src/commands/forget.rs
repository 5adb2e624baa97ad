//! `forget`: remove runs from the disk.

use crate::cli::Forget;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::Index;
use crate::render::short;
use agent_trace_index::finding::Found;
use agent_trace_index::opening;
use agent_trace_store::retention;
use std::io::Write;

pub(crate) fn run(args: &Forget, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    // All names are looked up first: a mistake in one must not leave half of it done.
    let index = Index::of(store.clone())?;
    let runs: Vec<_> = args
        .runs
        .iter()
        .map(|name| index.find(name))
        .collect::<Result<_, _>>()?;
    drop(index);
    let (mut sessions, mut ids) = (Vec::new(), Vec::new());
    for Found { run, files, .. } in &runs {
        let of = opening::entries(&store, files)?;
        // All ids under which something may have been decided about it.
        ids.push(run.row.id);
        ids.extend(&run.row.aliases);
        ids.extend(of.iter().map(|session| session.id));
        sessions.extend(of);
    }
    retention::forget(&store, &sessions, &ids)?;
    for Found { run, .. } in &runs {
        writeln!(anstream::stdout(), "forgot run {}", short(run.row.id))?;
    }
    Ok(exit::SUCCESS)
}
