//! What goes wrong while an index is kept costs time, and no runs: writes that fail, files that
//! are removed, sealed, changed or cannot be read meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/engine.rs"]
mod engine;
#[path = "support/index.rs"]
mod index;
#[path = "support/journal.rs"]
mod journal;

use agent_trace_index::engine::{Batch, Engine};
use agent_trace_index::indexer::{IDLE, Indexer, verify};
use agent_trace_index::keys;
use agent_trace_index::listing::Projects;
use agent_trace_index::listing::RunsQuery;
use agent_trace_index::local::Local;
use agent_trace_index::protocol::{MOST_ANSWERED, Query, Reply};
use agent_trace_index::rows::{self, RunRow};
use agent_trace_model::exchange::Request;
use agent_trace_model::story::Standing;
use agent_trace_model::{Ending, Stream};
use agent_trace_store::journal::header::{Meta, SessionOpen};
use agent_trace_store::journal::{Segment, sealed};
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::trace::Sessions;
use agent_trace_store::{Store, key, retention};
use engine::{Fault, Faulty};
use index::Place;
use journal::{Journal, MINUTE};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const OK: &str = r#""result":{"content":[]}"#;

fn local(store: &Store, engine: &Arc<Faulty>) -> Local {
    let engine: Arc<dyn Engine> = Arc::<Faulty>::clone(engine);
    Local::new(store, engine, "1.2.3", None, IDLE)
}

fn all() -> RunsQuery {
    RunsQuery {
        workspace: "default".into(),
        projects: Projects::All,
        task: None,
        look: 0,
        unowned: true,
        filter: String::new(),
        now: journal::START,
        offset: 0,
        slow: 1,
        failed: false,
        probes: true,
        limit: 100,
        last: 0,
        cursor: None,
    }
}

/// How many runs are listed.
fn listed(local: &Local) -> usize {
    match local.answer(&Query::Runs(all())).unwrap() {
        Reply::Runs(page) => page.runs.len(),
        other => panic!("{other:?}"),
    }
}

fn finished(store: &Store, number: u8) {
    let mut journal = Journal::stdio(store, number, u32::from(number), u64::from(number) * 100);
    journal.later(10).call(1, "read", OK);
    journal.end(1, Ending::ClientClosed, Some(0)).close();
}

#[test]
fn a_write_that_fails_is_made_good_by_the_next_look() {
    for fault in [Fault::Refused, Fault::Unsure] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let engine = Arc::new(Faulty::default());
        let local = local(&store, &engine);
        finished(&store, 1);
        let mut live = Journal::stdio(&store, 2, 2, 300);
        live.later(10).call(1, "read", OK);
        local.refresh().unwrap();
        local.keep_in_memory().unwrap();
        assert_eq!(listed(&local), 2);

        finished(&store, 3);
        live.later(10).call(2, "read", OK);
        engine.fail_after(0, fault);
        local.refresh().unwrap_err();
        assert_eq!(listed(&local), 3, "{fault:?}");
        local.keep_in_memory().unwrap();
        assert_eq!(listed(&local), 3, "{fault:?}, in memory");
        assert_eq!(local.verify().unwrap(), [], "{fault:?}");
    }
}

#[test]
fn a_rebuild_that_is_interrupted_is_begun_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let engine = Arc::new(Faulty::default());
    finished(&store, 1);
    local(&store, &engine).refresh().unwrap();
    // Rows that stand between those that go first and those that tell what was read.
    let mut batch = Batch::default();
    (0..10_000_u32)
        .for_each(|number| batch.put([&b"N"[..], &number.to_be_bytes()].concat(), vec![]));
    engine.apply(batch).unwrap();
    for writes in 0..5 {
        engine.fail_after(writes, Fault::Refused);
        let _ = local(&store, &engine).rebuild();
        engine.fail_after(u32::MAX, Fault::Refused);
        let mut indexer = Indexer::new(&store, Arc::<Faulty>::clone(&engine), IDLE).unwrap();
        indexer.catch_up().unwrap();
        let left = verify::compare(&store, &*engine, IDLE).unwrap();
        let ours = left
            .iter()
            .filter(|found| !found.row.starts_with("row \"N"));
        assert_eq!(ours.count(), 0, "after {writes} writes: {left:?}");
    }
}

