//! `suspects`: which steps may have broken a run.
//!
//! - [`model`]: what a model says of it, where it is asked

mod model;

use crate::cli::understand::{Form, Suspects as Args};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Index, Opened};
use crate::render::escape::text;
use crate::render::json;
use crate::render::words::{answers, asks, count, head, is_answered};
use agent_trace_analysis::suspects::judge::Judged;
use agent_trace_analysis::suspects::{self, Quote, Ranking, Reason, Side, Suspect};
use agent_trace_index::listing::RunsQuery;
use agent_trace_index::siblings::{MOST, choose};
use agent_trace_model::story::Story;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

/// Characters of arguments and of results.
const SHOWN: usize = 80;

/// Steps that are named by place alone.
const BASELINE: usize = 5;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let opened = query::open(config, &args.run)?;
    let (siblings, unseen) = match args.siblings.is_empty() {
        true => of_its_task(&opened, config)?,
        false => (siblings(args, &opened, config)?, 0),
    };
    let beside = siblings.iter().map(|s| (&s.story, s.run.failed()));
    let verdict = opened.run.verdict();
    let ranking = suspects::rank_beside(&opened.story, verdict, beside, unseen, args.most);
    let judged = args
        .judge
        .then(|| model::ask(config, &opened.story, &ranking));
    let judged = judged.transpose()?;
    match args.format {
        Form::Text => {
            let mut out = anstream::stdout().lock();
            print(&mut out, &opened.story, &ranking)?;
            if let Some(judged) = &judged {
                opinion(&mut out, judged)?;
            }
        }
        Form::Json => json::document(&Document {
            ranking: &ranking,
            judge: judged.as_ref(),
        })?,
    }
    Ok(exit::SUCCESS)
}

/// A ranking, and beside it what a model says.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    ranking: &'a Ranking,
    #[serde(skip_serializing_if = "Option::is_none")]
    judge: Option<&'a Judged>,
}

fn opinion(out: &mut impl Write, judged: &Judged) -> io::Result<()> {
    let step = format!("step {}", judged.step);
    writeln!(out, "\n{}: {}", "A model says".bold(), step.bold())?;
    writeln!(out, "  {}", text(judged.recorded.because.as_bytes(), 0))?;
    for quote in &judged.quotes {
        self::quote(out, quote)?;
    }
    if judged.dropped_quotes > 0 {
        let what = "of its quotes do not stand there, and are dropped";
        writeln!(out, "  {} {what}", judged.dropped_quotes.yellow())?;
    }
    writeln!(out, "  this is {}", judged.note)
}

/// The siblings that were named, each once.
fn siblings(args: &Args, run: &Opened, config: &Config) -> Result<Vec<Opened>, CommandError> {
    let mut known = vec![run.story.id];
    let mut siblings = Vec::new();
    for name in &args.siblings {
        let sibling = query::open(config, name)?;
        if !known.contains(&sibling.story.id) {
            known.push(sibling.story.id);
            siblings.push(sibling);
        }
    }
    Ok(siblings)
}

/// Runs of the same task, as many as are looked at, and how many more there are.
fn of_its_task(run: &Opened, config: &Config) -> Result<(Vec<Opened>, usize), CommandError> {
    if run.run.row.task.is_none() {
        return Ok((Vec::new(), 0));
    }
    let query = RunsQuery {
        task: run.run.row.task.clone(),
        ..query::runs(config, None)?
    };
    let index = Index::of(config.store())?;
    let chosen = choose(&run.run, index.runs(query, MOST)?.runs);
    let ids: Vec<_> = chosen.runs.iter().map(|run| run.row.id).collect();
    let found = index.find_all(&ids)?;
    // Others wait for the index while it is held here.
    drop(index);
    let mut unseen = chosen.left;
    let mut siblings = Vec::new();
    for found in found.into_iter().flatten() {
        match query::read(&config.store(), found) {
            Ok(sibling) => siblings.push(sibling),
            Err(_) => unseen += 1,
        }
    }
    Ok((siblings, unseen))
}

