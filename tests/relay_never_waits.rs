//! The relay passes on what there is, at once; it is never held up by the other direction, by a
//! host that does not read, or by its own recording.
//!
//! The limits here are generous, as the machine may be busy. What they catch is a relay that
//! waits for more bytes, for a timer or for a lock.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::time::{Duration, Instant};
use support::recorded::{ClientToServer, ServerToClient, assert_recorded, failures, frames};
use support::{ANSWER, Home, REQUEST, Server, Session, assert_same};

/// What takes no time, on a busy machine. A relay that holds bytes back holds them for ever in
/// these tests, as nothing follows.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The most memory of a relay, whatever passes through it.
const MOST_MEMORY: u64 = 64 << 20;

#[test]
fn w16_an_answer_arrives_although_the_server_writes_nothing_more() {
    let home = Home::new();
    let server = Server::new()
        .reads_a_line()
        .writes(ANSWER)
        .reads_to_the_end();
    let session = home.record().start(&server);
    server.pid();
    session.send(REQUEST);
    let (got, took) = session.wait_for_bytes(ANSWER.len());
    assert_same(&got, ANSWER.as_bytes(), "what the client got");
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn w16_a_part_of_a_line_is_passed_on_at_once_in_both_directions() {
    let home = Home::new();
    let server = Server::new().reads(3).writes("{\"js").reads_to_the_end();
    let session = home.record().unredacted().start(&server);
    server.pid();
    session.send("{\"i");
    let (got, took) = session.wait_for_bytes(4);
    assert_same(&got, b"{\"js", "what the client got");
    assert!(took < AT_ONCE, "{took:?}");
    session.close_input();
    session.wait();
    let run = home.only_run();
    assert_eq!(frames(&run, ServerToClient), ["stray incomplete"]);
    assert_recorded(&run, ClientToServer, b"{\"i");
}

#[test]
fn w15_2000_answers_in_a_burst_stay_in_order() {
    let home = Home::new();
    let answers: String = (0..2000)
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"))
        .collect();
    let server = Server::new()
        .reads_a_line()
        .writes_in_pieces(&answers, 997, 0.0)
        .reads_to_the_end();
    let ended = home.record().unredacted().talk(&server, REQUEST);
    assert_same(&ended.out, answers.as_bytes(), "what the client got");
    assert_recorded(&home.only_run(), ServerToClient, answers.as_bytes());
}

#[test]
fn w19_both_directions_carry_a_megabyte_before_either_side_reads() {
    let home = Home::new();
    let out = "0123456789abcde\n".repeat(1 << 16);
    let server = Server::new()
        .fills("0123456789abcde\n", out.len() as u64)
        .reads(1 << 20)
        .reads_to_the_end();
    let session = home.record().unredacted().reading_later().start(&server);
    let input = "z".repeat((1 << 20) - 1) + "\n";
    session.send(&input);
    server.pid();
    session.begin_reading();
    session.close_input_and_wait_for_that();
    let ended = session.wait();
    assert_eq!(ended.code, 0);
    assert_same(&ended.out, out.as_bytes(), "what the client got");
    assert_same(&server.input(), input.as_bytes(), "what the server got");
    let run = home.only_run();
    assert_recorded(&run, ServerToClient, out.as_bytes());
    assert_recorded(&run, ClientToServer, input.as_bytes());
}

#[test]
fn w08_a_host_that_does_not_read_holds_up_its_own_server_and_nothing_else() {
    let (stuck_home, home) = (Home::new(), Home::new());
    let unit = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n".repeat(1000);
    let size = 48 << 20;
    let flood = Server::new()
        .reads_a_line()
        .fills(&unit, size)
        .notes("written")
        .reads_to_the_end();
    let stuck = stuck_home.record().reading_later().start(&flood);
    stuck.send(REQUEST);
    flood.pid();

    // Another session beside it is as quick as ever, and so is the stuck one's own input.
    let server = Server::new().answers_each_line(ANSWER);
    let session = home.record().start(&server);
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    for number in 2..50 {
        let took = ping(&session, number * ANSWER.len());
        assert!(took < AT_ONCE, "{took:?}");
    }
    assert!(!flood.has_noted("written"), "the server is held up");
    let peak = stuck.process.peak_memory();
    assert!(peak < MOST_MEMORY, "{peak} bytes for what nobody reads");

    stuck.begin_reading();
    flood.note("written");
    stuck.close_input();
    let ended = stuck.wait();
    assert_eq!((ended.code, ended.count), (0, size));
    let expected = unit.as_bytes().iter().cycle();
    assert!(ended.out.iter().eq(expected.take(ended.out.len())));
}

fn ping(session: &Session, count: usize) -> Duration {
    let began = Instant::now();
    session.send(REQUEST);
    session.wait_for_bytes(count);
    began.elapsed()
}

#[test]
fn a_client_that_is_not_read_by_its_server_holds_up_nothing_else() {
    let home = Home::new();
    let server = Server::new()
        .reads_a_line()
        .writes_in_pieces(ANSWER.repeat(20), ANSWER.len(), 0.01)
        .waits_for("go on")
        .reads_to_the_end();
    let session = home.record().unredacted().start(&server);
    session.send(REQUEST);
    // More than all pipes hold, so the rest waits until the server reads.
    let rest = REQUEST.repeat(10_000);
    session.send(&rest);
    let (_, took) = session.wait_for_bytes(20 * ANSWER.len());
    assert!(took < 5 * AT_ONCE, "{took:?}");
    server.go_on("go on");
    session.close_input_and_wait_for_that();
    assert_eq!(session.wait().code, 0);
    let input = [REQUEST, &rest].concat();
    assert_same(&server.input(), input.as_bytes(), "what the server got");
    assert_recorded(&home.only_run(), ClientToServer, input.as_bytes());
}

#[test]
fn w29_a_cancellation_overtakes_the_call_that_it_cancels() {
    let home = Home::new();
    let late = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"late\":true}}\n";
    let server = Server::new()
        .reads_a_line()
        .notes("called")
        .reads_a_line()
        .notes("cancelled")
        .writes(late)
        .reads_to_the_end();
    let session = home.record().start(&server);
    session.send(REQUEST);
    server.note("called");
    let began = Instant::now();
    session.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    server.note("cancelled");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    session.wait_for_bytes(late.len());
    session.close_input();
    session.wait();
    let shown = home.ok(["show", "latest"]);
    assert!(
        shown.contains("? (cancelled; late: {\"late\":true})"),
        "{shown}"
    );
    let run = home.only_run();
    assert_eq!(failures(&run), []);
}

#[test]
fn an_idle_relay_does_nothing() {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER);
    let session = home.record().start(&server);
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    // The record is written and synced within a second; after that there is nothing to do.
    std::thread::sleep(Duration::from_millis(1500));
    let before = session.process.processor_time();
    std::thread::sleep(Duration::from_secs(1));
    let spent = session.process.processor_time() - before;
    assert!(spent < Duration::from_millis(10), "{spent:?} in a second");
}
