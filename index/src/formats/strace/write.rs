//! Runs as a folder that agent-strace 0.103.0 reads: `<session>/meta.json` and
//! `<session>/events.ndjson`.
//!
//! That version refuses a session whole for an event of a kind, or with a member, that it does
//! not know. So only its 14 kinds and its members go out, each with the type that it expects,
//! and ids as it checks them. Each event has the SHA-256 of the line before it (`prev_hash`).
//!
//! A session that came from agent-strace goes out with its own events under its own id. All
//! other sessions of a run are one session there.

use super::event::Event;
use super::told::{self, Object, Telling};
use super::{KINDS, META};
use crate::formats::error::FormatError;
use crate::formats::export::{Left, leave};
use crate::formats::json::{Flattened, is_number, is_object, is_string, portable, quoted};
use crate::formats::time::{decimal, seconds};
use agent_trace_model::step::Message;
use agent_trace_model::story::Story;
use agent_trace_wire::message::{member, string};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes runs into a folder.
pub struct Folder {
    root: PathBuf,
    left: Left,
    flattened: Flattened,
}

impl Folder {
    /// A folder of agent-strace; made if it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(root: &Path) -> Result<Self, FormatError> {
        make(root).map_err(FormatError::at(root))?;
        let ignore = root.join(".gitignore");
        if !ignore.exists() {
            // As that program does: traces are nothing to commit.
            let written = create(&ignore).and_then(|mut file| file.write_all(b"*\n"));
            written.map_err(FormatError::at(&ignore))?;
        }
        Ok(Self {
            root: root.to_owned(),
            left: Left::new(),
            flattened: Flattened::default(),
        })
    }

    /// Writes a run. Returns the ids of the sessions that it became.
    ///
    /// # Errors
    /// When a session of this id is there already, or the folder cannot be written. Sessions
    /// appear as a whole or not at all.
    pub fn add(&mut self, story: &Story) -> Result<Vec<String>, FormatError> {
        let theirs = |at: &usize| messages(story, *at).iter().any(is_theirs);
        let imported = |at: &usize| story.sessions[*at].transport == "imported" && theirs(at);
        let (own, ours): (Vec<usize>, Vec<usize>) = (0..story.sessions.len()).partition(imported);
        let mut ids = Vec::new();
        for session in own {
            ids.push(self.again(story, session)?);
        }
        if !ours.is_empty() || ids.is_empty() {
            ids.push(self.tell(story, &ours)?);
        }
        Ok(ids)
    }

    /// What was left out of all runs.
    #[must_use]
    pub fn finish(mut self) -> Left {
        if self.flattened.values > 0 {
            let what = "values too deep or too long, of which all but the text".to_owned();
            self.left.insert(what, self.flattened.values);
        }
        self.left
    }

    /// A session that came from there.
    fn again(&mut self, story: &Story, session: usize) -> Result<String, FormatError> {
        let messages = messages(story, session);
        let meta = messages.iter().find_map(|message| meta_of(&message.text));
        let meta = meta.unwrap_or(b"{}");
        let first = messages.iter().find_map(|message| told::source(message));
        let named = member(meta, "session_id").or(first.as_ref().and_then(|it| it.session_id));
        let named = named.and_then(string).unwrap_or_default().into_owned();
        let id = if is_id(&named) {
            named
        } else {
            derived(story, session)
        };
        let mut writer = Writer::begin(&self.root, &id)?;
        let tenant = text(meta, "tenant_id", is_tenant);
        for (position, message) in messages.iter().enumerate() {
            let Some(event) = told::source(message) else {
                continue;
            };
            if let Some(text) = self.strict(&event, message, position, &id, tenant.as_deref()) {
                writer.event(&event.kind, message.wall, &text)?;
            }
        }
        let meta = self.meta_again(meta, story, session, &writer);
        writer.finish(&meta)?;
        Ok(id)
    }

    /// Sessions of ours, or from elsewhere.
    fn tell(&mut self, story: &Story, sessions: &[usize]) -> Result<String, FormatError> {
        let mut id = story.id.to_string();
        id.truncate(16);
        let mut writer = Writer::begin(&self.root, &id)?;
        for event in told::events(story, sessions, &mut self.left) {
            let members = self.members(&event, &id);
            writer.event(event.kind, event.wall, &members)?;
        }
        let mut meta = Object::default();
        meta.text("session_id", &id);
        meta.raw("started_at", decimal(writer.started, 9).as_bytes());
        meta.raw("ended_at", decimal(writer.ended, 9).as_bytes());
        let first = sessions.first().and_then(|at| story.sessions.get(*at));
        if let Some(first) = first {
            let names = ["agent-trace".to_owned(), first.client.clone()];
            let name = names.iter().rfind(|name| !name.is_empty());
            meta.raw(
                "agent_name",
                &self.out(&quoted(name.map_or("", |name| name))),
            );
            let command = match &first.upstream {
                Some(upstream) => upstream.clone(),
                None => first.command.join(" "),
            };
            meta.raw("command", &self.out(&quoted(&command)));
        }
        writer.counts(&mut meta);
        writer.finish(&meta.end())?;
        Ok(id)
    }

    fn members(&mut self, event: &Telling, session: &str) -> Members {
        Members {
            timestamp: decimal(event.wall, 9).into_bytes(),
            id: event.id.clone(),
            session: session.to_owned(),
            parent: event.parent.clone(),
            duration: event.duration.map(|span| decimal(span, 6).into_bytes()),
            data: self.out(&event.data),
            redacted: event.redacted,
            tenant: None,
        }
    }

    /// An event that came from there, with nothing in it that they would refuse; none where it
    /// is of a kind that they do not know.
    fn strict(
        &mut self,
        event: &Event<'_>,
        message: &Message,
        position: usize,
        session: &str,
        tenant: Option<&str>,
    ) -> Option<Members> {
        if !KINDS.contains(&&event.kind[..]) {
            let kind = match &event.kind[..] {
                "" => "events without a kind".to_owned(),
                kind => format!("events of the kind {kind:?}"),
            };
            leave(&mut self.left, kind);
            return None;
        }
        if event.unknown > 0 {
            leave(&mut self.left, "members that agent-strace does not have");
        }
        let place = format!("{session} {position}");
        let timestamp = event.timestamp.filter(|at| seconds(at).is_some());
        let duration = event.duration_ms.filter(|span| is_finite(span));
        let data = match event.data {
            Some(data) if is_object(data) => self.out(data),
            Some(data) => [b"{\"value\":", &self.out(data)[..], b"}"].concat(),
            None => b"{}".to_vec(),
        };
        let own = text(event.text, "tenant_id", is_tenant);
        if own.is_some() && tenant.is_some() && own.as_deref() != tenant {
            leave(
                &mut self.left,
                "tenants of events that are not their session's",
            );
        }
        let tenant = own.filter(|own| tenant.is_none_or(|tenant| tenant == own));
        Some(Members {
            timestamp: timestamp
                .map_or_else(|| decimal(message.wall, 9).into_bytes(), <[u8]>::to_vec),
            id: event_id(event.event_id).unwrap_or_else(|| hashed(place.as_bytes())),
            session: session.to_owned(),
            parent: event_id(event.parent_id),
            duration: duration.map(<[u8]>::to_vec),
            data,
            redacted: event.redacted == Some(b"true") || message.redacted > 0,
            tenant,
        })
    }

    /// `meta.json` as it came, without what they would refuse; what is missing is derived.
    fn meta_again(
        &mut self,
        meta: &[u8],
        story: &Story,
        session: usize,
        writer: &Writer,
    ) -> Vec<u8> {
        let mut out = Object::default();
        out.text("session_id", &writer.id);
        let number = |name: &str| member(meta, name).filter(|value| is_finite(value));
        let started = number("started_at").map(<[u8]>::to_vec);
        let started = started.unwrap_or_else(|| decimal(writer.started, 9).into_bytes());
        out.raw("started_at", &started);
        let is_told = meta != b"{}";
        let ended = decimal(writer.ended, 9).into_bytes();
        let derived = Some(ended).filter(|_| !is_told);
        let ended = number("ended_at").map(<[u8]>::to_vec).or(derived);
        out.maybe("ended_at", ended.as_deref());
        if !is_told && let Some(session) = story.sessions.get(session) {
            out.raw("agent_name", &self.out(&quoted(&session.client)));
            writer.counts(&mut out);
            return out.end();
        }
        for name in [
            "agent_name",
            "command",
            "parent_session_id",
            "parent_event_id",
            "team",
        ]
        .into_iter()
        .chain(["workspace_id", "trace_id", "parent_span_id", "trace_flags"])
        {
            let fits = |text: &str| name != "parent_session_id" || is_id(text);
            if let Some(text) = text(meta, name, fits) {
                out.raw(name, &self.out(&quoted(&text)));
            }
        }
        for name in [
            "tool_calls",
            "llm_requests",
            "errors",
            "total_tokens",
            "depth",
        ] {
            let whole = |value: &&[u8]| value.len() < 19 && value.iter().all(u8::is_ascii_digit);
            out.maybe(name, number(name).filter(whole));
        }
        out.maybe("total_duration_ms", number("total_duration_ms"));
        if let Some(value) = member(meta, "attribution").filter(|value| is_object(value)) {
            out.raw("attribution", &self.out(value));
        }
        out.maybe(
            "redacted",
            member(meta, "redacted").filter(|value| *value == b"true"),
        );
        if let Some(tenant) = text(meta, "tenant_id", is_tenant) {
            out.raw("tenant_id", &self.out(&quoted(&tenant)));
        }
        out.end()
    }

    fn out(&mut self, value: &[u8]) -> Vec<u8> {
        portable(value, &mut self.flattened)
    }
}

