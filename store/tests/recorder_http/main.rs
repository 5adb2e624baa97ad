//! What is told of HTTP at the recorder's tap is read back as sessions and exchanges.
//!
//! - `bodies`: coded, cut into any chunks, or larger than what is kept
//! - `costs`: what recording costs
//! - `exchanges`: their heads, frames and ends, and what of them was lost
//! - `secrets`: what must not reach the disk
//! - `sessions`: which exchanges are one session, and when that begins and ends

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod bodies;
mod costs;
mod exchanges;
mod secrets;
mod sessions;

use agent_trace_model::{Caller, Channel, Ending, Finish, Stream, Tap};
use agent_trace_store::Store;
use agent_trace_store::journal::header::{KeyKind, Meta, SessionEnd, SessionOpen};
use agent_trace_store::journal::{Bodies, Flags, Kind, Record, Segment};
use agent_trace_store::recorder::{
    Durability, Hooks, HttpListener, Options, Recorder, Setup, Stats,
};
use agent_trace_wire::frame::Framing;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const JSON: &str = "content-type: application/json\r\n";
const EVENTS: &str = "content-type: text/event-stream\r\n";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

use Stream::{ClientToServer as Up, ServerToClient as Down};

/// A recorder, and a relay that tells it what the test says.
struct Relay {
    folder: tempfile::TempDir,
    recorder: Recorder,
    tap: Arc<dyn Tap>,
    exchanges: AtomicU32,
}

/// An exchange in progress.
struct Open<'a> {
    relay: &'a Relay,
    number: u32,
}

impl Relay {
    fn start() -> Self {
        Self::with(|_| {}, |_| {})
    }

    fn with(
        options: impl FnOnce(&mut Options) + Send + 'static,
        listener: impl FnOnce(&mut HttpListener),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let setup = move || {
            let mut given = Options {
                redact: true,
                user_rules: vec![],
                bodies: Bodies::Full,
                durability: Durability::Timer,
                workspace: "default".into(),
            };
            options(&mut given);
            Ok(Setup {
                store,
                options: given,
                session: None,
            })
        };
        let hooks = Hooks {
            report: Box::new(|text| panic!("{text}")),
            acknowledge: None,
            opened: None,
        };
        let recorder = Recorder::start(setup, hooks).unwrap();
        let mut known = HttpListener {
            server: Some("srv".into()),
            listen: "127.0.0.1:7000".into(),
            upstream: "http://user:hunter22@127.0.0.1:8000/mcp".into(),
            session_gap: Duration::from_secs(600),
            ..HttpListener::default()
        };
        listener(&mut known);
        recorder.listener(1, known);
        Self {
            folder,
            tap: recorder.tap(),
            recorder,
            exchanges: AtomicU32::new(0),
        }
    }

    /// An exchange of the client at this port begins.
    fn open(&self, port: u16, head: &str) -> Open<'_> {
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let open = Open {
            relay: self,
            number,
        };
        let caller = Caller {
            connection: port.into(),
            peer: SocketAddr::from(([192, 0, 2, 1], port)),
            local: SocketAddr::from(([192, 0, 2, 2], 7000)),
        };
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let head = format!("{line} HTTP/1.1\r\nhost: x\r\nuser-agent: ua/1\r\n{headers}");
        self.tap
            .request(open.channel(Up), self.tap.now(), caller, head.as_bytes());
        open
    }

    /// A whole POST with its answer.
    fn post(&self, headers: &str, body: &str, answer: (u16, &str, &str)) -> u32 {
        let open = self.open(1000, &format!("POST /mcp\r\n{JSON}{headers}"));
        open.send(Up, body.as_bytes());
        open.close(Up);
        open.respond(answer.0, answer.1);
        open.send(Down, answer.2.as_bytes());
        open.close(Down);
        open.finish(Finish::Complete)
    }

    fn stop(self) -> Read {
        let stats = || self.recorder.stats();
        let start = Instant::now();
        while stats().queued > 0 {
            assert!(start.elapsed() < LIMIT);
            std::thread::sleep(Duration::from_millis(5));
        }
        // The numbers are set after the tick.
        std::thread::sleep(Duration::from_millis(20));
        let stats = stats();
        assert!(self.recorder.stop(LIMIT));
        let (mut records, mut files) = (Vec::new(), Vec::new());
        let store = Store::at(self.folder.path());
        let mut segments = store.segments().unwrap();
        segments.sort_by_key(|segment| segment.number);
        for path in segments {
            let segment = Segment::open(&path).unwrap();
            assert_eq!(segment.header().client, None);
            records.extend(segment.records().map(Result::unwrap));
            files.push(fs::read(&path.path).unwrap());
        }
        let numbers: Vec<u64> = records
            .iter()
            .map(|r: &Record| r.envelope.sequence)
            .collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
        Read {
            records,
            files,
            stats,
        }
    }
}

