//! What a client and a server say to each other in one session.

use super::random::Random;
use super::text::Text;
use super::truth::Truth;
use super::world::{Argument, Client, ClientMeta, SERVERS, Server, tool_number};
use agent_trace_model::Stream;
use std::io::Write;
use std::ops::Range;

const MILLISECOND: f64 = 1e6;
/// Shares of calls.
const FAILS: f64 = 0.03;
const IS_TRIED_AGAIN: f64 = 0.8;
const REPORTS_PROGRESS: f64 = 0.04;
const GOES_WITH_ANOTHER: f64 = 0.1;
/// Shares of what a client does.
const READS: f64 = 0.04;
const GETS_A_PROMPT: f64 = 0.01;
const LOGS: f64 = 0.03;

/// One message, or one line of standard error.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When, in nanoseconds since the session began.
    pub(crate) at: u64,
    pub(crate) stream: Stream,
    /// The number of the client's message that it is, or that it answers, from 1.
    pub(crate) exchange: u32,
    /// Whether nothing more comes in that exchange.
    pub(crate) last: bool,
    /// Whether that exchange is answered with events rather than with one body.
    pub(crate) events: bool,
    /// Where it is in the [bytes](Talk::bytes), without a line end.
    pub(crate) range: Range<usize>,
}

/// How long to talk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Frames(usize),
    Steps(usize),
}

/// A session while it is made up.
#[derive(Debug)]
pub(crate) struct Talk<'a> {
    text: &'a Text,
    pub(crate) random: Random,
    pub(crate) client: &'static Client,
    pub(crate) server: usize,
    /// Whether it is spoken over HTTP, where what belongs to no exchange has no place.
    http: bool,
    /// The id of the conversation, where the client tells one.
    conversation: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    /// Nanoseconds since the session began.
    pub(crate) now: u64,
    pub(crate) exchanges: u32,
    id: u64,
    steps: usize,
    frames: usize,
}

/// A call that waits for its answer.
struct Call {
    id: u64,
    tool: usize,
    at: u64,
    exchange: u32,
    progress: usize,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(
        text: &'a Text,
        random: Random,
        client: &'static Client,
        (server, http): (usize, bool),
        conversation: u64,
    ) -> Self {
        Self {
            text,
            random,
            client,
            server,
            http,
            conversation,
            bytes: Vec::new(),
            entries: Vec::new(),
            now: 0,
            exchanges: 0,
            id: 0,
            steps: 0,
            frames: 0,
        }
    }

