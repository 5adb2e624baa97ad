//! `index`: look after what is derived from the journals.

use crate::cli::Format;
use crate::cli::index::{Index, IndexCommand};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::words::count;
use crate::render::{escape, json, time};
use agent_trace_index::RunsError;
use agent_trace_index::indexer::Progress;
use agent_trace_index::indexer::verify::{Difference, What};
use agent_trace_index::protocol::{Query, Reply, Status};
use serde_json::json;
use std::io::Write;

pub(crate) fn run(args: &Index, config: &Config) -> Result<u8, CommandError> {
    match &args.command {
        IndexCommand::Status(args) => match query::ask(config, Query::Status)? {
            Reply::Status(status) => print(&status, args.format)?,
            _ => return Err(RunsError::Unknown(None).into()),
        },
        IndexCommand::Rebuild(args) => match query::ask(config, Query::Rebuild)? {
            Reply::Rebuilt(progress) => rebuilt(progress, args.format)?,
            _ => return Err(RunsError::Unknown(None).into()),
        },
        IndexCommand::Verify(args) => match query::ask(config, Query::Verify)? {
            Reply::Verified(differences) => return verified(&differences, args.format),
            _ => return Err(RunsError::Unknown(None).into()),
        },
    }
    Ok(exit::SUCCESS)
}

fn rebuilt(progress: Progress, format: Format) -> Result<(), CommandError> {
    match format {
        Format::Text => {
            let Progress {
                sessions,
                processes,
                records,
                ..
            } = progress;
            writeln!(
                anstream::stdout(),
                "indexed {} of {}, {}",
                count(sessions, "session"),
                count(processes, "process"),
                count(records, "record")
            )?;
        }
        Format::Json => json::document(&progress)?,
        Format::Jsonl => json::line(&progress)?,
    }
    Ok(())
}

fn verified(differences: &[Difference], format: Format) -> Result<u8, CommandError> {
    match format {
        Format::Text if differences.is_empty() => {
            writeln!(anstream::stdout(), "the index is as the journals say")?;
        }
        Format::Text => {
            let mut out = anstream::stdout().lock();
            for Difference { row, what } in differences {
                let what = match what {
                    What::Missing => "is missing",
                    What::Extra => "should not be there",
                    What::Other => "says something else than the journals",
                };
                writeln!(out, "{} {what}", shown(row))?;
            }
            let hint = "`agent-trace index rebuild` makes the index anew";
            writeln!(anstream::stderr(), "\nhint: {hint}")?;
        }
        Format::Json => json::document(&differences)?,
        Format::Jsonl => differences.iter().try_for_each(json::line)?,
    }
    Ok(match differences.is_empty() {
        true => exit::SUCCESS,
        false => exit::FOUND,
    })
}

fn print(status: &Status, format: Format) -> Result<(), CommandError> {
    let mut out = anstream::stdout().lock();
    let since = time::rfc3339(status.since);
    // Where nobody had it, this command has it for as long as it lives.
    let is_theirs = status.pid != std::process::id();
    let document = || {
        let owner = json!({ "pid": status.pid, "program": status.program, "since": since });
        json!({
            "owner": is_theirs.then_some(owner),
            "path": status.path,
            "bytes": status.bytes,
            "rows": status.rows,
        })
    };
    match format {
        Format::Json => writeln!(out, "{:#}", document())?,
        Format::Jsonl => writeln!(out, "{}", document())?,
        Format::Text => {
            if is_theirs {
                writeln!(
                    out,
                    "owner: process {} (agent-trace {}) since {since}",
                    status.pid,
                    shown(&status.program)
                )?;
            } else {
                writeln!(out, "owner: none; each command opens it for itself")?;
            }
            match &status.path {
                Some(path) => writeln!(out, "path: {}", shown(path))?,
                None => writeln!(out, "path: none, it is in memory")?,
            }
            writeln!(out, "size: {}", time::bytes(status.bytes))?;
            writeln!(out, "rows: {}", status.rows)?;
        }
    }
    Ok(())
}

/// What another process says goes to a terminal.
fn shown(text: &str) -> String {
    escape::text(text.as_bytes(), 0)
}
