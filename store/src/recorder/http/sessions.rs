//! Which sessions there are, what an exchange belongs to, and when a session ends.

use super::callers::{Who, print};
use crate::journal::header::{KeyKind, Meta, SessionEnd, SessionKey, SessionOpen};
use crate::process::Process;
use crate::recorder::HttpListener;
use crate::recorder::ordinal::ByOrdinal;
use crate::recorder::recording::nanoseconds;
use crate::recorder::sink::{Place, Sink};
use agent_trace_model::{End, Ending, Stream};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// The most sessions that are open though nothing happens in them.
const MOST_SESSIONS: usize = 4096;
/// Where a listener is not known.
const GAP: Duration = Duration::from_secs(600);
/// A session id, or the target of an endpoint, that is longer ties nothing together.
pub(super) const LONGEST_KEY: usize = 4096;
/// How often idle sessions are looked for, at most.
const SWEEP: Duration = Duration::from_secs(2);

/// What ties exchanges to a session.
#[derive(Clone, Debug)]
pub(super) struct Key {
    kind: KeyKind,
    /// The secret itself. It never leaves the memory.
    secret: Box<[u8]>,
    place: (u32, bool, u128),
}

impl Key {
    /// A session id that came through this source.
    pub(super) fn session(source: u32, id: &[u8]) -> Self {
        Self {
            kind: KeyKind::McpSession,
            secret: id.into(),
            place: (source, false, print(&[id])),
        }
    }

    /// The target of a legacy endpoint.
    pub(super) fn endpoint(source: u32, target: &[u8]) -> Self {
        Self {
            kind: KeyKind::Endpoint,
            secret: target.into(),
            place: (source, true, print(&[target])),
        }
    }
}

/// All sessions of a process.
#[derive(Default)]
pub(super) struct Sessions {
    listeners: HashMap<u32, HttpListener>,
    open: ByOrdinal<Session>,
    keys: HashMap<(u32, bool, u128), u32>,
    /// The current sessions of callers, of each process that calls so.
    callers: HashMap<u128, Vec<(Option<Process>, u32)>>,
    /// How many there were.
    begun: u32,
    /// When idle ones are looked for next, on the items' clock.
    next_sweep: Option<u64>,
}

struct Session {
    source: u32,
    key: Option<Key>,
    who: Rc<Who>,
    started: u64,
    /// The [`Sink::generation`] in which it was told.
    told: u64,
    /// Exchanges that are open.
    exchanges: u32,
    /// When something happened last.
    last: u64,
    frames: [u64; 3],
    bytes: [u64; 3],
    lost: u64,
    /// The server knew it.
    answered: bool,
    /// How it will end, once no exchange is open.
    ending: Option<Ending>,
    /// It is the current one of its caller.
    current: bool,
}

impl Sessions {
    pub(super) fn listener(&mut self, source: u32, listener: HttpListener) {
        self.listeners.insert(source, listener);
    }

    pub(super) fn by_key(&self, key: &Key) -> Option<u32> {
        self.keys.get(&key.place).copied()
    }

    /// Begins a session.
    pub(super) fn begin(
        &mut self,
        source: u32,
        key: Option<Key>,
        who: &Rc<Who>,
        at: u64,
        sink: &mut Sink,
    ) -> u32 {
        if self.open.len() >= MOST_SESSIONS {
            let idle = self.open.iter().filter(|(_, s)| s.exchanges == 0);
            if let Some((&longest, _)) = idle.min_by_key(|(_, session)| session.last) {
                self.end(longest, at, Ending::Idle, sink);
            }
        }
        self.begun += 1;
        let session = self.begun;
        if let Some(key) = &key {
            self.keys.insert(key.place, session);
        }
        self.open.insert(
            session,
            Session {
                source,
                key,
                who: Rc::clone(who),
                started: at,
                told: 0,
                exchanges: 0,
                last: at,
                frames: [0; 3],
                bytes: [0; 3],
                lost: 0,
                answered: false,
                ending: None,
                current: false,
            },
        );
        session
    }

