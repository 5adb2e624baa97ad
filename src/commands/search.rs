//! `search`: where a text was recorded.

use crate::cli::{Format, Search as Args};
use crate::commands::runs::{more, warn};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Index, Opened};
use crate::render::escape;
use crate::render::json::{self, StepLine};
use crate::render::lines;
use crate::render::words::Cut;
use crate::render::{short, time};
use agent_trace_analysis::filter::Filter;
use agent_trace_index::filed;
use agent_trace_index::listing::RunsQuery;
use agent_trace_model::RunId;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    if args.text.trim().is_empty() {
        return Err(CommandError::Usage {
            what: "the text to look for is empty".into(),
            hint: "`agent-trace runs FILTER` lists runs without a text",
        });
    }
    // A mistake in it is to be pointed at where the user wrote it.
    query::filter(config, args.filter.as_deref())?;
    let wanted = wanted(args);
    let place = query::filter(config, Some(&wanted))?.unwrap_or_default();
    let text = match &args.filter {
        Some(filter) => format!("{wanted} & ({filter})"),
        None => wanted,
    };
    let query = RunsQuery {
        last: args.last,
        cursor: query::cursor(args.after.as_deref())?,
        ..query::runs(config, Some(&text))?
    };
    let Some(filter) = query::filter(config, Some(&text))? else {
        return Ok(exit::SUCCESS);
    };
    let index = Index::of(config.store())?;
    let page = index.runs(query, args.limit)?;
    let ids: Vec<RunId> = page.runs.iter().map(|run| run.row.id).collect();
    let found = index.find_all(&ids)?;
    drop(index);
    warn(&page.warnings)?;
    let mut out = anstream::stdout().lock();
    let mut hits = Vec::new();
    // One that is not there any more was removed meanwhile.
    for found in found.into_iter().flatten() {
        let opened = query::read(&config.store(), found)?;
        let (run, story) = (&opened.run, &opened.story);
        if args.format == Format::Text {
            let cut = Cut {
                limit: args.string_limit,
                around: Some(&place),
            };
            print(&mut out, &opened, &filter, cut)?;
            continue;
        }
        let codes = filed::codes(&opened.findings);
        for step in filter.over(story, run.verdict()).with(&codes).steps() {
            // As text: a value would not keep the digits of recorded numbers.
            let hit = serde_json::value::to_raw_value(&Hit {
                run: run.row.id.to_string(),
                step: StepLine::of(story, step),
            });
            hits.push(hit.map_err(io::Error::from)?);
        }
    }
    match args.format {
        Format::Text => {}
        Format::Json => json::line(&hits)?,
        Format::Jsonl => hits.iter().try_for_each(json::line)?,
    }
    if args.format == Format::Text && ids.is_empty() && page.cursor.is_none() {
        let text = escape::text(args.text.as_bytes(), 60);
        let words = if args.part { "" } else { " as whole words" };
        writeln!(anstream::stderr(), "nothing found of {text}{words}")?;
    }
    more(page.cursor)?;
    Ok(exit::SUCCESS)
}

/// A step that was found.
#[derive(Serialize)]
struct Hit<'a> {
    run: String,
    #[serde(flatten)]
    step: StepLine<'a>,
}

/// The text as a filter.
fn wanted(args: &Args) -> String {
    let operator = if args.part { "~b" } else { "~w" };
    let quoted = args.text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{operator} \"{quoted}\"")
}

fn print(out: &mut impl Write, opened: &Opened, filter: &Filter, cut: Cut<'_>) -> io::Result<()> {
    let (run, story) = (&opened.run, &opened.story);
    let (id, started) = (short(run.row.id), time::date(run.row.started));
    writeln!(out, "{} {} {started}", "run".dimmed(), id.bold())?;
    let options = lines::Options {
        cut,
        numbers: true,
        stderr: false,
        found: &[],
    };
    let codes = filed::codes(&opened.findings);
    let matcher = filter.over(story, run.verdict()).with(&codes);
    lines::steps(out, story, matcher.steps(), options)
}
