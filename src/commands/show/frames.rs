//! `show --frames` and `show --frame`: what was recorded, byte for byte.

use crate::cli::Format;
use crate::error::{CommandError, exit};
use crate::render::table::{self, Align};
use crate::render::{json, short, time};
use agent_trace_model::Stream;
use agent_trace_store::journal::Flags;
use agent_trace_store::trace::Session;
use agent_trace_wire::frame::Framing;
use serde::Serialize;
use std::io::{self, Write};

/// Writes the recorded bytes of one frame.
pub(super) fn one(run: &Session, number: u64) -> Result<u8, CommandError> {
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

pub(super) fn list(
    out: &mut impl Write,
    run: &Session,
    format: Format,
) -> Result<(), CommandError> {
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
        .collect();
    match format {
        Format::Text => {}
        Format::Json => return Ok(json::document(&lines)?),
        Format::Jsonl => return Ok(lines.iter().try_for_each(json::line)?),
    }
    if run.entry.http {
        return with_exchanges(out, &lines);
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
