//! What a journal write acknowledged is there after a kill -9, and damage costs what it hit.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::Stream;
use agent_trace_store::journal::Kind;
use agent_trace_store::trace::session::Standing;
use agent_trace_store::trace::{Session as Run, Sessions};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::processes::wait_until_gone;
use support::recorded::{ClientToServer, ServerToClient};
use support::recorded::{contiguous, places, records, sequence_numbers};
use support::{ANSWER, Home, Process, REQUEST, Server, Session, assert_same, wait_for};

/// Relays that record at once.
const WRITERS: usize = 8;
/// Messages that each of them has to relay in both directions.
const MESSAGES: u64 = 300;

fn rounds() -> u32 {
    let rounds = std::env::var("AGENT_TRACE_TEST_KILLS").ok();
    rounds.map_or(20, |rounds| rounds.parse().unwrap())
}

/// A message that can be told whole from its number: short, or now and then of two megabytes.
fn message(number: u64) -> Vec<u8> {
    let size = match number % 100 {
        60 => 2 << 20,
        _ => usize::try_from(number * 7919 % 3000).unwrap(),
    };
    let filler = (b'a' + u8::try_from(number % 26).unwrap()) as char;
    let filler = filler.to_string().repeat(size);
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[{number},\"{filler}\"]}}\n").into()
}

#[test]
fn w46_acknowledged_records_of_eight_killed_writers_are_there_and_right() {
    let seed = RandomState::new();
    for round in 0..rounds() {
        let home = Home::new();
        let moment = |writer: usize| seed.hash_one((round, writer)) % 400;
        let writers: Vec<Writer> = (0..WRITERS)
            .map(|writer| Writer::start(&home, writer))
            .collect();
        std::thread::scope(|scope| {
            for (number, writer) in writers.iter().enumerate() {
                let after = Duration::from_millis(moment(number));
                scope.spawn(move || writer.kill_after(after));
            }
        });
        let entries = wait_for("the end of all runs", || {
            let runs = home.store().list().unwrap().runs;
            runs.iter().all(|run| !run.live).then_some(runs)
        });
        let open = |entry| home.store().open(entry).unwrap();
        let runs: Vec<Run> = entries.iter().map(open).collect();
        for writer in &writers {
            writer.check(&runs, round);
        }
        let keys: std::collections::BTreeSet<&str> = runs
            .iter()
            .map(|run| &run.entry.header.redaction.key[..])
            .collect();
        assert!(keys.len() <= 1, "one store has one key: {keys:?}");
        let listed = home.ok(["runs", "-n", "0", "--format", "jsonl"]);
        assert_eq!(listed.lines().count(), runs.len());
    }
}

/// A relay that records as much as it can, until it is killed.
struct Writer {
    _server: Server,
    session: Session,
    acknowledgements: PathBuf,
}

impl Writer {
    fn start(home: &Home, number: usize) -> Self {
        let acknowledgements = home.at(format!("acknowledged.{number}"));
        fs::write(&acknowledgements, "").unwrap();
        let server = Server::echo();
        let record = home
            .record()
            .env("AGENT_TRACE_TEST_ACKS", &acknowledgements);
        let session = record.start(&server);
        for number in 0..MESSAGES {
            session.send(message(number));
        }
        Self {
            _server: server,
            session,
            acknowledgements,
        }
    }

    fn kill_after(&self, after: Duration) {
        std::thread::sleep(after);
        self.session.signal("KILL");
        wait_until_gone(&[self.session.process]);
    }

    fn check(&self, runs: &[Run], round: u32) {
        let acknowledged = acknowledged(&self.acknowledgements);
        let pid = self.session.pid();
        let own = |run: &&Run| run.entry.header.relay.pid == pid;
        let Some(run) = runs.iter().find(own) else {
            assert_eq!(acknowledged, 0, "round {round}: the run is gone");
            return;
        };
        let there = contiguous(run);
        assert!(
            there >= acknowledged,
            "round {round}: {acknowledged} acknowledged, {there} there"
        );
        assert_eq!(
            sequence_numbers(run).len() as u64,
            there,
            "round {round}: nothing twice, nothing after a hole"
        );
        assert_eq!(run.damage, [], "round {round}");
        assert_eq!(run.standing(), Standing::CutOff, "round {round}");
        for stream in [ClientToServer, ServerToClient] {
            for (number, record) in (0..).zip(records(run, stream)) {
                let what = format!("round {round}: message {number} of {stream:?}");
                assert_same(&record.payload, &message(number), &what);
            }
        }
    }
}