#[test]
fn of_a_long_session_only_what_changed_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let engine = Arc::new(Faulty::default());
    let local = local(&store, &engine);
    let mut journal = Journal::stdio(&store, 1, 1, 0);
    for id in 0..50 {
        journal.later(20 * MINUTE).call(id, "read", OK);
    }
    local.refresh().unwrap();
    assert_eq!(listed(&local), 51);
    let before = engine.changes.load(Ordering::Relaxed);
    journal.later(10).call(100, "read", OK);
    local.refresh().unwrap();
    // The process, the session, one key of one part, and its run.
    let changes = engine.changes.load(Ordering::Relaxed) - before;
    assert!(changes <= 5, "{changes}");
    assert_eq!(local.verify().unwrap(), []);
}

#[test]
fn a_run_that_is_too_large_to_be_sent_is_cut_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let engine = Arc::new(Faulty::default());
    let local = local(&store, &engine);
    finished(&store, 1);
    let Reply::Runs(page) = local.answer(&Query::Runs(all())).unwrap() else {
        panic!("no page");
    };
    let mut row = page.runs[0].row.clone();
    assert_eq!((page.runs[0].left_out, page.warnings.len()), (0, 0));
    row.slices = vec![row.slices[0]; 100_000];
    row.aliases = vec![row.id; 50_000];
    row.servers = vec!["x".repeat(256); 10_000];
    let mut batch = Batch::default();
    batch.put(row_key(&row), rows::encode(&row));
    engine.apply(batch).unwrap();
    let fits = |reply: &Reply| {
        let size = serde_json::to_vec(reply).unwrap().len() as u64;
        assert!(size < MOST_ANSWERED, "{size}");
    };
    let reply = local.answer(&Query::Runs(all())).unwrap();
    fits(&reply);
    let Reply::Runs(page) = reply else {
        panic!("no page");
    };
    let cut = &page.runs[0];
    let kept = cut.row.slices.len() + cut.row.aliases.len() + cut.row.servers.len();
    assert_eq!(kept as u64 + cut.left_out, 160_000);
    assert_eq!(page.warnings.len(), 1, "{:?}", page.warnings);
    let query = Query::Run {
        workspace: "default".into(),
        projects: Projects::All,
        name: "latest".into(),
    };
    let reply = local.answer(&query).unwrap();
    fits(&reply);
    let Reply::Run(found) = reply else {
        panic!("no run");
    };
    assert!(found.run.left_out > 0);
}

fn row_key(row: &RunRow) -> Vec<u8> {
    keys::run(&row.workspace, row.started, row.id)
}

/// A journal over HTTP with two sessions, each in a file of its own, and a third file.
fn two_sessions(store: &Store) -> Journal {
    let mut journal = Journal::new(store, 1, 1, 0);
    let (to, from) = (Stream::ClientToServer, Stream::ServerToClient);
    for session in 1..=2 {
        let open = SessionOpen {
            transport: "http".into(),
            started: journal::START + u64::from(session),
            ..SessionOpen::default()
        };
        journal
            .later(50)
            .meta(session, 0, to, &Meta::SessionOpen(open));
        let request = Request {
            method: "POST".into(),
            target: "/mcp".into(),
            ..Request::default()
        };
        journal
            .later(5)
            .meta(session, session, to, &Meta::Request(request));
        journal
            .later(5)
            .meta(session, session, from, &Meta::Unknown);
        journal.later(5).end(session, Ending::ClientClosed, None);
        journal.roll();
    }
    journal
}

fn files(store: &Store) -> Vec<SegmentPath> {
    store.segments().unwrap()
}

fn seal(store: &Store, file: &SegmentPath) -> SegmentPath {
    let chain = key::load_or_create(store).unwrap().chain();
    let bytes = sealed::seal(&Segment::open(file).unwrap(), chain).unwrap();
    let day = store.day("2026-11-30");
    store.make(&day).unwrap();
    let name = SegmentPath::name(file.process, file.number, true);
    fs::write(day.join(&name), bytes).unwrap();
    fs::remove_file(&file.path).unwrap();
    SegmentPath::parse(day.join(name)).unwrap()
}

