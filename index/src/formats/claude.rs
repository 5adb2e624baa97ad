//! Transcripts of Claude Code: `~/.claude/projects/<project>/<session>.jsonl`.
//!
//! A line has `type`, `uuid`, `sessionId`, `timestamp` (RFC 3339) and, of `user` and `assistant`,
//! a `message` of the Anthropic API. `tool_use` blocks are calls of tools and `tool_result` blocks
//! their answers. What is said here is what version 2.1 writes.

use super::frames;
use super::json::{elements, is_string, members, quoted, shown, text_of};
use super::time::rfc3339;
use super::transcript::{Dialect, Entry, Facts, Message};
use agent_trace_wire::json::Invalid;
use agent_trace_wire::message::{member, string};
use std::borrow::Cow;

/// Claude Code.
pub(super) struct Claude;

impl Dialect for Claude {
    const FORMAT: &'static str = "claude-code";
    const MARK: &'static str = "claude-code/entry";
    const NAME: &'static str = "claude-code/uuid";
    const REPEATS: bool = false;

    fn look(line: &[u8], facts: &mut Facts) {
        let text = |name: &str| text_of(line, name).map(Cow::into_owned);
        let first = facts.session.is_none();
        facts.session = facts.session.take().or_else(|| text("sessionId"));
        if first && facts.session.is_some() {
            facts.agent = text("agentId");
        }
        facts.folder = facts.folder.take().or_else(|| text("cwd"));
        facts.version = facts.version.take().or_else(|| text("version"));
        if facts.started == 0 {
            facts.begin(text("timestamp").as_deref());
        }
    }

    fn entry(line: &[u8]) -> Result<Entry<'_>, Invalid> {
        let mut entry = Entry::default();
        let mut blocks = Vec::new();
        members(line, |name, value| match name {
            "type" => entry.kind = string(value).unwrap_or("entry".into()),
            "timestamp" => entry.wall = rfc3339(&shown(value)).unwrap_or(0),
            "uuid" => entry.name = value,
            "message" => blocks = member(value, "content").map(elements).unwrap_or_default(),
            _ => {}
        })?;
        entry.messages = blocks.iter().copied().filter_map(message).collect();
        entry.all = entry.messages.len() == blocks.len();
        Ok(entry)
    }
}

fn message(block: &[u8]) -> Option<Message<'_>> {
    match &*text_of(block, "type")? {
        "tool_use" => {
            let tool = member(block, "name").filter(|name| is_string(name));
            Some(Message::Call {
                id: member(block, "id").unwrap_or(b"null"),
                tool: tool.unwrap_or(b"\"unknown\"").into(),
                arguments: member(block, "input").map(Into::into),
            })
        }
        "tool_result" => Some(Message::Result {
            id: member(block, "tool_use_id").unwrap_or(b"null"),
            content: match member(block, "content") {
                Some(list) if list.starts_with(b"[") => list.to_vec(),
                Some(said) => frames::text_content(&quoted(&shown(said))),
                None => b"[]".to_vec(),
            },
            failed: member(block, "is_error") == Some(b"true"),
        }),
        _ => None,
    }
}
