//! One line of `events.ndjson`, and the message that it becomes.

use super::{MARK, META, PREFIX};
use crate::formats::frames::{self, Call, Open, short};
use crate::formats::json::{bare, is_number, is_object, is_string, members, quoted, shown};
use agent_trace_model::Stream;
use agent_trace_wire::json::Invalid;
use agent_trace_wire::message::{member, string};
use std::borrow::Cow;

/// An event: its members as JSON text, none of them checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// What kind of event it is; empty where `event_type` is no string.
    pub kind: String,
    /// Seconds since 1970.
    pub timestamp: Option<&'a [u8]>,
    /// Its id.
    pub event_id: Option<&'a [u8]>,
    /// The session that it says it belongs to.
    pub session_id: Option<&'a [u8]>,
    /// The event that it answers.
    pub parent_id: Option<&'a [u8]>,
    /// How long what it answers took, in milliseconds.
    pub duration_ms: Option<&'a [u8]>,
    /// What it is about, by kind.
    pub data: Option<&'a [u8]>,
    /// Whether secrets were hidden in it.
    pub redacted: Option<&'a [u8]>,
    /// The tenant.
    pub tenant_id: Option<&'a [u8]>,
    /// How many other members it has.
    pub unknown: usize,
    /// All of it.
    pub text: &'a [u8],
}

impl<'a> Event<'a> {
    /// Reads an event. Of members that are there twice the last counts.
    ///
    /// # Errors
    /// When the text is no JSON object.
    pub fn parse(text: &'a [u8]) -> Result<Self, Invalid> {
        let text = bare(text);
        let mut event = Self {
            text,
            ..Self::default()
        };
        members(text, |name, value| match name {
            "event_type" => event.kind = string(value).unwrap_or_default().into_owned(),
            "timestamp" => event.timestamp = Some(value),
            "event_id" => event.event_id = Some(value),
            "session_id" => event.session_id = Some(value),
            "parent_id" => event.parent_id = Some(value),
            "duration_ms" => event.duration_ms = Some(value),
            "data" => event.data = Some(value),
            "redacted" => event.redacted = Some(value),
            "tenant_id" => event.tenant_id = Some(value),
            // The chain of the file it was in.
            "prev_hash" => {}
            _ => event.unknown += 1,
        })?;
        Ok(event)
    }

    /// When it happened, in nanoseconds since 1970; 0 where that is not known.
    #[must_use]
    pub fn wall(&self) -> u64 {
        let seconds = self.timestamp.and_then(crate::formats::time::seconds);
        seconds.unwrap_or(0)
    }

    /// A member of its data.
    #[must_use]
    pub fn datum(&self, name: &str) -> Option<&'a [u8]> {
        member(self.data?, name).filter(|value| *value != b"null")
    }

    /// A member of its data that is a string.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.datum(name)?)
    }
}

/// Turns the events of one session into messages, one each.
#[derive(Debug, Default)]
pub struct Messages {
    open: Open,
    number: u64,
}

impl Messages {
    /// The message that an event becomes, and who sends it.
    pub fn next(&mut self, event: &Event<'_>) -> (Stream, Vec<u8>) {
        self.number += 1;
        let message = match &event.kind[..] {
            "tool_call" => self.call(event),
            "tool_result" => self.result(event),
            "error" => Some(self.error(event)),
            _ => None,
        };
        message.unwrap_or_else(|| (Stream::ClientToServer, note(event)))
    }

    /// Whether there are calls without an answer.
    #[must_use]
    pub fn is_any_open(&self) -> bool {
        self.open.is_left()
    }

