//! Everything that was recorded of one session.

use super::SessionEntry;
use super::exchange::{self, Exchange, Exchanges};
use super::step::Frame;
use super::steps::Steps;
use crate::journal::header::{Gap, KeyKind, Meta, SessionEnd, SessionOpen};
use crate::journal::reader::{Damage, OpenError};
use crate::journal::{Envelope, Kind, Record};
use agent_trace_model::Ending;

pub use agent_trace_model::story::Standing;

/// The signals with which a process is asked to end: HUP, INT, TERM.
const ASKED_TO_END: [i32; 3] = [1, 2, 15];
/// How long after its beginning, in nanoseconds, a session's first record may be made.
const MOMENT: u64 = 1_000_000_000;

/// So many frames or steps are gathered before those that are done with are let go.
const KEPT: usize = 256;
/// So many bytes of messages are gathered before those that are done with are let go. Of the
/// others the oldest are then kept without their text, until half as much is left.
const MOST_TEXT: usize = 4 << 20;

/// A session in memory.
#[derive(Debug)]
pub struct Session {
    /// What is known from the headers of its files.
    pub entry: SessionEntry,
    /// How it began.
    pub opening: SessionOpen,
    /// How it ended, if it did and that was recorded.
    pub end: Option<SessionEnd>,
    /// What happened, in the order in which it began.
    pub steps: Steps,
    /// Every frame, in the order in which it was read from its sender. Steps refer to it by position.
    pub frames: Vec<Frame>,
    /// Its HTTP exchanges by their numbers.
    pub exchanges: Exchanges,
    /// Lines of the server's standard error.
    pub errors: Vec<Record>,
    /// What was not recorded.
    pub gaps: Vec<(Envelope, Gap)>,
    /// What was recorded and cannot be read.
    pub damage: Vec<Damage>,
    /// How many records are missing between those that can be read, as their numbers tell.
    /// Of a file that was sealed or exported this is all that is left of its damage.
    pub missing: u64,
    /// Files that cannot be read at all.
    pub unreadable: Vec<OpenError>,
    /// When its first record was written, in nanoseconds since 1970; 0 where there is none.
    first: u64,
    /// When its last record was written, in nanoseconds since 1970.
    pub last: u64,
    /// How many frames or steps were left when those that are done with were let go.
    left: usize,
    /// Bytes of its frames.
    text: usize,
}

impl Session {
    pub(super) fn new(entry: SessionEntry) -> Self {
        Self {
            first: 0,
            last: entry.started,
            entry,
            opening: SessionOpen::default(),
            end: None,
            steps: Steps::default(),
            frames: Vec::new(),
            exchanges: Exchanges::new(),
            errors: Vec::new(),
            gaps: Vec::new(),
            damage: Vec::new(),
            missing: 0,
            unreadable: Vec::new(),
            left: 0,
            text: 0,
        }
    }

    /// Takes the next record of the session.
    pub(super) fn push(&mut self, record: Record) {
        let payload = &record.payload[..];
        let wall = record.envelope.wall;
        self.first = if self.first == 0 { wall } else { self.first };
        self.last = self.last.max(wall);
        match record.envelope.kind {
            Kind::Frame => {
                self.text += payload.len();
                self.frames.push(Frame::new(record));
                self.steps.frame(&self.frames, self.frames.len() - 1);
            }
            Kind::Stderr => self.errors.push(record),
            Kind::Meta => match serde_json::from_slice(payload) {
                Ok(Meta::SessionOpen(opening)) => self.open(opening),
                Ok(meta) => self.fact(&record.envelope, &meta),
                Err(_) => {}
            },
            Kind::Gap => {
                if let Ok(gap) = serde_json::from_slice(payload) {
                    self.lose(record.envelope.monotonic);
                    self.gaps.push((record.envelope, gap));
                }
            }
            Kind::End => self.end = serde_json::from_slice(payload).ok(),
            Kind::Finding | Kind::Removed | Kind::Mark | Kind::Unknown(_) => {}
        }
    }

    pub(super) fn open(&mut self, opening: SessionOpen) {
        self.steps.tied_by(opening.key.as_ref().map(|key| key.kind));
        self.opening = opening;
    }

    fn fact(&mut self, envelope: &Envelope, meta: &Meta) {
        if envelope.exchange == 0 || *meta == Meta::Unknown {
            return;
        }
        let new = || Exchange {
            number: envelope.exchange,
            wall: envelope.wall,
            monotonic: envelope.monotonic,
            ..Exchange::default()
        };
        let exchange = self.exchanges.entry(envelope.exchange).or_insert_with(new);
        exchange::take(exchange, envelope, meta);
        self.steps.exchange(&self.frames, envelope, meta);
    }

