//! A run in the manner of strace: one line for each step.
//!
//! ```text
//! 12:03:01.512 github tools/call get_issue({"number":7}) = {"title":…} <0.212>
//! ```
//! The word after the time is who was asked: the server, or for a request of the server the
//! client.

use super::escape::text;
use super::time::{Clock, bytes, seconds};
use agent_trace_model::{Outcome, Stream};
use agent_trace_store::journal::Flags;
use agent_trace_store::trace::run::Run;
use agent_trace_store::trace::step::{Step, StepKind};
use agent_trace_wire::message::{member, string};
use owo_colors::OwoColorize;
use std::io::{self, Write};

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Characters of arguments and of results; 0 is all.
    pub(crate) limit: usize,
    pub(crate) numbers: bool,
    pub(crate) stderr: bool,
}

/// Prints a run's steps, and between them its gaps and, if asked for, its standard error.
pub(crate) fn print(out: &mut impl Write, run: &Run, options: Options) -> io::Result<()> {
    let printer = Printer {
        clock: Clock::local(),
        server: text(run.server().as_bytes(), 40),
        client: text(run.client().as_bytes(), 40),
        run,
        options,
    };
    let mut others: Vec<(u64, String)> = Vec::new();
    for (envelope, gap) in &run.gaps {
        let what = format!(
            "-- {} not recorded: {}",
            bytes(gap.bytes),
            text(gap.reason.as_bytes(), 80)
        );
        others.push((envelope.wall, what.yellow().to_string()));
    }
    if options.stderr {
        for record in &run.errors {
            let line = text(record.payload.trim_ascii_end(), options.limit);
            let line = format!("{} stderr: {line}", printer.server.cyan());
            others.push((record.envelope.wall, line));
        }
    }
    others.sort_by_key(|(wall, _)| *wall);
    let mut others = others.into_iter().peekable();
    for step in &run.steps {
        while let Some((wall, line)) = others.next_if(|(wall, _)| *wall <= step.wall) {
            printer.line(out, wall, None, &line)?;
        }
        printer.line(out, step.wall, Some(step.number), &printer.step(step))?;
    }
    others.try_for_each(|(wall, line)| printer.line(out, wall, None, &line))
}

struct Printer<'a> {
    run: &'a Run,
    options: Options,
    clock: Clock,
    server: String,
    client: String,
}

impl Printer<'_> {
    fn line(
        &self,
        out: &mut impl Write,
        wall: u64,
        number: Option<usize>,
        line: &str,
    ) -> io::Result<()> {
        if self.options.numbers {
            let number = number.map(|n| n.to_string()).unwrap_or_default();
            write!(out, "{number:>5} ")?;
        }
        writeln!(out, "{} {line}", self.clock.time(wall).dimmed())
    }

    fn step(&self, step: &Step) -> String {
        let frames = &self.run.frames;
        let asked = if step.is_clients() {
            &self.server
        } else {
            &self.client
        };
        let asked = asked.cyan();
        let shown = |json: Option<&[u8]>| text(json.unwrap_or_default(), self.options.limit);
        match step.kind {
            StepKind::Request => {
                let arguments = shown(step.arguments(frames));
                format!(
                    "{asked} {}({arguments}) = {}",
                    self.call(step),
                    self.answer(step)
                )
            }
            StepKind::Notification => {
                format!(
                    "{asked} {}({})",
                    self.call(step),
                    shown(step.arguments(frames))
                )
            }
            StepKind::Answer => {
                let what = text(step.opened.text(frames), self.options.limit);
                format!("{asked} answer to no known request: {}", what.yellow())
            }
            StepKind::Other => {
                let bytes = step.opened.text(frames).trim_ascii_end();
                let what = text(bytes, self.options.limit);
                format!("{asked} not a message: {}{what}", self.flaws(step).yellow())
            }
            StepKind::Stray => {
                let stream = match step.from {
                    Stream::ClientToServer => "stdin",
                    Stream::ServerToClient | Stream::Stderr => "stdout",
                };
                let bytes = step.opened.text(frames).trim_ascii_end();
                let what = text(bytes, self.options.limit);
                format!(
                    "{} {stream}: {}{what}",
                    self.server.cyan(),
                    self.flaws(step).yellow()
                )
            }
        }
    }

    /// `tools/call get_issue`
    fn call(&self, step: &Step) -> String {
        let method = text(step.method.as_deref().unwrap_or("?").as_bytes(), 80);
        match &step.target {
            Some(target) => format!("{} {}", method, text(target.as_bytes(), 80).bold()),
            None => method.bold().to_string(),
        }
    }

    fn answer(&self, step: &Step) -> String {
        let frames = &self.run.frames;
        let json = step.answer(frames).unwrap_or_default();
        let shown = || text(json, self.options.limit);
        let what = match step.outcome {
            Outcome::Ok => shown(),
            Outcome::Error => format!("error {}", error(json, self.options.limit))
                .red()
                .to_string(),
            Outcome::ToolError => format!("tool error {}", shown()).red().to_string(),
            Outcome::Unanswered => "? (unanswered)".red().to_string(),
            Outcome::Cancelled if step.closed.is_some() => {
                format!("? (cancelled; late: {})", shown())
                    .yellow()
                    .to_string()
            }
            Outcome::Cancelled => "? (cancelled)".yellow().to_string(),
            Outcome::NotRecorded => "? (not recorded)".yellow().to_string(),
            Outcome::Pending => "? (pending)".yellow().to_string(),
        };
        match step.duration {
            Some(duration) => format!("{what} {}", format!("<{}>", seconds(duration)).dimmed()),
            None => what,
        }
    }

    /// What is wrong with the frame of a step, in words.
    fn flaws(&self, step: &Step) -> String {
        let envelope = &self.run.frames[step.opened.frame].record.envelope;
        let mut flaws = String::new();
        if envelope.flags.has(Flags::CUT) {
            flaws.push_str(&format!("[{} in all] ", bytes(envelope.length)));
        }
        if envelope.flags.has(Flags::LOSSY) {
            flaws.push_str("[recorded with a loss] ");
        }
        if envelope.flags.has(Flags::INCOMPLETE) {
            flaws.push_str("[incomplete] ");
        }
        if envelope.flags.has(Flags::UNDELIVERED) {
            flaws.push_str("[not delivered] ");
        }
        flaws
    }
}

/// `-32602 "Unknown tool"`
fn error(json: &[u8], limit: usize) -> String {
    let code = member(json, "code").unwrap_or_default();
    match member(json, "message").and_then(string) {
        Some(message) => format!("{} \"{}\"", text(code, 20), text(message.as_bytes(), limit)),
        None => text(json, limit),
    }
}
