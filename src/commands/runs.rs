//! `runs`: list recorded runs.

use crate::cli::{Format, Runs as Args};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::render::escape::text;
use crate::render::json::RunLine;
use crate::render::table::{self, Align};
use crate::render::{short, status, time};
use agent_trace_store::trace::{Run, Runs};
use owo_colors::OwoColorize;
use std::io::Write;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let listing = store.list().map_err(CommandError::path(store.root()))?;
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    let mut runs = Vec::new();
    let mut unreadable = listing.unreadable;
    for entry in listing.runs {
        if runs.len() == limit {
            break;
        }
        match store.open(&entry) {
            Ok(run) if args.failed && run.failures().is_empty() => {}
            Ok(run) => runs.push(run),
            Err(error) => unreadable.push(error),
        }
    }
    let mut out = anstream::stdout().lock();
    match args.format {
        Format::Text => print(&mut out, &runs)?,
        Format::Json => {
            let lines: Vec<RunLine> = runs.iter().map(RunLine::of).collect();
            serde_json::to_writer_pretty(&mut out, &lines).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Format::Jsonl => {
            for run in &runs {
                serde_json::to_writer(&mut out, &RunLine::of(run)).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
        }
    }
    if runs.is_empty() && args.format == Format::Text && !args.failed {
        return Err(agent_trace_store::trace::FindError::Empty.into());
    }
    let mut errors = anstream::stderr().lock();
    for error in &unreadable {
        let cause = std::error::Error::source(error)
            .map(|c| format!(": {c}"))
            .unwrap_or_default();
        writeln!(errors, "{} {error}{cause}", "warning:".yellow())?;
    }
    Ok(exit::SUCCESS)
}

fn print(out: &mut impl Write, runs: &[Run]) -> Result<(), CommandError> {
    if runs.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 8]> = runs
        .iter()
        .map(|run| {
            let calls = || run.steps.iter().filter(|step| step.tool().is_some());
            let started = run.entry.header.started;
            [
                short(run.entry.id),
                time::date(started),
                time::span(run.last.saturating_sub(started)),
                text(run.client().as_bytes(), 24),
                text(run.server().as_bytes(), 30),
                calls().count().to_string(),
                calls()
                    .filter(|step| step.outcome.is_failure())
                    .count()
                    .to_string(),
                status(run),
            ]
        })
        .collect();
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
    Ok(table::print(out, heading, &rows)?)
}
