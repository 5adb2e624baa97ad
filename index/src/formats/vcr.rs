//! Recordings of agenttrace-vcr 0.1.0: one JSON document a run.
//!
//! Its events have numbers but no times (`models.py`, `recording.py` of that version): the
//! moments here follow from when the run began and how long each call took. An answer belongs
//! to the call with the same `call_id`.

use super::error::FormatError;
use super::frames::{self, Call, Open, short};
use super::import::{Session, Take};
use super::json::{compact, elements, is_object, is_string, members, quoted, shown, text_of};
use super::source::{Source, digits};
use super::strace::read::quiet_end;
use super::time::{milliseconds, rfc3339};
use agent_trace_model::{End, Ending, Stream};
use agent_trace_store::import::session::{Opening, Writer};
use agent_trace_store::journal::header::Imported;
use agent_trace_wire::message::member;
use std::collections::BTreeMap;

/// What imported sessions say they are.
const FORMAT: &str = "agenttrace-vcr";
/// The member that holds the event that a message was made from.
const MARK: &str = "agenttrace-vcr/event";
/// What the methods of events that are no messages begin with.
const PREFIX: &str = "agenttrace-vcr/";

/// Takes a recording.
pub(super) fn take(source: &Source, take: &mut Take<'_>) -> Result<(), FormatError> {
    let path = source.path();
    let document = source.whole(super::MOST_DOCUMENT)?;
    let document = document.trim_ascii();
    let mut hasher = take.hasher();
    hasher.update(document);
    let fault = |what: String| FormatError::Line {
        path: path.to_owned(),
        line: 1,
        what,
    };
    let head = head(document).map_err(|invalid| fault(invalid.to_string()))?;
    let id = text_of(document, "id").unwrap_or_default().into_owned();
    let agent = text_of(document, "agent_name").map(|name| name.into_owned());
    let agent = agent.filter(|name| !name.is_empty());
    let time = |name: &str| rfc3339(&text_of(document, name)?);
    let started = time("started_at").unwrap_or(0);
    let opening = Opening {
        task: None,
        started,
        client: agent.clone(),
        server: agent,
        command: Vec::new(),
        folder: None,
        imported: Imported {
            format: FORMAT.into(),
            version: None,
            source: path.display().to_string(),
            session: id.clone(),
            digest: digits(&hasher),
        },
    };
    let found = Session {
        format: FORMAT,
        shown: id.clone(),
        name: id,
        path: path.to_owned(),
    };
    let mut events = Vec::new();
    for (position, event) in elements(member(document, "events").unwrap_or_default())
        .into_iter()
        .enumerate()
    {
        let event = Event::parse(event);
        events.push(event.map_err(|_| fault(format!("event {position}: not a JSON object")))?);
    }
    // In whatever order they stand in the file.
    events.sort_by_key(|event| event.sequence);
    take.session(found, opening, |writer, _| {
        let at = || FormatError::at(path);
        let note = frames::note(&format!("{PREFIX}run"), &head);
        writer
            .frame(Stream::ClientToServer, started, &note)
            .map_err(at())?;
        let mut player = Player {
            open: Open::default(),
            began: BTreeMap::new(),
            clock: started,
        };
        for event in &events {
            player.write(event, writer).map_err(at())?;
        }
        if player.open.is_left() {
            let gap = writer.gap("the recording does not hold every answer");
            gap.map_err(at())?;
        }
        let end = match text_of(document, "status").as_deref() {
            Some("failed") => End {
                ending: Ending::ServerExited,
                ..quiet_end()
            },
            Some("running") => return Ok(None),
            _ => quiet_end(),
        };
        Ok(Some((end, time("completed_at").unwrap_or(player.clock))))
    })
}

/// The document without its events.
fn head(document: &[u8]) -> Result<Vec<u8>, agent_trace_wire::json::Invalid> {
    let mut head = Vec::new();
    members(document, |name, value| {
        if name != "events" {
            head.push(if head.is_empty() { b'{' } else { b',' });
            head.extend_from_slice(&quoted(name));
            head.push(b':');
            head.extend_from_slice(&compact(value));
        }
    })?;
    if head.is_empty() {
        head.push(b'{');
    }
    head.push(b'}');
    Ok(head)
}