    fn call(&mut self, event: &Event<'_>) -> Option<(Stream, Vec<u8>)> {
        let name = event.datum("tool_name").filter(|name| is_string(name))?;
        let id = frames::id_of(event.event_id, self.number);
        let asked = event.datum("request_id").or(event.datum("tool_use_id"));
        self.open.add(Call {
            id: id.clone(),
            names: [
                event.event_id.map(short),
                asked.map(short),
                Some(short(name)),
            ],
        });
        let arguments = event.datum("arguments");
        let text = frames::call(&id, name, arguments, MARK, event.text);
        Some((Stream::ClientToServer, text))
    }

    fn result(&mut self, event: &Event<'_>) -> Option<(Stream, Vec<u8>)> {
        let call = self.answered(event)?;
        let failed = event.datum("is_error") == Some(b"true");
        let content = content(event);
        let text = frames::result(&call.id, &content, failed, MARK, event.text);
        Some((Stream::ServerToClient, text))
    }

    /// An error that answers a call is one of the protocol where it has a code, or else one of
    /// the tool. Any other answers nothing.
    fn error(&mut self, event: &Event<'_>) -> (Stream, Vec<u8>) {
        let call = self.answered(event);
        let code = event.datum("code").filter(|code| is_number(code));
        let said = ["message", "error"]
            .iter()
            .find_map(|name| event.datum(name));
        let said = quoted(&said.map_or("error".into(), shown));
        let text = match (&call, code) {
            (Some(call), None) => {
                let content = frames::text_content(&said);
                frames::result(&call.id, &content, true, MARK, event.text)
            }
            (call, code) => {
                let id = call.as_ref().map_or(&b"null"[..], |call| &call.id);
                frames::error(id, code.unwrap_or(b"-32000"), &said, MARK, event.text)
            }
        };
        (Stream::ServerToClient, text)
    }

    /// The call that an event answers: its parent, or the call with the same request, or if it
    /// names neither, the last one of the same tool.
    fn answered(&mut self, event: &Event<'_>) -> Option<Call> {
        let parent = event
            .parent_id
            .filter(|id| !matches!(*id, b"null" | b"\"\""));
        let asked = event.datum("request_id").or(event.datum("tool_use_id"));
        let found = self.open.take(0, parent.map(short));
        let found = found.or_else(|| self.open.take(1, asked.map(short)));
        if found.is_some() || parent.is_some() || asked.is_some() {
            return found;
        }
        self.open.take(2, event.datum("tool_name").map(short))
    }
}

/// What a tool answered, as content. Writers differ in where they put it.
fn content(event: &Event<'_>) -> Vec<u8> {
    let places = ["content", "result", "content_preview", "text", "output"];
    match places.iter().find_map(|name| event.datum(name)) {
        Some(list) if list.first() == Some(&b'[') => {
            let blocks = crate::formats::json::elements(list);
            match blocks.iter().all(|block| is_object(block)) {
                true => list.to_vec(),
                false => frames::text_content(&quoted(&shown(list))),
            }
        }
        Some(said) => frames::text_content(&quoted(&shown(said))),
        None => b"[]".to_vec(),
    }
}

fn note(event: &Event<'_>) -> Vec<u8> {
    let method = match &event.kind[..] {
        "" => format!("{PREFIX}event"),
        // Not to be taken for the one message that is no event.
        "meta" => format!("{PREFIX}event"),
        kind => format!("{PREFIX}{kind}"),
    };
    debug_assert_ne!(method, META);
    frames::note(&method, event.text)
}

