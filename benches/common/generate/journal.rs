//! What was said, written as a relay writes it: by the store's own writer.

use super::talk::{Entry, Talk};
use super::truth::Made;
use super::world::SERVERS;
use agent_trace_model::{End, Ending, Finish, ProcessId, Stream};
use agent_trace_store::Store;
use agent_trace_store::journal::header::{
    Finished, KeyKind, Meta, Redaction, Request, Response, SessionEnd, SessionKey, SessionOpen,
};
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::journal::{Bodies, Envelope, Flags, Header, Kind};
use agent_trace_store::process::Process;
use agent_trace_store::redact::Key;
use agent_trace_wire::frame::Framing;
use serde::Serialize;
use std::io;

/// A relay process that writes a journal.
pub(crate) struct Relay {
    writer: Writer,
    /// When it began, in nanoseconds since 1970.
    started: u64,
    sequence: u64,
    /// Exchanges of the sessions before.
    pub(crate) exchanges: u32,
    line: Vec<u8>,
}

/// A session that is to be written.
pub(crate) struct Session<'a> {
    pub(crate) ordinal: u32,
    /// When it began, in nanoseconds since 1970.
    pub(crate) started: u64,
    /// The client's process.
    pub(crate) client: Process,
    /// What ties its exchanges together, in HTTP.
    pub(crate) key: Option<u64>,
    pub(crate) end: End,
    pub(crate) talk: Talk<'a>,
    /// What its first exchange follows on.
    pub(crate) exchanges: u32,
}

impl Relay {
    /// Begins a journal. A relay of HTTP has no client of its own.
    pub(crate) fn start(
        store: &Store,
        key: &Key,
        started: u64,
        random: [u8; 10],
        client: Option<Process>,
        project: Option<&str>,
    ) -> io::Result<Self> {
        let header = Header {
            process: ProcessId::new(started / 1_000_000, random),
            segment: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            started,
            host: "workstation".into(),
            boot: "2f1c5a3e-8f0d-4f6c-9c57-0d6b1c2f7a11".into(),
            relay: Process {
                pid: client.as_ref().map_or(900, |client| client.pid + 1),
                started: client.as_ref().map_or(4_000, |client| client.started + 3),
                name: "agent-trace".into(),
            },
            client,
            redaction: Redaction {
                on: true,
                key: key.id(),
                user_rules: 0,
            },
            bodies: Bodies::Full,
            workspace: "default".into(),
            project: project.map(Into::into),
        };
        Ok(Self {
            writer: Writer::chained(store, header, key.chain())?,
            started,
            sequence: 0,
            exchanges: 0,
            line: Vec::new(),
        })
    }

    /// Writes a session over standard input and output.
    pub(crate) fn stdio(mut self, session: &Session<'_>, made: &mut Made) -> io::Result<()> {
        let server = &SERVERS[session.talk.server];
        let open = SessionOpen {
            transport: "stdio".into(),
            started: session.started,
            server: Some(server.name.into()),
            command: server.command.iter().map(|&word| word.into()).collect(),
            cwd: "/home/dev".into(),
            env: ["HOME", "LANG", "PATH", "TERM"].map(Into::into).to_vec(),
            pid: Some(session.client.pid + 2),
            ..SessionOpen::default()
        };
        let at = session.started;
        self.meta(session.ordinal, (0, at), &Meta::SessionOpen(open))?;
        let mut totals = Totals::default();
        for entry in &session.talk.entries {
            let text = &session.talk.bytes[entry.range.clone()];
            self.line.clear();
            self.line.extend_from_slice(text);
            self.line.push(b'\n');
            let framing = match entry.stream {
                Stream::Stderr => Framing::Stray,
                _ => Framing::Newline,
            };
            self.frame((session, 0), entry, framing, &mut totals)?;
        }
        self.end(session, &totals)?;
        self.finish(&totals, made)?;
        made.sessions += 1;
        Ok(())
    }

