//! One exchange of HTTP: its head, its frames, its end.
//!
//! To which session it belongs may be known by its head, or only by its first message: an
//! `initialize` begins one, and so does the `endpoint` event of the older transport. Until
//! then the heads are held; frames are not, as the first one decides, except for comments and
//! the like that come before the `endpoint` event.

use super::Shared;
use super::callers::Who;
use super::flow::{Flow, Input};
use super::initialize::holds_initialize;
use super::known::{Known, body_of};
use super::sessions::{Key, LONGEST_KEY};
use super::target::{path_and_query, resolve};
use crate::journal::header::{Altered, Finished, Meta};
use crate::journal::{Flags, Kind};
use crate::recorder::events::is_endpoint;
use crate::recorder::frames::{Frames, kept};
use crate::recorder::queue::{Item, What};
use crate::recorder::sink::{Piece, Place, Sink};
use agent_trace_model::{Caller, Channel, Ending, Finish, Stream};
use agent_trace_wire::frame::{Frame, Framing};
use agent_trace_wire::http::Head;
use agent_trace_wire::sse;
use std::rc::Rc;

/// The first revision that has no sessions.
const WITHOUT_SESSIONS: &[u8] = b"2026-07-28";

/// How many alterations wait for the session to be known.
const MOST_ALTERED: usize = 16;
/// How many events without data do, and how long they are together.
const MOST_HELD: usize = 16;
const LONGEST_HELD: usize = 16 << 10;

/// One exchange.
pub(super) struct Exchange {
    about: About,
    inbound: Flow,
    outbound: Flow,
    /// When the end of its request was told, where that waits for its session to be told.
    pub(super) deferred: Option<u64>,
    /// Its end may have been lost.
    pub(super) doubtful: bool,
}

/// All of an exchange but its bodies.
pub(super) struct About {
    source: u32,
    number: u32,
    caller: Option<Caller>,
    who: Rc<Who>,
    method: Method,
    /// Path and query.
    target: Box<[u8]>,
    /// The `Mcp-Session-Id` of the request, if it counts.
    session_id: Option<Box<[u8]>>,
    /// By its head alone it is known to belong to its caller.
    modern: bool,
    session: Option<u32>,
    /// Its session began with it.
    begins: Begins,
    /// Heads that are not written yet, and when they came.
    request: Option<(u64, Vec<u8>)>,
    response: Option<(u64, Vec<u8>)>,
    /// What the relay changed before the session was known: often it is what tells.
    altered: Vec<(Place, Vec<u8>, Vec<u8>)>,
    /// Events without data that came before one that tells the session.
    held: Vec<(Place, Vec<u8>)>,
    status: u16,
    /// It counts among those that may still tell of a session.
    tells: bool,
    bytes: [u64; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Post,
    Delete,
    Other,
}

/// How an exchange began its session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Nothing,
    /// By being the first.
    First,
    /// By an `initialize`, whose answer may give a session id.
    Initialize,
    /// By its `endpoint` event; the session is as long as the stream.
    Endpoint,
}

/// What is known of an exchange whose session is to be found.
#[derive(Clone, Copy)]
enum Evidence<'a> {
    /// Its head.
    Head,
    /// Its first message is `initialize`.
    Initialize,
    /// Its first event names this endpoint.
    Endpoint(&'a [u8]),
    /// Nothing more will tell.
    Nothing,
}

impl Exchange {
    pub(super) fn new(channel: Channel, nobody: Rc<Who>) -> Self {
        Self {
            about: About {
                source: channel.source,
                number: channel.exchange,
                caller: None,
                who: nobody,
                method: Method::Other,
                target: Box::default(),
                session_id: None,
                modern: false,
                session: None,
                begins: Begins::Nothing,
                // Stands for one that is lost.
                request: Some((0, Vec::new())),
                response: None,
                altered: Vec::new(),
                held: Vec::new(),
                status: 0,
                tells: false,
                bytes: [0; 2],
            },
            inbound: Flow::default(),
            outbound: Flow::default(),
            deferred: None,
            doubtful: false,
        }
    }