fn print(out: &mut impl Write, story: &Story, ranking: &Ranking) -> io::Result<()> {
    writeln!(out, "{}", head(story))?;
    for (place, suspect) in ranking.suspects.iter().enumerate() {
        one(out, story, place + 1, suspect)?;
    }
    if ranking.suspects.is_empty() {
        writeln!(out, "\nNothing was found against any step.")?;
    } else if ranking.more > 0 {
        writeln!(out, "\nand {}", count(ranking.more, "more step"))?;
    }
    if !ranking.missing.is_empty() {
        writeln!(
            out,
            "\n{}",
            "In all siblings that passed, and not in this run".bold()
        )?;
        for element in &ranking.missing {
            let called = &element.recorded;
            let parts = [
                Some(&called.server),
                called.method.as_ref(),
                called.target.as_ref(),
            ];
            let parts = parts.into_iter().flatten();
            let parts: Vec<String> = parts.map(|part| text(part.as_bytes(), SHOWN)).collect();
            writeln!(out, "  {}", parts.join(" "))?;
        }
    }
    writeln!(out, "\n{}", "Beside it".bold())?;
    writeln!(
        out,
        "  scores are sums of fixed weights: they order the steps of this run and are no probabilities"
    )?;
    let baseline = &ranking.baseline;
    let (first, last) = (numbers(&baseline.first), numbers(&baseline.last));
    writeln!(
        out,
        "  by place alone: {first} from the beginning, {last} from the end"
    )?;
    let siblings = &ranking.siblings;
    if siblings.passing > 0 || siblings.failing > 1 {
        let weak = if siblings.weak { ": few, so weak" } else { "" };
        let (passing, failing) = (siblings.passing, siblings.failing - 1);
        writeln!(
            out,
            "  compared with {passing} that passed and {failing} that failed{weak}"
        )?;
    }
    for left in &ranking.not_looked_at {
        writeln!(out, "  {} {}", left.count.yellow(), left.because)?;
    }
    Ok(())
}

fn one(out: &mut impl Write, story: &Story, place: usize, suspect: &Suspect) -> io::Result<()> {
    let Some(step) = story.step(suspect.step) else {
        return Ok(());
    };
    let mut line = asks(story, step, SHOWN);
    if is_answered(step) {
        line = format!("{line} = {}", answers(story, step, SHOWN));
    }
    let number = format!("{place}. step {}", suspect.step);
    let score = format!("score {:.2}", suspect.score.value());
    writeln!(out, "\n{}, {}\n   {line}", number.bold(), score.cyan())?;
    suspect
        .reasons
        .iter()
        .try_for_each(|reason| self::reason(out, reason))
}

fn reason(out: &mut impl Write, reason: &Reason) -> io::Result<()> {
    let weight = format!("{:+.2}", reason.weight.value());
    writeln!(out, "   {} {}", weight.cyan(), reason.because)?;
    reason
        .quotes
        .iter()
        .try_for_each(|quote| self::quote(out, quote))
}

fn quote(out: &mut impl Write, quote: &Quote) -> io::Result<()> {
    let run = quote
        .run
        .as_ref()
        .map(|run| format!("run {}, ", &run[..run.len().min(8)]));
    let side = match quote.message {
        Side::Request => "asked",
        Side::Response => "answered",
    };
    let pointer = text(quote.recorded.pointer.as_bytes(), 0);
    let at = format!(
        "{}step {} {side} {pointer}:",
        run.unwrap_or_default(),
        quote.step
    );
    writeln!(
        out,
        "         {} {}",
        at.dimmed(),
        text(quote.recorded.text.as_bytes(), 0)
    )
}

fn numbers(steps: &[usize]) -> String {
    let shown = steps.iter().take(BASELINE).map(ToString::to_string);
    let shown = shown.collect::<Vec<_>>().join(", ");
    if steps.is_empty() {
        "none".into()
    } else {
        shown
    }
}