/// The event that a message was made from, as JSON text; none if it was made from none.
#[must_use]
pub fn source(message: &[u8]) -> Option<&[u8]> {
    let method = member(message, "method").and_then(string);
    if method
        .as_deref()
        .is_some_and(|method| method.starts_with(PREFIX) && method != META)
    {
        return member(message, "params");
    }
    let places: [&[&str]; 3] = [
        &["params", "_meta", MARK],
        &["result", "_meta", MARK],
        &["error", "data", MARK],
    ];
    places
        .iter()
        .find_map(|path| agent_trace_wire::message::member_at(message, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(lines: &[&str]) -> Vec<String> {
        let mut messages = Messages::default();
        let each = lines.iter().map(|line| {
            let event = Event::parse(line.as_bytes()).unwrap();
            let (_, text) = messages.next(&event);
            assert_eq!(source(&text), Some(line.as_bytes()));
            assert!(agent_trace_wire::json::is_valid(&text));
            let text = String::from_utf8(text).unwrap();
            text.replace(line, "EVENT")
                .replace("\"jsonrpc\":\"2.0\",", "")
        });
        each.collect()
    }

    #[test]
    fn what_the_proxy_writes_becomes_calls_and_answers() {
        let said = messages(&[
            r#"{"event_type":"tool_call","event_id":"a1","data":{"tool_name":"add","arguments":{"x":1.50},"request_id":7}}"#,
            r#"{"event_type":"tool_call","event_id":"a2","data":{"tool_name":"add","request_id":8}}"#,
            r#"{"event_type":"error","event_id":"a3","data":{"code":-32601,"message":"no","request_id":8}}"#,
            r#"{"event_type":"tool_result","event_id":"a4","parent_id":"a1","data":{"content_preview":"3","request_id":7}}"#,
            r#"{"event_type":"tool_result","event_id":"a5","parent_id":"zz","data":{"content_preview":"3"}}"#,
        ]);
        assert_eq!(
            said,
            [
                r#"{"id":"a1","method":"tools/call","params":{"name":"add","arguments":{"x":1.50},"_meta":{"agent-strace/event":EVENT}}}"#,
                r#"{"id":"a2","method":"tools/call","params":{"name":"add","arguments":{},"_meta":{"agent-strace/event":EVENT}}}"#,
                r#"{"id":"a2","error":{"code":-32601,"message":"no","data":{"agent-strace/event":EVENT}}}"#,
                r#"{"id":"a1","result":{"content":[{"type":"text","text":"3"}],"_meta":{"agent-strace/event":EVENT}}}"#,
                r#"{"method":"agent-strace/tool_result","params":EVENT}"#,
            ]
        );
    }

    #[test]
    fn what_hooks_write_is_paired_by_the_tool_and_failures_are_the_tools() {
        let said = messages(&[
            r#"{"event_type":"tool_call","event_id":"b1","data":{"tool_name":"Bash","tool_use_id":"t1"}}"#,
            r#"{"event_type":"error","event_id":"b2","data":{"tool_name":"Bash","error":"exit 1"}}"#,
            r#"{"event_type":"error","event_id":"b3","data":{"message":"out of credit"}}"#,
        ]);
        assert_eq!(
            said[1..],
            [
                r#"{"id":"b1","result":{"content":[{"type":"text","text":"exit 1"}],"isError":true,"_meta":{"agent-strace/event":EVENT}}}"#,
                r#"{"id":null,"error":{"code":-32000,"message":"out of credit","data":{"agent-strace/event":EVENT}}}"#,
            ]
        );
    }

    #[test]
    fn other_events_are_kept_whatever_they_are() {
        let said = messages(&[
            r#"{"event_type":"user_prompt","data":{"prompt":"x"},"later":[1]}"#,
            r#"{"event_type":"zap\n"}"#,
            r#"{"event_type":7}"#,
            r#"{"event_type":"meta","data":1}"#,
            r#"{"event_type":"tool_call","data":[]}"#,
            "{}",
        ]);
        let methods = [
            "user_prompt",
            r"zap\n",
            "event",
            "event",
            "tool_call",
            "event",
        ];
        let expected =
            methods.map(|m| format!(r#"{{"method":"agent-strace/{m}","params":EVENT}}"#));
        assert_eq!(said, expected);
    }

    #[test]
    fn what_is_no_object_is_no_event() {
        assert_eq!(Event::parse(b"\xEF\xBB\xBF{} ").unwrap().text, b"{}");
        for text in ["", "[]", "7", "{", "{}{}", "not json"] {
            assert!(Event::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