    /// The current session of a caller, begun if there is none.
    pub(super) fn of_caller(
        &mut self,
        source: u32,
        who: &Rc<Who>,
        at: u64,
        sink: &mut Sink,
    ) -> u32 {
        let of = self.callers.get(&who.print);
        // A process that could not be found may be any of them: the last one that called.
        let known = of.and_then(|of| {
            of.iter().rev().find(|(process, _)| {
                who.process.is_none() || process.is_none() || *process == who.process
            })
        });
        if let Some(&(_, known)) = known {
            let idle = self.open.get(&known).is_none_or(|session| {
                session.exchanges == 0 && at.saturating_sub(session.last) > self.gap(source)
            });
            if !idle {
                return known;
            }
            self.end(known, at, Ending::Idle, sink);
        }
        let session = self.begin(source, None, who, at, sink);
        self.make_current(session, who);
        session
    }

    /// The session becomes the current one of its caller.
    pub(super) fn make_current(&mut self, session: u32, who: &Who) {
        let of = self.callers.entry(who.print).or_default();
        // The one before is not found any more, and ends by being idle.
        of.retain(|(process, before)| {
            let same = *process == who.process;
            if same && let Some(before) = self.open.get_mut(before) {
                before.current = false;
            }
            !same
        });
        of.push((who.process.clone(), session));
        if let Some(session) = self.open.get_mut(&session) {
            session.current = true;
        }
    }

    /// The session turns out to have this key.
    pub(super) fn name(&mut self, number: u32, key: Key) {
        if let Some(session) = self.open.get_mut(&number) {
            // Told again.
            session.told = 0;
            self.keys.insert(key.place, number);
            session.key = Some(key);
        }
    }

    /// An exchange of the session begins.
    pub(super) fn enter(&mut self, session: u32, at: u64) {
        if let Some(session) = self.open.get_mut(&session) {
            session.exchanges += 1;
            session.last = session.last.max(at);
        }
    }

    /// An exchange of the session is over, in which the server `answered` as one that knows
    /// the session; `ending`, if the session is over too.
    pub(super) fn leave(
        &mut self,
        number: u32,
        at: u64,
        answered: bool,
        ending: Option<Ending>,
        sink: &mut Sink,
    ) {
        let Some(session) = self.open.get_mut(&number) else {
            return;
        };
        session.exchanges = session.exchanges.saturating_sub(1);
        session.last = session.last.max(at);
        session.answered |= answered;
        // A client may ask on and on with an id that was never known: that is one session.
        let ending = ending.filter(|&ending| ending != Ending::ServerForgot || session.answered);
        session.ending = session.ending.or(ending);
        let (free, source) = (session.exchanges == 0, session.source);
        if let Some(ending) = session.ending {
            if free {
                self.end(number, at, ending, sink);
            } else {
                // What comes now under its key is another one.
                self.forget_key(number);
            }
        } else if free {
            let due = at.saturating_add(self.gap(source));
            let sweep = self.next_sweep.map_or(due, |sweep| sweep.min(due));
            self.next_sweep = Some(sweep);
        }
    }

    pub(super) fn frame(&mut self, session: u32, stream: Stream) {
        if let Some(session) = self.open.get_mut(&session) {
            session.frames[stream as usize] += 1;
        }
    }

    pub(super) fn bytes(&mut self, session: u32, [inbound, outbound]: [u64; 2]) {
        if let Some(session) = self.open.get_mut(&session) {
            session.bytes[0] += inbound;
            session.bytes[1] += outbound;
        }
    }

    pub(super) fn lost(&mut self, session: u32, bytes: u64) {
        if let Some(session) = self.open.get_mut(&session) {
            session.lost += bytes;
        }
    }

