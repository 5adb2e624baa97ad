//! Journals written record by record, with times of one's own choice.

#![allow(dead_code, reason = "each test file uses a part of it")]

use agent_trace_model::{End, Ending, ProcessId, Stream};
use agent_trace_store::Store;
use agent_trace_store::journal::header::{Meta, Redaction, SessionEnd, SessionOpen};
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::journal::{Bodies, Envelope, Flags, Header, Kind};
use agent_trace_store::process::Process;
use agent_trace_wire::frame::Framing;

/// When all of it begins, in nanoseconds since 1970.
pub(crate) const START: u64 = 1_796_040_000_000_000_000;
/// A millisecond in nanoseconds.
pub(crate) const MS: u64 = 1_000_000;
/// A minute in milliseconds.
pub(crate) const MINUTE: u64 = 60_000;

/// The journal of one process.
pub(crate) struct Journal {
    writer: Option<Writer>,
    sequence: u64,
    /// When its process began, and the time now, in milliseconds after [`START`].
    began: u64,
    now: u64,
}

impl Journal {
    /// The journal of a process that is started by this client at this moment.
    pub(crate) fn new(store: &Store, number: u8, client: u32, began: u64) -> Self {
        let header = Header {
            started: START + began * MS,
            host: "host".into(),
            boot: "boot".into(),
            client: (client > 0).then(|| Process {
                pid: client,
                started: 77,
                name: "client".into(),
            }),
            redaction: Redaction {
                on: true,
                key: "0a0b0c0d".into(),
                user_rules: 0,
            },
            bodies: Bodies::Full,
            workspace: "default".into(),
            ..Header::unknown(ProcessId::new(START / MS + began, [number; 10]))
        };
        Self {
            writer: Some(Writer::create(store, header).unwrap()),
            sequence: 0,
            began,
            now: began,
        }
    }

    pub(crate) fn stdio(store: &Store, number: u8, client: u32, began: u64) -> Self {
        let mut journal = Self::new(store, number, client, began);
        let open = SessionOpen {
            transport: "stdio".into(),
            started: START + began * MS,
            server: Some("mini".into()),
            ..SessionOpen::default()
        };
        journal.meta(1, 0, Stream::ClientToServer, &Meta::SessionOpen(open));
        journal
    }

    /// The time, in milliseconds after [`START`].
    pub(crate) fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self
    }

    pub(crate) fn later(&mut self, by: u64) -> &mut Self {
        self.now += by;
        self
    }

    pub(crate) fn asks(&mut self, text: &str) -> &mut Self {
        self.frame(1, 0, Stream::ClientToServer, Framing::Newline, text)
    }

    pub(crate) fn answers(&mut self, text: &str) -> &mut Self {
        self.frame(1, 0, Stream::ServerToClient, Framing::Newline, text)
    }

    /// A call and its answer, 20 ms apart.
    pub(crate) fn call(&mut self, id: u32, tool: &str, result: &str) -> &mut Self {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#
        );
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},{result}}}"#);
        self.asks(&call).later(20).answers(&answer)
    }

    pub(crate) fn frame(
        &mut self,
        session: u32,
        exchange: u32,
        stream: Stream,
        framing: Framing,
        text: &str,
    ) -> &mut Self {
        let line_end = if framing == Framing::Newline {
            "\n"
        } else {
            ""
        };
        let mut envelope = self.envelope(session, exchange, Kind::Frame, stream);
        envelope.framing = framing;
        self.write(envelope, format!("{text}{line_end}").as_bytes());
        self
    }

    pub(crate) fn meta(
        &mut self,
        session: u32,
        exchange: u32,
        stream: Stream,
        meta: &Meta,
    ) -> &mut Self {
        let envelope = self.envelope(session, exchange, Kind::Meta, stream);
        self.write(envelope, &serde_json::to_vec(meta).unwrap());
        self
    }

    pub(crate) fn end(
        &mut self,
        session: u32,
        ending: Ending,
        exit_code: Option<i32>,
    ) -> &mut Self {
        self.ends(session, ending, exit_code, None)
    }

    /// The server exits by itself, or by a signal if the status is negative.
    pub(crate) fn exits(&mut self, status: i32) -> &mut Self {
        let code = (status >= 0).then_some(status);
        let signal = (status < 0).then_some(-status);
        self.ends(1, Ending::ServerExited, code, signal)
    }

    fn ends(
        &mut self,
        session: u32,
        ending: Ending,
        exit_code: Option<i32>,
        signal: Option<i32>,
    ) -> &mut Self {
        let end = SessionEnd {
            end: End {
                ending,
                exit_code,
                signal,
                killed: false,
                error: None,
            },
            frames: [0; 3],
            bytes: [0; 3],
            lost: 0,
        };
        let envelope = self.envelope(session, 0, Kind::End, Stream::ClientToServer);
        self.write(envelope, &serde_json::to_vec(&end).unwrap());
        self
    }

    /// A record that is lost.
    pub(crate) fn skip(&mut self) -> &mut Self {
        self.sequence += 1;
        self
    }

    /// Goes on in a new file.
    pub(crate) fn roll(&mut self) -> &mut Self {
        self.writer.as_mut().unwrap().roll().unwrap();
        self
    }

    /// The process dies.
    pub(crate) fn close(&mut self) {
        self.writer = None;
    }

    fn envelope(&mut self, session: u32, exchange: u32, kind: Kind, stream: Stream) -> Envelope {
        self.sequence += 1;
        Envelope {
            kind,
            stream,
            framing: Framing::Stray,
            flags: Flags::default(),
            session,
            exchange,
            sequence: self.sequence,
            wall: START + self.now * MS,
            monotonic: (self.now - self.began) * MS + self.sequence,
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
}
