//! Of the many runs that a process recorded each can be followed, exported, forgotten and
//! imported by itself, and nothing of that reads as damage.

#![allow(clippy::unwrap_used)]

#[path = "trace_http/journal.rs"]
mod journal;

use agent_trace_model::{Ending, Finish, Judge, Verdict};
use agent_trace_store::journal::header::KeyKind;
use agent_trace_store::portable::{self, PortableError};
use agent_trace_store::retention::{self, Limits, RetentionError};
use agent_trace_store::state::{Decision, Entry, State};
use agent_trace_store::trace::follow::{Change, Follower, Watcher};
use agent_trace_store::trace::session::Standing;
use agent_trace_store::trace::{Session, SessionEntry, Sessions};
use agent_trace_store::{Store, key};
use journal::{Journal, steps};

fn call(tool: &str) -> String {
    format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

const ANSWER: &str = r#"{"id":1,"result":{}}"#;

/// Two sessions that take turns, over two files; the process has ended.
fn two_sessions() -> Journal {
    let mut j = Journal::new();
    key::load_or_create(&j.store()).unwrap();
    j.open(1, KeyKind::McpSession);
    j.open(2, KeyKind::McpSession);
    j.post(1, 1, &call("one-a"), 200, ANSWER);
    j.post(2, 2, &call("two-a"), 200, ANSWER);
    j.roll();
    j.open(1, KeyKind::McpSession);
    j.open(2, KeyKind::McpSession);
    j.post(2, 3, &call("two-b"), 200, ANSWER);
    j.post(1, 4, &call("one-b"), 200, ANSWER);
    j.gap(0, 5);
    j.end(1, Ending::Idle);
    j.end(2, Ending::Idle);
    j.close();
    j
}

const ONE: [&str; 2] = ["tools/call one-a 200 ok", "tools/call one-b 200 ok"];
const TWO: [&str; 2] = ["tools/call two-a 200 ok", "tools/call two-b 200 ok"];

fn entries(store: &Store) -> Vec<SessionEntry> {
    let listing = store.list().unwrap();
    assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
    listing.runs.into_iter().rev().collect()
}

/// The runs, each of which must be whole.
fn runs(store: &Store) -> Vec<Session> {
    let open = |entry: &SessionEntry| store.open(entry).unwrap();
    let runs: Vec<Session> = entries(store).iter().map(open).collect();
    for run in &runs {
        assert!(run.is_whole(), "{} missing", run.missing);
        assert_eq!(run.standing(), Standing::Ended);
        assert_eq!(run.gaps.len(), 1);
    }
    runs
}

/// All bytes in the store.
fn holds(store: &Store, text: &str) -> bool {
    let files = store.segments().unwrap();
    files.iter().any(|file| {
        let segment = agent_trace_store::journal::Segment::open(file).unwrap();
        let payloads: Vec<Vec<u8>> = segment.records().flatten().map(|r| r.payload).collect();
        String::from_utf8_lossy(&payloads.concat()).contains(text)
    })
}

fn forget(store: &Store, session: &SessionEntry) -> Result<(), RetentionError> {
    retention::forget(store, std::slice::from_ref(session), &[])
}

#[test]
fn a_run_is_forgotten_and_the_others_stay() {
    for sealed in [false, true] {
        let j = two_sessions();
        let store = j.store();
        if sealed {
            assert_eq!(
                retention::apply(&store, Limits::default()).unwrap().sealed,
                2
            );
        }
        assert_eq!(runs(&store).len(), 2);
        forget(&store, &entries(&store)[0]).unwrap();
        let left = runs(&store);
        assert_eq!(
            (left.len(), steps(&left[0])),
            (1, TWO.map(Into::into).to_vec())
        );
        assert!(!holds(&store, "one-a") && !holds(&store, "one-b"));
        assert!(store.segments().unwrap().iter().all(|file| file.sealed));
        let again = retention::apply(&store, Limits::default()).unwrap();
        assert!(again.failed.is_empty() && again.removed.is_empty());
        forget(&store, &entries(&store)[0]).unwrap();
        assert!(
            store.segments().unwrap().is_empty(),
            "nothing is left of the process"
        );
    }
}

#[test]
fn nothing_of_a_run_is_forgotten_where_one_of_its_sessions_cannot_be() {
    let ended = two_sessions();
    let mut going_on = Journal::new();
    going_on.open(1, KeyKind::McpSession);
    going_on.post(1, 1, &call("tool"), 200, ANSWER);
    let store = ended.store();
    // Both in one store.
    let live = entries(&going_on.store()).remove(0);
    let mut sessions = entries(&store);
    sessions.push(live);
    let id = sessions[0].id;
    let decision = Decision {
        run: id,
        verdict: Verdict::Wrong,
        reason: "a reason".into(),
        by: Judge::Person,
        at: 1,
    };
    let state = State::of(&store);
    state.append(&Entry::Verdict(decision)).unwrap();
    let forgotten = retention::forget(&store, &sessions, &[id]);
    assert!(matches!(forgotten, Err(RetentionError::Live)));
    assert_eq!(runs(&store).len(), 2);
    assert_eq!(state.verdicts().unwrap().verdict([id]), Verdict::Wrong);
    // Both sessions of one process at once; what was decided goes, too.
    sessions.pop();
    retention::forget(&store, &sessions, &[id]).unwrap();
    assert!(store.segments().unwrap().is_empty());
    assert_eq!(state.entries().unwrap().all, []);
}

#[test]
fn what_is_still_written_is_not_half_forgotten() {
    let mut j = Journal::new();
    key::load_or_create(&j.store()).unwrap();
    for session in [1, 2] {
        j.open(session, KeyKind::McpSession);
        j.post(session, session, &call("tool"), 200, ANSWER);
    }
    let store = j.store();
    let live = forget(&store, &entries(&store)[0]);
    assert!(matches!(live, Err(RetentionError::Live)), "{live:?}");
    j.end(1, Ending::ClientClosed);
    j.roll();
    j.open(2, KeyKind::McpSession);
    j.end(2, Ending::ClientClosed);
    // The second one ended in the file that is being written.
    let written = forget(&store, &entries(&store)[1]);
    assert!(
        matches!(written, Err(RetentionError::StillWritten)),
        "{written:?}"
    );
    assert_eq!(entries(&store).len(), 2);
    assert_eq!(
        j.runs()[1].exchanges.len(),
        1,
        "its first file was left alone"
    );
    forget(&store, &entries(&store)[0]).unwrap();
    assert_eq!(entries(&store).len(), 1);
    j.open(3, KeyKind::Caller);
    j.close();
    assert_eq!(entries(&store).len(), 2, "the process went on");
    assert!(j.runs().iter().all(Session::is_whole));
}

#[test]
fn an_exported_run_holds_no_other_and_comes_back() {
    let j = two_sessions();
    let (store, listed) = (j.store(), entries(&j.store()));
    let files: Vec<Vec<u8>> = listed
        .iter()
        .map(|run| portable::export(&store, run).unwrap())
        .collect();
    let other = tempfile::tempdir().unwrap();
    let other = Store::at(other.path());
    // In any order.
    for (at, file) in [(1, &files[1]), (0, &files[0])] {
        let imported = portable::import(&other, file.clone()).unwrap();
        assert_eq!((imported[0].run, imported[0].known), (listed[at].id, false));
    }
    assert!(portable::import(&other, files[0].clone()).unwrap()[0].known);
    let found: Vec<_> = runs(&other).iter().map(steps).collect();
    assert_eq!(found, [ONE, TWO]);
    forget(&other, &entries(&other)[1]).unwrap();
    assert_eq!(steps(&runs(&other)[0]), ONE);
    assert!(!holds(&other, "two-a"));
    // Where it was before, it comes back beside what stayed.
    forget(&store, &listed[0]).unwrap();
    portable::import(&store, files[0].clone()).unwrap();
    let found: Vec<_> = runs(&store).iter().map(steps).collect();
    assert_eq!(found, [ONE, TWO]);
}

#[test]
fn a_run_cannot_come_into_a_journal_that_goes_on() {
    let j = two_sessions();
    let file = portable::export(&j.store(), &entries(&j.store())[0]).unwrap();
    let mut live = Journal::new();
    live.open(2, KeyKind::McpSession);
    let refused = portable::import(&live.store(), file);
    assert!(
        matches!(refused, Err(PortableError::Conflict)),
        "{refused:?}"
    );
}

#[test]
fn a_process_that_goes_on_loses_what_is_old() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.post(1, 1, &call("old"), 200, ANSWER);
    j.end(1, Ending::Idle);
    j.open(2, KeyKind::McpSession);
    j.roll();
    j.open(2, KeyKind::McpSession);
    j.post(2, 2, &call("new"), 200, ANSWER);
    let store = j.store();
    let limits = Limits {
        bytes: Some(1),
        ..Limits::default()
    };
    let first = entries(&store)[0].id;
    let applied = retention::apply(&store, limits).unwrap();
    assert_eq!(
        applied.removed.iter().map(|run| run.id).collect::<Vec<_>>(),
        [first]
    );
    let run = j.run();
    assert_eq!(steps(&run), ["tools/call new 200 ok"]);
    assert!(run.is_whole() && run.entry.live);
}