    /// Tells what is known of a session, unless this file says it already.
    pub(super) fn tell(&mut self, number: u32, at: u64, sink: &mut Sink) {
        let Some(session) = self.open.get_mut(&number) else {
            return;
        };
        if session.told == sink.generation() {
            return;
        }
        session.told = sink.generation();
        let nothing = HttpListener::default();
        let listener = self.listeners.get(&session.source).unwrap_or(&nothing);
        let place = Place {
            session: number,
            stream: Stream::ClientToServer,
            ..Place::process(at)
        };
        sink.meta(place, |open, epoch| {
            let who = &session.who;
            let text = |text: &Option<String>| text.as_deref().map(|text| open.text(text));
            let (kind, secret) = match &session.key {
                Some(key) => (key.kind, &key.secret),
                None => (KeyKind::Caller, &who.secret),
            };
            Meta::SessionOpen(SessionOpen {
                transport: "http".into(),
                started: epoch.saturating_add(session.started),
                client: text(&listener.client),
                server: text(&listener.server),
                listen: Some(listener.listen.clone()),
                upstream: Some(open.uri(listener.upstream.as_bytes())),
                key: Some(SessionKey {
                    kind,
                    fingerprint: open.fingerprint(secret),
                }),
                // A process names itself.
                process: who.process.clone().map(|process| Process {
                    name: open.text(&process.name),
                    ..process
                }),
                user_agent: who
                    .agent
                    .as_ref()
                    .map(|agent| open.header_value(b"user-agent", agent)),
                ..SessionOpen::default()
            })
        });
    }

    /// Ends sessions that were idle for long.
    pub(super) fn sweep(&mut self, now: Duration, sink: &mut Sink) {
        let now = nanoseconds(now);
        if self.next_sweep.is_none_or(|next| now < next) {
            return;
        }
        let mut idle = Vec::new();
        let mut next: Option<u64> = None;
        let mut shortest = nanoseconds(SWEEP);
        for (&number, session) in &self.open {
            if session.exchanges > 0 {
                continue;
            }
            let gap = self.gap(session.source);
            let due = session.last.saturating_add(gap);
            if due <= now {
                idle.push(number);
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
                shortest = shortest.min(gap);
            }
        }
        // Not once for each of many that follow one another.
        self.next_sweep = next.map(|next| next.max(now.saturating_add(shortest)));
        for number in idle {
            self.end(number, now, Ending::Idle, sink);
        }
    }

    /// When there is something to sweep.
    pub(super) fn wakes_in(&self, now: Duration) -> Option<Duration> {
        let next = self.next_sweep?;
        Some(Duration::from_nanos(next).saturating_sub(now))
    }

    /// Ends all sessions, in the order in which they began.
    pub(super) fn end_all(&mut self, at: u64, ending: Ending, sink: &mut Sink) {
        let mut open: Vec<u32> = self.open.keys().copied().collect();
        open.sort_unstable();
        for number in open {
            self.end(number, at, ending, sink);
        }
    }

    /// How many are open, and how many there were.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.open.len() as u64, u64::from(self.begun))
    }

    /// How many things are remembered.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.open.len() + self.keys.len() + self.callers.len()
    }

    /// The longest secret that is remembered.
    #[cfg(test)]
    pub(super) fn longest_secret(&self) -> usize {
        let of = |session: &Session| {
            let key = session.key.as_ref().map_or(0, |key| key.secret.len());
            key.max(session.who.secret.len())
        };
        self.open.values().map(of).max().unwrap_or_default()
    }

    fn end(&mut self, number: u32, at: u64, ending: Ending, sink: &mut Sink) {
        self.tell(number, at, sink);
        self.forget_key(number);
        let Some(session) = self.open.remove(&number) else {
            return;
        };
        if session.current
            && let Some(of) = self.callers.get_mut(&session.who.print)
        {
            of.retain(|(_, current)| *current != number);
            if of.is_empty() {
                self.callers.remove(&session.who.print);
            }
        }
        let place = Place {
            session: number,
            ..Place::process(at)
        };
        let end = SessionEnd {
            end: End {
                ending,
                exit_code: None,
                signal: None,
                killed: false,
                error: None,
            },
            frames: session.frames,
            bytes: session.bytes,
            lost: session.lost,
        };
        sink.one_ended(place, &end);
    }

    fn forget_key(&mut self, number: u32) {
        let key = self
            .open
            .get(&number)
            .and_then(|session| session.key.as_ref());
        if let Some(key) = key
            && self.keys.get(&key.place) == Some(&number)
        {
            self.keys.remove(&key.place);
        }
    }

    fn gap(&self, source: u32) -> u64 {
        let gap = self
            .listeners
            .get(&source)
            .map(|listener| listener.session_gap);
        nanoseconds(gap.filter(|gap| !gap.is_zero()).unwrap_or(GAP))
    }
}
