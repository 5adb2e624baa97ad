//! Rollouts of Codex: `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl`.
//!
//! A line has `timestamp` (RFC 3339), `type` and `payload`. A `response_item` holds what the model
//! saw: `function_call`, `custom_tool_call` and `local_shell_call` with a `call_id`, and their
//! `…_output`. An `event_msg` about an item that was completed says more of its end: of an MCP call
//! the server's own result, of a command its exit code. It comes first, so it is the answer; the
//! words that the model got are kept as a line. What is said here is what 0.171.0 writes.

use super::frames;
use super::json::{elements, is_object, is_string, members, quoted, shown, text_of};
use super::time::rfc3339;
use super::transcript::{Dialect, Entry, Facts, Message};
use agent_trace_wire::json::Invalid;
use agent_trace_wire::message::{member, member_at, string};
use std::borrow::Cow;

/// Codex.
pub(super) struct Codex;

impl Dialect for Codex {
    const FORMAT: &'static str = "codex";
    const MARK: &'static str = "codex/entry";
    const NAME: &'static str = "codex/ordinal";
    const REPEATS: bool = true;

    fn look(line: &[u8], facts: &mut Facts) {
        if facts.session.is_some() || text_of(line, "type").as_deref() != Some("session_meta") {
            return;
        }
        let payload = member(line, "payload").unwrap_or_default();
        let text = |name: &str| text_of(payload, name).map(Cow::into_owned);
        facts.session = text("id").or_else(|| text("session_id"));
        facts.folder = text("cwd");
        facts.version = text("cli_version");
        facts.begin(
            text("timestamp")
                .as_deref()
                .or(text_of(line, "timestamp").as_deref()),
        );
    }

    fn entry(line: &[u8]) -> Result<Entry<'_>, Invalid> {
        let mut entry = Entry::default();
        let mut payload: &[u8] = b"";
        members(line, |name, value| match name {
            "type" => entry.kind = string(value).unwrap_or("entry".into()),
            "timestamp" => entry.wall = rfc3339(&shown(value)).unwrap_or(0),
            "ordinal" => entry.name = value,
            "payload" if is_object(value) => payload = value,
            _ => {}
        })?;
        let said = match &*entry.kind {
            "response_item" => item(payload),
            "event_msg" => completed(payload),
            _ => None,
        };
        entry.messages.extend(said);
        if let ("response_item" | "event_msg", Some(kind)) =
            (&*entry.kind, text_of(payload, "type"))
        {
            entry.kind = match text_of(payload, "role").filter(|_| kind == "message") {
                // What the user, the model and the program say, told apart.
                Some(role) => role,
                None => kind,
            };
        }
        Ok(entry)
    }
}

/// What the model asked for or was answered.
fn item(payload: &[u8]) -> Option<Message<'_>> {
    let id = member(payload, "call_id").filter(|id| is_string(id))?;
    let kind = text_of(payload, "type")?;
    if kind.ends_with("_output") {
        return Some(Message::Result {
            id,
            content: content(member(payload, "output").unwrap_or(b"[]")),
            failed: false,
        });
    }
    let name = text_of(payload, "name");
    let arguments = match &*kind {
        // JSON in a string, as the model wrote it.
        "function_call" => member(payload, "arguments").map(arguments),
        "custom_tool_call" => {
            let input = member(payload, "input").unwrap_or(b"null");
            Some([b"{\"input\":", input, b"}"].concat().into())
        }
        "local_shell_call" => member(payload, "action").map(Into::into),
        _ => return None,
    };
    let name = name.unwrap_or(kind);
    // As its hooks name the tools of servers.
    let tool = match text_of(payload, "namespace") {
        Some(namespace) => quoted(&format!("{namespace}__{name}")),
        None => quoted(&name),
    };
    Some(Message::Call {
        id,
        tool: tool.into(),
        arguments,
    })
}

/// How an item of work ended.
fn completed(payload: &[u8]) -> Option<Message<'_>> {
    if text_of(payload, "type")? != "item_completed" {
        return None;
    }
    let item = member(payload, "item")?;
    let id = member(item, "id").filter(|id| is_string(id))?;
    let failed = text_of(item, "status").is_some_and(|status| status == "failed");
    let content = match &*text_of(item, "type")? {
        "McpToolCall" => match (
            member(item, "result"),
            member_at(item, &["error", "message"]),
        ) {
            (Some(result), _) if is_object(result) => {
                content(member(result, "content").unwrap_or(b"[]"))
            }
            (_, Some(message)) => content(message),
            _ => return None,
        },
        "CommandExecution" => content(member(item, "aggregated_output")?),
        _ => return None,
    };
    Some(Message::Result {
        id,
        content,
        failed,
    })
}

fn arguments(value: &[u8]) -> Cow<'_, [u8]> {
    match string(value) {
        Some(text)
            if is_object(text.trim().as_bytes()) && super::json::is_valid(text.as_bytes()) =>
        {
            Cow::Owned(text.into_owned().into_bytes())
        }
        _ => Cow::Borrowed(value),
    }
}

/// Content as MCP has it: texts that the model was given have a type of their own.
fn content(said: &[u8]) -> Vec<u8> {
    if !said.starts_with(b"[") {
        return frames::text_content(&quoted(&shown(said)));
    }
    let mut list = vec![b'['];
    for block in elements(said) {
        if list.len() > 1 {
            list.push(b',');
        }
        match (text_of(block, "type").as_deref(), member(block, "text")) {
            (Some("input_text"), Some(text)) => {
                list.extend([b"{\"type\":\"text\",\"text\":", text, b"}"].concat());
            }
            _ => list.extend(block),
        }
    }
    list.push(b']');
    list
}
