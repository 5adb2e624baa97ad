//! The events that a run of ours is told with.
//!
//! What that program's own proxy would have recorded, and in the same words, but with whole
//! results: `result` beside `content_preview`, since its readers look for either.

use super::event::Event;
use crate::formats::claude::Claude;
use crate::formats::export::{Left, leave};
use crate::formats::json::{elements, is_number, is_object, is_string, quoted, shown, text_of};
use crate::formats::time::decimal;
use crate::formats::transcript::Dialect;
use agent_trace_model::Stream;
use agent_trace_model::step::{Message, Step};
use agent_trace_model::story::{Session, Standing, Story};
use agent_trace_wire::message::{member, member_at, string};

/// An event on its way out.
pub(super) struct Telling {
    pub(super) kind: &'static str,
    /// In nanoseconds since 1970.
    pub(super) wall: u64,
    pub(super) id: String,
    pub(super) parent: Option<String>,
    /// In nanoseconds.
    pub(super) duration: Option<u64>,
    /// A JSON object.
    pub(super) data: Vec<u8>,
    pub(super) redacted: bool,
}

/// How much of a result its preview has, in characters.
const PREVIEW: usize = 200;

/// The events of these sessions of a run.
pub(super) fn events(story: &Story, sessions: &[usize], left: &mut Left) -> Vec<Telling> {
    let mut told = Vec::new();
    let ours = |step: &&Step| sessions.contains(&step.session);
    let several = sessions.len() > 1;
    for step in story.steps.iter().filter(ours) {
        let server = story.session(step).filter(|_| several);
        one(
            story,
            step,
            server.map(|server| &server.server[..]),
            &mut told,
            left,
        );
    }
    // Answers lie where they came, not behind their requests.
    told.sort_by_key(|event| event.wall);
    let members = || sessions.iter().filter_map(|at| story.sessions.get(*at));
    let Some(first) = members().min_by_key(|session| session.started) else {
        return told;
    };
    let started = told
        .first()
        .map_or(first.started, |event| event.wall.min(first.started));
    told.insert(0, start(story, first, members(), started));
    if members().all(|session| session.standing != Standing::Live) {
        let last = members().map(|session| session.last).max().unwrap_or(0);
        let last = told.last().map_or(last, |event| event.wall.max(last));
        told.push(end(story, members(), last, last.saturating_sub(started)));
    }
    told
}

fn start<'a>(
    story: &Story,
    first: &Session,
    all: impl Iterator<Item = &'a Session>,
    wall: u64,
) -> Telling {
    let mut data = Object::default();
    if let Some(upstream) = &first.upstream {
        data.text("mode", "http");
        data.text("remote_url", upstream);
    } else {
        let words = first.command.iter().map(|word| quoted(word));
        data.raw("command", &list(words));
    }
    if let Some(project) = &story.project {
        data.text("cwd", project);
    }
    data.raw("servers", &list(all.map(|session| quoted(&session.server))));
    Telling {
        kind: "session_start",
        wall,
        id: id(story, 0, "start"),
        parent: None,
        duration: None,
        data: data.end(),
        redacted: false,
    }
}

fn end<'a>(
    story: &Story,
    mut all: impl Iterator<Item = &'a Session>,
    wall: u64,
    span: u64,
) -> Telling {
    let mut data = Object::default();
    let code = all.find_map(|session| {
        let end = session.end.as_ref()?;
        let signal = end.signal.map(|signal| -signal);
        end.exit_code.filter(|code| *code != 0).or(signal)
    });
    data.raw("exit_code", code.unwrap_or(0).to_string().as_bytes());
    data.raw("duration_ms", decimal(span, 6).as_bytes());
    Telling {
        kind: "session_end",
        wall,
        id: id(story, 0, "end"),
        parent: None,
        duration: None,
        data: data.end(),
        redacted: false,
    }
}

/// A step: the message that began it, and the one that answered it.
fn one(story: &Story, step: &Step, server: Option<&str>, told: &mut Vec<Telling>, left: &mut Left) {
    let method = step.method.as_deref().unwrap_or_default();
    let request = step.request.as_ref().and_then(|message| {
        let (kind, mut data) = asked(step, message)?;
        if let Some(server) = server {
            data.text("server_name", server);
        }
        let wall = step.wall;
        Some(telling(story, step, message, "request", kind, wall, data))
    });
    if request.is_none() && step.request.is_some() {
        let what = if method.is_empty() {
            "bytes that are no message"
        } else {
            method
        };
        leave(left, what);
    }
    let parent = request.as_ref().map(|request| request.id.clone());
    let answered = step.response.as_ref().and_then(|message| {
        let (kind, data) = answered(step, message)?;
        let wall = message.wall.max(step.wall);
        let event = telling(story, step, message, "response", kind, wall, data);
        Some(Telling {
            parent: parent.clone(),
            duration: step.duration,
            ..event
        })
    });
    if answered.is_none() && step.response.is_some() {
        leave(
            left,
            format!(
                "answers to {}",
                if method.is_empty() { "nothing" } else { method }
            ),
        );
    }
    told.extend(request);
    told.extend(answered);
}

fn telling(
    story: &Story,
    step: &Step,
    message: &Message,
    part: &str,
    kind: &'static str,
    wall: u64,
    data: Object,
) -> Telling {
    Telling {
        kind,
        wall,
        id: id(story, step.number, part),
        parent: None,
        duration: None,
        data: data.end(),
        redacted: message.redacted > 0,
    }
}