#[test]
fn sessions_of_a_live_process_that_are_gone_leave_the_index() {
    let cases = [
        "too old",
        "forgotten, of a journal",
        "forgotten, of a sealed file",
    ];
    for name in cases {
        let mut place = Place::new();
        let mut journal = two_sessions(&place.store);
        if name.ends_with("sealed file") {
            seal(&place.store, &files(&place.store)[0]);
        }
        assert_eq!(place.catch_up().len(), 2, "{name}");
        if name == "too old" {
            fs::remove_file(&files(&place.store)[0].path).unwrap();
        } else {
            forget_the_first(&place.store);
        }
        assert_eq!(place.catch_up().len(), 1, "{name}");
        assert_eq!(place.indexer.verify().unwrap(), [], "{name}");
        journal
            .later(5)
            .meta(2, 9, Stream::ClientToServer, &Meta::Unknown);
        place.catch_up();
        assert_eq!(place.indexer.verify().unwrap(), [], "{name}");
    }
}

fn forget_the_first(store: &Store) {
    let listing = store.list().unwrap();
    let first = listing.runs.iter().find(|run| run.session.ordinal == 1);
    retention::forget(store, std::slice::from_ref(first.unwrap()), &[]).unwrap();
}

#[test]
fn sealing_a_part_of_a_live_journal_is_no_reason_to_read_it_again() {
    let mut place = Place::new();
    let _journal = two_sessions(&place.store);
    place.catch_up();
    seal(&place.store, &files(&place.store)[0]);
    assert_eq!(place.indexer.catch_up().unwrap().records, 0);
    assert_eq!(place.indexer.verify().unwrap(), []);
}

#[test]
fn a_sealed_file_that_cannot_be_read_costs_itself_and_not_the_rest() {
    let mut place = Place::new();
    let mut journal = Journal::stdio(&place.store, 1, 9, 0);
    journal.later(10).call(1, "read", OK).roll();
    journal.later(10).call(2, "read", OK).roll();
    journal.later(10).call(3, "read", OK);
    let sealed = seal(&place.store, &files(&place.store)[1]);
    fs::write(sealed.path, "nothing").unwrap();
    let runs = place.catch_up();
    assert_eq!(runs[0].standing, Standing::Live);
    assert_eq!(runs[0].tally.marks.unreadable, 1);
    assert_eq!(runs[0].tally.calls(), 2);
    assert_eq!(place.indexer.verify().unwrap(), []);
    // What comes then is read, and nothing else.
    journal.later(10).call(4, "read", OK);
    assert_eq!(place.indexer.catch_up().unwrap().records, 2);
    journal
        .later(10)
        .end(1, Ending::ClientClosed, Some(0))
        .close();
    assert_eq!(place.catch_up()[0].standing, Standing::Ended);
    assert_eq!(place.indexer.verify().unwrap(), []);
}

#[test]
fn what_a_server_without_a_name_did_is_not_anothers() {
    let mut place = Place::new();
    let mut journal = Journal::new(&place.store, 1, 9, 0);
    let open = SessionOpen {
        transport: "stdio".into(),
        server: Some(String::new()),
        ..SessionOpen::default()
    };
    journal.meta(1, 0, Stream::ClientToServer, &Meta::SessionOpen(open));
    journal.later(10).call(1, "read", OK);
    let mut other = Journal::stdio(&place.store, 2, 9, 10);
    other.later(10).call(1, "find", OK);
    let runs = place.catch_up();
    assert_eq!(
        (runs.len(), &runs[0].servers[..]),
        (1, &["mini".to_owned()][..])
    );
    let tools = runs[0].tally.tools.iter();
    let tools: Vec<_> = tools.map(|tool| (&tool.tool[..], tool.server)).collect();
    assert_eq!(tools, [("find", 0), ("read", u16::MAX)]);
}
