//! Sessions of agent-strace on their way in.
//!
//! A session without `meta.json` is told from its events, as that program's `backfill-meta`
//! does.

use super::event::{Event, Messages};
use super::{FORMAT, META};
use crate::formats::error::FormatError;
use crate::formats::frames;
use crate::formats::import::{Count, Session, Take};
use crate::formats::json::{self, compact, elements, shown, text_of, without_python_numbers};
use crate::formats::lines::{Lines, read_small};
use crate::formats::source::{Source, digits};
use crate::formats::time::seconds;
use agent_trace_model::{End, Ending, Stream};
use agent_trace_store::import::session::{Opening, Writer};
use agent_trace_store::journal::header::Imported;
use agent_trace_wire::message::{member, string};
use std::io::Read;
use std::path::Path;

/// A larger `meta.json` is none.
const MOST_META: u64 = 1 << 20;
/// How many events are looked at for what `meta.json` would say.
const LOOKED_AT: usize = 64;

/// A session as it lies there.
pub(in crate::formats) enum Place {
    /// A folder with `events.ndjson`.
    Folder {
        /// The lines.
        events: Source,
        /// `meta.json`, if it can be read.
        meta: Option<Vec<u8>>,
        /// The folder's name.
        name: String,
        /// The workspace that it lies in.
        workspace: Option<String>,
    },
    /// Lines alone: `export --format ndjson`.
    Lines(Source),
    /// One document: `inspect`, or `export --format json`.
    Document {
        /// Where it is.
        source: Source,
        /// All of it.
        text: Vec<u8>,
    },
}

/// The session in a folder.
pub(in crate::formats) fn folder(
    path: &Path,
    workspace: Option<String>,
    count: &mut Count,
) -> Result<Place, FormatError> {
    let meta = match path.join("meta.json") {
        file if file.is_symlink() || !file.is_file() => None,
        file => read_small(&file, MOST_META)?.filter(|meta| {
            let is_meta = json::is_object(meta.trim_ascii_start()) && json::is_valid(meta);
            count.unread_meta += u64::from(!is_meta);
            is_meta
        }),
    };
    let name = path.file_name().unwrap_or_default();
    Ok(Place::Folder {
        events: Source::File(path.join("events.ndjson")),
        meta,
        name: name.to_string_lossy().into_owned(),
        workspace,
    })
}

/// The session in a JSON document.
pub(in crate::formats) fn document(source: &Source) -> Result<Place, FormatError> {
    Ok(Place::Document {
        text: source.whole(crate::formats::MOST_DOCUMENT)?,
        source: source.clone(),
    })
}

/// Takes a session.
pub(in crate::formats) fn take(place: &Place, take: &mut Take<'_>) -> Result<(), FormatError> {
    let (source, meta, fallback, workspace) = match place {
        Place::Folder {
            events,
            meta,
            name,
            workspace,
        } => {
            let meta = meta.as_deref().map(compact);
            (events, meta, name.clone(), workspace.clone())
        }
        Place::Lines(source) => (source, None, source.stem(), None),
        Place::Document { source, text } => {
            let meta = ["session", "meta"]
                .iter()
                .find_map(|name| member(text, name));
            let meta = meta.filter(|meta| json::is_object(meta)).map(compact);
            (source, meta, source.stem(), None)
        }
    };
    let mut hasher = take.hasher();
    hasher.update(meta.as_deref().unwrap_or_default());
    source.hash(&mut hasher)?;
    let facts = facts(place, meta.as_deref())?;
    let session = facts.session.clone().unwrap_or(fallback);
    let name = match &workspace {
        Some(workspace) => format!("{workspace}/{session}"),
        None => session.clone(),
    };
    let path = match place {
        Place::Folder { events, .. } => events.path().parent().unwrap_or(events.path()),
        _ => source.path(),
    };
    let opening = Opening {
        task: None,
        started: facts.started,
        client: facts.agent.clone(),
        server: facts.agent.clone().filter(|_| facts.command.is_empty()),
        command: facts.command.clone(),
        folder: facts.folder.clone(),
        imported: Imported {
            format: FORMAT.into(),
            version: None,
            source: path.display().to_string(),
            session: session.clone(),
            digest: digits(&hasher),
        },
    };
    let found = Session {
        format: FORMAT,
        name,
        shown: session,
        path: path.to_owned(),
    };
    take.session(found, opening, |writer, count| {
        if let Some(meta) = &meta {
            let note = frames::note(META, meta);
            let at = FormatError::at(path);
            writer
                .frame(Stream::ClientToServer, facts.started, &note)
                .map_err(at)?;
        }
        let mut events = Events {
            messages: Messages::default(),
            path,
            end: None,
            count,
        };
        each(place, |text, lines| events.take(text, lines, writer))?;
        events.finish(facts.ended, writer)
    })
}