/// The last sequence number that was acknowledged.
fn acknowledged(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    text.lines().last().map_or(0, |line| line.parse().unwrap())
}

/// A finished run of five steps.
fn finished(home: &Home) {
    let server = Server::mcp();
    let input: String = (0..5)
        .map(|n| REQUEST.replace("\"id\":1", &format!("\"id\":{n}")))
        .collect();
    assert_eq!(home.record().talk(&server, input).code, 0);
    wait_for("the end of the run", || {
        (!home.runs()[0].entry.live).then_some(())
    });
}

/// Changes the bytes of the one journal.
fn change(home: &Home, how: impl FnOnce(&mut Vec<u8>)) {
    let path = home.only_journal();
    let mut bytes = fs::read(&path).unwrap();
    how(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

fn frames(run: &Run, stream: Stream) -> usize {
    records(run, stream).len()
}

#[test]
fn w46_a_torn_end_is_shown_as_cut_off_and_nothing_before_it_is_lost() {
    // After its header a record can end anywhere.
    for cut in [1, 3, 20, 64, 90] {
        let home = Home::new();
        finished(&home);
        let (at, length, kind) = *places(&home).last().unwrap();
        assert_eq!(kind, Kind::End);
        change(&home, |bytes| bytes.truncate(at + length.min(cut)));
        let run = home.only_run();
        assert_eq!(run.standing(), Standing::CutOff);
        assert_eq!((run.damage.len(), run.steps.len()), (0, 5));
        assert!(home.ok(["runs"]).contains("cut off"));
        assert!(home.ok(["show", "latest"]).contains("end cut off"));
        let doctor = home.ok(["doctor"]);
        assert!(doctor.contains("its end was not recorded"), "{doctor}");
        let listed = home.json(["runs", "--format", "json"]);
        assert_eq!(listed[0]["standing"], "cut_off");
    }
}

#[test]
fn w46_a_damaged_record_costs_itself_only_and_is_reported() {
    // In its magic, its lengths, its numbers and its payload.
    for byte in [0, 5, 9, 33, 80] {
        let home = Home::new();
        finished(&home);
        let places = places(&home);
        let requests = places.iter().filter(|(.., kind)| *kind == Kind::Frame);
        let (at, length, _) = *requests.clone().nth(2).unwrap();
        change(&home, |bytes| bytes[at + byte] ^= 0x55);
        let run = home.only_run();
        let counts = frames(&run, ClientToServer) + frames(&run, ServerToClient);
        assert_eq!(counts, requests.count() - 1, "byte {byte}");
        assert_eq!(run.damage.len(), 1, "byte {byte}");
        assert_eq!(run.damage[0].bytes, length as u64, "byte {byte}");
        assert_eq!(run.standing(), Standing::Ended, "its end is still there");
        assert!(home.ok(["runs"]).contains("damaged"));
        let shown = home.ok(["show", "latest"]);
        let line = format!("damaged: {length} bytes cannot be read");
        assert!(shown.contains(&line), "{shown}");
        let doctor = home.ok(["doctor"]);
        assert!(doctor.contains("1 of its records are missing"), "{doctor}");
        let listed = home.json(["runs", "--format", "json"]);
        assert_eq!(listed[0]["damaged"], 1);
    }
}

#[test]
fn w46_zeroes_and_spliced_pieces_are_passed_over() {
    // As file systems leave them after a loss of power.
    let home = Home::new();
    finished(&home);
    change(&home, |bytes| bytes.extend([0; 8192]));
    let run = home.only_run();
    assert_eq!(run.steps.len(), 5);
    assert_eq!(run.standing(), Standing::Ended);

    let home = Home::new();
    finished(&home);
    let places = places(&home);
    let (at, length, _) = places[3];
    change(&home, |bytes| {
        let half = bytes[at..at + length / 2].to_vec();
        bytes.splice(at..at, half);
    });
    let run = home.only_run();
    assert_eq!(run.damage.len(), 1, "the half record");
    assert_eq!(run.steps.len(), 5, "and nothing else");
}

#[test]
fn w46_a_run_that_cannot_be_read_does_not_hide_the_others() {
    let home = Home::new();
    finished(&home);
    change(&home, |bytes| bytes[30] ^= 0x55);
    let journal = home.only_journal();
    let other = journal.with_file_name(format!("{}.1.atj", "0123456789abcdef".repeat(2)));
    fs::write(other, "not a journal").unwrap();
    let server = Server::echo();
    assert_eq!(home.record().talk(&server, REQUEST).code, 0);
    let said = home.run(["runs"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.lines().count(), 2, "a heading and a run: {said:?}");
    let warnings: Vec<&str> = said.err.lines().collect();
    assert_eq!(warnings.len(), 2, "{said:?}");
    assert!(
        warnings
            .iter()
            .all(|line| line.starts_with("warning: cannot read "))
    );
    assert!(said.err.contains("header is damaged"), "{said:?}");
    assert!(
        said.err.contains("not a journal of agent-trace"),
        "{said:?}"
    );
    assert_eq!(home.run(["show", "latest"]).code, 0);
}

#[test]
fn a_reader_sees_whole_records_while_the_writer_rolls_over() {
    let home = Home::new();
    let server = Server::echo();
    let acknowledgements = home.at("acknowledged");
    fs::write(&acknowledgements, "").unwrap();
    let record = home
        .record()
        .env("AGENT_TRACE_TEST_ACKS", &acknowledgements);
    let session = record.start(&server);
    let message = message(60);
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while writing.load(Ordering::Relaxed) {
                seen = read_while_written(&home, seen);
            }
            seen
        });
        // Two records of two megabytes each time; a file takes 64.
        for number in 1..=18 {
            session.send(&message);
            session.wait_for_count(number * message.len() as u64);
            wait_for("the records", || {
                (acknowledged(&acknowledgements) > 2 * number).then_some(())
            });
        }
        writing.store(false, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    session.close_input();
    assert_eq!(session.wait().code, 0);
    let run = home.only_run();
    assert_eq!(run.entry.segments.len(), 2, "it rolled over");
    assert_eq!(frames(&run, ServerToClient), 18);
    let numbers = sequence_numbers(&run);
    assert_eq!(contiguous(&run), numbers.len() as u64);
}

/// Reads a run that is being written; returns how many records are there.
fn read_while_written(home: &Home, seen: u64) -> u64 {
    let Some(entry) = home.store().list().unwrap().runs.pop() else {
        return seen;
    };
    // While a file follows another, the last one that was listed may be finished already.
    if !entry.live {
        return seen;
    }
    let Ok(run) = home.store().open(&entry) else {
        return seen;
    };
    assert!(run.damage.is_empty() && run.unreadable.is_empty());
    assert_eq!(run.standing(), Standing::Live);
    let there = contiguous(&run);
    assert!(there >= seen, "{there} after {seen}");
    there
}

#[test]
fn a_process_of_its_own_reads_a_run_that_is_going_on() {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER);
    let session = home.record().start(&server);
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    home.wait_for_run("the answer", |run| run.frames.len() == 2);
    assert!(home.ok(["runs"]).contains("live"));
    let shown = home.ok(["show", "latest"]);
    assert!(shown.contains("end live"), "{shown}");
    let listed = home.json(["runs", "--format", "json"]);
    assert_eq!(listed[0]["standing"], "live");
    // A request without an answer is not unanswered yet.
    session.send(
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"slow\"}}",
    );
    session.send("\n");
    let said = home.run(["forget", "latest"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("still being recorded"), "{said:?}");
    assert!(said.err.contains("hint: "), "{said:?}");
    home.ok(["retention", "--max-bytes", "1"]);
    assert_eq!(home.runs().len(), 1, "nor does retention remove it");
    let processes: Vec<Process> = session.process.tree();
    session.close_input();
    session.wait();
    wait_until_gone(&processes);
    assert!(home.ok(["forget", "latest"]).starts_with("forgot run "));
    assert!(home.runs().is_empty());
}