    /// A copy, to see what would be if nothing more came.
    pub(super) fn fork(&self) -> Self {
        Self {
            entry: self.entry.clone(),
            opening: self.opening.clone(),
            end: self.end.clone(),
            steps: self.steps.clone(),
            frames: self.frames.clone(),
            exchanges: self.exchanges.clone(),
            errors: self.errors.clone(),
            gaps: self.gaps.clone(),
            damage: self.damage.clone(),
            missing: self.missing,
            unreadable: self.unreadable.iter().map(super::read::copy).collect(),
            first: self.first,
            last: self.last,
            left: self.left,
            text: self.text,
        }
    }

    /// Lets go of what has been seen and does not matter for what comes: the exchange, if it
    /// is finished, lines of standard error, steps and their frames.
    pub(super) fn forget(&mut self, exchange: u32) {
        let finished = |exchange: &Exchange| exchange.finished.is_some();
        if exchange > 0 && self.exchanges.get(&exchange).is_some_and(finished) {
            self.exchanges.remove(&exchange);
        }
        self.errors.clear();
        let gathered = self.frames.len().max(self.steps.len());
        // What waits for an answer for ever is not looked at again with each record.
        if gathered >= KEPT.max(2 * self.left) || self.text > MOST_TEXT {
            self.steps.compact(&mut self.frames);
            self.left = self.frames.len().max(self.steps.len());
            self.text = self.frames.iter().map(|f| f.record.payload.len()).sum();
            self.drop_text();
        }
    }

    fn drop_text(&mut self) {
        if self.text <= MOST_TEXT / 2 {
            return;
        }
        for frame in &mut self.frames {
            self.text -= frame.record.payload.len();
            frame.drop_text();
            if self.text <= MOST_TEXT / 2 {
                break;
            }
        }
    }

    /// Whether anything was recorded of it yet.
    pub(super) fn has_begun(&self) -> bool {
        self.first > 0
    }

    /// Takes note that at this moment of the monotonic clock something was not recorded.
    pub(super) fn lose(&mut self, monotonic: u64) {
        self.steps.lose(monotonic);
    }

    /// Nothing more will come.
    pub(super) fn finish(&mut self) {
        let crashed = self.standing() == Standing::Crashed;
        self.steps.end(&self.frames, crashed);
    }

    /// Whether everything that was recorded can be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing == 0 && self.damage.is_empty() && self.unreadable.is_empty()
    }

    /// Whether its beginning was removed because it was too old, and the end is still there.
    #[must_use]
    pub fn is_clipped(&self) -> bool {
        let first = self.entry.segments.first();
        self.entry.http && self.first > 0 && first.is_some_and(|file| file.number > 1) && {
            // The file before would have it; opening it anew takes no time.
            self.first.saturating_sub(self.opening.started) > MOMENT
        }
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Some(SessionEnd { end, .. }) = &self.end else {
            return if self.entry.live {
                Standing::Live
            } else {
                Standing::CutOff
            };
        };
        match end.ending {
            Ending::NotStarted => Standing::Crashed,
            // Of HTTP it is the stream of the older transport that the server ended.
            Ending::ServerExited if self.entry.http => Standing::Ended,
            // Some clients end the server behind our back.
            Ending::ServerExited if end.signal.is_some_and(|s| ASKED_TO_END.contains(&s)) => {
                Standing::Ended
            }
            Ending::ServerExited if end.exit_code != Some(0) => Standing::Crashed,
            _ => Standing::Ended,
        }
    }

    /// What to call the server: its given name, else the host of its URL, else what its
    /// command looks like.
    #[must_use]
    pub fn server(&self) -> &str {
        server_name(&self.opening)
    }

    /// What to call the client: its given name, else the name it gave itself, else its
    /// process's, else what it calls itself in HTTP.
    #[must_use]
    pub fn client(&self) -> String {
        let given = self.opening.client.clone();
        let introduced = || self.steps.iter().find_map(|s| s.client_name(&self.frames));
        // Who started an HTTP relay is not who calls it.
        let process = match self.entry.http {
            true => self.opening.process.as_ref(),
            false => self.entry.header.client.as_ref(),
        };
        let process = || Some(process?.name.clone()).filter(|name| !name.is_empty());
        let agent = || {
            let agent = self.opening.user_agent.as_deref()?;
            Some(agent.split(['/', ' ']).next()?.to_owned())
        };
        let name = given.or_else(introduced).or_else(process).or_else(agent);
        name.unwrap_or_default()
    }

    /// How the client reaches the server: `stdio` or `http`.
    #[must_use]
    pub fn transport(&self) -> &str {
        match &self.opening.transport[..] {
            "" => "stdio",
            transport => transport,
        }
    }

    /// What ties its HTTP exchanges together, where that is known.
    #[must_use]
    pub fn key_kind(&self) -> Option<KeyKind> {
        self.opening.key.as_ref().map(|key| key.kind)
    }

    /// The revision of the protocol, where a message or a header tells it.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        let told = || {
            self.steps
                .iter()
                .find_map(|step| step.revision(&self.frames))
        };
        let header = || {
            let mut exchanges = self.exchanges.values();
            let value = exchanges.find_map(|e| e.request_header("mcp-protocol-version"));
            value.map(Into::into)
        };
        told().or_else(header)
    }
}