/// Hands out the events one by one; and the lines that they come from, for errors. Ends where
/// `take` says so.
fn each(
    place: &Place,
    mut take: impl FnMut(&[u8], &dyn Fn(&str) -> FormatError) -> Result<bool, FormatError>,
) -> Result<(), FormatError> {
    let source = match place {
        Place::Folder { events, .. } => events,
        Place::Lines(source) => source,
        Place::Document { source, text } => {
            let list = match json::is_object(text.trim_ascii_start()) {
                true => member(text, "events").unwrap_or_default(),
                false => text.trim_ascii(),
            };
            for (position, element) in elements(list).into_iter().enumerate() {
                let fault = |what: &str| FormatError::Line {
                    path: source.path().to_owned(),
                    line: position as u64 + 1,
                    what: format!("event {}: {what}", position + 1),
                };
                if !take(&compact(element), &fault)? {
                    break;
                }
            }
            return Ok(());
        }
    };
    // A session of which nothing was written yet has no file of events.
    if let Source::File(path) = source
        && !path.exists()
    {
        return Ok(());
    }
    let mut lines = source.lines()?;
    while let Some(line) = next_event(&mut lines)? {
        if !take(&line, &|what| lines.fault(what))? {
            break;
        }
    }
    Ok(())
}

/// The next line that holds an event. The last one may have been cut off while it was written.
fn next_event(lines: &mut Lines<impl Read>) -> Result<Option<Vec<u8>>, FormatError> {
    let Some((line, whole)) = lines.next()? else {
        return Ok(None);
    };
    let mut line = line.to_vec();
    if !json::is_valid(&line)
        && let Some(mended) = without_python_numbers(&line)
    {
        line = mended;
    }
    match Event::parse(&line) {
        Ok(_) => Ok(Some(line)),
        Err(_) if !whole => Ok(None),
        Err(invalid) if json::is_valid(&line) => {
            let _ = invalid;
            Err(lines.fault("not a JSON object"))
        }
        Err(invalid) => Err(lines.fault(invalid.to_string())),
    }
}

/// What `meta.json` says, or else the first events.
#[derive(Debug, Default)]
struct Facts {
    session: Option<String>,
    agent: Option<String>,
    command: Vec<String>,
    folder: Option<String>,
    started: u64,
    ended: Option<u64>,
}

