//! Journals become runs: the same ones in whatever order and however often it is looked, and
//! what the rows say is what the steps say.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/index.rs"]
mod index;
#[path = "support/journal.rs"]
mod journal;

use agent_trace_index::rows::{Failure, GroupKey};
use agent_trace_model::exchange::{Finished, Request, Response};
use agent_trace_model::story::Standing;
use agent_trace_model::{Ending, Finish, Stream};
use agent_trace_store::journal::header::{Meta, SessionOpen};
use agent_trace_wire::frame::Framing;
use index::Place;
use journal::{Journal, MINUTE};
use proptest::prelude::*;
use std::fs;

const OK: &str = r#""result":{"content":[]}"#;
const FAILS: &str = r#""result":{"isError":true}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const LISTED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;

#[test]
fn one_conversation_with_several_servers_is_one_run_and_a_pause_begins_another() {
    let mut place = Place::new();
    let mut one = Journal::stdio(&place.store, 1, 42, 0);
    let mut two = Journal::stdio(&place.store, 2, 42, 10);
    one.at(100).call(1, "read", FAILS);
    two.at(300).asks(LIST).later(5).answers(LISTED);
    assert_eq!(place.catch_up().len(), 1);
    // While one server is idle, the other is not.
    two.at(8 * MINUTE).call(2, "find", OK);
    one.at(16 * MINUTE).call(2, "read", OK);
    let runs = place.catch_up();
    assert_eq!(runs.len(), 1, "{runs:#?}");
    assert_eq!(runs[0].slices.len(), 3);
    assert_eq!((runs[0].failed, runs[0].recovered), (0, 1));
    assert_eq!(runs[0].standing, Standing::Live);
    let first = runs[0].id;
    place.check();
    // Now both pause.
    one.at(40 * MINUTE).call(3, "read", FAILS);
    one.later(10).end(1, Ending::ClientClosed, Some(0)).close();
    two.end(1, Ending::ClientClosed, Some(0)).close();
    let runs = place.catch_up();
    assert_eq!(runs.len(), 2, "{runs:#?}");
    assert_eq!(runs[0].id, first, "the id of what was there stays");
    assert_eq!((runs[0].failed, runs[1].failed), (0, 1));
    assert!(matches!(runs[0].key, GroupKey::Client { pid: 42, .. }));
    let story = place.story(runs[1].id);
    assert_eq!((story.steps.len(), story.sessions.len()), (1, 1));
    place.check();
}

#[test]
fn a_client_that_only_lists_is_no_run_unless_it_goes_on() {
    let mut place = Place::new();
    let mut probe = Journal::stdio(&place.store, 1, 5, 0);
    probe.at(10).asks(LIST).later(1).answers(LISTED);
    probe.end(1, Ending::ClientClosed, Some(0)).close();
    assert!(place.catch_up()[0].probe);
    let mut other = Journal::stdio(&place.store, 2, 5, 1_000);
    other.at(1_100).call(1, "read", OK);
    let runs = place.catch_up();
    assert_eq!(runs.len(), 1);
    assert!(!runs[0].probe);
    place.check();
}