    /// Writes sessions over HTTP, each thing at its time.
    pub(crate) fn http(mut self, sessions: &[Session<'_>], made: &mut Made) -> io::Result<()> {
        // Which session, and which of its entries; none is its end.
        let mut order: Vec<(u64, usize, Option<usize>)> = Vec::new();
        for (position, session) in sessions.iter().enumerate() {
            for (number, entry) in session.talk.entries.iter().enumerate() {
                order.push((session.started + entry.at, position, Some(number)));
            }
            let end = session.started + session.talk.now;
            order.push((end, position, None));
        }
        order.sort_by_key(|(at, position, number)| (*at, *position, number.is_none(), *number));
        let mut totals: Vec<Totals> = vec![Totals::default(); sessions.len()];
        // Which exchange of each session is being answered.
        let mut answered = vec![0; sessions.len()];
        for (_, position, number) in order {
            let session = &sessions[position];
            let totals = &mut totals[position];
            match number {
                Some(number) => {
                    if number == 0 {
                        self.open_http(session)?;
                    }
                    let entry = &session.talk.entries[number];
                    self.exchange(session, entry, &mut answered[position], totals)?;
                }
                None => self.end(session, totals)?,
            }
        }
        let mut all = Totals::default();
        for session in &totals {
            for stream in 0..3 {
                all.frames[stream] += session.frames[stream];
                all.bytes[stream] += session.bytes[stream];
            }
        }
        made.sessions += sessions.len() as u64;
        self.finish(&all, made)
    }

    fn open_http(&mut self, session: &Session<'_>) -> io::Result<()> {
        let server = &SERVERS[session.talk.server];
        let open = SessionOpen {
            transport: "http".into(),
            started: session.started,
            server: Some(server.name.into()),
            listen: Some("127.0.0.1:7777".into()),
            upstream: Some(format!("https://mcp.{}.example/mcp", server.name)),
            key: session.key.map(|key| SessionKey {
                kind: KeyKind::McpSession,
                fingerprint: format!("{key:016x}"),
            }),
            process: Some(session.client.clone()),
            user_agent: Some(session.talk.client.agent.into()),
            ..SessionOpen::default()
        };
        self.meta(
            session.ordinal,
            (0, session.started),
            &Meta::SessionOpen(open),
        )
    }

    /// Writes a message with the heads that are before it and the end that is after it.
    fn exchange(
        &mut self,
        session: &Session<'_>,
        entry: &Entry,
        answered: &mut u32,
        totals: &mut Totals,
    ) -> io::Result<()> {
        let exchange = session.exchanges + entry.exchange;
        let at = session.started + entry.at;
        let text = &session.talk.bytes[entry.range.clone()];
        if entry.stream == Stream::ClientToServer {
            let head = self.request(session, exchange, text.len());
            self.meta(session.ordinal, (exchange, at), &head)?;
            self.line.clear();
            self.line.extend_from_slice(text);
            self.frame((session, exchange), entry, Framing::Body, totals)?;
            if entry.last {
                self.response(session, (exchange, at), 202, None)?;
                self.finished(session, (exchange, at), text.len(), 0)?;
            }
            return Ok(());
        }
        let media = match entry.events {
            true => "text/event-stream",
            false => "application/json",
        };
        if *answered != exchange {
            *answered = exchange;
            self.response(session, (exchange, at), 200, Some(media))?;
        }
        self.line.clear();
        if entry.events {
            self.line.extend_from_slice(b"event: message\ndata: ");
            self.line.extend_from_slice(text);
            self.line.extend_from_slice(b"\n\n");
        } else {
            self.line.extend_from_slice(text);
        }
        let framing = match entry.events {
            true => Framing::Event,
            false => Framing::Body,
        };
        self.frame((session, exchange), entry, framing, totals)?;
        if entry.last {
            let length = self.line.len();
            self.finished(session, (exchange, at), 300, length)?;
        }
        Ok(())
    }

    fn request(&self, session: &Session<'_>, exchange: u32, length: usize) -> Meta {
        let server = SERVERS[session.talk.server].name;
        let key = session.key.unwrap_or_default();
        let length = length.to_string();
        let id = format!("[REDACTED:mcp-session-id:{key:016x}]");
        let host = format!("mcp.{server}.example");
        let lines = [
            ("host", &host[..]),
            ("user-agent", session.talk.client.agent),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-session-id", &id[..]),
            ("content-length", &length[..]),
        ];
        // Before the first answer there is no id.
        let first = exchange == session.exchanges + 1;
        let lines = lines
            .iter()
            .filter(|(name, _)| !first || !name.starts_with("mcp-"));
        Meta::Request(Request {
            connection: session.ordinal,
            peer: format!("127.0.0.1:{}", 40_000 + session.ordinal % 20_000),
            method: "POST".into(),
            target: "/mcp".into(),
            version: "HTTP/1.1".into(),
            headers: lines
                .map(|&(name, value)| (name.into(), value.into()))
                .collect(),
        })
    }

    fn response(
        &mut self,
        session: &Session<'_>,
        (exchange, at): (u32, u64),
        status: u16,
        media: Option<&str>,
    ) -> io::Result<()> {
        let mut headers = vec![("date".into(), "Thu, 01 Oct 2026 10:00:00 GMT".into())];
        headers.extend(media.map(|media| ("content-type".into(), media.into())));
        let response = Meta::Response(Response {
            status,
            version: "HTTP/1.1".into(),
            headers,
        });
        let place = (exchange, at);
        self.json(
            session.ordinal,
            place,
            (Kind::Meta, Stream::ServerToClient),
            &response,
        )
    }

    fn finished(
        &mut self,
        session: &Session<'_>,
        place: (u32, u64),
        request: usize,
        response: usize,
    ) -> io::Result<()> {
        let finished = Meta::Finished(Finished {
            finish: Finish::Complete,
            request_bytes: request as u64,
            response_bytes: response as u64,
        });
        let kind = (Kind::Meta, Stream::ServerToClient);
        self.json(session.ordinal, place, kind, &finished)
    }

    fn end(&mut self, session: &Session<'_>, totals: &Totals) -> io::Result<()> {
        let at = session.started + session.talk.now;
        let end = SessionEnd {
            end: session.end.clone(),
            frames: totals.frames,
            bytes: totals.bytes,
            lost: 0,
        };
        let kind = (Kind::End, Stream::ClientToServer);
        self.json(session.ordinal, (0, at), kind, &end)
    }

    fn finish(mut self, totals: &Totals, made: &mut Made) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.close()?;
        made.files += u64::from(self.writer.header().segment);
        made.events += totals.frames[0] + totals.frames[1];
        made.records += self.sequence;
        made.raw += totals.bytes.iter().sum::<u64>();
        Ok(())
    }

