//! Who ran what: client processes with their sessions, block by block.
//!
//! A run is mostly one client process with one session. Of each [`BLOCK`]: some clients have
//! several servers, some come back to the same session after a pause that makes it two runs,
//! some only list tools, and the last runs are sessions of one relay of HTTP.

use super::Plan;
use super::journal::{Relay, Session, closed, killed};
use super::random::Random;
use super::talk::{Length, Talk};
use super::text::Text;
use super::truth::{Made, NEEDLES, ONE_IN, Truth, needle};
use super::world::{CLIENTS, Client, ClientMeta, PROJECTS, SERVERS};
use agent_trace_store::Store;
use agent_trace_store::process::Process;
use agent_trace_store::redact::Key;
use std::io;

/// So many runs belong together.
pub(crate) const BLOCK: u64 = 500;
/// The last so many of them are sessions of one relay of HTTP.
const HTTP: u64 = 25;
/// The first run begins at this moment, in nanoseconds since 1970: 2026-09-01.
const BEGINNING: u64 = 1_788_220_800_000_000_000;
/// All runs begin within this time.
const SPAN: u64 = 60 * 86_400_000_000_000;
const MINUTE: u64 = 60_000_000_000;
/// What ends one run of a client and begins the next, and what it does at least.
const PAUSE: u64 = 15 * MINUTE;
/// What a run's length is, in hundredths of the mean: whose mean is 100.
const LENGTHS: [usize; 10] = [100, 30, 160, 70, 120, 50, 200, 90, 110, 70];
/// How many runs, of those in between, one is made of this many steps.
const LONG: (u64, usize) = (5_000, 1_000);
const LONGEST: (u64, usize) = (50_000, 10_000);
/// The rarest runs come at these places.
const LONG_AT: u64 = 5;
const LONGEST_AT: u64 = 7_705;
/// Frames in a step, roughly.
const FRAMES_IN_A_STEP: u64 = 2;

/// What a run has to be.
struct Run {
    number: u64,
    length: Length,
    truth: Truth,
    random: Random,
}

/// Writes runs.
pub(crate) struct People<'a> {
    pub(crate) store: &'a Store,
    pub(crate) key: &'a Key,
    pub(crate) text: &'a Text,
    pub(crate) plan: Plan,
}

/// A client process at work.
struct Person {
    client: &'static Client,
    process: Process,
    project: &'static str,
    conversation: u64,
    /// When it began, in nanoseconds since 1970.
    started: u64,
}

