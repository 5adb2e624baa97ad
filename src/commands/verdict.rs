//! `verdict`: say whether a run was right or wrong.

use crate::cli::Format;
use crate::cli::verdict::Judge as Args;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::judge;
use crate::query;
use crate::render::{json, short, time};
use agent_trace_model::{Judge, Verdict};
use agent_trace_store::state::Decision;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::Write;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let decision = match args.verdict {
        Some(verdict) => {
            let run = query::find(config, &args.run)?.run.row.id;
            let reason = args.reason.as_deref().unwrap_or_default();
            judge::record(config, run, verdict.into(), reason, Judge::Person)?
        }
        None => {
            let Some(check) = config.check() else {
                return Err(CommandError::Usage {
                    what: "the configuration declares no check command".into(),
                    hint: "set `command` under [check]; `agent-trace config --help` lists the \
                           settings",
                });
            };
            let at = judge::now();
            judge::check(config, &check, &query::open(config, &args.run)?, at)?
        }
    };
    match args.format {
        Format::Text => print(&decision)?,
        Format::Json => json::document(&Line::of(&decision))?,
        Format::Jsonl => json::line(&Line::of(&decision))?,
    }
    Ok(match decision.verdict {
        // A check that could not tell.
        Verdict::Unjudged if args.check => exit::FAILURE,
        Verdict::Wrong if args.check => exit::FOUND,
        _ => exit::SUCCESS,
    })
}

fn print(decision: &Decision) -> Result<(), CommandError> {
    let mut out = anstream::stdout().lock();
    let told = crate::render::verdict(decision);
    writeln!(
        out,
        "{} {} {told}",
        "run".dimmed(),
        short(decision.run).bold()
    )?;
    Ok(())
}

/// A verdict as JSON.
#[derive(Serialize)]
struct Line<'a> {
    run: String,
    verdict: Verdict,
    by: Judge,
    reason: &'a str,
    time: String,
}

impl<'a> Line<'a> {
    fn of(decision: &'a Decision) -> Self {
        Self {
            run: decision.run.to_string(),
            verdict: decision.verdict,
            by: decision.by,
            reason: &decision.reason,
            time: time::rfc3339(decision.at),
        }
    }
}