/// The messages of a session in the order of their file.
fn messages(story: &Story, session: usize) -> Vec<&Message> {
    let steps = story.steps.iter().filter(|step| step.session == session);
    let mut all: Vec<&Message> = steps
        .flat_map(|step| [&step.request, &step.response])
        .flatten()
        .collect();
    all.sort_by_key(|message| message.frame);
    all
}

fn is_theirs(message: &&Message) -> bool {
    super::event::source(&message.text).is_some() || meta_of(&message.text).is_some()
}

/// The `meta.json` that a message holds.
fn meta_of(message: &[u8]) -> Option<&[u8]> {
    let method = member(message, "method").and_then(string)?;
    member(message, "params").filter(|params| method == META && is_object(params))
}

/// A string of an object that is not empty and fits.
fn text(object: &[u8], name: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let text = string(member(object, name)?)?.into_owned();
    (!text.is_empty() && fits(&text)).then_some(text)
}

/// Whether they take this for the id of a session (`_SAFE_ID_RE` of their `store.py`).
fn is_id(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=128).contains(&text.len())
        && text.bytes().all(inside)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Whether they take this for a tenant (`validate_tenant_id`).
fn is_tenant(text: &str) -> bool {
    text.trim() == text && text.chars().count() <= 256 && !text.chars().any(char::is_control)
}

