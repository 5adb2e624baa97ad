//! One step a row, as RFC 4180 has it: CRLF, quotes where they are needed.
//!
//! A cell that a spreadsheet would take for a formula begins with an apostrophe: what a server
//! answers could else call programs on the machine of whoever opens the file (OWASP, "CSV
//! Injection").

use super::error::FormatError;
use super::export::{Export, Left};
use super::time::to_rfc3339;
use agent_trace_model::Stream;
use agent_trace_model::step::{Message, Step};
use agent_trace_model::story::Story;
use std::io::{self, Write};

const COLUMNS: &str = "run,session,client,server,step,turn,time,from,kind,method,target,outcome,\
                       duration_ms,http_status,bytes,request,response\r\n";

pub(super) struct Csv<W> {
    out: W,
}

impl<W: Write> Csv<W> {
    pub(super) fn begin(mut out: W) -> Result<Self, FormatError> {
        out.write_all(COLUMNS.as_bytes())
            .map_err(FormatError::Output)?;
        Ok(Self { out })
    }

    fn row(&mut self, story: &Story, step: &Step) -> io::Result<()> {
        let session = story.session(step);
        let turn = step.turn.and_then(|turn| story.turns.get(turn));
        let said = |message: &Option<Message>| {
            let text = message.as_ref().map_or(&b""[..], |message| &message.text);
            String::from_utf8_lossy(text).into_owned()
        };
        let from = match step.from {
            Stream::ClientToServer => "client",
            Stream::ServerToClient | Stream::Stderr => "server",
        };
        let duration = step.duration.map(|span| super::time::decimal(span, 6));
        let cells = [
            story.id.to_string(),
            session.map(|s| s.id.to_string()).unwrap_or_default(),
            guarded(session.map_or("", |s| &s.client)),
            guarded(session.map_or("", |s| &s.server)),
            step.number.to_string(),
            guarded(turn.map_or("", |turn| &turn.id)),
            to_rfc3339(step.wall),
            from.to_owned(),
            step.kind.as_str().to_owned(),
            guarded(step.method.as_deref().unwrap_or_default()),
            guarded(step.target.as_deref().unwrap_or_default()),
            step.outcome.to_string(),
            duration.unwrap_or_default(),
            step.status
                .map(|status| status.to_string())
                .unwrap_or_default(),
            step.bytes().to_string(),
            guarded(&said(&step.request)),
            guarded(&said(&step.response)),
        ];
        let cells = cells.iter().map(|cell| quoted(cell));
        let row = cells.collect::<Vec<_>>().join(",");
        self.out.write_all(row.as_bytes())?;
        self.out.write_all(b"\r\n")
    }
}

impl<W: Write> Export for Csv<W> {
    fn add(&mut self, story: &Story) -> Result<(), FormatError> {
        let mut steps = story.steps.iter();
        steps
            .try_for_each(|step| self.row(story, step))
            .map_err(FormatError::Output)
    }

    fn finish(&mut self) -> Result<Left, FormatError> {
        self.out.flush().map_err(FormatError::Output)?;
        Ok(Left::new())
    }
}

/// A text that no spreadsheet takes for a formula. Some skip white space before one, and some
/// read the wide forms of the signs.
fn guarded(text: &str) -> String {
    let first = text.trim_start().chars().next();
    let signs = [
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    let blank = text.starts_with(['\t', '\r', '\n']);
    match first.is_some_and(|first| signs.contains(&first)) || blank {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn quoted(cell: &str) -> String {
    match cell.contains(['"', ',', '\r', '\n']) {
        // Some readers end at a zero byte.
        true => format!("\"{}\"", cell.replace('"', "\"\"")).replace('\0', "\u{fffd}"),
        false => cell.replace('\0', "\u{fffd}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula() {
        for text in ["=1+1", "+1", "-1", "@x", "\t=1", "  =1", "\r", "\u{ff1d}1"] {
            assert_eq!(guarded(text), format!("'{text}"));
        }
        for text in ["", "a=1", "{\"a\":-1}", "'"] {
            assert_eq!(guarded(text), text);
        }
    }

    #[test]
    fn cells_are_quoted_where_it_takes_quotes() {
        assert_eq!(quoted("a b"), "a b");
        assert_eq!(quoted("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
        assert_eq!(quoted("a\0,"), "\"a\u{fffd},\"");
    }
}
