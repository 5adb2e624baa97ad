//! A generated store, as the benchmark of the index has it but smaller: what is known from its
//! making is what readers and the index find.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../benches/common/generate.rs"]
mod generate;
#[path = "support/support.rs"]
mod support;

use agent_trace_store::trace::Sessions;
use agent_trace_store::verify;
use generate::{Made, Plan, needle};
use support::Home;

/// More than one block of runs, with a relay of HTTP in each.
const PLAN: Plan = Plan {
    runs: 1_000,
    events: 30_000,
    seed: 7,
};

#[test]
fn a_store_is_the_same_for_the_same_seed() {
    let (one, other) = (Home::new(), Home::new());
    let made = generate::generate(&one.store(), PLAN, 1).unwrap();
    assert_eq!(generate::generate(&other.store(), PLAN, 2).unwrap(), made);
    let names = |home: &Home| {
        let mut names: Vec<_> = home.store().segments().unwrap();
        names.sort_by_key(|path| (path.process, path.number));
        let read = |path: &agent_trace_store::layout::SegmentPath| {
            (path.process, std::fs::read(&path.path).unwrap().len())
        };
        names.iter().map(read).collect::<Vec<_>>()
    };
    assert_eq!(names(&one), names(&other));
}

#[test]
fn what_is_known_of_a_store_is_what_is_found_in_it_sealed_or_not() {
    let home = Home::new();
    let store = home.store();
    let made = generate::generate(&store, PLAN, 2).unwrap();
    assert_eq!((made.runs, made.probes), (PLAN.runs, 10));
    assert!(made.failed > made.unanswered && made.unanswered > made.crashed);
    is_read_right(&home, &made);
    is_answered_right(&home, &made);
    generate::seal(&store, 2).unwrap();
    assert!(store.segments().unwrap().iter().all(|path| path.sealed));
    verify::each(&store, None, |_, report| {
        assert!(!report.is_faulty() && !report.is_doubtful(), "{report:?}");
    })
    .unwrap();
    is_read_right(&home, &made);
    is_answered_right(&home, &made);
}

/// By whoever reads all journals.
fn is_read_right(home: &Home, made: &Made) {
    let entries = home.store().list().unwrap().runs;
    assert_eq!(entries.len() as u64, made.sessions);
    let (mut events, mut damaged) = (0, 0);
    home.store().open_each(&entries, &mut |_, session| {
        let session = session.unwrap();
        events += session.frames.len() as u64;
        damaged += u64::from(!session.is_whole());
    });
    assert_eq!((events, damaged), (made.events, 0));
}

/// By commands, which ask the index.
fn is_answered_right(home: &Home, made: &Made) {
    let count = |words: &[&str]| {
        let all = ["-n", "0", "--format", "jsonl"];
        let out = home.ok(words.iter().chain(&all).copied());
        out.lines().count() as u64
    };
    assert_eq!(count(&["runs"]), made.runs);
    assert_eq!(count(&["runs", "--failed"]), made.failed);
    assert_eq!(count(&["runs", "--all"]), made.runs + made.probes);
    assert_eq!(count(&["runs", "~d >2s"]), made.slow);
    let mut number = 0;
    for (server, with) in generate::world::SERVERS.iter().zip(&made.by_server) {
        assert_eq!(count(&["runs", &format!("~s {}", server.name)]), *with);
        // One tool of each.
        let tool = server.tools[1].name;
        let found = count(&["runs", &format!("~t {tool}")]);
        assert_eq!(found, made.by_tool[number + 1], "{tool}");
        number += server.tools.len();
    }
    for (number, with) in made.by_needle.iter().enumerate().take(2) {
        assert_eq!(count(&["search", &needle(number)]), *with);
    }
}
