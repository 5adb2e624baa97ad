//! What is told of HTTP at the recorder's tap is read back as sessions and exchanges.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

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

#[test]
fn an_exchange_is_heads_frames_and_an_end() {
    let relay = Relay::start();
    let exchange = relay.post("", CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert_eq!(
        read.story(exchange),
        ["request", "Body", "response", "Body", "finished"]
    );
    assert_eq!(read.payloads(exchange), [CALL, ANSWER]);
    let sessions = read.sessions();
    assert_eq!(sessions.len(), 1);
    let open = &sessions[0];
    assert_eq!(
        (&*open.transport, open.server.as_deref()),
        ("http", Some("srv"))
    );
    assert_eq!(open.user_agent.as_deref(), Some("ua/1"));
    assert_eq!(open.listen.as_deref(), Some("127.0.0.1:7000"));
    assert!(!read.holds("hunter22"), "the URL's password");
    let requests: Vec<_> = read
        .metas()
        .filter_map(|(_, meta)| match meta {
            Meta::Request(request) => Some(request),
            _ => None,
        })
        .collect();
    assert_eq!(
        (&*requests[0].method, &*requests[0].target),
        ("POST", "/mcp")
    );
    assert_eq!(
        (requests[0].connection, &*requests[0].peer),
        (1000, "192.0.2.1:1000")
    );
    assert_eq!(requests[0].headers[0], ("host".into(), "x".into()));
    assert!(read.metas().any(|(record, meta)| {
        record.envelope.stream == Down
            && matches!(meta, Meta::Response(response) if response.status == 200)
    }));
    assert!(read.metas().any(|(_, meta)| matches!(meta, Meta::Finished(end)
        if end.finish == Finish::Complete
            && (end.request_bytes, end.response_bytes) == (CALL.len() as u64, ANSWER.len() as u64))));
    assert_eq!(read.endings(), [(1, Ending::RelayStopped)]);
    assert_eq!(read.stats.frames, [1, 1, 0]);
    assert_eq!(
        read.stats.bytes,
        [CALL.len() as u64, ANSWER.len() as u64, 0]
    );
    assert_eq!((read.stats.sessions, read.stats.sessions_open), (1, 1));
    assert!(read.stats.recording && read.stats.gaps == 0);
}

#[test]
fn a_session_id_ties_exchanges_together_and_a_delete_ends_it() {
    let relay = Relay::start();
    let id = "mcp-session-id: 5f0c2a4491d34c589d550a2b6e1f7c3d\r\n";
    let first = relay.post("", INITIALIZE, (200, &format!("{JSON}{id}"), ANSWER));
    let stream = relay.open(2000, &format!("GET /mcp\r\n{id}"));
    stream.close(Up);
    stream.respond(200, EVENTS);
    let call = relay.post(id, CALL, (200, JSON, ANSWER));
    // Another client at the same time, whose id nobody saw the beginning of.
    let other = relay.post("mcp-session-id: another\r\n", CALL, (200, JSON, ANSWER));
    stream.send(Down, b"data: {\"method\":\"x\"}\n\n");
    let delete = relay.open(1000, &format!("DELETE /mcp\r\n{id}"));
    delete.close(Up);
    delete.respond(200, "");
    delete.close(Down);
    let delete = delete.finish(Finish::Complete);
    // Its stream is still open, and belongs to it.
    stream.send(Down, b": bye\n\n");
    let stream = stream.finish(Finish::ServerBroke);
    let again = relay.post(id, CALL, (404, "", ""));
    let read = relay.stop();
    assert_eq!(
        [first, call, stream, delete].map(|exchange| read.session_of(exchange)),
        [1; 4]
    );
    assert_eq!(
        [other, again].map(|exchange| read.session_of(exchange)),
        [2, 3]
    );
    assert_eq!(read.kinds(), [KeyKind::McpSession; 3]);
    assert_eq!(
        read.endings(),
        [
            (1, Ending::ClientClosed),
            (2, Ending::RelayStopped),
            (3, Ending::RelayStopped)
        ]
    );
    assert_eq!(
        read.story(stream),
        ["request", "response", "Event", "Event", "finished"]
    );
    let sessions = read.sessions();
    assert_eq!(
        sessions[0].key, sessions[2].key,
        "equal ids have equal fingerprints"
    );
    assert!(!read.holds("5f0c2a4491d34c"));
    assert!(read.holds("[REDACTED:mcp-session-id:"));
    assert!(!read.holds("another"));
}

#[test]
fn a_session_that_the_server_forgot_ends_and_asking_on_is_one_more() {
    let relay = Relay::start();
    let id = "mcp-session-id: s1\r\n";
    relay.post("", INITIALIZE, (200, id, ANSWER));
    relay.post(id, CALL, (404, "", ""));
    let on: Vec<u32> = (0..5)
        .map(|_| relay.post(id, CALL, (404, "", "")))
        .collect();
    let read = relay.stop();
    assert_eq!(read.endings()[0], (1, Ending::ServerForgot));
    assert!(on.iter().all(|&exchange| read.session_of(exchange) == 2));
}

#[test]
fn a_legacy_endpoint_is_a_session_as_long_as_its_stream() {
    for (uri, target) in [
        (
            "/message?sessionId=0a1b2c3d4e5f6789",
            "/message?sessionId=0a1b2c3d4e5f6789",
        ),
        (
            "http://127.0.0.1:7000/m/550e8400-e29b-41d4-a716-446655440000",
            "/m/550e8400-e29b-41d4-a716-446655440000",
        ),
    ] {
        let relay = Relay::start();
        let stream = relay.open(1000, "GET /sse\r\n");
        stream.close(Up);
        stream.respond(200, EVENTS);
        stream.send(
            Down,
            format!("event: endpoint\r\ndata: {uri}\r\n\r").as_bytes(),
        );
        stream.send(Down, b"\n");
        let post = relay.open(2000, &format!("POST {target}\r\n{JSON}"));
        post.send(Up, INITIALIZE.as_bytes());
        post.close(Up);
        post.respond(202, "");
        post.close(Down);
        let post = post.finish(Finish::Complete);
        stream.send(
            Down,
            format!("event: message\ndata: {ANSWER}\n\n").as_bytes(),
        );
        let stream = stream.finish(Finish::ClientGone);
        let other = relay.post("", CALL, (200, JSON, ANSWER));
        let read = relay.stop();
        assert_eq!(
            [stream, post, other].map(|exchange| read.session_of(exchange)),
            [1, 1, 2]
        );
        assert_eq!(read.kinds(), [KeyKind::Endpoint, KeyKind::Caller]);
        assert_eq!(read.endings()[0], (1, Ending::ClientClosed));
        assert_eq!(
            read.story(stream),
            ["request", "response", "Event", "Event", "finished"]
        );
        assert!(!read.holds("0a1b2c3d") && !read.holds("550e8400"));
        let event = &read.payloads(stream)[0];
        let marker = event.split("[REDACTED:mcp-session-id:").nth(1).unwrap();
        let marker = &marker[..8];
        let requests = read.metas().filter_map(|(record, meta)| match meta {
            Meta::Request(request) if record.envelope.exchange == post => Some(request.target),
            _ => None,
        });
        assert!(
            requests.last().unwrap().contains(marker),
            "equal ids have equal markers"
        );
    }
}

#[test]
fn what_a_legacy_stream_says_before_its_endpoint_decides_nothing() {
    let relay = Relay::start();
    let start = ": hello\n\nretry: 3000\n\n";
    let stream = relay.open(1000, "GET /sse\r\n");
    stream.close(Up);
    stream.respond(200, EVENTS);
    stream.send(Down, start.as_bytes());
    stream.send(Down, b"event: endpoint\ndata: /m?a=b\n\n");
    let post = relay.open(2000, "POST /m?a=b\r\n");
    post.send(Up, CALL.as_bytes());
    let post = post.finish(Finish::Complete);
    let stream = stream.finish(Finish::ServerBroke);
    // Where nothing else comes, or too much, they are recorded all the same.
    let silent = relay.open(1000, "GET /events\r\n");
    silent.close(Up);
    silent.respond(200, EVENTS);
    silent.send(Down, start.repeat(20).as_bytes());
    let silent = silent.finish(Finish::ClientGone);
    let read = relay.stop();
    assert_eq!(read.kinds(), [KeyKind::Endpoint, KeyKind::Caller]);
    assert_eq!(
        [stream, post, silent].map(|exchange| read.session_of(exchange)),
        [1, 1, 2]
    );
    assert!(read.payloads(stream).concat().starts_with(start));
    assert_eq!(read.frames(stream).len(), 3);
    assert_eq!(read.payloads(silent).concat(), start.repeat(20));
}

#[test]
fn a_request_may_be_told_before_what_tells_its_session() {
    let relay = Relay::start();
    let stream = relay.open(1000, "GET /sse\r\n");
    stream.close(Up);
    let begin = |head: &str, body: &str| {
        let open = relay.open(2000, &format!("POST {head}"));
        open.send(Up, body.as_bytes());
        open.close(Up);
        open
    };
    let legacy = begin("/m?a=b\r\n", INITIALIZE);
    stream.respond(200, EVENTS);
    stream.send(Down, b"event: endpoint\ndata: /m?a=b\n\n");
    legacy.respond(202, "");
    let first = begin("/mcp\r\n", INITIALIZE);
    let id = "mcp-session-id: s1\r\n";
    let named = begin(&format!("/mcp\r\n{id}"), CALL);
    first.respond(200, id);
    named.respond(200, JSON);
    // Where nothing tells it is recorded all the same, and soon.
    let silent = relay.open(1000, "GET /other\r\n");
    silent.close(Up);
    let other = begin("/x\r\n", CALL);
    let start = Instant::now();
    while relay.recorder.stats().sessions < 3 {
        assert!(start.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    let all = [stream, legacy, first, named, other, silent];
    let all = all.map(|open| open.finish(Finish::Complete));
    let read = relay.stop();
    assert_eq!(
        all.map(|exchange| read.session_of(exchange)),
        [1, 1, 2, 2, 3, 3]
    );
    assert_eq!(
        read.story(all[3]),
        ["request", "Body", "response", "finished"]
    );
}

#[test]
fn without_ids_a_session_is_a_caller() {
    let relay = Relay::with(
        |_| {},
        |listener| listener.session_gap = Duration::from_millis(200),
    );
    let modern = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n";
    let one = relay.post(modern, CALL, (200, JSON, ANSWER));
    let two = relay.post(
        &format!("{modern}mcp-session-id: ignored\r\n"),
        CALL,
        (200, JSON, ANSWER),
    );
    let key = relay.post(
        &format!("{modern}authorization: Bearer tok\r\n"),
        CALL,
        (200, JSON, ANSWER),
    );
    let start = Instant::now();
    let ended = |stats: Stats| stats.sessions == 2 && stats.sessions_open == 0;
    while !ended(relay.recorder.stats()) {
        assert!(
            start.elapsed() < LIMIT,
            "idle sessions end though nothing comes"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let later = relay.post(modern, CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert_eq!(
        [one, two, key, later].map(|exchange| read.session_of(exchange)),
        [1, 1, 2, 3]
    );
    assert_eq!(read.kinds(), [KeyKind::Caller; 3]);
    assert_eq!(read.sessions()[0].key, read.sessions()[2].key);
    assert_ne!(read.sessions()[0].key, read.sessions()[1].key);
    let idle = read
        .endings()
        .iter()
        .filter(|(_, ending)| *ending == Ending::Idle)
        .count();
    assert_eq!(idle, 2);
    assert!(!read.holds("tok\""));
}

#[test]
fn an_initialize_without_an_id_in_its_answer_begins_the_callers_session() {
    let relay = Relay::start();
    let before = relay.post("", CALL, (200, JSON, ANSWER));
    let begins = relay.post("", INITIALIZE, (200, JSON, ANSWER));
    let after = relay.post("", CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert_eq!(
        [before, begins, after].map(|exchange| read.session_of(exchange)),
        [1, 2, 2]
    );
    assert_eq!(read.kinds(), [KeyKind::Caller; 2]);
}

#[test]
fn the_heads_of_a_stream_are_told_before_it_ends() {
    let relay = Relay::start();
    let listen = relay.open(1000, "POST /mcp\r\nmcp-protocol-version: 2026-07-28\r\n");
    listen.send(Up, CALL.as_bytes());
    listen.close(Up);
    listen.respond(200, EVENTS);
    let event = format!("id: 1\ndata: {ANSWER}\n\n");
    listen.send(Down, event.as_bytes());
    let start = Instant::now();
    let live = Store::at(relay.folder.path());
    let told = || -> Option<usize> {
        let segment = Segment::open(live.segments().ok()?.first()?).ok()?;
        Some(segment.records().filter_map(Result::ok).count())
    };
    while told() != Some(5) {
        assert!(start.elapsed() < LIMIT, "{:?}", told());
        std::thread::sleep(Duration::from_millis(10));
    }
    listen.finish(Finish::ClientGone);
    let read = relay.stop();
    assert_eq!(read.payloads(1), [CALL, &event]);
}

#[test]
fn events_are_the_same_however_they_are_cut_and_coded() {
    let events = format!(": hello\n\nid: 1\ndata: {ANSWER}\n\ndata: {{\"a\":\r\ndata: 1}}\r\n\r\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut coded = Vec::new();
    for byte in events.as_bytes() {
        gzip.write_all(&[*byte]).unwrap();
        gzip.flush().unwrap();
        coded.push(std::mem::take(gzip.get_mut()));
    }
    coded.push(gzip.finish().unwrap());
    let plain: Vec<Vec<u8>> = events.bytes().map(|byte| vec![byte]).collect();
    for (coding, chunks) in [("", plain), ("content-encoding: gzip\r\n", coded)] {
        let relay = Relay::start();
        let open = relay.open(1000, &format!("POST /mcp\r\n{JSON}"));
        open.send(Up, CALL.as_bytes());
        open.close(Up);
        open.respond(200, &format!("{EVENTS}{coding}"));
        for chunk in &chunks {
            open.send(Down, chunk);
        }
        open.close(Down);
        let exchange = open.finish(Finish::Complete);
        let read = relay.stop();
        assert_eq!(read.frames(exchange).len(), 4, "{coding}");
        assert_eq!(read.payloads(exchange)[1..].concat(), events, "{coding}");
    }
}

#[test]
fn what_cannot_be_decoded_is_said_with_length_and_digest() {
    for (coding, body, reason) in [
        ("compress", &b"private words"[..], "unknown"),
        ("gzip", b"private words", "broken"),
    ] {
        let relay = Relay::start();
        let open = relay.open(1000, &format!("POST /mcp\r\n{JSON}"));
        open.send(Up, CALL.as_bytes());
        open.close(Up);
        open.respond(200, &format!("{JSON}content-encoding: {coding}\r\n"));
        open.send(Down, &body[..5]);
        open.send(Down, &body[5..]);
        open.close(Down);
        let exchange = open.finish(Finish::Complete);
        let head = relay.open(1000, "HEAD /mcp\r\n");
        head.close(Up);
        head.respond(200, &format!("content-encoding: {coding}\r\n"));
        head.close(Down);
        let head = head.finish(Finish::Complete);
        let read = relay.stop();
        assert_eq!(
            read.story(exchange),
            [
                "request",
                "Body",
                "response",
                "not_decoded",
                "Stray",
                "finished"
            ]
        );
        assert_eq!(read.story(head), ["request", "response", "finished"]);
        let envelope = &read.frames(exchange)[1].envelope;
        assert_eq!(envelope.length, body.len() as u64);
        assert!(envelope.flags.has(Flags::CUT) && envelope.digest.is_some());
        assert!(!read.holds("private"));
        assert!(
            read.metas()
                .any(|(_, meta)| matches!(meta, Meta::NotDecoded(not)
            if not.coding == coding && not.reason == reason))
        );
    }
}

#[test]
fn a_large_body_and_a_large_event_are_cut_and_still_told() {
    let relay = Relay::start();
    let secret = ["ghp", "0123456789abcdEFGHijklmnopqrSTUVwxyz"].join("_");
    let large = |start: &str| {
        format!(
            "{start}{}{secret}\"}}",
            "y".repeat((8 << 20) - start.len() - 18)
        )
    };
    let open = relay.open(1000, &format!("POST /mcp\r\n{JSON}"));
    let body = large("{\"id\":1,\"method\":\"x\",\"params\":\"");
    open.send(Up, body.as_bytes());
    open.close(Up);
    // Not faster than it is taken: this is about the size of a frame.
    std::thread::sleep(Duration::from_millis(300));
    open.respond(200, EVENTS);
    let event = format!("{}\n\n", large("data: {\"id\":1,\"result\":\""));
    open.send(Down, event.as_bytes());
    open.send(Down, b"data: 2\n\n");
    open.close(Down);
    let exchange = open.finish(Finish::Complete);
    let read = relay.stop();
    let frames = read.frames(exchange);
    let told: Vec<_> = frames
        .iter()
        .map(|r| (r.envelope.framing, r.envelope.length))
        .collect();
    let expected = [
        (Framing::Body, body.len() as u64),
        (Framing::Event, event.len() as u64),
        (Framing::Event, 9),
    ];
    assert_eq!(told, expected);
    for frame in &frames[..2] {
        assert!(frame.envelope.flags.has(Flags::CUT) && frame.envelope.digest.is_some());
    }
    assert!(
        !secret.as_bytes()[4..]
            .windows(8)
            .any(|part| read.holds(std::str::from_utf8(part).unwrap()))
    );
}

#[test]
fn losses_are_told_and_their_exchanges_are_recorded_all_the_same() {
    let relay = Relay::with(
        // As slow as a disk can be: everything is sent before anything is taken.
        |_| std::thread::sleep(Duration::from_millis(500)),
        |_| {},
    );
    let body = format!(
        "{{\"id\":1,\"method\":\"x\",\"params\":\"{}\"}}",
        "y".repeat(60_000)
    );
    let open = relay.open(3000, &format!("POST /mcp\r\n{JSON}"));
    for _ in 0..400 {
        relay.post("", &body, (200, JSON, &body));
    }
    // Its head came through, and what follows is lost; of another the head is lost.
    open.send(Up, body.as_bytes());
    let lost = relay.open(4000, "GET /mcp\r\n");
    std::thread::sleep(Duration::from_secs(1));
    open.send(Up, b"{\"rest\":1}");
    open.close(Up);
    let first = open.finish(Finish::ClientGone);
    lost.respond(200, EVENTS);
    lost.send(Down, b"data: {}\n\n");
    let lost = lost.finish(Finish::ServerBroke);
    let read = relay.stop();
    let story = read.story(first);
    assert!(
        story.contains(&"Gap".to_owned()) && story.ends_with(&["finished".to_owned()]),
        "{story:?}"
    );
    let rest = read.frames(first)[0];
    assert!(rest.envelope.flags.has(Flags::LOSSY) && rest.payload.is_empty());
    assert_eq!(rest.envelope.length, body.len() as u64 + 10);
    let story = read.story(lost);
    assert_eq!(story, ["request", "Gap", "response", "Event", "finished"]);
    assert!(read.stats.gaps > 0 && read.stats.lost_bytes > 0);
    let finished = read
        .metas()
        .filter(|(_, meta)| matches!(meta, Meta::Finished(_)))
        .count();
    assert!(finished > 100, "{finished}");
}

#[test]
fn no_credential_reaches_the_disk() {
    let relay = Relay::start();
    let secrets = [
        "authorization: Bearer s3cr3t-abcdefgh\r\n",
        "cookie: sid=s3cr3t-ijklmnop\r\n",
        "x-api-key: s3cr3t-qrstuvwx\r\n",
        "proxy-authorization: Basic s3cr3tyz\r\n",
        "mcp-session-id: s3cr3t-session\r\n",
        "referer: http://x/m?sessionId=s3cr3t-referer\r\n",
    ];
    let open = relay.open(
        1000,
        &format!(
            "POST /mcp?session_id=s3cr3t-query&api_key=s3cr3t-key-1\r\n{}",
            secrets.concat()
        ),
    );
    open.send(
        Up,
        br#"{"id":1,"method":"x","params":{"password":"s3cr3t-body"}}"#,
    );
    open.close(Up);
    open.respond(
        200,
        &format!(
            "{EVENTS}set-cookie: a=s3cr3t-cookie; Path=/\r\nmcp-session-id: s3cr3t-session\r\n"
        ),
    );
    open.send(
        Down,
        b"event: endpoint\ndata: /m?sessionId=s3cr3t-endpoint\n\n",
    );
    open.send(Down, b"data: {\"password\":\ndata: \"s3cr3t-lines\"}\n\n");
    open.send(Down, b"data: {\"password\":\"s3cr3t-line\"}\n\n");
    let tap = &relay.tap;
    tap.trailers(
        open.channel(Down),
        tap.now(),
        b"x-auth-token: s3cr3t-trailer\r\n",
    );
    tap.altered(
        open.channel(Down),
        tap.now(),
        b"http://y/m?sessionId=s3cr3t-from",
        b"/m?sessionId=s3cr3t-to",
    );
    open.send(Down, b"data: last\n\n");
    open.close(Down);
    let exchange = open.finish(Finish::Complete);
    let read = relay.stop();
    for file in &read.files {
        let found = memchr::memmem::find(file, b"s3cr3t");
        let around = found.map(|at| String::from_utf8_lossy(&file[at.saturating_sub(60)..at + 30]));
        assert_eq!(around, None);
    }
    let frames = read.frames(exchange);
    for frame in &frames {
        for span in &frame.envelope.spans {
            let marker = &frame.payload[span.at as usize..][..span.length as usize];
            assert!(marker.starts_with(b"[REDACTED:") && marker.ends_with(b"]"));
        }
    }
    let altered: Vec<bool> = frames
        .iter()
        .map(|f| f.envelope.flags.has(Flags::ALTERED))
        .collect();
    assert_eq!(altered, [false, false, false, false, true]);
}

#[test]
fn without_redaction_the_id_in_an_endpoint_is_hidden_all_the_same() {
    let relay = Relay::with(|options| options.redact = false, |_| {});
    let stream = relay.open(1000, "GET /sse\r\n");
    stream.close(Up);
    stream.respond(200, EVENTS);
    stream.send(
        Down,
        b"event: endpoint\ndata: /m?sessionId=s3cr3t\n\n: password=stays123\n\n",
    );
    let post = relay.open(1000, "POST /m?sessionId=s3cr3t\r\n");
    post.finish(Finish::Complete);
    let stream = stream.finish(Finish::ClientGone);
    let read = relay.stop();
    assert!(!read.holds("s3cr3t"));
    assert!(read.payloads(stream)[0].contains("[REDACTED:mcp-session-id:"));
    assert!(read.holds("stays123"));
}

#[test]
fn with_digests_headers_that_repeat_arguments_are_not_kept() {
    let relay = Relay::with(|options| options.bodies = Bodies::Digest, |_| {});
    let modern = "mcp-protocol-version: 2026-07-28\r\nMcp-Param-Region: private\r\n";
    let call = format!("{modern}mcp-method: tools/call\r\nmcp-name: the_tool\r\n");
    relay.post(&call, CALL, (200, JSON, ANSWER));
    let read = format!("{modern}mcp-method: resources/read\r\nmcp-name: file:///private\r\n");
    relay.post(&read, CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert!(!read.holds("private") && read.holds("the_tool") && read.holds("[DIGEST:"));
}

#[test]
fn with_digests_no_argument_and_no_result_is_kept() {
    let relay = Relay::with(|options| options.bodies = Bodies::Digest, |_| {});
    let open = relay.open(1000, "GET /sse\r\n");
    open.close(Up);
    open.respond(200, EVENTS);
    open.send(Down, b"event: endpoint\ndata: /m\n\n: private\n\n");
    open.send(
        Down,
        b"id: 7\ndata: {\"id\":1,\ndata: \"result\":{\"x\":\"private\"}}\n\ndata: private\n\n",
    );
    let stream = open.finish(Finish::ClientGone);
    let body =
        r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"x":"private"}}}"#;
    let exchange = relay.post("", body, (400, "", "private"));
    let read = relay.stop();
    assert!(!read.holds("private"));
    let bodies = read.payloads(exchange);
    assert!(
        bodies[0].starts_with(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"digest":"#
        ),
        "{bodies:?}"
    );
    assert!(bodies[1].starts_with("[DIGEST:"), "{bodies:?}");
    let events = read.payloads(stream);
    assert_eq!(events[0], "event: endpoint\ndata: /m\n\n");
    assert!(
        events[2].starts_with("id: 7\ndata: {\"id\":1,\"result\":{\"digest\":"),
        "{events:?}"
    );
    assert!(events[2].ends_with("}}\n\n"), "{events:?}");
    assert!(
        events[1].starts_with("[DIGEST:") && events[3].starts_with("[DIGEST:"),
        "{events:?}"
    );
}

#[test]
fn each_file_says_which_sessions_it_is_of() {
    let relay = Relay::start();
    let filler = format!("[\"{}\"]", "y".repeat(1 << 20));
    for _ in 0..70 {
        relay.post("mcp-session-id: one\r\n", CALL, (200, JSON, &filler));
        std::thread::sleep(Duration::from_millis(10));
    }
    let read = relay.stop();
    assert_eq!(read.files.len(), 2);
    let told = read
        .metas()
        .filter(|(_, meta)| matches!(meta, Meta::SessionOpen(_)))
        .count();
    assert_eq!(told, 2);
    let started: Vec<u64> = read
        .metas()
        .filter_map(|(_, meta)| match meta {
            Meta::SessionOpen(open) => Some(open.started / 1_000_000),
            _ => None,
        })
        .collect();
    assert!(started[0].abs_diff(started[1]) < 1000, "{started:?}");
}

#[test]
#[ignore = "a measurement: run it with --ignored --nocapture"]
fn what_a_small_exchange_costs() {
    println!("{}", measure(CALL, ANSWER));
}

/// Argument and result of about 2 kB each.
#[test]
#[ignore = "a measurement: run it with --ignored --nocapture"]
fn what_a_larger_exchange_costs() {
    let text = "The quick brown fox (12 of them) jumps over the lazy dog; then \"it\" rests.\n";
    let text = serde_json::to_string(&text.repeat(24)).unwrap();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{text}}}}}}}"#
    );
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
    );
    println!("{}", measure(&call, &answer));
}

fn measure(call: &str, answer: &str) -> String {
    let relay = Relay::start();
    let headers = "accept: application/json, text/event-stream\r\naccept-encoding: gzip, deflate\r\naccept-language: *\r\nconnection: keep-alive\r\nmcp-protocol-version: 2025-11-25\r\nmcp-session-id: 5f0c2a4491d34c589d550a2b6e1f7c3d\r\nsec-fetch-mode: cors\r\n";
    let headers = format!("{headers}content-length: {}\r\n", call.len());
    let answer_headers = format!("{JSON}content-length: {}\r\n", answer.len());
    let start = Instant::now();
    let mut busy = Duration::ZERO;
    let count = 10_000;
    for _ in 0..count / 1000 {
        let begun = Instant::now();
        for _ in 0..1000 {
            relay.post(&headers, call, (200, &answer_headers, answer));
        }
        busy += begun.elapsed();
        while relay.recorder.stats().queued > 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    let all = start.elapsed();
    assert_eq!(relay.recorder.stats().lost_bytes, 0);
    assert!(relay.recorder.stop(LIMIT));
    format!(
        "{:?} an exchange in all, {:?} of it to tell it",
        all / count,
        busy / count
    )
}