    pub(super) fn take(
        &mut self,
        item: &Item,
        bytes: &[u8],
        callers: &[Caller],
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        self.doubtful = false;
        self.close_request(shared, sink);
        let about = &mut self.about;
        let place = Place {
            session: 0,
            exchange: about.number,
            stream: item.channel.stream,
            at: item.at,
        };
        if let Some((at, _)) = about.request.as_mut().filter(|(at, _)| *at == 0) {
            *at = item.at;
        }
        let index = usize::from(item.channel.stream != Stream::ClientToServer);
        let flow = match index {
            0 => &mut self.inbound,
            _ => &mut self.outbound,
        };
        match &item.what {
            What::Request { caller, .. } => {
                let head = Head::request(bytes);
                let known = Known::of(&head);
                flow.head(&head, known.body, &shared.frames, &shared.windows);
                let caller = callers.get(*caller).copied();
                about.begin(item.at, caller, &head, &known, bytes, shared);
                about.decide(Evidence::Head, item.at, shared, sink);
            }
            What::Response(_) => {
                let head = Head::response(bytes);
                let body = body_of(head.first(["content-type", "content-encoding"]));
                flow.head(&head, body, &shared.frames, &shared.windows);
                about.answer(item.at, bytes, head.status, body.0, shared, sink);
            }
            What::Copied(_) => {
                flow.last = Some(item.at);
                about.bytes[index] += bytes.len() as u64;
                flow.take(Input::Bytes(bytes), place, about, shared, sink);
            }
            What::Undelivered(_) => {
                flow.take(Input::Undelivered(bytes), place, about, shared, sink);
            }
            What::Lost(lost) => {
                about.bytes[index] += lost.body;
                if lost.body > 0 {
                    flow.take(Input::Lost(lost.body), place, about, shared, sink);
                }
                about.settle(shared, item.at, sink);
                let place = about.place(place, shared, sink);
                shared.sessions.lost(place.session, lost.body);
                sink.queue_was_full(place, *lost);
            }
            What::Closed if index == 0 && about.is_early(shared) => {
                self.deferred = Some(item.at);
            }
            What::Closed => {
                flow.closed = true;
                let end = Input::End { broken: false };
                let at = flow.last.unwrap_or(place.at);
                flow.take(end, Place { at, ..place }, about, shared, sink);
                // Of a GET the answer may still tell.
                if index == 0 && about.method != Method::Get {
                    about.settle(shared, item.at, sink);
                }
            }
            What::Trailers(_) => {
                about.settle(shared, item.at, sink);
                let place = about.place(place, shared, sink);
                sink.write(place, |open, wall| open.trailers(place, wall, bytes));
            }
            What::Altered { from, .. } => {
                let (from, to) = bytes.split_at((*from).min(bytes.len()));
                flow.altered();
                about.altered(place, from, to, shared, sink);
            }
            What::Finished(finish) => self.finish(item.at, *finish, shared, sink),
            // Not of an exchange.
            What::Ended(_) | What::Forgotten(_) | What::Listener(_) | What::Stop => {}
        }
        let tells = !matches!(item.what, What::Finished(_)) && self.about.may_tell();
        self.about.telling(tells, shared);
    }

    /// Takes the end of the request, if that waits.
    pub(super) fn close_request(&mut self, shared: &mut Shared, sink: &mut Sink) {
        let Some(told) = self.deferred.take() else {
            return;
        };
        let (about, flow) = (&mut self.about, &mut self.inbound);
        flow.closed = true;
        let place = about.at(Stream::ClientToServer, flow.last.unwrap_or(told));
        flow.take(Input::End { broken: false }, place, about, shared, sink);
        about.settle(shared, told, sink);
    }

    /// Ends the exchange.
    pub(super) fn finish(&mut self, at: u64, finish: Finish, shared: &mut Shared, sink: &mut Sink) {
        self.close_request(shared, sink);
        self.about.telling(false, shared);
        let about = &mut self.about;
        let flows = [
            (&mut self.inbound, Stream::ClientToServer),
            (&mut self.outbound, Stream::ServerToClient),
        ];
        let mut place = Place {
            exchange: about.number,
            ..Place::process(at)
        };
        for (flow, stream) in flows {
            place.stream = stream;
            if !std::mem::replace(&mut flow.closed, true) {
                let broken = finish != Finish::Complete || stream == Stream::ClientToServer;
                let at = flow.last.unwrap_or(place.at);
                let place = Place { at, ..place };
                flow.take(Input::End { broken }, place, about, shared, sink);
            }
        }
        about.settle(shared, at, sink);
        let place = about.place(place, shared, sink);
        let [request_bytes, response_bytes] = about.bytes;
        sink.meta(place, |_, _| {
            Meta::Finished(Finished {
                finish,
                request_bytes,
                response_bytes,
            })
        });
        about.end(at, finish, shared, sink);
    }
}

impl About {
    /// The request's head came.
    fn begin(
        &mut self,
        at: u64,
        caller: Option<Caller>,
        head: &Head<'_>,
        known: &Known<'_>,
        bytes: &[u8],
        shared: &mut Shared,
    ) {
        self.method = match head.method {
            b"GET" => Method::Get,
            b"POST" => Method::Post,
            b"DELETE" => Method::Delete,
            _ => Method::Other,
        };
        self.target = path_and_query(head.target).into();
        let version = known.version.unwrap_or_default();
        let modern = version.len() == WITHOUT_SESSIONS.len()
            && version[0].is_ascii_digit()
            && version >= WITHOUT_SESSIONS;
        self.session_id = known
            .session
            .filter(|id| !id.is_empty() && id.len() <= LONGEST_KEY && !modern)
            .map(Into::into);
        self.modern = modern || self.session_id.is_none() && known.method.is_some();
        self.caller = caller;
        if let Some(caller) = caller {
            let (agent, credentials) = (known.agent, known.credentials);
            self.who = shared
                .connections
                .begin(self.source, caller, agent, credentials);
        }
        self.request = Some((at, bytes.to_vec()));
    }