/// What a request or notification is told as.
fn asked(step: &Step, message: &Message) -> Option<(&'static str, Object)> {
    let text = &message.text[..];
    let params = member(text, "params").unwrap_or(b"{}");
    let mut data = Object::default();
    let kind = match step.method.as_deref()? {
        "tools/call" if step.is_clients() => {
            data.text("tool_name", step.target.as_deref().unwrap_or("unknown"));
            let arguments = member(params, "arguments").unwrap_or(b"{}");
            data.raw("arguments", arguments);
            data.maybe("request_id", member(text, "id"));
            "tool_call"
        }
        "resources/read" => {
            data.text("uri", step.target.as_deref().unwrap_or_default());
            data.maybe("request_id", member(text, "id"));
            "file_read"
        }
        "notifications/resources/updated" => {
            let uri = text_of(params, "uri").unwrap_or_default();
            data.text("uri", &uri);
            "file_write"
        }
        "sampling/createMessage" | "completion/complete" => {
            data.text("method", step.method.as_deref()?);
            let messages = member(params, "messages").map(elements).unwrap_or_default();
            data.raw("message_count", messages.len().to_string().as_bytes());
            data.maybe(
                "model",
                member(params, "model").filter(|model| is_string(model)),
            );
            data.maybe("last_message", messages.last().copied());
            data.maybe("request_id", member(text, "id"));
            "llm_request"
        }
        method => {
            let kind = method.strip_prefix(Claude::FORMAT)?.strip_prefix('/')?;
            return transcript(kind, params);
        }
    };
    Some((kind, data))
}

/// What a line of a transcript is told as.
fn transcript(kind: &str, entry: &[u8]) -> Option<(&'static str, Object)> {
    let message = member(entry, "message")?;
    let said = said(member(message, "content")?);
    let mut data = Object::default();
    match kind {
        "user" if !said.is_empty() => {
            data.text("prompt", &said);
            Some(("user_prompt", data))
        }
        "assistant" => {
            data.maybe(
                "model",
                member(message, "model").filter(|model| is_string(model)),
            );
            data.text("text", &said);
            data.maybe(
                "usage",
                member(message, "usage").filter(|usage| is_object(usage)),
            );
            Some(("assistant_response", data))
        }
        _ => None,
    }
}

/// What an answer is told as.
fn answered(step: &Step, message: &Message) -> Option<(&'static str, Object)> {
    let text = &message.text[..];
    let mut data = Object::default();
    if let Some(error) = member(text, "error").filter(|error| *error != b"null") {
        data.maybe("code", member(error, "code").filter(|code| is_number(code)));
        data.text("message", &text_of(error, "message").unwrap_or_default());
        data.maybe("request_id", member(text, "id"));
        if let Some(tool) = step.tool() {
            data.text("tool_name", tool);
        }
        return Some(("error", data));
    }
    let result = member(text, "result")?;
    if step.tool().is_some() && step.from == Stream::ClientToServer {
        let content = member(result, "content").unwrap_or_default();
        let kinds = elements(content).into_iter();
        let kinds = kinds.map(|block| quoted(&text_of(block, "type").unwrap_or("unknown".into())));
        let mut said = said(content);
        if said.is_empty() {
            let structured = member(result, "structuredContent");
            said = structured
                .map(|it| shown(it).into_owned())
                .unwrap_or_default();
        }
        data.maybe("request_id", member(text, "id"));
        data.text("tool_name", step.tool().unwrap_or_default());
        data.raw("content_types", &list(kinds));
        data.text(
            "content_preview",
            &said.chars().take(PREVIEW).collect::<String>(),
        );
        data.text("result", &said);
        if member(result, "isError") == Some(b"true") {
            data.raw("is_error", b"true");
        }
        return Some(("tool_result", data));
    }
    if step.method.as_deref() == Some("sampling/createMessage") {
        data.maybe(
            "model",
            member(result, "model").filter(|model| is_string(model)),
        );
        let said = member_at(result, &["content", "text"]).and_then(string);
        data.text("text", &said.unwrap_or_default());
        return Some(("llm_response", data));
    }
    None
}

/// The texts of content: a string, or blocks.
fn said(content: &[u8]) -> String {
    if let Some(text) = string(content) {
        return text.into_owned();
    }
    let blocks = elements(content).into_iter();
    let texts: Vec<_> = blocks.filter_map(|block| text_of(block, "text")).collect();
    texts.join("\n")
}

/// The id of an event: the same each time that the run is exported.
fn id(story: &Story, step: usize, part: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(story.id.as_bytes());
    hasher.update(&(step as u64).to_le_bytes());
    hasher.update(part.as_bytes());
    hasher.finalize().to_hex()[..12].to_owned()
}

fn list(values: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let values: Vec<Vec<u8>> = values.collect();
    [b"[", &values.join(&b',')[..], b"]"].concat()
}

/// A JSON object while it is written.
#[derive(Default)]
pub(super) struct Object(Vec<u8>);

impl Object {
    pub(super) fn raw(&mut self, name: &str, value: &[u8]) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(&quoted(name));
        self.0.push(b':');
        self.0.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &quoted(value));
    }

    pub(super) fn maybe(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.raw(name, value);
        }
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }
}

/// The event that a message of an imported session was made from.
pub(super) fn source(message: &Message) -> Option<Event<'_>> {
    let text = super::event::source(&message.text)?;
    Event::parse(text).ok()
}