#[test]
fn a_journal_that_was_left_beside_its_sealed_form_goes() {
    let j = two_sessions();
    let store = j.store();
    let journal = store.segments().unwrap().remove(0).path;
    let bytes = std::fs::read(&journal).unwrap();
    retention::apply(&store, Limits::default()).unwrap();
    std::fs::write(&journal, bytes).unwrap();
    retention::apply(&store, Limits::default()).unwrap();
    assert!(!journal.exists());
    assert_eq!(runs(&store).len(), 2);
}

#[test]
fn a_run_is_followed_over_files_that_are_sealed_meanwhile() {
    let mut j = Journal::new();
    key::load_or_create(&j.store()).unwrap();
    let store = j.store();
    j.open(1, KeyKind::McpSession);
    j.post(1, 1, &call("a"), 200, ANSWER);
    let mut follower = Follower::new(&store, &entries(&store)[0]).unwrap();
    let mut told = Vec::new();
    let mut poll = |times: usize| {
        let mut over = false;
        for _ in 0..times {
            let news = follower.poll().unwrap();
            let all = steps(follower.run());
            told.extend(news.steps.iter().map(|at| all[*at].clone()));
            over = news.over;
        }
        (std::mem::take(&mut told), over)
    };
    let told = |tool: &str| (vec![format!("tools/call {tool} 200 ok")], false);
    assert_eq!(poll(2), told("a"));
    assert_eq!(poll(1), (vec![], false), "nothing is told twice");
    j.stream(1, 2, &call("b"));
    assert_eq!(poll(2), (vec![], false), "it is open");
    j.open(2, KeyKind::McpSession);
    j.post(2, 3, &call("other"), 200, ANSWER);
    // It goes on in new files, of which some are sealed before they were read.
    j.roll();
    j.open(1, KeyKind::McpSession);
    j.event(1, 2, &format!("data: {ANSWER}\n\n"));
    retention::apply(&store, Limits::default()).unwrap();
    assert_eq!(poll(2), told("b"));
    j.finish(1, 2, Finish::Complete);
    j.roll();
    j.post(1, 4, &call("c"), 200, ANSWER);
    j.roll();
    retention::apply(&store, Limits::default()).unwrap();
    assert_eq!(poll(2), told("c"));
    j.post(1, 5, &call("d"), 200, ANSWER);
    j.end(1, Ending::ClientClosed);
    let (last, over) = poll(2);
    assert_eq!(
        (last, over),
        (told("d").0, true),
        "though the process goes on"
    );
    assert!(follower.run().is_whole());
    assert_eq!(follower.run().standing(), Standing::Ended);
}

