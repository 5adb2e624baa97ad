//! An index that followed relays which were killed is equal to one that is made anew.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_index::Indexer;
use agent_trace_index::engine::Engine;
use agent_trace_index::engine::memory::Memory;
use agent_trace_index::indexer::{IDLE, verify};
use agent_trace_index::keys::kind;
use agent_trace_index::rows::{RunRow, SessionRow, decode};
use agent_trace_store::trace::Sessions;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::processes::wait_until_gone;
use support::{Home, REQUEST, Server, Session, wait_for};

/// Relays that record at once.
const WRITERS: u64 = 8;
/// Requests that each of them has to relay.
const REQUESTS: u64 = 400;

fn rounds() -> u32 {
    let rounds = std::env::var("AGENT_TRACE_TEST_KILLS").ok();
    rounds.map_or(20, |rounds| rounds.parse().unwrap())
}

#[test]
fn an_index_that_followed_killed_relays_is_equal_to_one_made_anew() {
    let seed = RandomState::new();
    for round in 0..rounds() {
        let home = Home::new();
        let engine: Arc<dyn Engine> = Arc::new(Memory::default());
        let writers: Vec<(Server, Session)> = (0..WRITERS)
            .map(|_| {
                let server = Server::echo();
                let session = home.record().start(&server);
                for number in 0..REQUESTS {
                    session.send(message(number));
                }
                (server, session)
            })
            .collect();
        let writing = AtomicBool::new(true);
        let moment = |what: u64| seed.hash_one((round, what));
        std::thread::scope(|scope| {
            scope.spawn(|| follow(&home, &engine, &writing, &moment));
            let killed: Vec<_> = (0..)
                .zip(&writers)
                .map(|(number, (_, session))| {
                    let after = Duration::from_millis(moment(number) % 400);
                    scope.spawn(move || {
                        std::thread::sleep(after);
                        session.signal("KILL");
                        wait_until_gone(&[session.process]);
                    })
                })
                .collect();
            for one in killed {
                one.join().unwrap();
            }
            writing.store(false, Ordering::Relaxed);
        });
        let entries = wait_for("the end of all runs", || {
            let runs = home.store().list().unwrap().runs;
            runs.iter().all(|run| !run.live).then_some(runs)
        });
        let mut indexer = Indexer::new(&home.store(), Arc::clone(&engine), IDLE).unwrap();
        indexer.catch_up().unwrap();
        let different = verify::compare(&home.store(), &*engine, IDLE).unwrap();
        assert_eq!(different, [], "round {round}");
        check(&home, &*engine, entries.len(), round);
        assert_eq!(
            indexer.catch_up().unwrap().records,
            0,
            "nothing is read twice"
        );
    }
}

/// A request that the server sends back, which is one of its own then.
fn message(number: u64) -> String {
    let size = usize::try_from(number * 7919 % 2000).unwrap();
    let tool = format!("\"t{}{}\"", number % 5, "x".repeat(size % 7));
    let filler = format!("{{\"a\":\"{}\"}}", "y".repeat(size));
    let message = REQUEST.replace("\"id\":1", &format!("\"id\":{number}"));
    message.replace("\"t\"", &tool).replace("{}", &filler)
}

/// Keeps an index up to date, now and then as another process that takes over.
fn follow(
    home: &Home,
    engine: &Arc<dyn Engine>,
    writing: &AtomicBool,
    moment: &dyn Fn(u64) -> u64,
) {
    let begin = || Indexer::new(&home.store(), Arc::clone(engine), IDLE).unwrap();
    let (mut indexer, mut looks) = (begin(), 0);
    while writing.load(Ordering::Relaxed) {
        indexer.catch_up().unwrap();
        looks += 1;
        if moment(1000 + looks).is_multiple_of(4) {
            indexer = begin();
        }
        std::thread::sleep(Duration::from_millis(moment(2000 + looks) % 20));
    }
}

/// Each frame that can be read is counted, and each session is in one run.
fn check(home: &Home, engine: &dyn Engine, sessions: usize, round: u32) {
    let mut rows: Vec<SessionRow> = Vec::new();
    let take = &mut |_: &[u8], row: &[u8]| {
        rows.push(decode(row).unwrap());
        true
    };
    engine.scan(&[kind::SESSION], None, take).unwrap();
    assert_eq!(rows.len(), sessions, "round {round}");
    let mut slices = 0;
    let count = &mut |_: &[u8], row: &[u8]| {
        let run = decode::<RunRow>(row).unwrap();
        slices += run.slices.len();
        for slice in run.slices {
            let row = rows.iter_mut().find(|row| row.id == slice.session);
            let part = &mut row.unwrap().parts[slice.part as usize];
            if part.in_run {
                part.tally = run.tally.clone();
            }
        }
        true
    };
    engine.scan(&[kind::RUN], None, count).unwrap();
    let parts: usize = rows.iter().map(|row| row.parts.len()).sum();
    assert_eq!(slices, parts, "round {round}");
    for entry in home.store().list().unwrap().runs {
        let session = home.store().open(&entry).unwrap();
        let row = rows.iter().find(|row| row.id == entry.session).unwrap();
        let steps: u64 = row.parts.iter().map(|part| part.tally.steps).sum();
        assert_eq!(steps, session.steps.len() as u64, "round {round}");
        assert_eq!(row.standing, session.standing(), "round {round}");
    }
}
