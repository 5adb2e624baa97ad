//! A run in the manner of strace: one line for each step.
//!
//! ```text
//! 12:03:01.512 github tools/call get_issue({"number":7}) = {"title":…} <0.212>
//! ```
//! The word after the time is who was asked: the server, or for a request of the server the
//! client.

use super::escape::text;
use super::finish;
use super::time::{Clock, bytes, seconds};
use agent_trace_model::{Outcome, Stream};
use agent_trace_store::journal::Flags;
use agent_trace_store::trace::Exchange;
use agent_trace_store::trace::session::Session;
use agent_trace_store::trace::step::{Place, Step, StepKind};
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
pub(crate) fn print(out: &mut impl Write, run: &Session, options: Options) -> io::Result<()> {
    let clock = Clock::local();
    let printer = Printer::new(run, options, &clock);
    let mut others: Vec<(u64, String)> = Vec::new();
    let gaps = 0..run.gaps.len();
    others.extend(gaps.map(|at| (run.gaps[at].0.wall, printer.gap(at))));
    if options.stderr {
        let errors = 0..run.errors.len();
        others.extend(errors.map(|at| (run.errors[at].envelope.wall, printer.error(at))));
    }
    others.sort_by_key(|(wall, _)| *wall);
    let mut others = others.into_iter().peekable();
    for step in &run.steps {
        while let Some((wall, line)) = others.next_if(|(wall, _)| *wall <= step.wall) {
            printer.line(out, wall, None, &line)?;
        }
        printer.whole(out, step)?;
    }
    others.try_for_each(|(wall, line)| printer.line(out, wall, None, &line))
}