struct Event<'a> {
    sequence: i64,
    kind: String,
    call: Option<&'a [u8]>,
    tool: Option<&'a [u8]>,
    arguments: Option<&'a [u8]>,
    response: Option<&'a [u8]>,
    duration: Option<u64>,
    text: Vec<u8>,
}

impl<'a> Event<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, agent_trace_wire::json::Invalid> {
        let mut event = Self {
            sequence: i64::MAX,
            kind: String::new(),
            call: None,
            tool: None,
            arguments: None,
            response: None,
            duration: None,
            text: compact(text),
        };
        members(text, |name, value| {
            let given = Some(value).filter(|value| *value != b"null");
            match name {
                "sequence" => event.sequence = shown(value).parse().unwrap_or(i64::MAX),
                "event_type" => event.kind = shown(value).into_owned(),
                "call_id" => event.call = given,
                "tool_name" => event.tool = given.filter(|name| is_string(name)),
                "arguments" => event.arguments = given,
                "response" => event.response = Some(value),
                "duration_ms" => event.duration = milliseconds(value),
                _ => {}
            }
        })?;
        Ok(event)
    }
}

struct Player {
    open: Open,
    /// When each open call began.
    began: BTreeMap<u64, u64>,
    clock: u64,
}

impl Player {
    fn write(&mut self, event: &Event<'_>, writer: &mut Writer<'_>) -> std::io::Result<()> {
        let name = event.call.map(short);
        let (stream, message) = match &event.kind[..] {
            "tool_call" => {
                let id = frames::id_of(event.call, event.sequence.unsigned_abs());
                self.open.add(Call {
                    id: id.clone(),
                    names: [name, None, None],
                });
                if let Some(name) = name {
                    self.began.insert(name, self.clock);
                }
                let tool = event.tool.unwrap_or(b"\"unknown\"");
                let arguments = event.arguments.map(compact);
                let text = frames::call(&id, tool, arguments.as_deref(), MARK, &event.text);
                (Stream::ClientToServer, text)
            }
            "tool_response" | "error" => match self.open.take(0, name) {
                Some(call) => {
                    let began = name.and_then(|name| self.began.remove(&name));
                    let ended = began.unwrap_or(self.clock) + event.duration.unwrap_or(0);
                    self.clock = self.clock.max(ended);
                    let text = answer(&call, event);
                    (Stream::ServerToClient, text)
                }
                None if event.kind == "error" => {
                    let said = quoted(&said(event));
                    let text = frames::error(b"null", b"-32000", &said, MARK, &event.text);
                    (Stream::ServerToClient, text)
                }
                None => (Stream::ServerToClient, note(event)),
            },
            _ => (Stream::ClientToServer, note(event)),
        };
        writer.frame(stream, self.clock, &message)
    }
}

/// What a tool returned, or what it raised.
fn answer(call: &Call, event: &Event<'_>) -> Vec<u8> {
    let failed = event.kind == "error";
    let text = match (failed, event.response) {
        (true, _) => said(event),
        (false, Some(response)) => shown(response).into_owned(),
        (false, None) => String::new(),
    };
    let content = frames::text_content(&quoted(&text));
    frames::result(&call.id, &content, failed, MARK, &event.text)
}

/// The message of an error: its `type` and `message`, where it has them.
fn said(event: &Event<'_>) -> String {
    let response = event.response.unwrap_or(b"null");
    let part = |name: &str| text_of(response, name);
    match (is_object(response), part("type"), part("message")) {
        (true, Some(kind), Some(message)) => format!("{kind}: {message}"),
        (true, _, Some(message)) => message.into_owned(),
        _ => shown(response).into_owned(),
    }
}

fn note(event: &Event<'_>) -> Vec<u8> {
    let kind = match &event.kind[..] {
        "" | "run" => "event",
        kind => kind,
    };
    frames::note(&format!("{PREFIX}{kind}"), &event.text)
}
