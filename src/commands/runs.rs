//! `runs`: list recorded runs.
//!
//! - [`follow`]: sessions that begin and end from now on

mod follow;

use crate::cli::{Format, Runs as Args};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Index};
use crate::render::escape::text;
use crate::render::json::{self, RunLine};
use crate::render::table::{self, Align};
use crate::render::{row_status, short, time};
use agent_trace_index::RunsError;
use agent_trace_index::listing::{Cursor, Listed, RunsQuery};
use owo_colors::OwoColorize;
use std::io::{self, Write};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    if args.follow {
        return follow::run(&config.store(), args.format);
    }
    let query = RunsQuery {
        failed: args.failed,
        probes: args.all,
        cursor: query::cursor(args.after.as_deref())?,
        ..query::runs(config, args.filter.as_deref())?
    };
    let asked_for_all = !args.failed && args.filter.is_none() && args.after.is_none();
    let page = Index::of(config.store())?.runs(query, args.limit)?;
    warn(&page.warnings)?;
    let lines = || page.runs.iter().map(RunLine::of);
    match args.format {
        Format::Text if page.runs.is_empty() && asked_for_all => {
            return Err(RunsError::Empty.into());
        }
        Format::Text => print(&page.runs)?,
        Format::Json => json::document(&lines().collect::<Vec<_>>())?,
        Format::Jsonl => lines().try_for_each(|line| json::line(&line))?,
    }
    more(page.cursor)?;
    Ok(exit::SUCCESS)
}

/// Says on standard error where a list goes on, if it does.
pub(crate) fn more(cursor: Option<Cursor>) -> io::Result<()> {
    match cursor {
        Some(cursor) => writeln!(anstream::stderr(), "more: --after {cursor}"),
        None => Ok(()),
    }
}

/// Tells what could not be read.
pub(crate) fn warn(warnings: &[String]) -> io::Result<()> {
    let mut errors = anstream::stderr().lock();
    for warning in warnings {
        let warning = text(warning.as_bytes(), 0);
        writeln!(errors, "{} {warning}", "warning:".yellow())?;
    }
    Ok(())
}

fn row(run: &Listed) -> [String; 8] {
    let row = &run.row;
    [
        short(row.id),
        time::date(row.started),
        time::span(row.last.saturating_sub(row.started)),
        text(row.clients.join(", ").as_bytes(), 24),
        text(row.servers.join(", ").as_bytes(), 30),
        row.tally.calls().to_string(),
        row.tally.failed_calls().to_string(),
        row_status(run),
    ]
}

fn print(runs: &[Listed]) -> io::Result<()> {
    if runs.is_empty() {
        return Ok(());
    }
    use Align::{Left, Right};
    let heading = [
        ("RUN", Left),
        ("STARTED", Left),
        ("TIME", Right),
        ("CLIENT", Left),
        ("SERVER", Left),
        ("CALLS", Right),
        ("FAILED", Right),
        ("STATUS", Left),
    ];
    let rows: Vec<[String; 8]> = runs.iter().map(row).collect();
    table::print(&mut anstream::stdout().lock(), heading, &rows)
}