/// What to call the server of a session that begins so: its given name, else the host of its
/// URL, else what its command looks like.
pub(crate) fn server_name(opening: &SessionOpen) -> &str {
    if let Some(given) = &opening.server {
        return given;
    }
    let host = opening.upstream.as_deref().and_then(host);
    host.unwrap_or_else(|| command_name(&opening.command))
}

/// The host of a URL, with its port.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(host).filter(|host| !host.is_empty())
}

/// What a command looks like to a person: of `npx -y @scope/server-x --flag` it is
/// `server-x`, of `python -m pkg.server` it is `pkg.server`.
fn command_name(command: &[String]) -> &str {
    let words = || {
        command
            .iter()
            .filter(|word| !word.starts_with('-'))
            // Of a script for a shell, the first command.
            .filter_map(|word| word.split_ascii_whitespace().next())
            .map(|word| word.rsplit(['/', '\\']).next().unwrap_or(word))
    };
    let launchers = [
        "npx", "npm", "exec", "node", "bunx", "bun", "deno", "uvx", "uv", "run", "pipx", "python",
        "python3", "sh", "bash", "env", "docker",
    ];
    words()
        .find(|word| !word.is_empty() && !launchers.contains(word))
        .or_else(|| words().next())
        .unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_what_its_command_looks_like() {
        let name = |command: &str| {
            let words: Vec<String> = command.split(' ').map(Into::into).collect();
            command_name(&words).to_owned()
        };
        assert_eq!(
            name("npx -y @modelcontextprotocol/server-git --x"),
            "server-git"
        );
        assert_eq!(
            name("/usr/bin/python3 -m mcp_server.time"),
            "mcp_server.time"
        );
        assert_eq!(name("./target/server"), "server");
        assert_eq!(name("npx"), "npx");
        let script = ["sh", "-c", "./serve --port 1 >/dev/null"].map(String::from);
        assert_eq!(command_name(&script), "serve");
        assert_eq!(command_name(&[]), "?");
    }

    fn request(number: u32, size: usize) -> Record {
        let text = "x".repeat(size);
        let payload = format!(r#"{{"id":{number},"method":"m","params":"{text}"}}"#);
        let envelope = Envelope {
            kind: Kind::Frame,
            stream: agent_trace_model::Stream::ClientToServer,
            framing: agent_trace_wire::frame::Framing::Newline,
            flags: crate::journal::Flags::default(),
            session: 1,
            exchange: 0,
            sequence: u64::from(number),
            wall: u64::from(number),
            monotonic: u64::from(number),
            length: payload.len() as u64,
            digest: None,
            spans: vec![],
        };
        let payload = payload.into_bytes();
        Record { envelope, payload }
    }

    /// A session with so many requests that are never answered, of which each is told of and
    /// let go as soon as it may be; and how often that was looked for.
    fn unanswered(count: u32, size: usize) -> (Session, usize) {
        let process = agent_trace_model::ProcessId::from_bytes([1; 16]);
        let session = agent_trace_model::SessionId {
            process,
            ordinal: 1,
        };
        let mut session = Session::new(SessionEntry {
            id: super::super::run_id("w", session),
            session,
            http: false,
            started: 1,
            header: crate::journal::Header::unknown(process),
            segments: vec![],
            live: true,
        });
        let mut looked = 0;
        for number in 0..count {
            session.push(request(number, size));
            session.steps.take_settled();
            let before = session.left;
            session.forget(0);
            looked += usize::from(session.left != before);
        }
        (session, looked)
    }

    #[test]
    fn what_waits_for_ever_is_not_looked_at_with_each_record() {
        let (session, looked) = unanswered(20_000, 1);
        assert_eq!(session.steps.len(), 20_000);
        assert!(looked < 10, "{looked}");
    }

    #[test]
    fn messages_that_wait_for_ever_take_bounded_memory() {
        let (session, _) = unanswered(2_000, 20_000);
        let frames = session.frames.iter();
        let held: usize = frames.map(|frame| frame.record.payload.len()).sum();
        assert!(held <= MOST_TEXT + 30_000, "{held}");
        assert_eq!(session.frames.len(), 2_000);
        // What came last is there.
        let last = session.steps.last().unwrap();
        assert!(last.request(&session.frames).starts_with(b"{\"id\":1999,"));
    }
}
