//! `show --frames` and `show --frame`: what was recorded, byte for byte.

use crate::cli::Format;
use crate::error::{CommandError, exit};
use crate::render::escape::text;
use crate::render::table::{self, Align};
use crate::render::{json, time};
use agent_trace_model::Stream;
use agent_trace_store::journal::{Flags, Record};
use agent_trace_store::trace::Session;
use agent_trace_wire::frame::Framing;
use serde::Serialize;
use std::io::{self, Write};

/// Writes the recorded bytes of one frame.
pub(super) fn one(
    sessions: &[Session],
    wanted: Option<&str>,
    number: u64,
) -> Result<u8, CommandError> {
    let is_wanted = |session: &&Session| {
        let id = session.entry.session.to_string();
        wanted.is_none_or(|wanted| id == wanted || session.server() == wanted)
    };
    let sessions: Vec<&Session> = sessions.iter().filter(is_wanted).collect();
    let mut found = sessions
        .iter()
        .flat_map(|session| records(session))
        .filter(|record| record.envelope.sequence == number);
    let hint = "`agent-trace show RUN --frames` lists them with their numbers and sessions";
    let usage = |what| CommandError::Usage { what, hint };
    let Some(record) = found.next() else {
        return Err(usage(format!("the run has no frame {number}")));
    };
    if found.next().is_some() {
        let what = format!("several sessions of the run have a frame {number}");
        return Err(CommandError::Usage {
            what,
            hint: "`--session SESSION`, an id or the name of a server, says which",
        });
    }
    let mut out = io::stdout().lock();
    out.write_all(&record.payload)?;
    out.flush()?;
    Ok(exit::SUCCESS)
}

fn records(session: &Session) -> impl Iterator<Item = &Record> {
    let frames = session.frames.iter().map(|frame| &frame.record);
    frames.chain(&session.errors)
}

/// One frame in a list.
#[derive(Serialize)]
struct FrameLine {
    session: String,
    frame: u64,
    /// Number of the HTTP exchange, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u32>,
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

/// Lists the frames of these sessions.
pub(super) fn list(
    out: &mut impl Write,
    sessions: &[Session],
    format: Format,
) -> Result<(), CommandError> {
    if format != Format::Text {
        let lines: Vec<FrameLine> = sessions.iter().flat_map(lines).collect();
        let printed = match format {
            Format::Jsonl => lines.iter().try_for_each(json::line),
            Format::Json | Format::Text => json::document(&lines),
        };
        return Ok(printed?);
    }
    for session in sessions {
        if sessions.len() > 1 {
            let server = text(session.server().as_bytes(), 40);
            writeln!(out, "session {} with {server}", session.entry.session)?;
        }
        table(out, session, &lines(session))?;
    }
    Ok(())
}

fn lines(session: &Session) -> Vec<FrameLine> {
    let mut records: Vec<&Record> = records(session).collect();
    records.sort_by_key(|record| record.envelope.sequence);
    records
        .into_iter()
        .map(|record| {
            let envelope = &record.envelope;
            FrameLine {
                session: session.entry.session.to_string(),
                frame: envelope.sequence,
                exchange: Some(envelope.exchange).filter(|number| *number > 0),
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
        .collect()
}

fn table(out: &mut impl Write, session: &Session, lines: &[FrameLine]) -> Result<(), CommandError> {
    if session.entry.http {
        return with_exchanges(out, lines);
    }
    let rows: Vec<[String; 7]> = lines
        .iter()
        .map(|line| {
            [
                line.frame.to_string(),
                line.time.clone(),
                from(line.stream).into(),
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

/// The same with the numbers of the exchanges.
fn with_exchanges(out: &mut impl Write, lines: &[FrameLine]) -> Result<(), CommandError> {
    let row = |line: &FrameLine| {
        [
            line.frame.to_string(),
            line.exchange.map(|n| n.to_string()).unwrap_or_default(),
            line.time.clone(),
            from(line.stream).into(),
            line.framing.into(),
            line.length.to_string(),
            line.redacted.to_string(),
            line.flags.join(" "),
        ]
    };
    let rows: Vec<[String; 8]> = lines.iter().map(row).collect();
    use Align::{Left, Right};
    let heading = [
        ("FRAME", Right),
        ("EXCHANGE", Right),
        ("TIME", Left),
        ("FROM", Left),
        ("FRAMING", Left),
        ("BYTES", Right),
        ("REDACTED", Right),
        ("FLAGS", Left),
    ];
    Ok(table::print(out, heading, &rows)?)
}

fn from(stream: Stream) -> &'static str {
    match stream {
        Stream::ClientToServer => "client",
        Stream::ServerToClient => "server",
        Stream::Stderr => "stderr",
    }
}

fn flags(flags: Flags) -> Vec<&'static str> {
    let names = [
        (Flags::CUT, "cut"),
        (Flags::INCOMPLETE, "incomplete"),
        (Flags::LOSSY, "lossy"),
        (Flags::BODIES_DIGESTED, "digested"),
        (Flags::UNDELIVERED, "undelivered"),
        (Flags::SPANS_CUT, "more-redacted"),
        (Flags::ALTERED, "altered"),
    ];
    names
        .into_iter()
        .filter(|(flag, _)| flags.has(*flag))
        .map(|(_, name)| name)
        .collect()
}
