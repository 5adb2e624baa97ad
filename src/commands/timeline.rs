//! `timeline`: how a run went in time.
//!
//! - [`bars`]: as bars
//! - [`json`]: as JSON

mod bars;
mod json;

use crate::cli::Format;
use crate::cli::understand::Timeline as Args;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::json as print;
use agent_trace_analysis::timeline::{self, Limits};
use std::time::Duration;

/// Columns where nobody says how many there are.
const WIDTH: usize = 100;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let story = query::story(config, &args.run)?;
    let nanoseconds = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let limits = Limits {
        idle: nanoseconds(args.idle),
        slow: args.slow.map_or_else(|| query::slow(config), nanoseconds),
    };
    let line = timeline::of(&story, limits);
    match args.format {
        Format::Text => {
            let width = args.width.unwrap_or_else(width);
            bars::print(&mut anstream::stdout().lock(), &story, &line, width)?;
        }
        Format::Json => print::document(&json::document(&story, &line))?,
        Format::Jsonl => json::bars(&story, &line).try_for_each(|bar| print::line(&bar))?,
    }
    Ok(exit::SUCCESS)
}

/// How many columns the terminal has.
fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal
        .or_else(told)
        .filter(|width| *width > 0)
        .unwrap_or(WIDTH)
}