#[test]
fn a_crash_fails_a_run_and_what_was_open_with_it() {
    let mut place = Place::new();
    let mut journal = Journal::stdio(&place.store, 1, 5, 0);
    journal
        .at(10)
        .asks(r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#);
    assert_eq!(place.catch_up()[0].tally.outcomes.pending, 1);
    journal
        .later(50)
        .end(1, Ending::ServerExited, Some(3))
        .close();
    let runs = place.catch_up();
    assert_eq!(runs[0].standing, Standing::Crashed);
    assert!(matches!(runs[0].failures[0], Failure::Crashed { .. }));
    place.check();
}

#[test]
fn what_is_gone_leaves_the_index() {
    let mut place = Place::new();
    for number in 1..=3 {
        let mut journal = Journal::stdio(&place.store, number, 9, u64::from(number) * 100);
        journal.later(10).call(1, "read", OK);
        journal.end(1, Ending::ClientClosed, Some(0)).close();
    }
    let before = place.catch_up();
    assert_eq!((before.len(), before[0].slices.len()), (1, 3));
    let process = before[0].slices[0].session.process;
    for file in place.store.files_of(process).unwrap() {
        fs::remove_file(file).unwrap();
    }
    let after = place.catch_up();
    assert_eq!((after.len(), after[0].slices.len()), (1, 2));
    assert_ne!(after[0].id, before[0].id, "its first session is gone");
    assert!(before[0].aliases.contains(&after[0].id));
    place.check();
    for slice in &after[0].slices {
        for file in place.store.files_of(slice.session.process).unwrap() {
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(place.catch_up(), []);
    let mut left = 0;
    let count = &mut |key: &[u8], _: &[u8]| {
        left += usize::from(!matches!(key[0], b'V' | b'D'));
        true
    };
    agent_trace_index::engine::Engine::scan(&*place.engine, &[], None, count).unwrap();
    assert_eq!(left, 0, "no row is left behind");
}

#[test]
fn damage_costs_what_it_hit_and_never_hides_a_run() {
    let mut place = Place::new();
    let mut journal = Journal::stdio(&place.store, 1, 9, 0);
    for id in 1..=5 {
        journal.later(100).call(id, "read", OK);
    }
    journal
        .skip()
        .later(1)
        .end(1, Ending::ClientClosed, Some(0))
        .close();
    let file = fs::read_dir(place.store.live())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&file, bytes).unwrap();
    let runs = place.catch_up();
    assert_eq!(runs.len(), 1);
    let marks = runs[0].tally.marks;
    assert_eq!((marks.damaged, marks.missing), (1, 2), "{marks:?}");
    assert!(runs[0].tally.steps >= 4);
    // A journal of which not even the header is left.
    fs::write(&file, b"nothing").unwrap();
    assert_eq!(place.catch_up(), []);
    assert_eq!(place.indexer.verify().unwrap(), []);
}

#[test]
fn a_long_session_is_counted_as_one_that_is_read_whole() {
    let mut place = Place::new();
    let mut journal = Journal::stdio(&place.store, 1, 9, 0);
    let answer = |id: u32| match id % 5 {
        0 => format!(r#"{{"id":{id},"result":{{"isError":true}}}}"#),
        1 => format!(r#"{{"id":{id},"error":{{"code":-32000}}}}"#),
        _ => format!(r#"{{"id":{id},"result":{{}}}}"#),
    };
    for id in 0..2_000_u32 {
        let call =
            r#""method":"tools/call","params":{"_meta":{"progressToken":ID},"name":"tTOOL"}"#;
        let call = call.replace("ID", &id.to_string());
        let call = call.replace("TOOL", &(id % 4).to_string());
        journal.later(1).asks(&format!(r#"{{"id":{id},{call}}}"#));
        if id % 13 == 0 {
            let about = format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":{id}}}}}"#
            );
            journal.answers(&about);
        }
        // Answers come later and in another order; some never do, some are cancelled.
        if let Some(late) = id.checked_sub(7 + id % 3) {
            let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":LATE}}"#;
            match late % 97 {
                0 => {}
                1 => drop(journal.asks(&cancel.replace("LATE", &late.to_string()))),
                _ => drop(journal.answers(&answer(late))),
            }
        }
        if id % 500 == 0 {
            place.catch_up();
        }
    }
    place.catch_up();
    place.check();
    journal
        .later(1)
        .end(1, Ending::ClientClosed, Some(0))
        .close();
    let runs = place.catch_up();
    assert!(runs[0].tally.steps > 2_000);
    assert!(runs[0].tally.outcomes.unanswered > 10);
    place.check();
}

#[test]
fn a_long_session_over_http_likewise() {
    let mut place = Place::new();
    let mut journal = Journal::new(&place.store, 1, 1, 0);
    let (to, from) = (Stream::ClientToServer, Stream::ServerToClient);
    let open = SessionOpen {
        transport: "http".into(),
        started: journal::START,
        ..SessionOpen::default()
    };
    journal.meta(1, 0, to, &Meta::SessionOpen(open));
    for exchange in 1..1_500_u32 {
        let request = Request {
            method: if exchange % 5 == 0 { "GET" } else { "POST" }.into(),
            target: format!("/mcp?{}", exchange % 3),
            ..Request::default()
        };
        journal
            .later(2)
            .meta(1, exchange, to, &Meta::Request(request));
        if exchange % 5 > 1 {
            let call = r#""method":"tools/call","params":{"name":"t"}"#;
            let call = format!(r#"{{"id":{exchange},{call}}}"#);
            journal.frame(1, exchange, to, Framing::Body, &call);
        }
        let status = [200, 200, 404, 500][exchange as usize / 7 % 4];
        let response = Response {
            status,
            ..Response::default()
        };
        journal
            .later(2)
            .meta(1, exchange, from, &Meta::Response(response));
        if status == 200 && exchange % 5 > 2 {
            let answer = format!(r#"{{"id":{exchange},"result":{{}}}}"#);
            journal.frame(1, exchange, from, Framing::Body, &answer);
        }
        // Some go on until the process dies.
        if exchange % 11 > 0 {
            let finish = [Finish::Complete, Finish::ClientGone][exchange as usize % 2];
            let finished = Finished {
                finish,
                request_bytes: 0,
                response_bytes: 0,
            };
            journal.meta(1, exchange, from, &Meta::Finished(finished));
        }
        if exchange % 400 == 0 {
            place.catch_up();
        }
    }
    journal.close();
    let runs = place.catch_up();
    assert!(runs[0].tally.statuses.len() > 1);
    let different = agent_trace_index::indexer::verify::compare(
        &place.store,
        &*place.engine,
        agent_trace_index::indexer::IDLE,
    );
    assert_eq!(different.unwrap(), []);
    let story = place.story(runs[0].id);
    for outcome in agent_trace_model::Outcome::ALL {
        let steps = story.steps.iter().filter(|step| step.outcome == outcome);
        assert_eq!(
            runs[0].tally.outcomes.of(outcome),
            steps.count() as u64,
            "{outcome}"
        );
    }
    let failures = agent_trace_analysis::outcomes::failures(&story).len() as u64;
    assert_eq!(runs[0].failed, failures);
}

/// What is done to journals.
#[derive(Clone, Debug)]
enum Deed {
    Call(u8, u8, bool),
    Ask(u8),
    Pause(u64),
    Roll(u8),
    End(u8),
    Look,
    TakeOver,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0_u8..4, 0_u8..3, any::<bool>()).prop_map(|(j, t, ok)| Deed::Call(j, t, ok)),
        1 => (0_u8..4).prop_map(Deed::Ask),
        2 => (0_u64..15 * MINUTE).prop_map(Deed::Pause),
        1 => (0_u8..4).prop_map(Deed::Roll),
        1 => (0_u8..4).prop_map(Deed::End),
        2 => Just(Deed::Look),
        1 => Just(Deed::TakeOver),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_index_that_followed_is_equal_to_one_made_anew(
        deeds in proptest::collection::vec(deed(), 1..40),
    ) {
        let mut place = Place::new();
        // Three servers of one client, and one of another.
        let mut journals: Vec<Option<Journal>> = (0..4_u8).map(|number| {
            let client = if number == 3 { 2 } else { 1 };
            Some(Journal::stdio(&place.store, number + 1, client, u64::from(number)))
        }).collect();
        let (mut now, mut id) = (100, 0);
        for deed in deeds {
            id += 1;
            let journal = match deed {
                Deed::Call(at, ..) | Deed::Ask(at) | Deed::Roll(at) | Deed::End(at) => {
                    journals[usize::from(at)].as_mut().map(|journal| journal.at(now))
                }
                _ => None,
            };
            match (deed, journal) {
                (Deed::Call(_, tool, ok), Some(journal)) => {
                    journal.call(id, ["a", "b", "c"][usize::from(tool)], if ok { OK } else { FAILS });
                    now += 21;
                }
                (Deed::Ask(_), Some(journal)) => {
                    journal.asks(&format!(r#"{{"id":{id},"method":"resources/read"}}"#));
                }
                (Deed::Roll(_), Some(journal)) => drop(journal.roll()),
                (Deed::End(at), Some(journal)) => {
                    journal.end(1, Ending::ClientClosed, Some(0)).close();
                    journals[usize::from(at)] = None;
                }
                (Deed::Pause(long), _) => now += long,
                (Deed::Look, _) => drop(place.catch_up()),
                (Deed::TakeOver, _) => place.take_over(),
                _ => {}
            }
            now += 1;
        }
        place.catch_up();
        place.check();
        for mut journal in journals.into_iter().flatten() {
            journal.close();
        }
        place.catch_up();
        place.check();
    }
}