    /// Whether it may still tell of a session: by an `endpoint` event, or by the id in the
    /// answer to its `initialize`.
    fn may_tell(&self) -> bool {
        let undecided = self.session.is_none() && self.session_id.is_none();
        self.method == Method::Get && undecided
            || self.begins == Begins::Initialize && self.status == 0
    }

    fn telling(&mut self, tells: bool, shared: &mut Shared) {
        if std::mem::replace(&mut self.tells, tells) == tells {
            return;
        }
        let count = shared.telling.entry(self.source).or_default();
        *count = if tells {
            *count + 1
        } else {
            count.saturating_sub(1)
        };
    }

    /// Whether its session may be told in another exchange only after its request: the order
    /// of what is told is right within a stream, and not across exchanges.
    fn is_early(&self, shared: &Shared) -> bool {
        let waits = self.session.is_none() && self.method == Method::Post && !self.modern;
        waits
            && shared
                .telling
                .get(&self.source)
                .is_some_and(|&count| count > 0)
    }

    /// The answer's head came.
    fn answer(
        &mut self,
        at: u64,
        bytes: &[u8],
        status: u16,
        events: bool,
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        self.status = status;
        self.response = Some((at, bytes.to_vec()));
        if self.session.is_some() {
            self.write_response(shared, sink);
        } else if self.method == Method::Get && !events {
            self.settle(shared, at, sink);
        }
    }

    /// A frame of one of the bodies.
    pub(super) fn frame(
        &mut self,
        frame: &Frame<'_>,
        frames: &mut Frames,
        place: Place,
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        let kept = kept(frame);
        if self.session.is_none() {
            if self.hold(frame, place) {
                return;
            }
            let text = frame.text();
            let evidence = if place.stream == Stream::ClientToServer {
                let initializes = frame.framing != Framing::Stray
                    && self.method == Method::Post
                    && holds_initialize(&text, kept.cut);
                if initializes {
                    Evidence::Initialize
                } else {
                    Evidence::Nothing
                }
            } else if self.method == Method::Get
                && frame.framing == Framing::Event
                && is_endpoint(frame.raw)
            {
                Evidence::Endpoint(&text)
            } else {
                Evidence::Nothing
            };
            self.decide(evidence, place.at, shared, sink);
        }
        let place = self.place(place, shared, sink);
        self.count_frame(place.stream, shared);
        frames.record(frame, kept, place, sink);
    }

    /// Holds an event that dispatches nothing: servers begin the stream of the older transport
    /// with comments or the time to wait, and only then tell the endpoint.
    fn hold(&mut self, frame: &Frame<'_>, place: Place) -> bool {
        let whole = !frame.truncated() && !frame.lossy && !frame.incomplete;
        let length: usize = self.held.iter().map(|(_, raw)| raw.len()).sum();
        let holds = self.method == Method::Get
            && self.session_id.is_none()
            && place.stream == Stream::ServerToClient
            && frame.framing == Framing::Event
            && whole
            && self.held.len() < MOST_HELD
            && length + frame.raw.len() <= LONGEST_HELD
            && !sse::fields(frame.raw).has_data;
        if holds {
            self.held.push((place, frame.raw.to_vec()));
        }
        holds
    }

    pub(super) fn count_frame(&self, stream: Stream, shared: &mut Shared) {
        if let Some(session) = self.session {
            shared.sessions.frame(session, stream);
        }
    }

    fn altered(
        &mut self,
        place: Place,
        from: &[u8],
        to: &[u8],
        shared: &mut Shared,
        sink: &mut Sink,
    ) {
        if self.session.is_none() {
            if self.altered.len() < MOST_ALTERED {
                self.altered.push((place, from.to_vec(), to.to_vec()));
            }
            return;
        }
        let place = self.place(place, shared, sink);
        sink.meta(place, |open, _| {
            Meta::Altered(Altered {
                from: open.uri(from),
                to: open.uri(to),
            })
        });
    }

    /// Sees to it that the session is known: nothing more will tell.
    pub(super) fn settle(&mut self, shared: &mut Shared, at: u64, sink: &mut Sink) {
        self.decide(Evidence::Nothing, at, shared, sink);
    }

