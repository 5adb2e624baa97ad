//! `index`: look after what is derived from the journals.

use crate::cli::Format;
use crate::cli::index::{Index, IndexCommand};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::{escape, time};
use agent_trace_index::RunsError;
use agent_trace_index::protocol::{Query, Reply, Status};
use serde_json::json;
use std::io::Write;

pub(crate) fn run(args: &Index, config: &Config) -> Result<u8, CommandError> {
    match &args.command {
        IndexCommand::Status(args) => match query::ask(config, Query::Status)? {
            Reply::Status(status) => print(&status, args.format)?,
            _ => return Err(RunsError::Unknown(None).into()),
        },
    }
    Ok(exit::SUCCESS)
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
