//! `runs`: list recorded runs.
//!
//! - [`follow`]: those that begin and end from now on

mod follow;

use crate::cli::{Format, Runs as Args};
use crate::config::Config;
use crate::error::{CommandError, exit, in_one_line};
use crate::render::escape::text;
use crate::render::json::{self, RunLine};
use crate::render::table::{self, Align};
use crate::render::{failures, short, status, time};
use agent_trace_model::Verdict;
use agent_trace_store::state::{State, Verdicts};
use agent_trace_store::trace::{FindError, Session, Sessions};
use owo_colors::OwoColorize;
use std::collections::BTreeMap;
use std::io::Write;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    if args.follow {
        return follow::run(&store, args.format);
    }
    let listing = store.list().map_err(CommandError::path(store.root()))?;
    let limit = if args.limit == 0 {
        usize::MAX
    } else {
        args.limit
    };
    let mut errors = anstream::stderr().lock();
    let verdicts = State::of(&store).verdicts().unwrap_or_else(|error| {
        let _ = writeln!(errors, "{} {}", "warning:".yellow(), in_one_line(&error));
        Verdicts::default()
    });
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let mut unreadable = listing.unreadable;
    // As many at once as may be needed, since the runs of a process are read together. Each
    // is reduced to its line at once: all of them may not fit into memory.
    let mut rest = &listing.runs[..];
    while !rest.is_empty() && rows.len().max(lines.len()) < limit {
        let (now, later) = rest.split_at(limit.min(rest.len()));
        rest = later;
        let (mut some_rows, mut some_lines) = (BTreeMap::new(), BTreeMap::new());
        store.open_each(now, &mut |at, run| match run {
            Ok(run) if args.failed && !is_failed(&run, &verdicts) => {}
            Ok(run) if args.format == Format::Text => {
                some_rows.insert(at, row(&run, &verdicts));
            }
            Ok(run) => {
                let decision = verdicts.decision([run.entry.id]);
                some_lines.insert(at, RunLine::of(&run).judged(decision));
            }
            Err(error) => unreadable.push(error),
        });
        rows.extend(some_rows.into_values());
        lines.extend(some_lines.into_values());
    }
    rows.truncate(limit);
    lines.truncate(limit);
    for error in &unreadable {
        writeln!(errors, "{} {}", "warning:".yellow(), in_one_line(error))?;
    }
    match args.format {
        Format::Text if rows.is_empty() && !args.failed => return Err(FindError::Empty.into()),
        Format::Text => print(&rows)?,
        Format::Json => json::document(&lines)?,
        Format::Jsonl => lines.iter().try_for_each(json::line)?,
    }
    Ok(exit::SUCCESS)
}

/// Whether a run counts as failed: by what was decided about it, else by what happened.
fn is_failed(run: &Session, verdicts: &Verdicts) -> bool {
    match verdicts.verdict([run.entry.id]) {
        Verdict::Right => false,
        Verdict::Wrong => true,
        Verdict::Unjudged => !failures(run).is_empty(),
    }
}

fn row(run: &Session, verdicts: &Verdicts) -> [String; 8] {
    let mut status = status(run);
    let verdict = verdicts.verdict([run.entry.id]);
    if verdict != Verdict::Unjudged {
        status.push_str(&format!(", judged {verdict}"));
    }
    let calls = || run.steps.iter().filter(|step| step.tool().is_some());
    let started = run.entry.started;
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
        status,
    ]
}

fn print(rows: &[[String; 8]]) -> std::io::Result<()> {
    if rows.is_empty() {
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
    table::print(&mut anstream::stdout().lock(), heading, rows)
}
