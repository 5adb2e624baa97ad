//! What assistants write down of their sessions: one JSON object a line.
//!
//! Calls of tools and their answers become messages as they may have been on the wire; every line
//! is kept whole, in the first message that was made of it or in a notification of its own. None
//! of these formats is documented by its makers.
//!
//! - [`super::claude`], [`super::codex`], [`super::copilot`]: what a line says in each of them

use super::error::FormatError;
use super::frames::{self, Call, Open, short};
use super::import::{Session, Take};
use super::json::bare;
use super::source::{Source, digits};
use super::strace::read::quiet_end;
use super::time::rfc3339;
use agent_trace_model::Stream;
use agent_trace_store::import::session::{Opening, Writer};
use agent_trace_store::journal::header::Imported;
use agent_trace_wire::json::Invalid;
use std::borrow::Cow;

/// How many lines are looked at for what they say of the session.
const LOOKED_AT: usize = 64;

/// A way to write sessions down.
pub(super) trait Dialect {
    /// What imported sessions say they are, and what the methods of lines that are no messages
    /// begin with.
    const FORMAT: &'static str;
    /// The member that holds the line that a message was made from.
    const MARK: &'static str;
    /// The member that names a line that stands in another message.
    const NAME: &'static str;
    /// Whether an answer can stand there several times, in several words; the first one counts.
    const REPEATS: bool;

    /// Takes over what one of the first lines says of the session, where that is not known yet.
    fn look(line: &[u8], facts: &mut Facts);

    /// What a line says.
    ///
    /// # Errors
    /// Where it is no JSON object.
    fn entry(line: &[u8]) -> Result<Entry<'_>, Invalid>;
}

/// What the first lines say of the session.
#[derive(Default)]
pub(super) struct Facts {
    /// What it is called.
    pub(super) session: Option<String>,
    /// Which assistant inside of it this is, if it is not the one that the user talks to.
    pub(super) agent: Option<String>,
    /// The folder it worked in.
    pub(super) folder: Option<String>,
    /// The version of the program.
    pub(super) version: Option<String>,
    /// When it began, in nanoseconds since 1970; 0 where that is not known.
    pub(super) started: u64,
}

impl Facts {
    /// Takes over when it began: RFC 3339, or nothing that is known.
    pub(super) fn begin(&mut self, time: Option<&str>) {
        self.started = time.and_then(rfc3339).unwrap_or(0);
    }
}

/// A line.
pub(super) struct Entry<'a> {
    /// What it is about, as its method goes on.
    pub(super) kind: Cow<'a, str>,
    /// Nanoseconds since 1970; 0 where that is not known.
    pub(super) wall: u64,
    /// What it is called there, as JSON text.
    pub(super) name: &'a [u8],
    /// What is made of it.
    pub(super) messages: Vec<Message<'a>>,
    /// Whether those are all that it says.
    pub(super) all: bool,
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Self {
            kind: "entry".into(),
            wall: 0,
            name: b"null",
            messages: Vec::new(),
            all: true,
        }
    }
}

/// A call or an answer.
pub(super) enum Message<'a> {
    /// A call of a tool.
    Call {
        /// JSON text.
        id: &'a [u8],
        /// JSON text.
        tool: Cow<'a, [u8]>,
        /// JSON text.
        arguments: Option<Cow<'a, [u8]>>,
    },
    /// What a tool answered.
    Result {
        /// JSON text.
        id: &'a [u8],
        /// The JSON text of an array.
        content: Vec<u8>,
        /// Whether it says that the call failed.
        failed: bool,
    },
}

impl Message<'_> {
    fn id(&self) -> &[u8] {
        match self {
            Self::Call { id, .. } | Self::Result { id, .. } => id,
        }
    }
}

/// Takes a transcript.
pub(super) fn take<D: Dialect>(source: &Source, take: &mut Take<'_>) -> Result<(), FormatError> {
    let mut hasher = take.hasher();
    source.hash(&mut hasher)?;
    let facts = facts::<D>(source)?;
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
        client: Some(D::FORMAT.into()),
        server: Some(D::FORMAT.into()),
        command: Vec::new(),
        folder: facts.folder,
        imported: Imported {
            format: D::FORMAT.into(),
            version: facts.version,
            source: path.display().to_string(),
            session: name.clone(),
            digest: digits(&hasher),
        },
    };
    let found = Session {
        format: D::FORMAT,
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
            let line = bare(line);
            match D::entry(line) {
                Ok(entry) => {
                    let written = entries.write::<D>(&entry, line, writer);
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

fn facts<D: Dialect>(source: &Source) -> Result<Facts, FormatError> {
    let mut facts = Facts::default();
    let mut lines = source.lines()?;
    for _ in 0..LOOKED_AT {
        let Some((line, _)) = lines.next()? else {
            break;
        };
        D::look(line, &mut facts);
    }
    Ok(facts)
}

struct Entries {
    open: Open,
    last: u64,
}

impl Entries {
    fn write<D: Dialect>(
        &mut self,
        entry: &Entry<'_>,
        line: &[u8],
        writer: &mut Writer<'_>,
    ) -> std::io::Result<()> {
        self.last = self.last.max(entry.wall);
        let said = |message: &&Message<'_>| match message {
            Message::Result { id, .. } => !D::REPEATS || self.open.holds(0, Some(short(id))),
            Message::Call { .. } => true,
        };
        let messages: Vec<_> = entry.messages.iter().filter(said).collect();
        // Whether the line stands somewhere by now.
        let mut kept = !entry.all || messages.is_empty();
        if kept {
            let method = format!("{}/{}", D::FORMAT, entry.kind);
            writer.frame(
                Stream::ClientToServer,
                entry.wall,
                &frames::note(&method, line),
            )?;
        }
        for message in messages {
            let (mark, source) = match kept {
                false => (D::MARK, line),
                true => (D::NAME, entry.name),
            };
            kept = true;
            let name = Some(short(message.id()));
            let (stream, text) = match message {
                Message::Call {
                    id,
                    tool,
                    arguments,
                } => {
                    self.open.add(Call {
                        id: Vec::new(),
                        names: [name, None, None],
                    });
                    let text = frames::call(id, tool, arguments.as_deref(), mark, source);
                    (Stream::ClientToServer, text)
                }
                Message::Result {
                    id,
                    content,
                    failed,
                } => {
                    self.open.take(0, name);
                    let text = frames::result(id, content, *failed, mark, source);
                    (Stream::ServerToClient, text)
                }
            };
            writer.frame(stream, entry.wall, &text)?;
        }
        Ok(())
    }
}
