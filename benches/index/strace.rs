//! Sessions in the layout of agent-strace 0.103.0: a folder for each with `meta.json` and
//! `events.ndjson`, in which each line has the SHA-256 of the line before it.

use crate::Result;
use crate::generate::random::Random;
use crate::generate::text::Text;
use crate::generate::world::SERVERS;
use rustls::SupportedCipherSuite;
use rustls::crypto::hash::Hash;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The first session begins at this second since 1970: 2026-10-01.
const BEGINNING: f64 = 1_790_812_800.0;
const APART: f64 = 1_200.0;
/// A word that is in the prompt of one of so many sessions.
pub(crate) const RARE: (&str, usize) = ("heliotrope", 128);

/// Writes so many sessions of so many events into a folder. Returns their ids, oldest first.
pub(crate) fn write(
    folder: &Path,
    sessions: usize,
    events: usize,
    seed: u64,
) -> Result<Vec<String>> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else {
        return Err("no SHA-256".into());
    };
    let text = Text::new(seed);
    let mut ids = Vec::new();
    for number in 0..sessions {
        let mut session = Session {
            random: Random::new(seed, number as u64),
            text: &text,
            sha: suite.common.hash_provider,
            id: String::new(),
            now: BEGINNING + number as f64 * APART,
            lines: String::new(),
            calls: 0,
            errors: 0,
        };
        session.id = format!("{:016x}", session.random.next());
        let started = session.now;
        session.fill(events, number % RARE.1 == 0);
        let place = folder.join(&session.id);
        fs::create_dir_all(&place)?;
        fs::write(place.join("events.ndjson"), &session.lines)?;
        let meta = json!({
            "session_id": session.id,
            "started_at": started,
            "ended_at": session.now,
            "agent_name": "assistant",
            "command": "npx -y @modelcontextprotocol/server-everything",
            "tool_calls": session.calls,
            "errors": session.errors,
            "total_duration_ms": (session.now - started) * 1e3,
        });
        fs::write(place.join("meta.json"), serde_json::to_vec_pretty(&meta)?)?;
        ids.push(session.id);
    }
    Ok(ids)
}

struct Session<'a> {
    random: Random,
    text: &'a Text,
    sha: &'static dyn Hash,
    id: String,
    /// Seconds since 1970.
    now: f64,
    lines: String,
    calls: usize,
    errors: usize,
}

impl Session<'_> {
    fn fill(&mut self, events: usize, is_rare: bool) {
        let begin = json!({"command": ["npx", "-y", "@modelcontextprotocol/server-everything"]});
        self.event("session_start", json!({}), begin);
        let word = if is_rare { RARE.0 } else { "" };
        let prompt = json!({"prompt": format!("{} {word}", self.prose(160))});
        self.event("user_prompt", json!({}), prompt);
        while self.events() + 4 <= events {
            self.call();
        }
        let text = json!({"text": self.prose(300)});
        self.event("assistant_response", json!({}), text);
        let end = json!({"exit_code": 0});
        self.event("session_end", json!({}), end);
    }

    fn events(&self) -> usize {
        self.lines.lines().count()
    }

    fn call(&mut self) {
        let server = &SERVERS[self.random.zipf(SERVERS.len())];
        let tool = server.tools[self.random.zipf(server.tools.len())].name;
        let request = self.calls;
        let arguments = json!({"path": "/home/dev/shop/src/main.rs", "query": self.prose(120)});
        let call = json!({"tool_name": tool, "arguments": arguments, "request_id": request});
        self.now += 0.5 + self.random.waiting(3.0);
        let parent = self.event("tool_call", json!({}), call);
        let took = self.random.lognormal(120.0, 0.9);
        self.now += took / 1e3;
        let more = json!({"parent_id": parent, "duration_ms": took});
        self.calls += 1;
        if self.random.happens(0.03) {
            self.errors += 1;
            let error = json!({"code": -32603, "message": self.prose(80), "request_id": request});
            self.event("error", more, error);
        } else {
            let preview = self.prose(200);
            let result = json!({
                "request_id": request,
                "content_types": ["text"],
                "content_preview": preview,
            });
            self.event("tool_result", more, result);
        }
    }

    fn event(&mut self, kind: &str, mut event: Value, data: Value) -> String {
        let id = format!("{:012x}", self.random.next() >> 16);
        event["event_type"] = kind.into();
        event["timestamp"] = self.now.into();
        event["event_id"] = id.clone().into();
        event["session_id"] = self.id.clone().into();
        event["data"] = data;
        if let Some(last) = self.lines.lines().last() {
            let hash = self.sha.hash(last.as_bytes());
            let hash: String = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
            event["prev_hash"] = hash.into();
        }
        self.lines.push_str(&event.to_string());
        self.lines.push('\n');
        id
    }

    fn prose(&mut self, length: usize) -> String {
        let piece = self.text.piece(length, &mut self.random);
        String::from_utf8_lossy(piece).replace("\\n", "\n")
    }
}