/// Python's numbers have no bound, but some of its readers take only finite ones.
fn is_finite(value: &[u8]) -> bool {
    let number = std::str::from_utf8(value).ok().filter(|_| is_number(value));
    let number = number.and_then(|text| text.parse::<f64>().ok());
    number.is_some_and(f64::is_finite)
}

/// An event's id: as it is if it is a plain one, or else a short hash, the same wherever it is
/// named.
fn event_id(value: Option<&[u8]>) -> Option<String> {
    let value = value.filter(|value| !matches!(*value, b"null" | b"\"\""))?;
    match string(value).filter(|_| is_string(value)) {
        Some(text) if is_id(&text) => Some(text.into_owned()),
        _ => Some(hashed(value)),
    }
}

fn hashed(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..12].to_owned()
}

/// The id of a session whose own one they would refuse.
fn derived(story: &Story, session: usize) -> String {
    let id = story
        .sessions
        .get(session)
        .map(|session| session.id.to_string());
    blake3::hash(id.unwrap_or_default().as_bytes()).to_hex()[..16].to_owned()
}

/// The members of an event, ready to be written.
struct Members {
    timestamp: Vec<u8>,
    id: String,
    session: String,
    parent: Option<String>,
    duration: Option<Vec<u8>>,
    data: Vec<u8>,
    redacted: bool,
    tenant: Option<String>,
}

