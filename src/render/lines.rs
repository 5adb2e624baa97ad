//! A run in the manner of strace: one line for each step.
//!
//! ```text
//! 12:03:01.512 github tools/call get_issue({"number":7}) = {"title":…} <0.212>
//! ```
//! The word after the time is who was asked: the server, or for a request of the server the
//! client.

use super::escape::text;
use super::time::{Clock, bytes};
use super::words::{self, Cut};
use agent_trace_model::exchange::Exchanges;
use agent_trace_model::step::{Step, StepKind};
use agent_trace_model::story::{Gap, Line, Session, Story};
use agent_trace_scanners::run::InRun;
use owo_colors::OwoColorize;
use std::io::{self, Write};

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// How much of arguments and of results.
    pub(crate) cut: Cut<'a>,
    pub(crate) numbers: bool,
    pub(crate) stderr: bool,
    /// What scans found; what is flagged of it stands below its step.
    pub(crate) found: &'a [InRun],
}

/// Prints these steps of a run, and between them its gaps and, if asked for, its standard
/// error.
pub(crate) fn print<'a>(
    out: &mut impl Write,
    story: &'a Story,
    steps: impl Iterator<Item = &'a Step>,
    options: Options<'_>,
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
        let found = options.found.iter();
        let found = found.filter(|found| found.step == step.number && found.finding.flagged());
        for InRun { finding, .. } in found {
            let pointer = text(finding.pointer.as_bytes(), 80);
            let what = format!("{} {}", finding.severity.as_str(), finding.code);
            let quote = text(finding.quote.as_bytes(), 80);
            writeln!(
                out,
                "    {} {}: {pointer} {}",
                what.red(),
                finding.title,
                quote.dimmed()
            )?;
        }
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
    options: Options<'_>,
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
    options: Options<'a>,
    clock: &'a Clock,
    server: String,
    client: String,
    exchanges: &'a Exchanges,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(session: &'a Session, options: Options<'a>, clock: &'a Clock) -> Self {
        let names = (&session.server[..], &session.client[..]);
        Self::of(names, &session.exchanges, options, clock)
    }

    /// Of a session between this server and this client, with these exchanges.
    pub(crate) fn of(
        (server, client): (&str, &str),
        exchanges: &'a Exchanges,
        options: Options<'a>,
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
        let line = text(&line.text, self.options.cut.limit);
        format!("{} stderr: {line}", self.server.cyan())
    }

    fn asks(&self, step: &Step) -> String {
        let of_server = step.is_clients() || step.kind == StepKind::Stray;
        let who = if of_server {
            &self.server
        } else {
            &self.client
        };
        words::asked_of(who, step, self.options.cut)
    }

    fn step(&self, step: &Step) -> String {
        let asks = self.asks(step);
        if !words::is_answered(step) {
            return asks;
        }
        let exchange = self.exchanges.get(&step.exchange);
        let answered = words::answered(step, exchange, self.options.cut);
        format!("{asks} = {answered}")
    }
}
