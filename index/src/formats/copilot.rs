//! Sessions of Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`.
//!
//! A line has `type`, `id`, `parentId`, `timestamp` (RFC 3339) and `data`. `tool.execution_start`
//! is a call of a tool, `tool.execution_complete` with the same `toolCallId` its answer: a
//! `result`, or an `error`. What is said here is what 1.0.102 writes.

use super::frames;
use super::json::{is_object, is_string, members, quoted, shown, text_of};
use super::time::rfc3339;
use super::transcript::{Dialect, Entry, Facts, Message};
use agent_trace_wire::json::Invalid;
use agent_trace_wire::message::{member, member_at, string};
use std::borrow::Cow;

/// Copilot CLI.
pub(super) struct Copilot;

impl Dialect for Copilot {
    const FORMAT: &'static str = "copilot-cli";
    const MARK: &'static str = "copilot-cli/entry";
    const NAME: &'static str = "copilot-cli/id";
    const REPEATS: bool = true;

    fn look(line: &[u8], facts: &mut Facts) {
        if facts.session.is_some() || text_of(line, "type").as_deref() != Some("session.start") {
            return;
        }
        let data = member(line, "data").unwrap_or_default();
        let text = |name: &str| text_of(data, name).map(Cow::into_owned);
        facts.session = text("sessionId");
        facts.folder = member_at(data, &["context", "cwd"])
            .and_then(string)
            .map(Cow::into_owned);
        facts.version = text("copilotVersion");
        facts.begin(
            text("startTime")
                .as_deref()
                .or(text_of(line, "timestamp").as_deref()),
        );
    }

    fn entry(line: &[u8]) -> Result<Entry<'_>, Invalid> {
        let mut entry = Entry::default();
        let mut data: &[u8] = b"";
        members(line, |name, value| match name {
            "type" => entry.kind = string(value).unwrap_or("entry".into()),
            "timestamp" => entry.wall = rfc3339(&shown(value)).unwrap_or(0),
            "id" => entry.name = value,
            "data" if is_object(value) => data = value,
            _ => {}
        })?;
        entry.messages.extend(match &*entry.kind {
            "tool.execution_start" => call(data),
            "tool.execution_complete" => result(data),
            _ => None,
        });
        Ok(entry)
    }
}

fn call(data: &[u8]) -> Option<Message<'_>> {
    Some(Message::Call {
        id: member(data, "toolCallId").filter(|id| is_string(id))?,
        tool: member(data, "toolName")
            .filter(|name| is_string(name))?
            .into(),
        arguments: member(data, "arguments").map(Into::into),
    })
}

fn result(data: &[u8]) -> Option<Message<'_>> {
    let id = member(data, "toolCallId").filter(|id| is_string(id))?;
    let failed = member(data, "success") == Some(b"false");
    let said = match failed {
        true => member_at(data, &["error", "message"]),
        false => member_at(data, &["result", "content"]),
    };
    let content = match said {
        Some(list) if list.starts_with(b"[") => list.to_vec(),
        Some(said) => frames::text_content(&quoted(&shown(said))),
        None => b"[]".to_vec(),
    };
    // A command that exits with another status than 0 counts as a success there.
    let status = member_at(data, &["shellExecution", "exitCode"]);
    let failed = failed || status.is_some_and(|status| status != b"0");
    Some(Message::Result {
        id,
        content,
        failed,
    })
}
