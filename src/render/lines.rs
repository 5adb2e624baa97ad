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
use agent_trace_analysis::parts::{self, answer, arguments};
use agent_trace_model::exchange::{Exchange, Exchanges};
use agent_trace_model::step::{Message, Step, StepKind};
use agent_trace_model::story::{Gap, Line, Session, Story};
use agent_trace_model::{Outcome, Stream};
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

/// Prints these steps of a run, and between them its gaps and, if asked for, its standard
/// error.
pub(crate) fn print<'a>(
    out: &mut impl Write,
    story: &'a Story,
    steps: impl Iterator<Item = &'a Step>,
    options: Options,
) -> io::Result<()> {
    let clock = Clock::local();
    let printers = story.sessions.iter();
    let printers = printers.map(|session| Printer::new(session, options, &clock));
    let printers: Vec<Printer<'_>> = printers.collect();
    let mut others: Vec<(u64, String)> = Vec::new();
    for (session, printer) in story.sessions.iter().zip(&printers) {
        let gaps = session.gaps.iter();
        others.extend(gaps.map(|gap| (gap.wall, printer.gap(gap))));
        if options.stderr {
            let lines = session.stderr.iter();
            others.extend(lines.map(|line| (line.wall, printer.error(line))));
        }
    }
    others.sort_by_key(|(wall, _)| *wall);
    let mut others = others.into_iter().peekable();
    for step in steps {
        let Some(printer) = printers.get(step.session) else {
            continue;
        };
        while let Some((wall, line)) = others.next_if(|(wall, _)| *wall <= step.wall) {
            out.write_all(printer.line(wall, None, &line).as_bytes())?;
        }
        out.write_all(printer.whole(step).as_bytes())?;
    }
    let Some(printer) = printers.first() else {
        return Ok(());
    };
    others.try_for_each(|(wall, line)| out.write_all(printer.line(wall, None, &line).as_bytes()))
}

/// Prints these steps of a run, and nothing else.
pub(crate) fn steps<'a>(
    out: &mut impl Write,
    story: &'a Story,
    mut steps: impl Iterator<Item = &'a Step>,
    options: Options,
) -> io::Result<()> {
    let clock = Clock::local();
    steps.try_for_each(|step| {
        let Some(session) = story.session(step) else {
            return Ok(());
        };
        let printer = Printer::new(session, options, &clock);
        out.write_all(printer.whole(step).as_bytes())
    })
}

/// Prints pieces of a session.
pub(crate) struct Printer<'a> {
    options: Options,
    clock: &'a Clock,
    server: String,
    client: String,
    exchanges: &'a Exchanges,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(session: &'a Session, options: Options, clock: &'a Clock) -> Self {
        let names = (&session.server[..], &session.client[..]);
        Self::of(names, &session.exchanges, options, clock)
    }

    /// Of a session between this server and this client, with these exchanges.
    pub(crate) fn of(
        (server, client): (&str, &str),
        exchanges: &'a Exchanges,
        options: Options,
        clock: &'a Clock,
    ) -> Self {
        Self {
            options,
            clock,
            server: text(server.as_bytes(), 40),
            client: text(client.as_bytes(), 40),
            exchanges,
        }
    }

    /// A line of what happened at this time.
    pub(crate) fn line(&self, wall: u64, number: Option<usize>, line: &str) -> String {
        let mut number = number.map(|n| n.to_string()).unwrap_or_default();
        if self.options.numbers {
            number = format!("{number:>5} ");
        } else {
            number.clear();
        }
        format!("{number}{} {line}\n", self.clock.time(wall).dimmed())
    }

    /// A step with what came of it.
    pub(crate) fn whole(&self, step: &Step) -> String {
        self.line(step.wall, Some(step.number), &self.step(step))
    }

    /// A step that is still going on.
    pub(crate) fn unfinished(&self, step: &Step) -> String {
        let line = format!("{} {}", self.asks(step), "<unfinished ...>".dimmed());
        self.line(step.wall, Some(step.number), &line)
    }

    pub(crate) fn gap(&self, gap: &Gap) -> String {
        let reason = text(gap.reason.as_bytes(), 80);
        let what = format!("-- {} not recorded: {reason}", bytes(gap.bytes));
        what.yellow().to_string()
    }

    /// A line of standard error.
    pub(crate) fn error(&self, line: &Line) -> String {
        let line = text(&line.text, self.options.limit);
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
        let arguments = arguments(step).unwrap_or_default();
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
            let bytes = parts::text(step.request.as_ref());
            text(bytes.trim_ascii_end(), self.options.limit)
        };
        let flaws = || flaws(step.request.as_ref()).yellow().to_string();
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
        let json = answer(step).unwrap_or_default();
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
            Outcome::Cancelled if step.response.is_some() && step.duration.is_some() => {
                format!("? (cancelled; late: {})", shown())
                    .yellow()
                    .to_string()
            }
            Outcome::Timeout if step.response.is_some() && step.cancel_sent => {
                format!("? (timeout; late: {})", shown()).red().to_string()
            }
            Outcome::Timeout if step.response.is_some() || step.status.is_some() => {
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
        let exchange = self.exchanges.get(&step.exchange);
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
        for message in [&step.request, &step.response] {
            flaws.push_str(&self::flaws(message.as_ref()));
        }
        let exchange = self.exchanges.get(&step.exchange);
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
                let body = parts::text(step.response.as_ref());
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
}

/// What is wrong with the frame of a message, in words.
fn flaws(message: Option<&Message>) -> String {
    let Some(message) = message else {
        return String::new();
    };
    let mut flaws = String::new();
    if message.cut {
        flaws.push_str(&format!("[{} in all] ", bytes(message.length)));
    }
    let marks = [
        (message.lossy, "[recorded with a loss] "),
        (message.incomplete, "[incomplete] "),
        (!message.delivered, "[not delivered] "),
        (message.altered, "[altered by the relay] "),
    ];
    for (_, mark) in marks.into_iter().filter(|(is, _)| *is) {
        flaws.push_str(mark);
    }
    flaws
}