fn facts(place: &Place, meta: Option<&[u8]>) -> Result<Facts, FormatError> {
    let mut facts = Facts::default();
    let time = |meta: &[u8], name: &str| seconds(member(meta, name)?).filter(|at| *at > 0);
    if let Some(meta) = meta {
        let text = |name: &str| text_of(meta, name).filter(|text| !text.is_empty());
        facts.session = text("session_id").map(Into::into);
        facts.agent = text("agent_name").map(Into::into);
        facts.started = time(meta, "started_at").unwrap_or(0);
        facts.ended = time(meta, "ended_at");
        let attribution = member(meta, "attribution").unwrap_or_default();
        facts.folder = text_of(attribution, "working_dir").map(Into::into);
        // A line for people: it may be no command at all.
        let command = text("command").unwrap_or_default().into_owned();
        facts.command = command.split_ascii_whitespace().map(Into::into).collect();
    }
    let mut seen = 0;
    each(place, |text, _| {
        let Ok(event) = Event::parse(text) else {
            return Ok(true);
        };
        seen += 1;
        facts.started = match facts.started {
            0 => event.wall(),
            started => started,
        };
        if event.kind == "session_start" {
            start(&event, &mut facts);
        }
        if facts.session.is_none() {
            let session = event.session_id.and_then(string);
            facts.session = session.filter(|id| !id.is_empty()).map(Into::into);
        }
        Ok(seen < LOOKED_AT)
    })?;
    Ok(facts)
}

/// What the beginning of a session says of it.
fn start(event: &Event<'_>, facts: &mut Facts) {
    if let Some(command) = event.datum("command").filter(|list| list.starts_with(b"[")) {
        let words = elements(command).into_iter();
        facts.command = words.map(|word| shown(word).into_owned()).collect();
    }
    if facts.folder.is_none() {
        facts.folder = event.string("cwd").map(Into::into);
    }
    if facts.agent.is_none() {
        let mode = event.string("mode").unwrap_or_default();
        let agent = mode.strip_suffix("-hooks").map(str::to_owned);
        facts.agent = agent.or_else(|| event.string("provider").map(Into::into));
    }
}

/// Events on their way into a session.
struct Events<'a> {
    messages: Messages,
    path: &'a Path,
    end: Option<(End, u64)>,
    count: &'a mut Count,
}

impl Events<'_> {
    fn take(
        &mut self,
        text: &[u8],
        fault: &dyn Fn(&str) -> FormatError,
        writer: &mut Writer<'_>,
    ) -> Result<bool, FormatError> {
        let event = Event::parse(text).map_err(|invalid| fault(&invalid.to_string()))?;
        if event.kind == "session_end" {
            self.end = Some((end(&event), event.wall()));
        }
        if !super::KINDS.contains(&&event.kind[..]) || event.unknown > 0 {
            self.count.unknown += 1;
        }
        let (stream, message) = self.messages.next(&event);
        let written = writer.frame(stream, event.wall(), &message);
        written.map_err(FormatError::at(self.path))?;
        Ok(true)
    }

    /// Ends the session. What it does not say is not made up: a call without an answer is one
    /// that was not recorded, unless the session broke off.
    fn finish(
        self,
        ended: Option<u64>,
        writer: &mut Writer<'_>,
    ) -> Result<Option<(End, u64)>, FormatError> {
        let closed = || ended.map(|at| (quiet_end(), at));
        let end = self.end.or_else(closed);
        let crashed = end
            .as_ref()
            .is_some_and(|(end, _)| end.ending == Ending::ServerExited);
        if self.messages.is_any_open() && !crashed {
            let gap = writer.gap("agent-strace does not record every answer");
            gap.map_err(FormatError::at(self.path))?;
        }
        Ok(end)
    }
}

/// An end of which nothing more is known.
pub(in crate::formats) fn quiet_end() -> End {
    End {
        ending: Ending::ClientClosed,
        exit_code: None,
        signal: None,
        killed: false,
        error: None,
    }
}

fn end(event: &Event<'_>) -> End {
    let code = event.datum("exit_code").map(shown);
    let code: Option<i32> = code.and_then(|code| code.parse().ok());
    End {
        ending: match code {
            None | Some(0) => Ending::ClientClosed,
            Some(_) => Ending::ServerExited,
        },
        // Python tells a signal as a negative status.
        exit_code: code.filter(|code| *code >= 0),
        signal: code
            .filter(|code| *code < 0)
            .map(|code| code.saturating_neg()),
        ..quiet_end()
    }
}
