//! Transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`.
//!
//! One JSON object a line, with `type`, `uuid`, `sessionId`, `timestamp` (RFC 3339) and, of
//! `user` and `assistant`, a `message` of the Anthropic API. `tool_use` blocks become calls of
//! tools and `tool_result` blocks their answers; every line is kept, in the first message that
//! was made of it or in one of its own. The format is not documented by its makers; what is
//! said here is what version 2.1 writes.

use super::error::FormatError;
use super::frames::{self, Call, Open, short};
use super::import::{Session, Take};
use super::json::{bare, elements, is_string, members, quoted, shown, text_of};
use super::source::{Source, digits};
use super::strace::read::quiet_end;
use super::time::rfc3339;
use agent_trace_model::Stream;
use agent_trace_store::import::session::{Opening, Writer};
use agent_trace_store::journal::header::Imported;
use agent_trace_wire::message::{member, string};

/// What imported sessions say they are.
pub(super) const FORMAT: &str = "claude-code";
/// The member that holds the line that a message was made from.
pub(super) const MARK: &str = "claude-code/entry";
/// The member that names a line that stands in another message.
const UUID: &str = "claude-code/uuid";
/// What the methods of lines that are no messages begin with.
pub(super) const PREFIX: &str = "claude-code/";
/// How many lines are looked at for what they say of the session.
const LOOKED_AT: usize = 64;

/// Takes a transcript.
pub(super) fn take(source: &Source, take: &mut Take<'_>) -> Result<(), FormatError> {
    let mut hasher = take.hasher();
    source.hash(&mut hasher)?;
    let facts = facts(source)?;
    let session = facts.session.unwrap_or_else(|| source.stem());
    // What a subagent did lies in a file of its own, under the session of its parent.
    let name = match &facts.agent {
        Some(agent) => format!("{session}/{agent}"),
        None => session,
    };
    let path = source.path();
    let opening = Opening {
        task: None,
        started: facts.started,
        client: Some(FORMAT.into()),
        server: Some(FORMAT.into()),
        command: Vec::new(),
        folder: facts.folder,
        imported: Imported {
            format: FORMAT.into(),
            version: facts.version,
            source: path.display().to_string(),
            session: name.clone(),
            digest: digits(&hasher),
        },
    };
    let found = Session {
        format: FORMAT,
        shown: name.clone(),
        name,
        path: path.to_owned(),
    };
    take.session(found, opening, |writer, _| {
        let mut entries = Entries {
            open: Open::default(),
            last: 0,
        };
        let mut lines = source.lines()?;
        while let Some((line, whole)) = lines.next()? {
            match Entry::parse(line) {
                Ok(entry) => {
                    let written = entries.write(&entry, writer);
                    written.map_err(FormatError::at(path))?;
                }
                // It was just being written.
                Err(_) if !whole => break,
                Err(invalid) => {
                    let what = invalid.to_string();
                    return Err(lines.fault(what));
                }
            }
        }
        if entries.open.is_left() {
            let gap = writer.gap("the transcript does not hold every answer");
            gap.map_err(FormatError::at(path))?;
        }
        Ok(Some((quiet_end(), entries.last)))
    })
}

/// What the first lines say of the session.
#[derive(Default)]
struct Facts {
    session: Option<String>,
    agent: Option<String>,
    folder: Option<String>,
    version: Option<String>,
    started: u64,
}

fn facts(source: &Source) -> Result<Facts, FormatError> {
    let mut facts = Facts::default();
    let mut lines = source.lines()?;
    for _ in 0..LOOKED_AT {
        let Some((line, _)) = lines.next()? else {
            break;
        };
        let text = |name: &str| text_of(line, name).map(|text| text.into_owned());
        let first = facts.session.is_none();
        facts.session = facts.session.or_else(|| text("sessionId"));
        if first && facts.session.is_some() {
            facts.agent = text("agentId");
        }
        facts.folder = facts.folder.or_else(|| text("cwd"));
        facts.version = facts.version.or_else(|| text("version"));
        if facts.started == 0 {
            let time = text("timestamp");
            facts.started = time.and_then(|time| rfc3339(&time)).unwrap_or(0);
        }
    }
    Ok(facts)
}

/// A line.
struct Entry<'a> {
    kind: String,
    wall: u64,
    uuid: &'a [u8],
    /// The blocks of its message.
    blocks: Vec<&'a [u8]>,
    text: &'a [u8],
}

impl<'a> Entry<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, agent_trace_wire::json::Invalid> {
        let text = bare(text);
        let mut entry = Self {
            kind: String::new(),
            wall: 0,
            uuid: b"null",
            blocks: Vec::new(),
            text,
        };
        members(text, |name, value| match name {
            "type" => entry.kind = string(value).unwrap_or_default().into_owned(),
            "timestamp" => entry.wall = rfc3339(&shown(value)).unwrap_or(0),
            "uuid" => entry.uuid = value,
            "message" => {
                entry.blocks = member(value, "content").map(elements).unwrap_or_default();
            }
            _ => {}
        })?;
        Ok(entry)
    }
}

struct Entries {
    open: Open,
    last: u64,
}

impl Entries {
    fn write(&mut self, entry: &Entry<'_>, writer: &mut Writer<'_>) -> std::io::Result<()> {
        self.last = self.last.max(entry.wall);
        let kinds = entry.blocks.iter().map(|block| text_of(block, "type"));
        let kinds: Vec<_> = kinds.map(Option::unwrap_or_default).collect();
        let is_message = |kind: &str| matches!(kind, "tool_use" | "tool_result");
        let all = !kinds.is_empty() && kinds.iter().all(|kind| is_message(kind));
        if !all {
            let kind = if entry.kind.is_empty() {
                "entry"
            } else {
                &entry.kind
            };
            let note = frames::note(&format!("{PREFIX}{kind}"), entry.text);
            writer.frame(Stream::ClientToServer, entry.wall, &note)?;
        }
        let mut kept = !all;
        for (block, kind) in entry.blocks.iter().zip(&kinds) {
            let (mark, source) = match kept {
                false => (MARK, entry.text),
                true => (UUID, entry.uuid),
            };
            let message = match &**kind {
                "tool_use" => self.call(block, mark, source),
                "tool_result" => self.result(block, mark, source),
                _ => continue,
            };
            kept = true;
            writer.frame(message.0, entry.wall, &message.1)?;
        }
        Ok(())
    }

    fn call(&mut self, block: &[u8], mark: &str, source: &[u8]) -> (Stream, Vec<u8>) {
        let id = member(block, "id").unwrap_or(b"null");
        let name = member(block, "name").filter(|name| is_string(name));
        self.open.add(Call {
            id: Vec::new(),
            names: [Some(short(id)), None, None],
        });
        let name = name.unwrap_or(b"\"unknown\"");
        let text = frames::call(id, name, member(block, "input"), mark, source);
        (Stream::ClientToServer, text)
    }

    fn result(&mut self, block: &[u8], mark: &str, source: &[u8]) -> (Stream, Vec<u8>) {
        let id = member(block, "tool_use_id").unwrap_or(b"null");
        self.open.take(0, Some(short(id)));
        let failed = member(block, "is_error") == Some(b"true");
        let content = match member(block, "content") {
            Some(list) if list.starts_with(b"[") => list.to_vec(),
            Some(said) => frames::text_content(&quoted(&shown(said))),
            None => b"[]".to_vec(),
        };
        let text = frames::result(id, &content, failed, mark, source);
        (Stream::ServerToClient, text)
    }
}