    /// Writes the line as a frame.
    fn frame(
        &mut self,
        (session, exchange): (&Session<'_>, u32),
        entry: &Entry,
        framing: Framing,
        totals: &mut Totals,
    ) -> io::Result<()> {
        let kind = match entry.stream {
            Stream::Stderr => Kind::Stderr,
            _ => Kind::Frame,
        };
        let line = std::mem::take(&mut self.line);
        totals.frames[entry.stream as usize] += 1;
        totals.bytes[entry.stream as usize] += line.len() as u64;
        let place = (exchange, session.started + entry.at);
        let envelope = Envelope {
            framing,
            ..self.envelope(session.ordinal, place, (kind, entry.stream))
        };
        let appended = self.append(envelope, &line);
        self.line = line;
        appended
    }

    fn meta(&mut self, session: u32, place: (u32, u64), meta: &Meta) -> io::Result<()> {
        self.json(session, place, (Kind::Meta, Stream::ClientToServer), meta)
    }

    fn json(
        &mut self,
        session: u32,
        place: (u32, u64),
        kind: (Kind, Stream),
        what: &impl Serialize,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(what)?;
        let envelope = self.envelope(session, place, kind);
        self.append(envelope, &text)
    }

    fn envelope(
        &mut self,
        session: u32,
        (exchange, at): (u32, u64),
        (kind, stream): (Kind, Stream),
    ) -> Envelope {
        self.sequence += 1;
        Envelope {
            kind,
            stream,
            framing: Framing::Stray,
            flags: Flags::default(),
            session,
            exchange,
            sequence: self.sequence,
            wall: at,
            monotonic: at - self.started,
            length: 0,
            digest: None,
            spans: Vec::new(),
        }
    }

    fn append(&mut self, envelope: Envelope, payload: &[u8]) -> io::Result<()> {
        let envelope = Envelope {
            length: payload.len() as u64,
            ..envelope
        };
        self.writer.append(&envelope, payload)?;
        if self.writer.is_full() {
            self.writer.flush()?;
            self.writer.roll()?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
struct Totals {
    frames: [u64; 3],
    bytes: [u64; 3],
}

/// How a session ends whose client went.
pub(crate) fn closed() -> End {
    End {
        ending: Ending::ClientClosed,
        exit_code: Some(0),
        signal: None,
        killed: false,
        error: None,
    }
}

/// How a session ends whose server was killed.
pub(crate) fn killed() -> End {
    End {
        ending: Ending::ServerExited,
        exit_code: None,
        signal: Some(9),
        killed: false,
        error: None,
    }
}
