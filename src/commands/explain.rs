//! `explain`: a run in plain words.

use crate::cli::understand::{Explain as Args, Form};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Opened};
use crate::render::escape::text;
use crate::render::{json, words};
use agent_trace_analysis::explain::{self, Explanation, Judged, Point, Topic};
use agent_trace_analysis::timeline::Limits;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let Opened { run, story, .. } = query::open(config, &args.run)?;
    let judged = run.decision.as_ref().map(|decision| Judged {
        verdict: decision.verdict,
        by: decision.by,
        reason: &decision.reason,
    });
    let limits = Limits {
        slow: query::slow(config),
        ..Limits::default()
    };
    let explanation = explain::of(&story, judged, limits);
    match args.format {
        Form::Text => {
            let mut out = anstream::stdout().lock();
            writeln!(out, "{}", words::head(&story))?;
            print(&mut out, &explanation)?;
        }
        Form::Json => json::document(&Document {
            run: story.id.to_string(),
            explanation: &explanation,
        })?,
    }
    Ok(exit::SUCCESS)
}

#[derive(Serialize)]
struct Document<'a> {
    run: String,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

fn print(out: &mut impl Write, explanation: &Explanation) -> io::Result<()> {
    let mut topic = None;
    for point in &explanation.points {
        if topic.replace(point.topic) != Some(point.topic) {
            writeln!(out, "\n{}", heading(point.topic).bold())?;
        }
        writeln!(out, "  {}{}", text(point.text.as_bytes(), 0), steps(point))?;
        for quote in &point.quotes {
            let of = match quote.step {
                Some(step) => format!("step {step}, {}:", quote.of),
                None => format!("{}:", quote.of),
            };
            let said = text(quote.text.as_bytes(), 0);
            writeln!(out, "      {} {said}", of.dimmed())?;
        }
    }
    writeln!(out, "\n{}", "Look at".bold())?;
    for look in &explanation.look {
        let command = format!("agent-trace {}", text(look.command.as_bytes(), 0));
        writeln!(out, "  {}  {}", command.cyan(), look.because.dimmed())?;
    }
    Ok(())
}

fn heading(topic: Topic) -> &'static str {
    match topic {
        Topic::Judged => "Judged",
        Topic::Asked => "Asked",
        Topic::Failed => "Failed",
        Topic::Recovered => "Made good",
        Topic::Unanswered => "Unanswered",
        Topic::Lost => "Missing in the recording",
        Topic::Unknown => "Not known",
    }
}

/// ` [steps 4-6, 9 and 3 more]`
fn steps(point: &Point) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for step in &point.steps {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *step => *last = *step,
            _ => ranges.push((*step, *step)),
        }
    }
    if ranges.is_empty() {
        return String::new();
    }
    let told = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    let word = if point.steps.len() == 1 {
        "step"
    } else {
        "steps"
    };
    let told = told.collect::<Vec<_>>().join(", ");
    let more = match point.more_steps {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" {}", format!("[{word} {told}{more}]").dimmed())
}
