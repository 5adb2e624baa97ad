//! Journals of an HTTP relay, written record by record.

#![allow(dead_code, reason = "each test file uses a part of it")]

use agent_trace_analysis::outcomes::{self, Failure};
use agent_trace_model::{End, Ending, Finish, ProcessId, Stream};
use agent_trace_store::Store;
use agent_trace_store::journal::header::{
    Finished, Gap, KeyKind, Meta, Redaction, Request, Response, SessionEnd, SessionKey, SessionOpen,
};
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::journal::{Bodies, Envelope, Flags, Header, Kind};
use agent_trace_store::process::Process;
use agent_trace_store::trace::step::StepKind;
use agent_trace_store::trace::{Session, Sessions, story};
use agent_trace_wire::frame::Framing;
use std::path::Path;
use tempfile::TempDir;

pub(crate) const START: u64 = 1_796_040_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// A journal and the store that it is in. Each record is a millisecond later than the one
/// before.
pub(crate) struct Journal {
    store: Store,
    /// Where it was made for this journal.
    folder: Option<TempDir>,
    writer: Option<Writer>,
    sequence: u64,
    clock: u64,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Self::in_folder(folder.path());
        journal.folder = Some(folder);
        journal
    }

    /// A journal in this data directory.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let store = Store::at(folder);
        let header = Header {
            process: ProcessId::new(START / MILLISECOND, [7; 10]),
            segment: 1,
            version: "0.1.0".into(),
            started: START,
            host: "host".into(),
            boot: String::new(),
            relay: Process::default(),
            client: None,
            redaction: Redaction {
                on: true,
                key: "0a0b0c0d".into(),
                user_rules: 0,
            },
            bodies: Bodies::Full,
            workspace: "default".into(),
            project: None,
        };
        let writer = Writer::create(&store, header).unwrap();
        Self {
            store,
            folder: None,
            writer: Some(writer),
            sequence: 0,
            clock: 0,
        }
    }

    pub(crate) fn store(&self) -> Store {
        self.store.clone()
    }

    fn envelope(&mut self, session: u32, exchange: u32, kind: Kind, stream: Stream) -> Envelope {
        self.sequence += 1;
        self.clock += MILLISECOND;
        Envelope {
            kind,
            stream,
            framing: Framing::Stray,
            flags: Flags::default(),
            session,
            exchange,
            sequence: self.sequence,
            wall: START + self.clock,
            monotonic: self.clock,
            length: 0,
            digest: None,
            spans: vec![],
        }
    }

    fn write(&mut self, mut envelope: Envelope, payload: &[u8]) {
        envelope.length = payload.len() as u64;
        let writer = self.writer.as_mut().unwrap();
        writer.append(&envelope, payload).unwrap();
        writer.flush().unwrap();
    }

    /// A record that is lost.
    pub(crate) fn skip(&mut self) {
        self.sequence += 1;
    }

    /// Goes on in a new file.
    pub(crate) fn roll(&mut self) {
        self.writer.as_mut().unwrap().roll().unwrap();
    }

    /// The process ends.
    pub(crate) fn close(&mut self) {
        self.writer = None;
    }

    fn meta(&mut self, session: u32, exchange: u32, stream: Stream, meta: &Meta) {
        let envelope = self.envelope(session, exchange, Kind::Meta, stream);
        self.write(envelope, &serde_json::to_vec(meta).unwrap());
    }

    pub(crate) fn open(&mut self, session: u32, kind: KeyKind) {
        let open = SessionOpen {
            transport: "http".into(),
            started: START + self.clock,
            listen: Some("127.0.0.1:8000".into()),
            upstream: Some("http://tools.example:9000/mcp".into()),
            key: Some(SessionKey {
                kind,
                fingerprint: format!("{session:08x}"),
            }),
            user_agent: Some("inspector/2.0 (linux)".into()),
            ..SessionOpen::default()
        };
        self.meta(session, 0, Stream::ClientToServer, &Meta::SessionOpen(open));
    }

    pub(crate) fn request(
        &mut self,
        session: u32,
        exchange: u32,
        method: &str,
        headers: &[(&str, &str)],
    ) {
        let request = Meta::Request(Request {
            connection: exchange,
            peer: "127.0.0.1:5000".into(),
            method: method.into(),
            target: "/mcp".into(),
            version: "HTTP/1.1".into(),
            headers: owned(headers),
        });
        self.meta(session, exchange, Stream::ClientToServer, &request);
    }

    pub(crate) fn response(
        &mut self,
        session: u32,
        exchange: u32,
        status: u16,
        headers: &[(&str, &str)],
    ) {
        let response = Meta::Response(Response {
            status,
            version: "HTTP/1.1".into(),
            headers: owned(headers),
        });
        self.meta(session, exchange, Stream::ServerToClient, &response);
    }

    pub(crate) fn finish(&mut self, session: u32, exchange: u32, finish: Finish) {
        let finished = Meta::Finished(Finished {
            finish,
            request_bytes: 0,
            response_bytes: 0,
        });
        self.meta(session, exchange, Stream::ServerToClient, &finished);
    }

    /// A fact of an exchange.
    pub(crate) fn fact(&mut self, session: u32, exchange: u32, stream: Stream, meta: &Meta) {
        self.meta(session, exchange, stream, meta);
    }

    fn frame(
        &mut self,
        session: u32,
        exchange: u32,
        stream: Stream,
        framing: Framing,
        bytes: &str,
    ) {
        let mut envelope = self.envelope(session, exchange, Kind::Frame, stream);
        envelope.framing = framing;
        self.write(envelope, bytes.as_bytes());
    }

    /// A JSON body of the client.
    pub(crate) fn asks(&mut self, session: u32, exchange: u32, text: &str) {
        self.frame(
            session,
            exchange,
            Stream::ClientToServer,
            Framing::Body,
            text,
        );
    }

    /// A JSON body of the server.
    pub(crate) fn answers(&mut self, session: u32, exchange: u32, text: &str) {
        self.frame(
            session,
            exchange,
            Stream::ServerToClient,
            Framing::Body,
            text,
        );
    }

    /// Another body of the server.
    pub(crate) fn says(&mut self, session: u32, exchange: u32, text: &str) {
        self.frame(
            session,
            exchange,
            Stream::ServerToClient,
            Framing::Stray,
            text,
        );
    }

    /// An event of the server.
    pub(crate) fn event(&mut self, session: u32, exchange: u32, raw: &str) {
        self.frame(
            session,
            exchange,
            Stream::ServerToClient,
            Framing::Event,
            raw,
        );
    }

    /// A whole POST that is answered with JSON.
    pub(crate) fn post(&mut self, session: u32, exchange: u32, ask: &str, status: u16, say: &str) {
        self.request(session, exchange, "POST", &[]);
        self.asks(session, exchange, ask);
        self.response(
            session,
            exchange,
            status,
            &[("content-type", "application/json")],
        );
        if !say.is_empty() {
            self.answers(session, exchange, say);
        }
        self.finish(session, exchange, Finish::Complete);
    }

    /// Begins an exchange that is answered with an event stream.
    pub(crate) fn stream(&mut self, session: u32, exchange: u32, ask: &str) {
        let method = if ask.is_empty() { "GET" } else { "POST" };
        self.request(session, exchange, method, &[]);
        if !ask.is_empty() {
            self.asks(session, exchange, ask);
        }
        self.response(
            session,
            exchange,
            200,
            &[("content-type", "text/event-stream")],
        );
    }

    pub(crate) fn gap(&mut self, session: u32, bytes: u64) {
        let gap = Gap {
            reason: "queue_full".into(),
            since: START + self.clock,
            frames: 0,
            bytes,
            stream: None,
        };
        let envelope = self.envelope(session, 0, Kind::Gap, Stream::ServerToClient);
        self.write(envelope, &serde_json::to_vec(&gap).unwrap());
    }

    pub(crate) fn end(&mut self, session: u32, ending: Ending) {
        let end = SessionEnd {
            end: End {
                ending,
                exit_code: None,
                signal: None,
                killed: false,
                error: None,
            },
            frames: [0; 3],
            bytes: [0; 3],
            lost: 0,
        };
        let envelope = self.envelope(session, 0, Kind::End, Stream::ServerToClient);
        self.write(envelope, &serde_json::to_vec(&end).unwrap());
    }

    /// All runs, oldest first.
    pub(crate) fn runs(&self) -> Vec<Session> {
        let store = self.store();
        let listing = store.list().unwrap();
        assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
        let entries = listing.runs.iter().rev();
        entries.map(|entry| store.open(entry).unwrap()).collect()
    }

    /// The one run.
    #[track_caller]
    pub(crate) fn run(&self) -> Session {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1);
        runs.remove(0)
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    let headers = headers.iter();
    headers
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

/// The steps in a few words: what, status, outcome, rounds.
pub(crate) fn steps(run: &Session) -> Vec<String> {
    let describe = |step: &agent_trace_store::trace::Step| {
        let mut words: Vec<String> = match step.kind {
            StepKind::Stray => vec!["stray".into()],
            StepKind::Other => vec!["other".into()],
            StepKind::Answer => vec!["answer".into()],
            StepKind::Request | StepKind::Notification | StepKind::Http => vec![],
        };
        words.extend(step.method.clone());
        words.extend(step.target.clone());
        words.extend(step.status.map(|status| status.to_string()));
        words.push(step.outcome.to_string());
        if step.rounds > 1 {
            words.push(format!("{} rounds", step.rounds));
        }
        words.join(" ")
    };
    run.steps.iter().map(describe).collect()
}

/// Why a session counts as failed.
pub(crate) fn failures(run: &Session) -> Vec<Failure> {
    let story = story::of(run.entry.id, Vec::new(), &[run]);
    outcomes::failures(&story)
}