    /// Finds the session, if that is possible by now.
    fn decide(&mut self, evidence: Evidence<'_>, at: u64, shared: &mut Shared, sink: &mut Sink) {
        if self.session.is_some() {
            return;
        }
        let is_head = matches!(evidence, Evidence::Head);
        let sessions = &mut shared.sessions;
        let key = match &self.session_id {
            _ if self.modern => None,
            Some(id) => Some(Key::session(self.source, id)),
            None => Some(Key::endpoint(self.source, &self.target))
                .filter(|_| self.method == Method::Post),
        };
        let known = key.as_ref().and_then(|key| sessions.by_key(key));
        let session = match (known, evidence) {
            (Some(session), _) => session,
            // The answer that gave the id may not have been told yet.
            (None, Evidence::Head) if self.session_id.is_some() => return,
            (None, _) if self.session_id.is_some() => {
                self.begins = Begins::First;
                sessions.begin(self.source, key, &self.who, at, sink)
            }
            (None, Evidence::Endpoint(uri)) if uri.len() <= LONGEST_KEY => {
                self.begins = Begins::Endpoint;
                let target = resolve(&self.target, uri);
                let key = Key::endpoint(self.source, &target);
                sessions.begin(self.source, Some(key), &self.who, at, sink)
            }
            (None, Evidence::Initialize) if !self.modern => {
                self.begins = Begins::Initialize;
                sessions.begin(self.source, None, &self.who, at, sink)
            }
            (None, _)
                if is_head && !self.modern && matches!(self.method, Method::Get | Method::Post) =>
            {
                return;
            }
            (None, _) => sessions.of_caller(self.source, &self.who, at, sink),
        };
        self.session = Some(session);
        sessions.enter(session, at);
        if let Some((at, head)) = self.request.take() {
            let place = self.at(Stream::ClientToServer, at);
            let place = self.place(place, shared, sink);
            let caller = self.caller;
            sink.write(place, |open, wall| open.request(place, wall, caller, &head));
        }
        self.write_response(shared, sink);
        for (place, raw) in std::mem::take(&mut self.held) {
            let place = self.place(place, shared, sink);
            self.count_frame(place.stream, shared);
            sink.put(Piece {
                kind: Kind::Frame,
                place,
                raw: &raw,
                framing: Framing::Event,
                flags: Flags::default(),
                length: raw.len() as u64,
                lost: 0,
                digest: None,
                carry: None,
            });
        }
        for (place, from, to) in std::mem::take(&mut self.altered) {
            self.altered(place, &from, &to, shared, sink);
        }
    }

    fn write_response(&mut self, shared: &mut Shared, sink: &mut Sink) {
        let (Some(session), Some((at, head))) = (self.session, self.response.take()) else {
            return;
        };
        if self.begins == Begins::Initialize {
            let id = Head::response(&head).get("mcp-session-id");
            match id.filter(|id| (1..=LONGEST_KEY).contains(&id.len())) {
                Some(id) => {
                    let key = Key::session(self.source, id);
                    shared.sessions.name(session, key);
                }
                None => shared.sessions.make_current(session, &self.who),
            }
        }
        let place = self.at(Stream::ServerToClient, at);
        let place = self.place(place, shared, sink);
        sink.write(place, |open, wall| open.response(place, wall, &head));
    }

    /// The place with its session, which is told if it has to be.
    pub(super) fn place(&self, place: Place, shared: &mut Shared, sink: &mut Sink) -> Place {
        let session = self.session.unwrap_or_default();
        shared.sessions.tell(session, place.at, sink);
        Place { session, ..place }
    }

    fn at(&self, stream: Stream, at: u64) -> Place {
        Place {
            session: 0,
            exchange: self.number,
            stream,
            at,
        }
    }

    /// The exchange is over; perhaps its session is too.
    fn end(&mut self, at: u64, finish: Finish, shared: &mut Shared, sink: &mut Sink) {
        if let Some(caller) = self.caller {
            shared.connections.end(caller.connection);
        }
        let Some(session) = self.session else {
            return;
        };
        let sessions = &mut shared.sessions;
        sessions.bytes(session, self.bytes);
        let named = self.session_id.is_some();
        let ending = match (self.begins, finish, self.status) {
            (Begins::Endpoint, Finish::ClientGone | Finish::ClientBroke, _) => {
                Some(Ending::ClientClosed)
            }
            (Begins::Endpoint, Finish::RelayStopped, _) => Some(Ending::RelayStopped),
            (Begins::Endpoint, Finish::Idle, _) => Some(Ending::Idle),
            (Begins::Endpoint, ..) => Some(Ending::ServerExited),
            (_, _, 404) if named => Some(Ending::ServerForgot),
            (_, _, 200..300) if named && self.method == Method::Delete => {
                Some(Ending::ClientClosed)
            }
            _ => None,
        };
        let answered = !matches!(self.status, 0 | 404);
        sessions.leave(session, at, answered, ending, sink);
    }
}
