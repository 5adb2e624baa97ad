//! `stats`: calls, errors and times of each tool over many runs.

use crate::cli::{Format, Stats as Args};
use crate::commands::runs::warn;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::escape::text;
use crate::render::json;
use crate::render::table::{self, Align};
use crate::render::time::{bytes, seconds};
use crate::render::words::count;
use agent_trace_index::stats::{Stats, ToolStats};
use std::io::{self, Write};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let query = query::runs(config, args.filter.as_deref())?;
    let stats = query::stats(config, query)?;
    warn(&stats.warnings)?;
    match args.format {
        Format::Text => print(&stats)?,
        Format::Json => json::document(&stats)?,
        Format::Jsonl => stats.tools.iter().try_for_each(json::line)?,
    }
    Ok(exit::SUCCESS)
}

fn print(stats: &Stats) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (runs, failed) = (stats.runs, stats.failed);
    if !stats.tools.is_empty() {
        let rows: Vec<[String; 9]> = stats.tools.iter().map(row).collect();
        use Align::{Left, Right};
        let heading = [
            ("SERVER", Left),
            ("TOOL", Left),
            ("CALLS", Right),
            ("FAILED", Right),
            ("P50", Right),
            ("P95", Right),
            ("P99", Right),
            ("MAX", Right),
            ("BYTES", Right),
        ];
        table::print(&mut out, heading, &rows)?;
    }
    writeln!(out, "{}, {failed} of them failed", count(runs, "run"))
}

fn row(tool: &ToolStats) -> [String; 9] {
    let time = |time: Option<u64>| time.map_or_else(|| "-".into(), seconds);
    [
        text(tool.server.as_bytes(), 30),
        text(tool.tool.as_bytes(), 40),
        tool.calls.to_string(),
        tool.failed.to_string(),
        time(tool.p50),
        time(tool.p95),
        time(tool.p99),
        time(tool.max),
        bytes(tool.bytes),
    ]
}
