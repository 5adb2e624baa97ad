//! `show`: print what happened in a run.
//!
//! - [`frames`]: its frames
//! - [`http`]: the heads of its HTTP exchanges
//! - [`follow`]: what happens in it right now

mod follow;
mod frames;
mod http;

use crate::cli::{Format, Show};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Opened};
use crate::render;
use crate::render::escape::{self, text};
use crate::render::json::{self, RunDocument, StepLine};
use crate::render::{ending, lines, reason, standing, status, summary, verdict, words};
use agent_trace_analysis::outcomes::failures;
use agent_trace_index::filed;
use agent_trace_model::step::Step;
use agent_trace_model::story::{KeyKind, Session, Story};
use owo_colors::OwoColorize;
use std::io::{self, Write};

pub(crate) fn run(args: &Show, config: &Config) -> Result<u8, CommandError> {
    if args.follow {
        return follow::run(config, args);
    }
    let filter = query::filter(config, args.filter.as_deref())?;
    let Opened {
        run,
        story,
        sessions,
        findings,
        more_findings,
    } = query::open(config, &args.run)?;
    if let Some(number) = args.frame {
        return frames::one(&sessions, args.session.as_deref(), number);
    }
    let mut out = render::out();
    if args.frames {
        frames::list(&mut out, &sessions, args.format)?;
        out.flush()?;
        return Ok(exit::SUCCESS);
    }
    if args.http {
        http::list(&mut out, &story, args.format)?;
        out.flush()?;
        return Ok(exit::SUCCESS);
    }
    let codes = filed::codes(&findings);
    let matcher = filter
        .as_ref()
        .map(|filter| filter.over(&story, run.verdict()).with(&codes));
    let wanted = |step: &&Step| matcher.as_ref().is_none_or(|matcher| matcher.step(step));
    let steps = || story.steps.iter().filter(wanted);
    if args.summary {
        let lines = summary::of(steps());
        match args.format {
            Format::Text => summary::print(&mut out, &lines)?,
            Format::Json => json::document(&lines)?,
            Format::Jsonl => lines.iter().try_for_each(json::line)?,
        }
        out.flush()?;
        return Ok(exit::SUCCESS);
    }
    let line = |step| StepLine::of(&story, step);
    match args.format {
        Format::Text => {
            head(&mut out, &story)?;
            let options = lines::Options {
                found: &findings,
                ..options(args)
            };
            lines::print(&mut out, &story, steps(), options)?;
            foot(&mut out, &story, args)?;
            if more_findings > 0 {
                writeln!(out, "    {more_findings} findings are left out")?;
            }
            if let Some(decision) = &run.decision {
                writeln!(out, "    {}", verdict(decision))?;
            }
        }
        Format::Json => json::line(&RunDocument::of(
            &run,
            &story,
            steps().map(line).collect(),
            &findings,
        ))?,
        Format::Jsonl => steps().map(line).try_for_each(|line| json::line(&line))?,
    }
    out.flush()?;
    Ok(exit::SUCCESS)
}

fn options(args: &Show) -> lines::Options<'_> {
    lines::Options {
        cut: args.string_limit.into(),
        numbers: args.numbers,
        stderr: args.stderr,
        found: &[],
    }
}

/// What the run is, before its steps.
fn head(out: &mut impl Write, story: &Story) -> io::Result<()> {
    writeln!(out, "{}", words::head(story))?;
    if let Some(task) = &story.task {
        writeln!(out, "    {} {}", "task:".dimmed(), text(task.as_bytes(), 0))?;
    }
    for session in &story.sessions {
        let of = match story.sessions.len() {
            1 => String::new(),
            _ => format!("{} ", text(session.server.as_bytes(), 40).cyan()),
        };
        if session.transport == "http" {
            how_http(out, session, &of)?;
        } else if !session.command.is_empty() {
            let words = session.command.iter();
            let command: Vec<String> = words.map(|word| text(word.as_bytes(), 0)).collect();
            let command = command.join(" ");
            writeln!(out, "    {of}{} {command}", "command:".dimmed())?;
        }
        if !session.redacted {
            let what = "recorded without redaction: it may hold secrets";
            writeln!(out, "    {of}{}", what.yellow())?;
        }
        if session.digested {
            let what = "arguments and results were recorded as digests only";
            writeln!(out, "    {of}{what}")?;
        }
    }
    Ok(())
}

/// How client and server of an HTTP session reach each other.
fn how_http(out: &mut impl Write, session: &Session, of: &str) -> io::Result<()> {
    let place = |text: &Option<String>| escape::text(text.as_deref().unwrap_or("?").as_bytes(), 0);
    let (listen, upstream) = (place(&session.listen), place(&session.upstream));
    writeln!(out, "    {of}{} {listen} → {upstream}", "http:".dimmed())?;
    let mut about = Vec::new();
    if let Some(revision) = &session.revision {
        about.push(format!("MCP {}", text(revision.as_bytes(), 40)));
    }
    about.extend(session.key.map(|kind| match kind {
        KeyKind::McpSession => "tied together by a session id".into(),
        KeyKind::Endpoint => "tied together by an endpoint".into(),
        KeyKind::Caller => "what one caller asked".into(),
        KeyKind::Unknown => "tied together in a way that this version does not know".into(),
    }));
    if let Some(agent) = &session.user_agent {
        about.push(text(agent.as_bytes(), 80));
    }
    if !about.is_empty() {
        writeln!(out, "    {}", about.join(", "))?;
    }
    Ok(())
}

/// How it ended and what is missing, after its steps.
fn foot(out: &mut impl Write, story: &Story, args: &Show) -> io::Result<()> {
    let failures = failures(story);
    let status = status(story, &failures);
    let status = if failures.is_empty() {
        status
    } else {
        status.red().to_string()
    };
    let several = story.sessions.len() > 1;
    let how = match &story.sessions[..] {
        [session] => ending(session),
        _ => String::new(),
    };
    writeln!(out, "{} {status}{how}", "end".dimmed())?;
    // One reason is in the line above.
    for failure in failures.iter().skip(1) {
        writeln!(out, "    {} {}", "failed:".red(), reason(failure))?;
    }
    for session in &story.sessions {
        let of = match several {
            true => format!("{} ", text(session.server.as_bytes(), 40).cyan()),
            false => String::new(),
        };
        if several {
            let how = standing(session);
            writeln!(out, "    {of}{how}{}", ending(session))?;
        }
        missing(out, session, &of)?;
    }
    let lines: usize = story.sessions.iter().map(|s| s.stderr.len()).sum();
    if !args.stderr && lines > 0 {
        let lines = words::count(lines, "line");
        writeln!(out, "    {lines} on standard error (--stderr shows them)")?;
    }
    Ok(())
}

/// What is not there of a session.
fn missing(out: &mut impl Write, session: &Session, of: &str) -> io::Result<()> {
    let mut damaged = Vec::new();
    if session.missing > 0 {
        damaged.push(format!(
            "{} missing",
            words::count(session.missing, "record")
        ));
    }
    if session.damaged > 0 {
        let unread = words::count(session.damaged, "byte");
        damaged.push(format!("{unread} cannot be read"));
    }
    damaged.extend(session.unreadable.iter().cloned());
    if session.clipped {
        let gone = "its beginning is not kept any more";
        writeln!(out, "    {of}{} {gone}", "clipped:".yellow())?;
    }
    for what in damaged {
        let what = text(what.as_bytes(), 0);
        writeln!(out, "    {of}{} {what}", "damaged:".yellow())?;
    }
    Ok(())
}