/// One session while it is written.
struct Writer {
    id: String,
    aside: PathBuf,
    place: PathBuf,
    out: BufWriter<File>,
    /// Hash of the line before.
    hash: Option<String>,
    started: u64,
    ended: u64,
    calls: u64,
    requests: u64,
    errors: u64,
}

impl Writer {
    fn begin(root: &Path, id: &str) -> Result<Self, FormatError> {
        let place = root.join(id);
        if place.symlink_metadata().is_ok() {
            return Err(FormatError::Exists { path: place });
        }
        let aside = root.join(format!(".{id}.tmp{}", std::process::id()));
        make(&aside).map_err(FormatError::at(&aside))?;
        let path = aside.join("events.ndjson");
        let file = create(&path).map_err(FormatError::at(&path))?;
        Ok(Self {
            id: id.to_owned(),
            aside,
            place,
            out: BufWriter::new(file),
            hash: None,
            started: 0,
            ended: 0,
            calls: 0,
            requests: 0,
            errors: 0,
        })
    }

    fn event(&mut self, kind: &str, wall: u64, event: &Members) -> Result<(), FormatError> {
        let mut line = Object::default();
        line.text("event_type", kind);
        line.raw("timestamp", &event.timestamp);
        line.text("event_id", &event.id);
        line.text("session_id", &event.session);
        if let Some(parent) = &event.parent {
            line.text("parent_id", parent);
        }
        line.maybe("duration_ms", event.duration.as_deref());
        line.raw("data", &event.data);
        if let Some(hash) = &self.hash {
            line.text("prev_hash", hash);
        }
        if event.redacted {
            line.raw("redacted", b"true");
        }
        if let Some(tenant) = &event.tenant {
            let tenant = portable(&quoted(tenant), &mut Flattened::default());
            line.raw("tenant_id", &tenant);
        }
        let mut line = line.end();
        let digest = ring::digest::digest(&ring::digest::SHA256, &line);
        let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        self.hash = Some(digits.collect());
        line.push(b'\n');
        if wall > 0 {
            self.started = if self.started == 0 {
                wall
            } else {
                self.started.min(wall)
            };
            self.ended = self.ended.max(wall);
        }
        self.calls += u64::from(kind == "tool_call");
        self.requests += u64::from(kind == "llm_request");
        self.errors += u64::from(kind == "error");
        let written = self.out.write_all(&line);
        written.map_err(FormatError::at(&self.aside))
    }

    fn counts(&self, meta: &mut Object) {
        let counts = [
            ("tool_calls", self.calls),
            ("llm_requests", self.requests),
            ("errors", self.errors),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            meta.raw(name, count.to_string().as_bytes());
        }
        let span = self.ended.saturating_sub(self.started);
        meta.raw("total_duration_ms", decimal(span, 6).as_bytes());
    }

    /// Gives the session its name.
    fn finish(mut self, meta: &[u8]) -> Result<(), FormatError> {
        let aside = self.aside.clone();
        let written = self.out.flush().and_then(|()| {
            create(&self.aside.join("meta.json"))?.write_all(meta)?;
            fs::rename(&self.aside, &self.place)
        });
        written.map_err(FormatError::at(aside))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Of one that was not finished.
        let _ = fs::remove_dir_all(&self.aside);
    }
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A new file for its owner alone: it holds what the tools did.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