#[test]
fn sessions_are_seen_to_begin_and_to_end() {
    let mut j = Journal::new();
    let store = j.store();
    j.open(1, KeyKind::McpSession);
    let mut watcher = Watcher::new(&store).unwrap();
    let mut poll = || {
        let changes = watcher.poll().unwrap();
        let words = changes.iter().map(|change| match change {
            Change::Began(run) => format!("began {}", run.entry.session.ordinal),
            Change::Ended(run) => {
                format!("ended {} {}", run.entry.session.ordinal, run.steps.len())
            }
        });
        words.collect::<Vec<_>>()
    };
    assert_eq!(poll(), [""; 0]);
    j.open(2, KeyKind::Caller);
    j.open(2, KeyKind::McpSession);
    assert_eq!(poll(), ["began 2"]);
    j.post(1, 1, &call("a"), 200, ANSWER);
    j.end(1, Ending::ClientClosed);
    j.open(3, KeyKind::Caller);
    assert_eq!(poll(), ["began 3", "ended 1 1"]);
    // What began in a later file is read from there on.
    j.roll();
    j.open(2, KeyKind::McpSession);
    j.open(4, KeyKind::McpSession);
    j.post(4, 2, &call("a"), 200, ANSWER);
    assert_eq!(poll(), ["began 4"]);
    j.end(4, Ending::ClientClosed);
    j.end(2, Ending::ClientClosed);
    let files = |change: &Change| match change {
        Change::Ended(run) => {
            assert!(run.is_whole() && !run.is_clipped());
            (run.entry.session.ordinal, run.entry.segments.len())
        }
        Change::Began(_) => panic!("began"),
    };
    let ended: Vec<_> = watcher.poll().unwrap().iter().map(files).collect();
    assert_eq!(ended, [(4, 1), (2, 2)]);
    j.close();
    let ended: Vec<_> = watcher.poll().unwrap().iter().map(files).collect();
    assert_eq!(ended, [(3, 2)]);
    assert_eq!(watcher.poll().unwrap().len(), 0);
}
