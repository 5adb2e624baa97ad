//! `why`: the chain of steps whose values flow into one.

use crate::cli::understand::{Form, Why as Args};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::escape::text;
use crate::render::json;
use crate::render::short;
use crate::render::words::{answers, asks, count, head, is_answered, label};
use agent_trace_analysis::why::{self, Flow, Likeness, Link, Origin, Part, Source, Why};
use agent_trace_model::story::Story;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

/// Characters of arguments and of results.
const SHOWN: usize = 80;

pub(crate) fn run(args: &Args, config: &Config) -> Result<u8, CommandError> {
    let story = query::story(config, &args.run)?;
    let Some(why) = why::of(&story, args.step) else {
        return Err(CommandError::Usage {
            what: format!(
                "run {} has no step {}: it has {}",
                short(story.id),
                args.step,
                count(story.steps.len(), "step")
            ),
            hint: "`agent-trace show RUN -n` prints the numbers of the steps",
        });
    };
    match args.format {
        Form::Text => print(&mut anstream::stdout().lock(), &story, &why)?,
        Form::Json => json::document(&Document {
            run: story.id.to_string(),
            why: &why,
        })?,
    }
    Ok(exit::SUCCESS)
}

#[derive(Serialize)]
struct Document<'a> {
    run: String,
    #[serde(flatten)]
    why: &'a Why,
}

fn print(out: &mut impl Write, story: &Story, why: &Why) -> io::Result<()> {
    writeln!(out, "{}", head(story))?;
    why.chain
        .iter()
        .try_for_each(|link| one(out, story, link, why.is_complete()))?;
    if why.more > 0 {
        let more = count(why.more, "more step");
        writeln!(out, "\n{more} of the chain are left out")?;
    }
    let mut lacks = Vec::new();
    if why.not_whole > 0 {
        let messages = count(why.not_whole, "message");
        lacks.push(format!("{messages} before this step not kept as a whole"));
    }
    if !why.not_recorded.is_empty() {
        let servers = text(why.not_recorded.join(", ").as_bytes(), 200);
        lacks.push(format!(
            "not all that went to and from {servers} was recorded"
        ));
    }
    if !lacks.is_empty() {
        let what = format!("{}: a value may have been there", lacks.join("; "));
        writeln!(out, "\n{}", what.yellow())?;
    }
    Ok(())
}

fn one(out: &mut impl Write, story: &Story, link: &Link, complete: bool) -> io::Result<()> {
    let Some(step) = story.step(link.step) else {
        return Ok(());
    };
    let number = format!("step {}", link.step);
    let mut line = asks(story, step, SHOWN);
    if is_answered(step) {
        line = format!("{line} = {}", answers(story, step, SHOWN));
    }
    writeln!(out, "\n{} {line}", number.bold())?;
    for flow in &link.flows {
        let part = match flow.part {
            Part::Arguments => String::new(),
            part => format!("{} ", part.as_str()),
        };
        let at = text(flow.at.to_string().as_bytes(), 0);
        let value = text(flow.value.as_bytes(), 0);
        writeln!(out, "    {part}{at}: {}", value.bold())?;
        source(out, story, flow, complete)?;
    }
    if link.more > 0 {
        writeln!(out, "    and {}", count(link.more, "more value"))?;
    }
    if link.flows.is_empty() && link.common == 0 {
        writeln!(out, "    {}", "it was given no values".dimmed())?;
    }
    if link.common > 0 {
        let common = count(link.common, "value");
        let what =
            format!("{common} not traced: true, false, null, 0, 1 and the like are everywhere");
        writeln!(out, "    {}", what.dimmed())?;
    }
    Ok(())
}

fn source(out: &mut impl Write, story: &Story, flow: &Flow, complete: bool) -> io::Result<()> {
    let origin = match &flow.source {
        Source::Before(origin) => origin,
        Source::Nowhere => {
            let by = match flow.part {
                Part::Question => "from the server itself",
                _ => "from the assistant or the user",
            };
            let why = match complete {
                true => format!("{by}: it appeared nowhere before"),
                false => format!("not in what was recorded before: {by}, or from what is missing"),
            };
            return writeln!(out, "        {why}");
        }
        Source::NotSearched => {
            let why = "not found: no whole value before is the same, and not all texts were \
                       searched for it, since that would take too long";
            return writeln!(out, "        {}", why.yellow());
        }
        Source::TooShort => {
            let why = "too short to be traced: it did not appear under this name before";
            return writeln!(out, "        {}", why.dimmed());
        }
    };
    let named = story
        .steps
        .get(origin.step - 1)
        .map(|step| label(story, step));
    let at = text(origin.origin_at.to_string().as_bytes(), 0);
    let arrow = "←".cyan();
    let place = format!("step {} {}", origin.step, named.unwrap_or_default());
    writeln!(
        out,
        "        {arrow} {place}, {} {at}{}",
        origin.origin.as_str(),
        remark(origin)
    )?;
    let quote = text(origin.quote.as_bytes(), 0);
    writeln!(out, "          {}", format!("\"{quote}\"").dimmed())
}

fn remark(origin: &Origin) -> &'static str {
    match (origin.origin, origin.likeness) {
        (_, Likeness::Word) => " (it may stand there by chance)",
        (Part::Arguments, _) => " (brought in there by the assistant or the user)",
        (Part::Answer, _) => " (answered by the assistant or the user)",
        (Part::Definition, _) => " (what the server says of itself)",
        _ => "",
    }
}
