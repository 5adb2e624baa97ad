//! Whatever a peer sends, the relay takes little memory, and all of it passes.
//!
//! Memory is what the kernel says was resident at most, of the relay and its helper together, in
//! a build without full optimisation, and with redaction on.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::trace::Session as Run;
use std::time::Duration;
use support::disks::slow_disk;
use support::recorded::{ClientToServer, ServerToClient, Stderr};
use support::recorded::{frames, lost, records};
use support::{ANSWER, Home, REQUEST, Server, Session, skip, wait_for};

const MB: u64 = 1 << 20;
/// The most that a relay may ever take.
const MOST: u64 = 64 * MB;
/// The most that an idle relay may take with all that it added. A build for users is smaller:
/// its limit is 12 MB.
const MOST_IDLE: u64 = if cfg!(debug_assertions) { 20 } else { 12 } * MB;

/// What a relay took at most, how many bytes passed, and what it recorded.
struct Flood {
    peak: u64,
    count: u64,
    run: Run,
}

impl Flood {
    /// Waits until all that passed is recorded, ends the input of a session, and watches it to
    /// its end.
    #[track_caller]
    fn of(home: &Home, session: Session) -> Self {
        session.process.wait_until_idle();
        let mut own = session.process.tree();
        own.retain(|process| !process.is_python());
        let mut peaks: Vec<u64> = own.iter().map(|process| process.peak_memory()).collect();
        session.close_input();
        while !session.has_ended() {
            for (peak, process) in peaks.iter_mut().zip(&own) {
                *peak = process.peak_memory().max(*peak);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended = session.wait();
        assert_eq!(ended.code, 0, "{}", String::from_utf8_lossy(&ended.err));
        let flood = Self {
            peak: peaks.iter().sum(),
            count: ended.count,
            run: home.only_run(),
        };
        assert!(flood.peak > MB, "the relay was looked at");
        assert!(flood.peak < MOST, "{} MB", flood.peak / MB);
        assert!(flood.run.end.is_some(), "its end is recorded");
        flood
    }

    /// The client gets `start`, then so many bytes of the unit, then `end`.
    #[track_caller]
    fn to_client(start: &str, unit: &str, count: u64, end: &str) -> Self {
        let home = Home::new();
        let unit = unit.repeat((64 << 10) / unit.len());
        let server = Server::new()
            .writes(start)
            .fills(&unit, count)
            .writes(end)
            .reads_to_the_end();
        // What comes first and last is in the way of a check by unit.
        let plain = start.is_empty() && end.is_empty();
        let record = home.record();
        let record = if plain {
            record.reading_only(unit)
        } else {
            record.only_counting()
        };
        let session = record.start(&server);
        let count = count + (start.len() + end.len()) as u64;
        session.wait_for_count(count);
        let flood = Self::of(&home, session);
        assert_eq!(flood.count, count);
        flood
    }

    fn frames(&self) -> Vec<String> {
        frames(&self.run, ServerToClient)
    }

    /// The true lengths of all frames that the client got.
    fn recorded(&self) -> u64 {
        let records = records(&self.run, ServerToClient);
        records.iter().map(|record| record.envelope.length).sum()
    }
}

fn message(inner: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"t\":\"{inner}\"}}}}\n")
}

/// A message around a long text, as its beginning and its end.
fn around() -> (String, String) {
    let whole = message("|");
    let (start, end) = whole.split_once('|').unwrap();
    (start.to_owned(), end.to_owned())
}

#[test]
fn w17_a_line_of_64_mb_passes() {
    let (start, end) = around();
    let flood = Flood::to_client(&start, "y", 64 * MB, &end);
    assert_eq!(flood.frames().len(), 1);
    assert_eq!(flood.recorded(), flood.count, "its true length is kept");
}

#[test]
fn w18_256_mb_without_a_line_end_pass() {
    let flood = Flood::to_client("", "y", 256 * MB, "");
    assert_eq!(flood.frames().len(), 1);
    assert_eq!(flood.recorded(), flood.count, "its true length is kept");
}

#[test]
fn w18_a_gigabyte_without_a_line_end_passes() {
    if std::env::var_os("AGENT_TRACE_TEST_LARGE").is_none() {
        return skip(
            "w18_a_gigabyte_without_a_line_end_passes",
            "AGENT_TRACE_TEST_LARGE is not set",
        );
    }
    let flood = Flood::to_client("", "y", 1024 * MB, "");
    assert_eq!(flood.recorded(), flood.count);
}

#[test]
fn w18_a_server_can_be_sent_64_mb_without_a_line_end() {
    let home = Home::new();
    let server = Server::new().reads_to_the_end();
    let session = home.record().start(&server);
    let block = "y".repeat(1 << 20);
    for _ in 0..64 {
        session.send(&block);
    }
    let flood = Flood::of(&home, session);
    assert_eq!(frames(&flood.run, ClientToServer).len(), 1);
    assert_eq!(server.input().len() as u64, 64 * MB);
}

#[test]
fn w14_a_content_length_is_believed_only_as_far_as_bytes_come() {
    for announced in ["1000000000", "9999999999", "99999999999999999999999999"] {
        let start = format!("Content-Length: {announced}\r\n\r\n{{\"t\":\"");
        let flood = Flood::to_client(&start, "y", 32 * MB, "");
        let frames = flood.frames();
        assert!(
            frames.iter().any(|f| f.contains("incomplete")),
            "{frames:?}"
        );
    }
}

#[test]
fn w47_100_000_messages_pass_and_are_all_recorded() {
    let home = Home::new();
    let server = Server::echo();
    let session = home.record().reading_only(REQUEST).start(&server);
    let thousand = REQUEST.repeat(1000);
    for number in 1..=100 {
        session.send(&thousand);
        // As clients do, so that the queue is not what this is about.
        session.wait_for_count(number * thousand.len() as u64);
    }
    let flood = Flood::of(&home, session);
    assert_eq!(lost(&flood.run), 0);
    assert_eq!(frames(&flood.run, ClientToServer).len(), 100_000);
    assert_eq!(frames(&flood.run, ServerToClient).len(), 100_000);
}

#[test]
fn w47_100_000_requests_without_an_answer_pass() {
    let home = Home::new();
    let server = Server::new().reads_to_the_end();
    let session = home.record().start(&server);
    for thousand in 0..100 {
        let lines = (0..1000).map(|n| {
            let id = format!("\"id\":\"request number {}\"", thousand * 1000 + n);
            REQUEST.replace("\"id\":1", &id)
        });
        session.send(lines.collect::<String>());
    }
    Flood::of(&home, session);
}

#[test]
fn a_string_of_escapes_passes() {
    let (start, end) = around();
    for (unit, size) in [
        ("\\n", 16 * MB),
        ("\\n", 7 * MB),
        ("\\u0041", 7 * MB),
        ("\\\\", 7 * MB),
        ("\\\\\\\"", 7 * MB),
    ] {
        let flood = Flood::to_client(&start, unit, size, &end);
        assert_eq!(flood.recorded(), flood.count, "{unit}");
    }
}

#[test]
fn deep_nesting_passes() {
    for (start, unit) in [("", "["), ("", "{\"a\":"), ("", "[["), ("[", "[],")] {
        let flood = Flood::to_client(start, unit, 7 * MB / 5 * 5, "\n");
        assert_eq!(flood.recorded(), flood.count, "{unit}");
    }
}

#[test]
fn a_batch_of_millions_passes() {
    let flood = Flood::to_client("[1", ",1", 7 * MB, "]\n");
    assert_eq!(flood.frames(), ["newline"]);
    let flood = Flood::to_client("[{}", ",{}", 7 * MB / 3 * 3, "]\n");
    assert_eq!(flood.frames(), ["newline"]);
}

#[test]
fn a_flood_of_line_ends_passes() {
    for unit in ["\n", "\r\n", " \n", "{}\n", "x\n"] {
        let flood = Flood::to_client("", unit, 4 * MB / 3 * 3 / 2 * 2, "");
        assert!(!flood.frames().is_empty(), "{unit:?}");
    }
}

#[test]
fn a_flood_of_headers_passes() {
    for unit in [
        "Content-Length: 0\r\n\r\n",
        "Content-Length: 2\r\n\r\n{}",
        "Content-Length: 5\r\n",
        "Content-Length",
    ] {
        Flood::to_client("", unit, 4 * MB / unit.len() as u64 * unit.len() as u64, "");
    }
}

#[test]
fn a_line_that_is_all_secrets_passes() {
    let (start, end) = around();
    for unit in [
        "://u:p@h ",
        "a:b@",
        "token: Abc123xyz789 ",
        "password=hunter2-hunter2 ",
        "pwd=a1b2c3 ",
    ] {
        let size = 6 * MB / unit.len() as u64 * unit.len() as u64;
        let flood = Flood::to_client(&start, unit, size, &end);
        assert_eq!(flood.recorded(), flood.count, "{unit}");
    }
}

#[test]
fn chunks_of_one_byte_pass() {
    let home = Home::new();
    let text = ANSWER.repeat(500);
    let server = Server::new()
        .writes_in_pieces(&text, 1, 0.0)
        .reads_to_the_end();
    let session = home.record().start(&server);
    session.wait_for_bytes(text.len());
    let flood = Flood::of(&home, session);
    assert_eq!(flood.frames(), vec!["newline"; 500]);
}

#[test]
fn standard_error_without_a_line_end_passes() {
    let home = Home::new();
    let text = "e".repeat(1 << 20);
    let mut server = Server::new();
    for _ in 0..32 {
        server = server.complains(&text);
    }
    let server = server.reads_to_the_end();
    let session = home.record().start(&server);
    let flood = Flood::of(&home, session);
    let recorded: u64 = records(&flood.run, Stderr)
        .iter()
        .map(|record| record.envelope.length)
        .sum();
    assert_eq!(recorded + lost(&flood.run), 32 * MB);
}

#[test]
fn what_a_disk_does_not_take_does_not_pile_up() {
    let home = Home::new();
    let library = match slow_disk(&home) {
        Ok(library) => library,
        Err(reason) => return skip("what_a_disk_does_not_take", reason),
    };
    let unit = ANSWER.repeat(1000);
    let server = Server::new().fills(&unit, 64 * MB).reads_to_the_end();
    let record = home
        .record()
        .env("LD_PRELOAD", &library)
        .env("SLOW_DISK_NOTES", home.at("slow writes"))
        .env("SLOW_DISK_MS", "100000");
    let session = record.reading_only(unit).start(&server);
    session.wait_for_count(64 * MB);
    let peak = session.process.peak_memory();
    assert!(peak > MB && peak < MOST, "{} MB", peak / MB);
    assert!(home.at("slow writes").exists(), "the disk was asked");
}

#[test]
fn an_idle_relay_is_small() {
    let home = Home::new();
    let server = Server::mcp();
    let session = home.record().start(&server);
    session.send(REQUEST);
    session.wait_for_text("\n");
    home.wait_for_run("the first records", |run| run.frames.len() == 2);
    let own: Vec<_> = session.process.tree();
    let own: Vec<_> = own.into_iter().filter(|p| !p.is_python()).collect();
    assert_eq!(own.len(), 2, "the relay and its helper");
    let memory: u64 = own.iter().map(|process| process.memory()).sum();
    assert!(memory < MOST_IDLE, "{} kB", memory >> 10);
    eprintln!("an idle relay takes {} kB", memory >> 10);
}

#[test]
fn memory_of_a_burst_is_given_back() {
    let home = Home::new();
    let (start, end) = around();
    let server = Server::new()
        .writes(&start)
        .fills("y", 12 * MB)
        .writes(&end)
        .notes("written")
        .reads_to_the_end();
    let session = home.record().only_counting().start(&server);
    session.wait_for_count(12 * MB);
    server.note("written");
    home.wait_for_run("the long message", |run| !run.frames.is_empty());
    wait_for("memory to be given back", || {
        (session.process.memory() < MOST_IDLE).then_some(())
    });
}
