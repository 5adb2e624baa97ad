//! `show`: print what happened in a run.

use crate::cli::{Format, Show};
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::render::escape::text;
use crate::render::json::{self, RunLine, StepLine};
use crate::render::table::{self, Align};
use crate::render::{lines, reason, short, status, summary, time};
use agent_trace_model::{Ending, Stream};
use agent_trace_store::journal::{Bodies, Flags};
use agent_trace_store::trace::{Run, Runs};
use agent_trace_wire::frame::Framing;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

pub(crate) fn run(args: &Show, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let run = store.open(&store.find(&args.run)?)?;
    if let Some(number) = args.frame {
        return frame(&run, number);
    }
    let mut out = anstream::stdout().lock();
    if args.frames {
        frames(&mut out, &run, args.format)?;
    } else if args.summary {
        let lines = summary::of(&run);
        match args.format {
            Format::Text => summary::print(&mut out, &lines)?,
            Format::Json => json::document(&lines)?,
            Format::Jsonl => lines.iter().try_for_each(json::line)?,
        }
    } else {
        match args.format {
            Format::Text => steps(&mut out, &run, args)?,
            Format::Json => {
                let steps = run.steps.iter().map(|step| StepLine::of(&run, step));
                let errors = run
                    .errors
                    .iter()
                    .map(|line| String::from_utf8_lossy(&line.payload));
                json::line(&Document {
                    run: RunLine::of(&run),
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

fn steps(out: &mut impl Write, run: &Run, args: &Show) -> io::Result<()> {
    head(out, run)?;
    let options = lines::Options {
        limit: args.string_limit,
        numbers: args.numbers,
        stderr: args.stderr,
    };
    lines::print(out, run, options)?;
    foot(out, run, args)
}

/// What the run is, before its steps.
fn head(out: &mut impl Write, run: &Run) -> io::Result<()> {
    let header = &run.entry.header;
    let names = format!(
        "{} → {}",
        text(run.client().as_bytes(), 40),
        text(run.server().as_bytes(), 40)
    );
    let started = time::date(header.started);
    writeln!(
        out,
        "{} {} {names}, {started}",
        "run".dimmed(),
        short(run.entry.id).bold()
    )?;
    let command: Vec<String> = run
        .opening
        .command
        .iter()
        .map(|word| text(word.as_bytes(), 0))
        .collect();
    writeln!(out, "{} {}", "    command:".dimmed(), command.join(" "))?;
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

/// How it ended and what is missing, after its steps.
fn foot(out: &mut impl Write, run: &Run, args: &Show) -> io::Result<()> {
    let status = status(run);
    let status = if run.failures().is_empty() {
        status
    } else {
        status.red().to_string()
    };
    writeln!(out, "{} {status}{}", "end".dimmed(), ending(run))?;
    // One reason is in the line above.
    for failure in run.failures().iter().skip(1) {
        writeln!(out, "    {} {}", "failed:".red(), reason(failure))?;
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

fn ending(run: &Run) -> String {
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

/// Writes the recorded bytes of one frame.
fn frame(run: &Run, number: u64) -> Result<u8, CommandError> {
    let records = run
        .frames
        .iter()
        .map(|frame| &frame.record)
        .chain(&run.errors);
    let record = records
        .into_iter()
        .find(|record| record.envelope.sequence == number)
        .ok_or_else(|| CommandError::Usage {
            what: format!("run {} has no frame {number}", short(run.entry.id)),
            hint: "`agent-trace show RUN --frames` lists them with their numbers",
        })?;
    let mut out = io::stdout().lock();
    out.write_all(&record.payload)?;
    out.flush()?;
    Ok(exit::SUCCESS)
}

/// One frame in a list.
#[derive(Serialize)]
struct FrameLine {
    frame: u64,
    time: String,
    stream: Stream,
    framing: &'static str,
    /// On the wire.
    length: u64,
    /// In the journal.
    recorded: usize,
    redacted: usize,
    flags: Vec<&'static str>,
}

fn frames(out: &mut impl Write, run: &Run, format: Format) -> Result<(), CommandError> {
    let mut records: Vec<_> = run
        .frames
        .iter()
        .map(|frame| &frame.record)
        .chain(&run.errors)
        .collect();
    records.sort_by_key(|record| record.envelope.sequence);
    let lines: Vec<FrameLine> = records
        .into_iter()
        .map(|record| {
            let envelope = &record.envelope;
            FrameLine {
                frame: envelope.sequence,
                time: time::rfc3339(envelope.wall),
                stream: envelope.stream,
                framing: match envelope.framing {
                    Framing::Newline => "newline",
                    Framing::ContentLength => "content-length",
                    Framing::Event => "event",
                    Framing::Body => "body",
                    Framing::Stray => "stray",
                },
                length: envelope.length,
                recorded: record.payload.len(),
                redacted: envelope.spans.len(),
                flags: flags(envelope.flags),
            }
        })
        .collect();
    match format {
        Format::Text => {}
        Format::Json => return Ok(json::document(&lines)?),
        Format::Jsonl => return Ok(lines.iter().try_for_each(json::line)?),
    }
    let rows: Vec<[String; 7]> = lines
        .iter()
        .map(|line| {
            let stream = match line.stream {
                Stream::ClientToServer => "client",
                Stream::ServerToClient => "server",
                Stream::Stderr => "stderr",
            };
            [
                line.frame.to_string(),
                line.time.clone(),
                stream.into(),
                line.framing.into(),
                line.length.to_string(),
                line.redacted.to_string(),
                line.flags.join(" "),
            ]
        })
        .collect();
    use Align::{Left, Right};
    let heading = [
        ("FRAME", Right),
        ("TIME", Left),
        ("FROM", Left),
        ("FRAMING", Left),
        ("BYTES", Right),
        ("REDACTED", Right),
        ("FLAGS", Left),
    ];
    Ok(table::print(out, heading, &rows)?)
}

fn flags(flags: Flags) -> Vec<&'static str> {
    let names = [
        (Flags::CUT, "cut"),
        (Flags::INCOMPLETE, "incomplete"),
        (Flags::LOSSY, "lossy"),
        (Flags::BODIES_DIGESTED, "digested"),
        (Flags::UNDELIVERED, "undelivered"),
        (Flags::SPANS_CUT, "more-redacted"),
    ];
    names
        .into_iter()
        .filter(|(flag, _)| flags.has(*flag))
        .map(|(_, name)| name)
        .collect()
}