impl People<'_> {
    /// Writes the runs of a block.
    pub(crate) fn block(&self, block: u64) -> io::Result<Made> {
        let mut made = Made::new();
        let first = block * BLOCK;
        let last = (first + BLOCK).min(self.plan.runs);
        let http = first + BLOCK - HTTP;
        let mut number = first;
        while number < last.min(http) {
            let at = number - first;
            if at % 100 == 50 {
                self.probe(number, &mut made)?;
            }
            if at % 50 == 48 && number + 1 < last.min(http) {
                self.two_runs(number, &mut made)?;
                number += 2;
                continue;
            }
            let servers = if at % 10 == 3 { 2 + (at / 10 % 3) } else { 1 };
            self.run_of(number, servers, &mut made)?;
            number += 1;
        }
        if http < last {
            self.sessions_of_http(http, last, &mut made)?;
        }
        Ok(made)
    }

    /// A client with so many servers.
    fn run_of(&self, number: u64, servers: u64, made: &mut Made) -> io::Result<()> {
        let mut run = self.plan(number);
        let person = self.person(&mut run.random, number, None);
        let dies = number % 100 == 17;
        let first = run.random.zipf(SERVERS.len());
        for part in 0..servers {
            let server = (first + part as usize) % SERVERS.len();
            let mut talk = self.talk(&mut run.random, &person, server, false);
            talk.pass(part as f64 * 12.0);
            talk.begin();
            let length = match run.length {
                Length::Frames(frames) => Length::Frames(frames / servers as usize),
                steps @ Length::Steps(_) => steps,
            };
            // The needle is in the first.
            let hidden = run.truth.needle.filter(|_| part == 0).map(needle);
            talk.run(length, hidden.as_deref(), &mut run.truth);
            let mut end = closed();
            if part + 1 == servers && dies {
                talk.ask_in_vain(&mut run.truth);
                if number % 200 == 17 {
                    run.truth.crashed = true;
                    end = killed();
                }
            }
            self.write(&mut run.random, &person, talk, end, made)?;
        }
        made.add_run(&run.truth);
        Ok(())
    }

    /// A client that comes back to its session after a pause.
    fn two_runs(&self, number: u64, made: &mut Made) -> io::Result<()> {
        let mut first = self.plan(number);
        let mut second = self.plan(number + 1);
        // Whoever tells its conversation stays in one run.
        let silent = |client: &Client| client.meta != ClientMeta::Conversation;
        let person = self.person(&mut first.random, number, Some(&silent));
        let server = first.random.zipf(SERVERS.len());
        let mut talk = self.talk(&mut first.random, &person, server, false);
        talk.begin();
        let hidden = first.truth.needle.map(needle);
        talk.run(first.length, hidden.as_deref(), &mut first.truth);
        talk.now += PAUSE + second.random.next() % PAUSE;
        let hidden = second.truth.needle.map(needle);
        talk.run(second.length, hidden.as_deref(), &mut second.truth);
        self.write(&mut first.random, &person, talk, closed(), made)?;
        made.add_run(&first.truth);
        made.add_run(&second.truth);
        Ok(())
    }

    /// A client that only looks which tools there are.
    fn probe(&self, number: u64, made: &mut Made) -> io::Result<()> {
        let mut random = Random::new(self.plan.seed ^ 1, number);
        let person = self.person(&mut random, number, None);
        let server = random.zipf(SERVERS.len());
        let mut talk = self.talk(&mut random, &person, server, false);
        talk.begin();
        made.probes += 1;
        self.write(&mut random, &person, talk, closed(), made)
    }

    fn sessions_of_http(&self, from: u64, to: u64, made: &mut Made) -> io::Result<()> {
        let mut random = Random::new(self.plan.seed ^ 2, from);
        let mut relay = Relay::start(
            self.store,
            self.key,
            self.begins(from).saturating_sub(MINUTE),
            bytes(&mut random),
            None,
            None,
        )?;
        let mut sessions = Vec::new();
        for number in from..to {
            let mut run = self.plan(number);
            let person = self.person(&mut run.random, number, None);
            let server = run.random.zipf(SERVERS.len());
            let mut talk = self.talk(&mut run.random, &person, server, true);
            talk.begin();
            let hidden = run.truth.needle.map(needle);
            talk.run(run.length, hidden.as_deref(), &mut run.truth);
            talk.pass(800.0);
            made.add_run(&run.truth);
            let exchanges = relay.exchanges;
            relay.exchanges += talk.exchanges;
            sessions.push(Session {
                ordinal: sessions.len() as u32 + 1,
                started: person.started,
                client: person.process,
                key: Some(run.random.next()),
                end: closed(),
                talk,
                exchanges,
            });
        }
        relay.http(&sessions, made)
    }

    fn talk<'t>(
        &'t self,
        random: &mut Random,
        person: &Person,
        server: usize,
        http: bool,
    ) -> Talk<'t> {
        let own = Random::new(random.next(), 0);
        let Person {
            client,
            conversation,
            ..
        } = *person;
        Talk::new(self.text, own, client, (server, http), conversation)
    }

    /// Writes the session of a relay of its own.
    fn write(
        &self,
        random: &mut Random,
        person: &Person,
        mut talk: Talk<'_>,
        end: agent_trace_model::End,
        made: &mut Made,
    ) -> io::Result<()> {
        if random.happens(0.5) {
            talk.complain();
        }
        talk.pass(900.0);
        let relay = Relay::start(
            self.store,
            self.key,
            person.started,
            bytes(random),
            Some(person.process.clone()),
            Some(person.project),
        )?;
        let session = Session {
            ordinal: 1,
            started: person.started,
            client: person.process.clone(),
            key: None,
            end,
            talk,
            exchanges: 0,
        };
        relay.stdio(&session, made)
    }

    fn person(
        &self,
        random: &mut Random,
        number: u64,
        may_be: Option<&dyn Fn(&Client) -> bool>,
    ) -> Person {
        let mut client = &CLIENTS[random.zipf(CLIENTS.len())];
        if may_be.is_some_and(|may_be| !may_be(client)) {
            client = &CLIENTS[0];
        }
        let started = self.begins(number) + random.next() % (self.apart() / 2 + 1);
        Person {
            client,
            process: Process {
                pid: 1_000 + u32::try_from(random.below(4_000_000)).unwrap_or_default(),
                started: started / 10_000_000 % 1_000_000_000,
                name: client.process.into(),
            },
            project: PROJECTS[random.zipf(PROJECTS.len())],
            conversation: random.next(),
            started,
        }
    }

    fn apart(&self) -> u64 {
        SPAN / self.plan.runs.max(1)
    }

    fn begins(&self, number: u64) -> u64 {
        BEGINNING + number * self.apart()
    }

    fn plan(&self, number: u64) -> Run {
        let place = number % ONE_IN as u64;
        let apart = (ONE_IN / NEEDLES) as u64;
        let truth = Truth {
            needle: (place % apart == 3).then(|| (place / apart) as usize),
            ..Truth::default()
        };
        let length = if number % LONGEST.0 == LONGEST_AT {
            Length::Steps(LONGEST.1)
        } else if number % LONG.0 == LONG_AT {
            Length::Steps(LONG.1)
        } else {
            let hundredths = LENGTHS[(number % 10) as usize];
            Length::Frames(self.plan.mean_frames() * hundredths / 100)
        };
        Run {
            number,
            length,
            truth,
            random: Random::new(self.plan.seed, number),
        }
    }
}

impl Plan {
    /// Messages in an ordinary run.
    fn mean_frames(self) -> usize {
        let count = |(of, _): (u64, usize), at: u64| (self.runs + of - 1 - at) / of;
        let (long, longest) = (count(LONG, LONG_AT), count(LONGEST, LONGEST_AT));
        let steps = long * LONG.1 as u64 + longest * LONGEST.1 as u64;
        let others = (self.runs - long - longest).max(1);
        let frames = self.events.saturating_sub(steps * FRAMES_IN_A_STEP) / others;
        // A run says hello before it does anything.
        usize::try_from(frames)
            .unwrap_or_default()
            .saturating_sub(6)
    }
}

fn bytes(random: &mut Random) -> [u8; 10] {
    let (a, b) = (random.next().to_le_bytes(), random.next().to_le_bytes());
    std::array::from_fn(|at| if at < 8 { a[at] } else { b[at - 8] })
}
