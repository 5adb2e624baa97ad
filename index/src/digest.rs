//! From the journal of a process to rows of its sessions, in one pass and in bounded memory.
//!
//! The same code reads a journal that grows and one that is finished, record by record, so
//! that an index that follows is equal to one that is made anew.
//!
//! - `part`: what is counted between two pauses
//! - [`scan`]: what is found in answers
//! - [`wire_keys`]: what requests say of the conversation that they belong to

mod part;
pub mod scan;
pub mod wire_keys;

use crate::rows::{Call, Failed, GroupKey, Marks, PartRow, PostTally, SessionRow, StepAt, TurnRow};
use agent_trace_model::step::StepKind;
use agent_trace_model::story::is_own;
use agent_trace_model::{Ending, Stream};
use agent_trace_scanners::pin::identity;
use agent_trace_store::journal::Kind;
use agent_trace_store::journal::header::{Header, KeyKind};
use agent_trace_store::process::Process;
use agent_trace_store::trace::flow::{Flow, Taken, Watch};
use agent_trace_store::trace::{Session, Step};
use agent_trace_wire::message::stays_open;
use part::Part;
pub(crate) use part::{longer, name};
use scan::{Scan, Scanned, Scanner};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use wire_keys::WireKeys;

/// A client that waits for an answer is not idle, for so many times the pause that ends a run.
const PATIENCE: u64 = 6;
/// So often a session is cut because the client names another conversation. What comes then
/// belongs to the last one.
const MOST_CUTS: u32 = 256;
/// The most bytes of a name that are kept.
const LONGEST: usize = 256;
/// The most posts without messages whose targets are told apart.
const MOST_POSTS: usize = 1_000;
/// So long after the beginning of a session, in nanoseconds, its first record may be made.
const MOMENT: u64 = 1_000_000_000;
/// How often a client makes sure that the server is there; that is no work.
const PING: &str = "ping";

/// The sessions of a process while its journal is read.
#[derive(Debug)]
pub struct Digests {
    idle: u64,
    scanner: Arc<Scanner>,
    going_on: BTreeMap<u32, Digest>,
    /// The rows of sessions that are over and were not taken yet.
    done: Vec<Digested>,
}

/// What is known of a session.
#[derive(Clone, Debug)]
pub struct Digested {
    /// Its row.
    pub row: SessionRow,
    /// What was found in it.
    pub scanned: Scanned,
}

/// A session while it is read.
#[derive(Clone, Debug)]
struct Digest {
    idle: u64,
    scanner: Arc<Scanner>,
    scan: Scan,
    parts: Vec<Part>,
    /// The number of the first step in which the client introduces itself, and as what.
    introduced: Option<(usize, String)>,
    /// The number of the first step that tells the revision of the protocol, and which.
    revision: Option<(usize, String)>,
    /// The first exchange with a header that tells it.
    header_revision: Option<(u32, String)>,
    /// When the client last did something or got an answer, on the monotonic clock.
    active: u64,
    /// Requests of the client that wait, by their numbers, and when they began.
    waiting: BTreeMap<usize, u64>,
    cuts: u32,
    /// The first record, on the wall clock and on the monotonic one.
    first: (u64, u64),
    /// Posts over HTTP that carry no message, by target: the last one and whether it failed.
    posts: BTreeMap<String, Post>,
    /// By target, the last post that HTTP let pass.
    passed: BTreeMap<String, u32>,
}

#[derive(Clone, Copy, Debug)]
struct Post {
    at: StepAt,
    exchange: u32,
    refused: bool,
    status: Option<u16>,
}