    fn server(&self) -> &'static Server {
        &SERVERS[self.server]
    }

    /// The beginning of every session: getting to know each other, and what tools there are.
    pub(crate) fn begin(&mut self) {
        self.pass(40.0);
        let (client, server) = (self.client, self.server());
        self.request("initialize", |this| {
            write(this, format_args!(r#""protocolVersion":"2025-11-25","capabilities":{{"roots":{{"listChanged":true}},"elicitation":{{}}}},"clientInfo":{{"name":"{}","version":"{}"}}"#, client.name, client.version));
        });
        self.answer(180.0, |this| {
            write(this, format_args!(r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":true}},"resources":{{}},"prompts":{{}},"logging":{{}}}},"serverInfo":{{"name":"{}","version":"1.4.2"}},"instructions":"{} gives access to what its name says. Ask before anything is changed."}}"#, server.name, server.name));
        });
        self.pass(1.0);
        self.notify("notifications/initialized", "{}");
        self.request("tools/list", |_| {});
        self.answer(5.0, |this| this.definitions());
    }

    /// The client does this and that.
    pub(crate) fn run(&mut self, length: Length, needle: Option<&str>, truth: &mut Truth) {
        let (frames, steps) = (self.frames, self.steps);
        let mut needle = needle;
        loop {
            let (done, of) = match length {
                Length::Frames(of) => (self.frames - frames, of),
                Length::Steps(of) => (self.steps - steps, of),
            };
            if done >= of {
                break;
            }
            let here = needle.filter(|_| done * 2 >= of);
            if here.is_some() {
                needle = None;
            }
            // Less than what ends a run.
            let pause = self.random.waiting(3_000.0).min(60_000.0);
            self.pass(pause);
            self.act(here, truth);
        }
        // As short as it may be, it has what is to be found.
        if needle.is_some() {
            self.act(needle, truth);
        }
    }

    /// Asks for something that is never answered.
    pub(crate) fn ask_in_vain(&mut self, truth: &mut Truth) {
        let tool = self.random.zipf(self.server().tools.len());
        self.call(tool, truth);
        truth.unanswered = true;
    }

    fn act(&mut self, needle: Option<&str>, truth: &mut Truth) {
        let dice = self.random.unit();
        if needle.is_none() && dice < READS {
            return self.read();
        } else if needle.is_none() && dice < READS + GETS_A_PROMPT {
            return self.prompt();
        } else if dice > 1.0 - LOGS {
            self.log();
        }
        let tools = self.server().tools.len();
        let call = self.call_of(tools, truth);
        let beside = if self.random.happens(GOES_WITH_ANOTHER) {
            self.pass(0.2);
            Some(self.call_of(tools, truth))
        } else {
            None
        };
        let fails = needle.is_none() && self.random.happens(FAILS);
        let tool = call.tool;
        self.settle(&call, fails, needle, truth);
        if let Some(beside) = beside {
            self.settle(&beside, false, None, truth);
        }
        if fails && self.random.happens(IS_TRIED_AGAIN) {
            self.pass(1_500.0);
            let again = self.call(tool, truth);
            self.settle(&again, false, None, truth);
        }
    }

    fn call_of(&mut self, tools: usize, truth: &mut Truth) -> Call {
        let tool = self.random.zipf(tools);
        self.call(tool, truth)
    }

    fn call(&mut self, tool: usize, truth: &mut Truth) -> Call {
        let what = &self.server().tools[tool];
        truth.tools |= 1 << tool_number(self.server, tool);
        truth.servers |= 1 << self.server;
        truth.calls += 1;
        let progress = match self.random.happens(REPORTS_PROGRESS) {
            true => 1 + self.random.below(3),
            false => 0,
        };
        let id = self.request("tools/call", |this| {
            write(
                this,
                format_args!(r#""name":"{}","arguments":{{"#, what.name),
            );
            for (position, (name, kind)) in what.arguments.iter().enumerate() {
                let comma = if position > 0 { "," } else { "" };
                write(this, format_args!(r#"{comma}"{name}":"#));
                this.argument(*kind);
            }
            this.bytes.push(b'}');
            this.meta();
        });
        Call {
            id,
            tool,
            at: self.now,
            exchange: self.exchanges,
            progress,
        }
    }

    /// What becomes of a call.
    fn settle(&mut self, call: &Call, fails: bool, needle: Option<&str>, truth: &mut Truth) {
        let tool = &self.server().tools[call.tool];
        let takes = self.random.lognormal(tool.takes, 0.9).max(0.2);
        let events = call.progress > 0;
        for part in 1..=call.progress {
            self.pass(takes / (call.progress + 1) as f64);
            self.say(Stream::ServerToClient, call.exchange, |this| {
                write(this, format_args!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{part},"total":{},"message":"step {part}"}}}}"#, call.id, call.progress));
            });
            self.mark(false, events);
            self.steps += 1;
        }
        self.pass(takes / (call.progress + 1) as f64);
        let length = self.random.lognormal(0.86 * tool.result, 0.8).min(60_000.0) as usize;
        let is_refused = fails && self.random.happens(0.25);
        self.say(Stream::ServerToClient, call.exchange, |this| {
            write(this, format_args!(r#"{{"jsonrpc":"2.0","id":{},"#, call.id));
            if is_refused {
                this.put(r#""error":{"code":-32602,"message":"invalid arguments: "#);
                this.prose(60);
                this.put(r#""}}"#);
            } else if fails {
                this.put(r#""result":{"content":[{"type":"text","text":"Error: "#);
                this.prose(120);
                this.put(r#""}],"isError":true}}"#);
            } else {
                this.put(r#""result":{"content":[{"type":"text","text":""#);
                if let Some(needle) = needle {
                    write(this, format_args!("see {needle} for more. "));
                }
                this.result(tool.rows, length);
                this.put(r#""}]}}"#);
            }
        });
        self.mark(true, events);
        let bit = 1 << tool_number(self.server, call.tool);
        if fails {
            truth.failed_last |= bit;
        } else {
            truth.failed_last &= !bit;
        }
        truth.failed_calls += u64::from(fails);
        truth.slow |= self.now - call.at > super::SLOW;
    }

    fn read(&mut self) {
        self.request("resources/read", |this| {
            this.put(r#""uri":"file://"#);
            this.path();
            this.bytes.push(b'"');
        });
        self.answer(6.0, |this| {
            let length = this.random.lognormal(900.0, 0.8).min(60_000.0) as usize;
            this.put(r#"{"contents":[{"uri":"file:///","mimeType":"text/plain","text":""#);
            this.prose(length);
            this.put(r#""}]}"#);
        });
    }

    fn prompt(&mut self) {
        self.request("prompts/get", |this| {
            this.put(r#""name":"review","arguments":{"focus":""#);
            this.prose(40);
            this.put(r#""}"#);
        });
        self.answer(4.0, |this| {
            this.put(r#"{"messages":[{"role":"user","content":{"type":"text","text":""#);
            this.prose(500);
            this.put(r#""}}]}"#);
        });
    }

    /// The server tells something in passing, before the next message of the client.
    fn log(&mut self) {
        if self.http {
            return;
        }
        self.say(Stream::ServerToClient, 0, |this| {
            this.put(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"server","data":""#);
            this.prose(110);
            this.put(r#""}}"#);
        });
        self.steps += 1;
        self.pass(5.0);
    }

    /// The server writes a line to its standard error.
    pub(crate) fn complain(&mut self) {
        if self.http {
            return;
        }
        self.say(Stream::Stderr, 0, |this| {
            this.put("[info] listening, ");
            this.prose(60);
        });
        self.frames -= 1;
    }

    /// A request with these parameters. Returns its id.
    fn request(&mut self, method: &str, params: impl FnOnce(&mut Self)) -> u64 {
        self.exchanges += 1;
        let id = self.id;
        self.id += 1;
        self.say(Stream::ClientToServer, self.exchanges, |this| {
            write(
                this,
                format_args!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"#),
            );
            params(this);
            this.put("}}");
        });
        self.steps += 1;
        id
    }

    /// The answer to the last request, after so many milliseconds.
    fn answer(&mut self, takes: f64, result: impl FnOnce(&mut Self)) {
        let takes = self.random.lognormal(takes, 0.4).min(1_900.0);
        self.pass(takes);
        let id = self.id - 1;
        self.say(Stream::ServerToClient, self.exchanges, |this| {
            write(
                this,
                format_args!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#),
            );
            result(this);
            this.bytes.push(b'}');
        });
        self.mark(true, false);
    }

    fn notify(&mut self, method: &str, params: &str) {
        self.exchanges += 1;
        self.say(Stream::ClientToServer, self.exchanges, |this| {
            write(
                this,
                format_args!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#),
            );
        });
        self.mark(true, false);
        self.steps += 1;
    }

    fn say(&mut self, stream: Stream, exchange: u32, what: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        what(self);
        self.entries.push(Entry {
            at: self.now,
            stream,
            exchange,
            last: false,
            events: false,
            range: start..self.bytes.len(),
        });
        self.frames += 1;
    }

    fn mark(&mut self, last: bool, events: bool) {
        if let Some(entry) = self.entries.last_mut() {
            entry.last = last;
            entry.events = events;
        }
    }

    /// Lets so many milliseconds pass.
    pub(crate) fn pass(&mut self, milliseconds: f64) {
        self.now += (milliseconds * MILLISECOND) as u64;
    }

    fn definitions(&mut self) {
        self.put(r#"{"tools":["#);
        for (position, tool) in self.server().tools.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            write(
                self,
                format_args!(
                    r#"{comma}{{"name":"{}","description":"Does what {} says, for what is named in its arguments.","inputSchema":{{"type":"object","properties":{{"#,
                    tool.name, tool.name
                ),
            );
            for (position, (name, kind)) in tool.arguments.iter().enumerate() {
                let comma = if position > 0 { "," } else { "" };
                let kind = match kind {
                    Argument::Number => "integer",
                    Argument::Flag => "boolean",
                    _ => "string",
                };
                write(self, format_args!(r#"{comma}"{name}":{{"type":"{kind}"}}"#));
            }
            self.put(r#"}},"annotations":{"openWorldHint":false}}"#);
        }
        self.put("]}");
    }

    /// A result's text of about this length.
    fn result(&mut self, rows: &[(&str, Argument)], length: usize) {
        if rows.is_empty() {
            return self.prose(length);
        }
        let start = self.bytes.len();
        self.bytes.push(b'[');
        while self.bytes.len() - start < length {
            self.put(if self.bytes.len() - start > 1 {
                ",{"
            } else {
                "{"
            });
            for (position, (name, kind)) in rows.iter().enumerate() {
                let comma = if position > 0 { "," } else { "" };
                // JSON within a JSON string.
                write(self, format_args!(r#"{comma}\"{name}\":"#));
                self.value(*kind, r#"\""#);
            }
            self.bytes.push(b'}');
        }
        self.bytes.push(b']');
        // An end of a line would have to be escaped twice there; a quote is.
        for at in start..self.bytes.len() - 1 {
            if self.bytes[at..at + 2] == *b"\\n" {
                self.bytes[at..at + 2].copy_from_slice(b", ");
            }
        }
    }

    fn argument(&mut self, kind: Argument) {
        self.value(kind, "\"");
    }

    fn value(&mut self, kind: Argument, quote: &str) {
        match kind {
            Argument::Number => {
                let number = self.random.below(2_000);
                write(self, format_args!("{number}"));
                return;
            }
            Argument::Flag => {
                let set = self.random.happens(0.3);
                return self.put(if set { "true" } else { "false" });
            }
            _ => self.put(quote),
        }
        match kind {
            Argument::Path => self.path(),
            Argument::Words(length) => self.prose(length),
            _ => {
                let id = self.random.next() >> 32;
                write(self, format_args!("id-{id:08x}"));
            }
        }
        self.put(quote);
    }

    fn path(&mut self) {
        let start = self.bytes.len();
        self.put("/home/dev/project/src/");
        self.prose(24);
        for byte in &mut self.bytes[start..] {
            // Neither spaces nor escapes are in a path.
            if matches!(byte, b' ' | b'\\' | b',' | b'.') {
                *byte = b'/';
            }
        }
        self.put(".rs");
    }

    fn meta(&mut self) {
        let token = self.id - 1;
        match self.client.meta {
            ClientMeta::Token => {
                write(
                    self,
                    format_args!(r#","_meta":{{"progressToken":{token}}}"#),
                );
            }
            ClientMeta::ToolUse => {
                let id = self.random.next();
                write(
                    self,
                    format_args!(
                        r#","_meta":{{"claudecode/toolUseId":"toolu_{id:016x}","progressToken":{token}}}"#
                    ),
                );
            }
            ClientMeta::Conversation => {
                let (id, call) = (self.conversation, self.random.next() >> 40);
                let id = format!(
                    "01a22bc3-9883-7070-{:04x}-{:012x}",
                    id >> 48,
                    id << 16 >> 16
                );
                write(
                    self,
                    format_args!(
                        r#","_meta":{{"callId":"call_{call:06x}","threadId":"{id}","sessionId":"{id}","progressToken":{token}}}"#
                    ),
                );
            }
        }
    }

    fn prose(&mut self, length: usize) {
        let piece = self.text.piece(length, &mut self.random);
        self.bytes.extend_from_slice(piece);
    }

    fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

fn write(talk: &mut Talk<'_>, text: std::fmt::Arguments<'_>) {
    // Memory takes everything.
    let _ = talk.bytes.write_fmt(text);
}