/// Prints pieces of a run.
pub(crate) struct Printer<'a> {
    run: &'a Session,
    options: Options,
    clock: &'a Clock,
    server: String,
    client: String,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(run: &'a Session, options: Options, clock: &'a Clock) -> Self {
        Self {
            clock,
            server: text(run.server().as_bytes(), 40),
            client: text(run.client().as_bytes(), 40),
            run,
            options,
        }
    }

    pub(crate) fn line(
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

    /// A step with what came of it.
    pub(crate) fn whole(&self, out: &mut impl Write, step: &Step) -> io::Result<()> {
        self.line(out, step.wall, Some(step.number), &self.step(step))
    }

    /// A step that is still going on.
    pub(crate) fn unfinished(&self, out: &mut impl Write, step: &Step) -> io::Result<()> {
        let line = format!("{} {}", self.asks(step), "<unfinished ...>".dimmed());
        self.line(out, step.wall, Some(step.number), &line)
    }

    /// A gap, by its position.
    pub(crate) fn gap(&self, at: usize) -> String {
        let gap = &self.run.gaps[at].1;
        let reason = text(gap.reason.as_bytes(), 80);
        let what = format!("-- {} not recorded: {reason}", bytes(gap.bytes));
        what.yellow().to_string()
    }

    /// A line of standard error, by its position.
    pub(crate) fn error(&self, at: usize) -> String {
        let payload = self.run.errors[at].payload.trim_ascii_end();
        let line = text(payload, self.options.limit);
        format!("{} stderr: {line}", self.server.cyan())
    }

    /// `github tools/call get_issue({"number":7})`
    fn asks(&self, step: &Step) -> String {
        let asked = if step.is_clients() {
            &self.server
        } else {
            &self.client
        };
        let asked = asked.cyan();
        if step.kind == StepKind::Http {
            return format!("{asked} {}", self.call(step));
        }
        let arguments = step.arguments(&self.run.frames).unwrap_or_default();
        let arguments = text(arguments, self.options.limit);
        format!("{asked} {}({arguments})", self.call(step))
    }

    fn step(&self, step: &Step) -> String {
        let asked = if step.is_clients() {
            &self.server
        } else {
            &self.client
        };
        let shown = || {
            let bytes = step.request(&self.run.frames).trim_ascii_end();
            text(bytes, self.options.limit)
        };
        let flaws = || self.flaws(step.opened.as_ref()).yellow().to_string();
        match step.kind {
            StepKind::Request => format!("{} = {}", self.asks(step), self.answer(step)),
            StepKind::Http => format!("{} = {}", self.asks(step), self.http(step)),
            // One that got through says no more than that.
            StepKind::Notification if step.outcome.is_failure() => {
                format!("{} = {}", self.asks(step), self.answer(step))
            }
            StepKind::Notification => self.asks(step),
            StepKind::Answer => format!(
                "{} answer to no known request: {}",
                asked.cyan(),
                shown().yellow()
            ),
            StepKind::Other => format!("{} not a message: {}{}", asked.cyan(), flaws(), shown()),
            StepKind::Stray => {
                let stream = match step.from {
                    _ if step.exchange > 0 => "event",
                    Stream::ClientToServer => "stdin",
                    Stream::ServerToClient | Stream::Stderr => "stdout",
                };
                format!("{} {stream}: {}{}", self.server.cyan(), flaws(), shown())
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
            Outcome::Error => format!("error {}", self.error_of(step, json))
                .red()
                .to_string(),
            Outcome::ToolError => format!("tool error {}", shown()).red().to_string(),
            Outcome::Denied => format!("denied {}", shown()).red().to_string(),
            Outcome::Crashed => "? (the server crashed)".red().to_string(),
            Outcome::Unanswered => "? (unanswered)".red().to_string(),
            Outcome::Cancelled if step.closed.is_some() && step.duration.is_some() => {
                format!("? (cancelled; late: {})", shown())
                    .yellow()
                    .to_string()
            }
            Outcome::Timeout if step.closed.is_some() && step.cancel_sent => {
                format!("? (timeout; late: {})", shown()).red().to_string()
            }
            Outcome::Timeout if step.closed.is_some() || step.status.is_some() => {
                format!("timeout {}", self.error_of(step, json))
                    .red()
                    .to_string()
            }
            Outcome::Timeout => "? (timeout)".red().to_string(),
            Outcome::Cancelled => "? (cancelled)".yellow().to_string(),
            Outcome::NotRecorded => "? (not recorded)".yellow().to_string(),
            Outcome::Pending => "? (pending)".yellow().to_string(),
        };
        format!("{what}{}", self.remarks(step))
    }

    /// What HTTP said to an exchange that is a step itself.
    fn http(&self, step: &Step) -> String {
        let exchange = self.run.exchanges.get(&step.exchange);
        let media = exchange.and_then(Exchange::content_type);
        let mut what = match step.status {
            Some(status) => format!("{status}"),
            None => "?".into(),
        };
        if let Some(media) = media {
            what.push(' ');
            what.push_str(&text(media.as_bytes(), 60));
        }
        what = match step.outcome {
            outcome if outcome.is_failure() => what.red().to_string(),
            Outcome::Pending => format!("{what} {}", "(open)".yellow()),
            _ => what,
        };
        format!("{what}{}", self.remarks(step))
    }

    /// What is said after an answer: how it went, and how long it took.
    fn remarks(&self, step: &Step) -> String {
        let mut remarks = String::new();
        if step.rounds > 1 {
            remarks.push_str(&format!(" ({} rounds)", step.rounds));
        }
        // That a stream was closed by the one who opened it is how streams end.
        let told = step.outcome.is_failure() || step.kind != StepKind::Http;
        if let Some(finish) = step.finish.filter(|_| told).and_then(finish) {
            remarks.push_str(&format!(" ({finish})").yellow().to_string());
        }
        let mut flaws = String::new();
        for place in [&step.opened, &step.closed].into_iter().flatten() {
            flaws.push_str(&self.flaws(Some(place)));
        }
        let exchange = self.run.exchanges.get(&step.exchange);
        for (_, what) in exchange.iter().flat_map(|e| &e.not_decoded) {
            let (coding, reason) = (what.coding.as_bytes(), what.reason.as_bytes());
            let (coding, reason) = (text(coding, 20), text(reason, 20));
            flaws.push_str(&format!("[{coding} body not decoded: {reason}] "));
        }
        if !flaws.is_empty() {
            remarks.push_str(&format!(" {}", flaws.trim_end().yellow()));
        }
        if let Some(duration) = step.duration {
            remarks.push_str(&format!(" {}", format!("<{}>", seconds(duration)).dimmed()));
        }
        remarks
    }

    /// `HTTP 404 -32602 "Unknown tool"`
    fn error_of(&self, step: &Step, json: &[u8]) -> String {
        let limit = self.options.limit;
        let status = step.status.filter(|status| *status >= 400);
        let mut what = match status {
            Some(status) => format!("HTTP {status}"),
            None => String::new(),
        };
        let code = member(json, "code").unwrap_or_default();
        let said = match member(json, "message").and_then(string) {
            Some(message) => format!("{} \"{}\"", text(code, 20), text(message.as_bytes(), limit)),
            // What HTTP said is no error of the protocol.
            None if code.is_empty() && status.is_some() => {
                let body = step.response(&self.run.frames).unwrap_or_default();
                text(body.trim_ascii(), limit)
            }
            None => text(json, limit),
        };
        if !what.is_empty() && !said.is_empty() {
            what.push(' ');
        }
        what.push_str(&said);
        what
    }

    /// What is wrong with a frame, in words.
    fn flaws(&self, place: Option<&Place>) -> String {
        let frame = place.and_then(|place| self.run.frames.get(place.frame));
        let Some(frame) = frame else {
            return String::new();
        };
        let envelope = &frame.record.envelope;
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
        if envelope.flags.has(Flags::ALTERED) {
            flaws.push_str("[altered by the relay] ");
        }
        flaws
    }
}
