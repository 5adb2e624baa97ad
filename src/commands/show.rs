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
use crate::render::escape::{self, text};
use crate::render::json::{self, RunLine, StepLine};
use crate::render::{failures, lines, reason, short, status, summary, time, verdict};
use agent_trace_model::Ending;
use agent_trace_store::journal::Bodies;
use agent_trace_store::journal::header::KeyKind;
use agent_trace_store::state::State;
use agent_trace_store::trace::{Session, Sessions};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

pub(crate) fn run(args: &Show, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let entry = store.find(&args.run)?;
    if args.follow {
        return follow::run(&store, &entry, args);
    }
    let run = store.open(&entry)?;
    if let Some(number) = args.frame {
        return frames::one(&run, number);
    }
    let verdicts = State::of(&store).verdicts()?;
    let mut out = anstream::stdout().lock();
    if args.frames {
        frames::list(&mut out, &run, args.format)?;
    } else if args.http {
        http::list(&mut out, &run, args.format)?;
    } else if args.summary {
        let lines = summary::of(&run);
        match args.format {
            Format::Text => summary::print(&mut out, &lines)?,
            Format::Json => json::document(&lines)?,
            Format::Jsonl => lines.iter().try_for_each(json::line)?,
        }
    } else {
        match args.format {
            Format::Text => {
                steps(&mut out, &run, args)?;
                if let Some(decision) = verdicts.decision([run.entry.id]) {
                    writeln!(out, "    {}", verdict(decision))?;
                }
            }
            Format::Json => {
                let steps = run.steps.iter().map(|step| StepLine::of(&run, step));
                let errors = run
                    .errors
                    .iter()
                    .map(|line| String::from_utf8_lossy(&line.payload));
                json::line(&Document {
                    run: RunLine::of(&run).judged(verdicts.decision([run.entry.id])),
                    steps: steps.collect(),
                    stderr: errors.collect(),
                })?;
            }
            Format::Jsonl => {
                run.steps
                    .iter()
                    .try_for_each(|step| json::line(&StepLine::of(&run, step)))?;
            }
        }
    }
    Ok(exit::SUCCESS)
}

/// A whole run.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    run: RunLine,
    steps: Vec<StepLine<'a>>,
    stderr: Vec<Cow<'a, str>>,
}

fn steps(out: &mut impl Write, run: &Session, args: &Show) -> io::Result<()> {
    head(out, run)?;
    lines::print(out, run, options(args))?;
    foot(out, run, args)
}

fn options(args: &Show) -> lines::Options {
    lines::Options {
        limit: args.string_limit,
        numbers: args.numbers,
        stderr: args.stderr,
    }
}

/// What the run is, before its steps.
fn head(out: &mut impl Write, run: &Session) -> io::Result<()> {
    let header = &run.entry.header;
    let names = format!(
        "{} → {}",
        text(run.client().as_bytes(), 40),
        text(run.server().as_bytes(), 40)
    );
    let started = time::date(run.entry.started);
    writeln!(
        out,
        "{} {} {names}, {started}",
        "run".dimmed(),
        short(run.entry.id).bold()
    )?;
    if run.entry.http {
        how_http(out, run)?;
    } else {
        let words = run.opening.command.iter();
        let command: Vec<String> = words.map(|word| text(word.as_bytes(), 0)).collect();
        writeln!(out, "{} {}", "    command:".dimmed(), command.join(" "))?;
    }
    if !header.redaction.on {
        writeln!(
            out,
            "    {}",
            "recorded without redaction: it may hold secrets".yellow()
        )?;
    }
    if header.bodies == Bodies::Digest {
        writeln!(
            out,
            "    arguments and results were recorded as digests only"
        )?;
    }
    Ok(())
}

/// How client and server of an HTTP session reach each other.
fn how_http(out: &mut impl Write, run: &Session) -> io::Result<()> {
    let place = |text: &Option<String>| escape::text(text.as_deref().unwrap_or("?").as_bytes(), 0);
    let opening = &run.opening;
    let (listen, upstream) = (place(&opening.listen), place(&opening.upstream));
    writeln!(out, "{} {listen} → {upstream}", "    http:".dimmed())?;
    let mut about = Vec::new();
    if let Some(revision) = run.revision() {
        about.push(format!("MCP {}", text(revision.as_bytes(), 40)));
    }
    about.extend(run.key_kind().map(|kind| match kind {
        KeyKind::McpSession => "tied together by a session id".into(),
        KeyKind::Endpoint => "tied together by an endpoint".into(),
        KeyKind::Caller => "what one caller asked".into(),
        KeyKind::Unknown => "tied together in a way that this version does not know".into(),
    }));
    if let Some(agent) = &opening.user_agent {
        about.push(text(agent.as_bytes(), 80));
    }
    if !about.is_empty() {
        writeln!(out, "    {}", about.join(", "))?;
    }
    Ok(())
}

/// How it ended and what is missing, after its steps.
fn foot(out: &mut impl Write, run: &Session, args: &Show) -> io::Result<()> {
    let status = status(run);
    let status = if failures(run).is_empty() {
        status
    } else {
        status.red().to_string()
    };
    writeln!(out, "{} {status}{}", "end".dimmed(), ending(run))?;
    // One reason is in the line above.
    for failure in failures(run).iter().skip(1) {
        writeln!(out, "    {} {}", "failed:".red(), reason(failure))?;
    }
    if run.is_clipped() {
        let gone = "its beginning is not kept any more";
        writeln!(out, "    {} {gone}", "clipped:".yellow())?;
    }
    if run.missing > 0 {
        writeln!(
            out,
            "    {} {} records are missing",
            "damaged:".yellow(),
            run.missing
        )?;
    }
    let unreadable: u64 = run.damage.iter().map(|damage| damage.bytes).sum();
    if unreadable > 0 {
        writeln!(
            out,
            "    {} {unreadable} bytes cannot be read",
            "damaged:".yellow()
        )?;
    }
    for error in &run.unreadable {
        writeln!(out, "    {} {error}", "damaged:".yellow())?;
    }
    if !args.stderr && !run.errors.is_empty() {
        let lines = match run.errors.len() {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        };
        writeln!(out, "    {lines} on standard error (--stderr shows them)")?;
    }
    Ok(())
}

fn ending(run: &Session) -> String {
    let Some(end) = &run.end else {
        return String::new();
    };
    let end = &end.end;
    let how = match end.ending {
        Ending::ServerExited => "the server ended by itself",
        Ending::ClientClosed => "the client closed the session",
        Ending::GraceExpired => "the server did not end when the client closed, and was ended",
        Ending::ClientStoppedReading => "the client stopped reading",
        Ending::Signalled => "a signal ended it",
        Ending::ClientDied => "the client died",
        Ending::NotStarted => "the server could not be started",
        Ending::Idle => "nothing was heard of the client for a long time",
        Ending::ServerForgot => "the server does not know the session any more",
        Ending::RelayStopped => "the relay was stopped",
    };
    let status = match (end.exit_code, end.signal) {
        (Some(code), _) => format!(", exit status {code}"),
        (None, Some(signal)) => format!(", ended by signal {signal}"),
        (None, None) => String::new(),
    };
    let error = end
        .error
        .as_deref()
        .map(|error| format!(": {}", text(error.as_bytes(), 0)));
    format!(" ({how}{status}{})", error.unwrap_or_default())
}
