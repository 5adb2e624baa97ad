//! `show --http`: the heads of a run's HTTP exchanges, as they were recorded: redacted.

use crate::cli::Format;
use crate::error::CommandError;
use crate::render::escape::text;
use crate::render::time::{self, Clock, bytes, seconds};
use crate::render::{finish, json};
use agent_trace_model::exchange::{Altered, Exchange, NotDecoded, Request, Response, Trailers};
use agent_trace_model::story::Story;
use agent_trace_model::{Finish, Stream};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::io::{self, Write};

/// Prints them in their order.
pub(super) fn list(
    out: &mut impl Write,
    story: &Story,
    format: Format,
) -> Result<(), CommandError> {
    let exchanges = || story.sessions.iter().flat_map(|s| s.exchanges.values());
    let lines = || exchanges().map(Line::of);
    match format {
        Format::Text => {
            let clock = Clock::local();
            exchanges().try_for_each(|exchange| print(out, exchange, &clock))?;
        }
        Format::Json => json::document(&lines().collect::<Vec<_>>())?,
        Format::Jsonl => lines().try_for_each(|line| json::line(&line))?,
    }
    Ok(())
}

/// An exchange as JSON.
#[derive(Serialize)]
struct Line<'a> {
    exchange: u32,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a Request>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a Response>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trailers: Vec<Of<&'a Trailers>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    altered: Vec<Of<&'a Altered>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_decoded: Vec<Of<&'a NotDecoded>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<Finish>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
}

/// Something of one of the two streams.
#[derive(Serialize)]
struct Of<T> {
    from: Stream,
    #[serde(flatten)]
    what: T,
}

fn of<T>(list: &[(Stream, T)]) -> Vec<Of<&T>> {
    list.iter()
        .map(|(from, what)| Of { from: *from, what })
        .collect()
}

impl<'a> Line<'a> {
    fn of(exchange: &'a Exchange) -> Self {
        let finished = exchange.finished.as_ref();
        Self {
            exchange: exchange.number,
            time: time::rfc3339(exchange.wall),
            request: exchange.request.as_ref(),
            response: exchange.response.as_ref(),
            trailers: of(&exchange.trailers),
            altered: of(&exchange.altered),
            not_decoded: of(&exchange.not_decoded),
            finish: finished.map(|finished| finished.finish),
            request_bytes: finished.map(|finished| finished.request_bytes),
            response_bytes: finished.map(|finished| finished.response_bytes),
            duration: exchange.duration,
        }
    }
}

fn print(out: &mut impl Write, exchange: &Exchange, clock: &Clock) -> io::Result<()> {
    let shown = |word: &str| text(word.as_bytes(), 0);
    write!(
        out,
        "{} {}",
        clock.time(exchange.wall).dimmed(),
        format!("exchange {}", exchange.number).bold()
    )?;
    match &exchange.request {
        Some(request) => writeln!(
            out,
            " from {}, connection {}",
            shown(&request.peer),
            request.connection
        )?,
        None => writeln!(out)?,
    }
    if let Some(request) = &exchange.request {
        let (method, target) = (shown(&request.method), shown(&request.target));
        writeln!(
            out,
            "  > {} {}",
            format!("{method} {target}").cyan(),
            shown(&request.version)
        )?;
        headers(out, '>', &request.headers)?;
    }
    if let Some(response) = &exchange.response {
        writeln!(
            out,
            "  < {} {}",
            shown(&response.version),
            response.status.cyan()
        )?;
        headers(out, '<', &response.headers)?;
    }
    for (stream, trailers) in &exchange.trailers {
        writeln!(out, "  {} after the body:", arrow(*stream))?;
        headers(out, arrow(*stream), &trailers.headers)?;
    }
    for (stream, altered) in &exchange.altered {
        let (from, to) = (shown(&altered.from), shown(&altered.to));
        let what = format!("altered by the relay: {from} → {to}");
        writeln!(out, "  {} {}", arrow(*stream), what.yellow())?;
    }
    for (stream, what) in &exchange.not_decoded {
        let (coding, reason) = (shown(&what.coding), shown(&what.reason));
        let what = format!("{coding} body not decoded: {reason}");
        writeln!(out, "  {} {}", arrow(*stream), what.yellow())?;
    }
    let Some(finished) = &exchange.finished else {
        return writeln!(out, "  {}", "no end was recorded".yellow());
    };
    let how = finish(finished.finish).unwrap_or("complete");
    let took = exchange
        .duration
        .map(|took| format!(" <{}>", seconds(took)));
    writeln!(
        out,
        "  {how}, {} sent, {} answered{}",
        bytes(finished.request_bytes),
        bytes(finished.response_bytes),
        took.unwrap_or_default().dimmed()
    )
}

fn headers(out: &mut impl Write, arrow: char, headers: &[(String, String)]) -> io::Result<()> {
    headers.iter().try_for_each(|(name, value)| {
        let (name, value) = (text(name.as_bytes(), 0), text(value.as_bytes(), 0));
        writeln!(out, "  {arrow} {name}: {value}")
    })
}

fn arrow(stream: Stream) -> char {
    match stream {
        Stream::ClientToServer => '>',
        Stream::ServerToClient | Stream::Stderr => '<',
    }
}