impl Open<'_> {
    fn channel(&self, stream: Stream) -> Channel {
        Channel {
            source: 1,
            exchange: self.number,
            stream,
        }
    }

    fn send(&self, stream: Stream, bytes: &[u8]) {
        let tap = &self.relay.tap;
        tap.copy(self.channel(stream), tap.now(), bytes);
    }

    fn close(&self, stream: Stream) {
        self.relay
            .tap
            .close(self.channel(stream), self.relay.tap.now());
    }

    fn respond(&self, status: u16, headers: &str) {
        let tap = &self.relay.tap;
        let head = format!("HTTP/1.1 {status} X\r\n{headers}");
        tap.response(self.channel(Down), tap.now(), head.as_bytes());
    }

    fn finish(self, finish: Finish) -> u32 {
        let tap = &self.relay.tap;
        tap.finished(self.channel(Down), tap.now(), finish);
        self.number
    }
}

/// What was recorded.
struct Read {
    records: Vec<Record>,
    files: Vec<Vec<u8>>,
    stats: Stats,
}

impl Read {
    fn metas(&self) -> impl Iterator<Item = (&Record, Meta)> {
        self.records
            .iter()
            .filter(|record| record.envelope.kind == Kind::Meta)
            .map(|record| (record, serde_json::from_slice(&record.payload).unwrap()))
    }

    /// What is said of each session at last.
    fn sessions(&self) -> Vec<SessionOpen> {
        let mut sessions = Vec::new();
        for (record, meta) in self.metas() {
            if let Meta::SessionOpen(open) = meta {
                let at = record.envelope.session as usize;
                sessions.resize(at.max(sessions.len()), SessionOpen::default());
                sessions[at - 1] = open;
            }
        }
        sessions
    }

    fn kinds(&self) -> Vec<KeyKind> {
        let kind = |open: &SessionOpen| open.key.as_ref().unwrap().kind;
        self.sessions().iter().map(kind).collect()
    }

    /// The session of each exchange, which all its records must have.
    fn session_of(&self, exchange: u32) -> u32 {
        let mut of: Vec<u32> = self
            .records
            .iter()
            .filter(|record| record.envelope.exchange == exchange)
            .map(|record| record.envelope.session)
            .collect();
        of.dedup();
        assert_eq!(of.len(), 1, "exchange {exchange}");
        of[0]
    }

    fn endings(&self) -> Vec<(u32, Ending)> {
        let of = |record: &Record| {
            let end: SessionEnd = serde_json::from_slice(&record.payload).unwrap();
            (record.envelope.session, end.end.ending)
        };
        let ends = self.records.iter().filter(|r| r.envelope.kind == Kind::End);
        ends.map(of).collect()
    }

    /// Kinds of the records of an exchange, in words.
    fn story(&self, exchange: u32) -> Vec<String> {
        let word = |record: &Record| match record.envelope.kind {
            Kind::Frame => format!("{:?}", record.envelope.framing),
            Kind::Meta => {
                let meta: serde_json::Value = serde_json::from_slice(&record.payload).unwrap();
                meta["type"].as_str().unwrap().to_owned()
            }
            kind => format!("{kind:?}"),
        };
        let of = |record: &&Record| record.envelope.exchange == exchange;
        self.records.iter().filter(of).map(word).collect()
    }

    fn frames(&self, exchange: u32) -> Vec<&Record> {
        let of = |r: &&Record| r.envelope.exchange == exchange && r.envelope.kind == Kind::Frame;
        self.records.iter().filter(of).collect()
    }

    fn payloads(&self, exchange: u32) -> Vec<String> {
        let text = |r: &Record| String::from_utf8(r.payload.clone()).unwrap();
        self.frames(exchange).into_iter().map(text).collect()
    }

    fn holds(&self, bytes: &str) -> bool {
        self.files
            .iter()
            .any(|file| memchr::memmem::find(file, bytes.as_bytes()).is_some())
    }
}