impl Digests {
    /// None yet; clients that do nothing for `idle` nanoseconds begin a new run.
    #[must_use]
    pub fn new(idle: u64, scanner: &Arc<Scanner>) -> Self {
        Self {
            idle,
            scanner: Arc::clone(scanner),
            going_on: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// The rows of the sessions that are over.
    pub fn take_done(&mut self) -> Vec<Digested> {
        std::mem::take(&mut self.done)
    }

    /// The rows of the sessions of which something became known since the last time.
    pub fn take_rows(&mut self, flow: &mut Flow) -> Vec<Digested> {
        let mut rows = std::mem::take(&mut self.done);
        flow.touched(|ordinal, peek| {
            let known = self.going_on.get(&ordinal).cloned();
            let mut one = One {
                digest: known.unwrap_or_else(|| Digest::new(self.idle, &self.scanner)),
            };
            let (session, files) = peek(&mut one);
            rows.push(one.digest.row(&session, files));
        });
        rows
    }
}

impl Watch for Digests {
    fn took(
        &mut self,
        session: &Session,
        record: Option<&Taken>,
        new: Range<usize>,
        settled: &[usize],
    ) {
        let ordinal = session.entry.session.ordinal;
        let begin = || Digest::new(self.idle, &self.scanner);
        let digest = self.going_on.entry(ordinal).or_insert_with(begin);
        digest.take(session, record, new, settled);
    }

    fn over(&mut self, session: Session, files: (u32, u32)) {
        let ordinal = session.entry.session.ordinal;
        let digest = self.going_on.remove(&ordinal);
        let digest = digest.unwrap_or_else(|| Digest::new(self.idle, &self.scanner));
        self.done.push(digest.row(&session, files));
    }
}

/// A copy of one session's digest.
struct One {
    digest: Digest,
}

impl Watch for One {
    fn took(
        &mut self,
        session: &Session,
        record: Option<&Taken>,
        new: Range<usize>,
        settled: &[usize],
    ) {
        self.digest.take(session, record, new, settled);
    }

    fn over(&mut self, _: Session, _: (u32, u32)) {}
}

impl Digest {
    fn new(idle: u64, scanner: &Arc<Scanner>) -> Self {
        Self {
            idle,
            scanner: Arc::clone(scanner),
            scan: Scan::default(),
            parts: Vec::new(),
            introduced: None,
            revision: None,
            header_revision: None,
            active: 0,
            waiting: BTreeMap::new(),
            cuts: 0,
            first: (0, 0),
            posts: BTreeMap::new(),
            passed: BTreeMap::new(),
        }
    }

    fn take(
        &mut self,
        session: &Session,
        record: Option<&Taken>,
        new: Range<usize>,
        settled: &[usize],
    ) {
        if self.parts.is_empty() {
            self.begin(session, record);
        }
        for step in session.steps.get(new).unwrap_or_default() {
            self.began(session, step);
        }
        if let Some(record) = record {
            self.count(session, record);
        }
        for position in settled {
            if let Some(step) = session.steps.get(*position) {
                self.settled(session, step);
            }
        }
    }

    /// The first record: the session begins.
    fn begin(&mut self, session: &Session, record: Option<&Taken>) {
        let (wall, monotonic) =
            record.map_or((session.entry.started, 0), |r| (r.wall, r.monotonic));
        self.first = (wall, monotonic);
        self.active = monotonic;
        self.parts.push(Part::new(0, session.entry.started, wall));
    }

    fn began(&mut self, session: &Session, step: &Step) {
        let request = step.is_clients() && step.kind == StepKind::Request;
        let keys = match request {
            true => WireKeys::of(step.request(&session.frames)),
            false => WireKeys::default(),
        };
        if is_active(step) {
            self.cut(step, keys.conversation.as_ref());
            self.active = self.active.max(step.monotonic);
        }
        if request && !stays_open(step.method.as_deref()) && !is_ping(step) {
            self.waiting.insert(step.number, step.monotonic);
        }
        self.introduce(session, step);
        let part = self.part_at(step.monotonic);
        part.began(step);
        if let Some(conversation) = keys.conversation {
            part.conversation.get_or_insert(conversation);
        }
        if let Some(trace) = keys.trace {
            part.trace(trace);
        }
        if let Some(id) = keys.turn {
            part.turn(TurnRow {
                id,
                started: step.wall,
            });
        }
    }

    /// Begins a new part if the client was idle, or goes on with another conversation.
    fn cut(&mut self, step: &Step, conversation: Option<&GroupKey>) {
        let Some(last) = self.parts.last() else {
            return;
        };
        let now = step.monotonic;
        if now <= last.from.max(self.first.1) {
            return;
        }
        let patience = self.idle.saturating_mul(PATIENCE);
        let waits = |began: &u64| now.saturating_sub(*began) < patience;
        let idle = now.saturating_sub(self.active) >= self.idle;
        let idle = idle && !self.waiting.values().any(waits);
        let known = last.conversation.as_ref();
        let other = known.is_some() && conversation.is_some() && known != conversation;
        if other && self.cuts < MOST_CUTS {
            self.cuts += 1;
        } else if !idle {
            return;
        }
        self.parts.push(Part::new(now, step.wall, step.wall));
    }

    fn introduce(&mut self, session: &Session, step: &Step) {
        if self.introduced.is_none() && step.is_clients() {
            let frames = &session.frames;
            let may = wire_keys::holds(step.request(frames), b"clientInfo");
            let name = if may { step.client_name(frames) } else { None };
            self.introduced = name.map(|name| (step.number, bounded(&name)));
        }
        if self.revision.is_none() && step.method.as_deref() != Some("initialize") {
            self.tell_revision(session, step);
        }
    }

    fn tell_revision(&mut self, session: &Session, step: &Step) {
        let frames = &session.frames;
        let text = match step.method.as_deref() {
            Some("initialize") => step.response(frames).unwrap_or_default(),
            _ => step.request(frames),
        };
        if wire_keys::holds(text, b"rotocolVersion")
            && let Some(revision) = step.revision(frames)
        {
            self.revision = Some((step.number, bounded(&revision)));
        }
    }

    /// Takes what a record alone tells.
    fn count(&mut self, session: &Session, record: &Taken) {
        self.part_at(record.monotonic).count(record);
        if record.kind != Kind::Meta || record.exchange == 0 {
            return;
        }
        let Some(exchange) = session.exchanges.get(&record.exchange) else {
            return;
        };
        let first = self.header_revision.as_ref().map(|(first, _)| *first);
        if record.stream == Stream::ClientToServer
            && first.is_none_or(|first| first > record.exchange)
            && let Some(revision) = exchange.request_header("mcp-protocol-version")
        {
            self.header_revision = Some((record.exchange, bounded(revision)));
        }
        let post = exchange.request.as_ref().filter(|r| r.method == "POST");
        if let Some(request) = post
            && record.stream == Stream::ServerToClient
            && exchange.status().is_some_and(|status| status < 400)
        {
            let target = bounded(&request.target);
            if self.passed.contains_key(&target) || self.passed.len() < MOST_POSTS {
                let last = self.passed.entry(target).or_default();
                *last = record.exchange.max(*last);
            }
        }
    }

    fn settled(&mut self, session: &Session, step: &Step) {
        self.waiting.remove(&step.number);
        if step.method.as_deref() == Some("initialize")
            && self
                .revision
                .as_ref()
                .is_none_or(|(at, _)| *at > step.number)
        {
            self.tell_revision(session, step);
        }
        let at = place(session, step);
        let bytes = part::bytes(session, step);
        if step.kind == StepKind::Http && step.method.as_deref() == Some("POST") {
            self.post(step, at);
        }
        let mut found = std::mem::take(&mut self.part_at(step.monotonic).tally.found);
        self.scan.take(&self.scanner, session, step, at, &mut found);
        let part = self.part_at(step.monotonic);
        part.tally.found = found;
        part.fold(step, at, bytes);
        if is_active(step) {
            part.active = part.active.max(step.wall);
            if let Some(duration) = step.duration {
                part.active = part.active.max(step.wall.saturating_add(duration));
                let answered = step.monotonic.saturating_add(duration);
                self.active = self.active.max(answered);
            }
        }
    }

    fn post(&mut self, step: &Step, at: StepAt) {
        if !part::has_a_say(step.outcome) {
            return;
        }
        let post = Post {
            at,
            exchange: step.exchange,
            refused: part::failed_in_http(step),
            status: step.status,
        };
        let target = bounded(step.target.as_deref().unwrap_or_default());
        if self.posts.contains_key(&target) || self.posts.len() < MOST_POSTS {
            let last = self.posts.entry(target).or_insert(post);
            if last.at.number <= at.number {
                *last = post;
            }
        }
    }

    fn part_at(&mut self, monotonic: u64) -> &mut Part {
        if self.parts.is_empty() {
            self.parts.push(Part::new(0, 0, 0));
        }
        let after = self.parts.partition_point(|part| part.from <= monotonic);
        let last = self.parts.len() - 1;
        &mut self.parts[after.saturating_sub(1).min(last)]
    }

    /// The row of the session as it is known now.
    fn row(mut self, session: &Session, files: (u32, u32)) -> Digested {
        if self.parts.is_empty() {
            self.begin(session, None);
        }
        for position in session.steps.unsettled().collect::<Vec<_>>() {
            if let Some(step) = session.steps.get(position) {
                let bytes = part::bytes(session, step);
                let at = place(session, step);
                self.part_at(step.monotonic).fold(step, at, bytes);
            }
        }
        let (opening, header) = (&session.opening, &session.entry.header);
        let clipped = session.entry.http
            && files.0 > 1
            && self.first.0.saturating_sub(opening.started) > MOMENT;
        if clipped && let Some(part) = self.parts.first_mut() {
            part.from = self.first.1;
        }
        let ending = session.end.as_ref().map(|end| end.end.ending);
        let moved = ending == Some(Ending::ServerForgot);
        for (target, post) in std::mem::take(&mut self.posts) {
            let passed = self.passed.get(&target);
            let passed = passed.is_some_and(|last| *last > post.exchange);
            if moved && post.status == Some(404) {
                continue;
            }
            let failed = (post.refused && !passed).then_some(Failed::Http);
            let last = Call {
                at: post.at,
                failed,
            };
            let part = self.part_at(post.at.monotonic);
            part.tally.posts.push(PostTally {
                server: 0,
                target,
                last,
            });
        }
        let revision = self.revision.map(|(_, revision)| revision);
        let revision = revision.or(self.header_revision.map(|(_, revision)| revision));
        let client = bounded(&client(session, self.introduced.map(|(_, name)| name)));
        let parts: Vec<PartRow> = self.parts.into_iter().map(|part| part.row(moved)).collect();
        let row = SessionRow {
            id: session.entry.session,
            workspace: header.workspace.clone(),
            project: header.project.clone(),
            task: session.opening.task.as_deref().map(bounded),
            own: is_own(&session.opening.command),
            server: bounded(session.server()),
            identity: identity::of(&opening.command, &opening.cwd, opening.upstream.as_deref()),
            view: self.scan.view(&client, revision.as_deref()),
            lists: self.scan.lists(),
            client,
            transport: bounded(session.transport()),
            revision,
            started: session.entry.started,
            last: session.last,
            standing: session.standing(),
            end: session.end.as_ref().map(|end| end.end.clone()),
            clipped,
            marks: marks(session),
            keys: keys(session),
            files,
            parts,
        };
        Digested {
            row,
            scanned: self.scan.scanned(),
        }
    }
}

/// Whether the client does something in this step.
fn is_active(step: &Step) -> bool {
    step.is_clients() && step.kind != StepKind::Http && !is_ping(step)
}

fn is_ping(step: &Step) -> bool {
    step.method.as_deref() == Some(PING)
}

fn place(session: &Session, step: &Step) -> StepAt {
    StepAt {
        wall: step.wall,
        session: session.entry.session,
        monotonic: step.monotonic,
        number: step.number as u64,
    }
}

/// As [`Session::client`], of a session whose first steps are gone.
fn client(session: &Session, introduced: Option<String>) -> String {
    if session.opening.client.is_some() {
        return session.client();
    }
    introduced.unwrap_or_else(|| session.client())
}

/// What joins a session to others from its beginning on.
fn keys(session: &Session) -> Vec<GroupKey> {
    let (opening, header) = (&session.opening, &session.entry.header);
    let marked = opening.run.as_deref().map(bounded).map(GroupKey::Marked);
    // Who started an HTTP relay is not who calls it.
    let process = match session.entry.http {
        true => opening.process.as_ref(),
        false => header.client.as_ref(),
    };
    let client = process.and_then(|process| client_key(header, process));
    let key = opening.key.as_ref();
    let mcp = key.filter(|key| key.kind == KeyKind::McpSession);
    let mcp = mcp.map(|key| GroupKey::McpSession(bounded(&key.fingerprint)));
    marked.into_iter().chain(client).chain(mcp).collect()
}

fn client_key(header: &Header, process: &Process) -> Option<GroupKey> {
    (process.pid > 0).then(|| GroupKey::Client {
        host: bounded(&header.host),
        boot: bounded(&header.boot),
        pid: process.pid,
        started: process.started,
    })
}

fn marks(session: &Session) -> Marks {
    let gaps = session.gaps.iter().map(|(_, gap)| gap);
    Marks {
        gaps: session.gaps.len() as u64,
        gap_frames: gaps.clone().map(|gap| gap.frames).sum(),
        gap_bytes: gaps.map(|gap| gap.bytes).sum(),
        missing: session.missing,
        damaged: session.damage.len() as u64,
        damaged_bytes: session.damage.iter().map(|damage| damage.bytes).sum(),
        unreadable: session.unreadable.len() as u64,
    }
}

/// A name, no longer than is kept of one.
fn bounded(name: &str) -> String {
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// Those of them that are there.
fn sorted<T: Ord + Clone>(all: &BTreeSet<T>) -> Vec<T> {
    all.iter().cloned().collect()
}
