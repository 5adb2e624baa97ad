//! What was changed, cut off or taken out of a journal is found, and told apart; what was removed
//! with the store's key is not taken for that.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::Ending;
use agent_trace_store::journal::header::{KeyKind, Removed};
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::journal::{Envelope, Flags, Kind, Record, format};
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::{key, retention, verify};
use agent_trace_wire::frame::Framing;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use support::{ANSWER, Home, Server, wait_for};

/// A store with one run, the journal of which has several marks.
fn recorded() -> Home {
    let home = Home::new();
    home.record()
        .talk(&Server::that_writes(ANSWER.repeat(300)), "");
    wait_for("the end of the run", || {
        (!home.runs()[0].entry.live).then_some(())
    });
    home
}

/// What `verify latest` says: exit code, kinds of faults, kinds of notes.
fn verdict(home: &Home) -> (i32, Vec<String>, Vec<String>) {
    let said = home.run(["verify", "--all", "--format", "json"]);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"));
    let kinds = |of: &str| {
        let all = told[0][of].as_array().unwrap().iter();
        all.map(|one| one["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    (said.code, kinds("faults"), kinds("notes"))
}

#[track_caller]
fn assert_faults(home: &Home, faults: &[&str]) {
    let (code, found, notes) = verdict(home);
    let said = home.run(["verify", "--all"]);
    assert_eq!(found, faults, "{said:?} {notes:?}");
    assert_eq!(code, i32::from(!faults.is_empty()), "{said:?}");
}

/// Where the records of a journal are, marks of its chain left out.
fn records(path: &Path) -> (Vec<u8>, Vec<(usize, usize)>) {
    let bytes = fs::read(path).unwrap();
    let (_, mut at) = agent_trace_store::journal::Header::decode(&bytes).unwrap();
    let mut places = Vec::new();
    while at < bytes.len() {
        let (record, length) = format::decode(&bytes[at..]).unwrap();
        if record.envelope.kind != Kind::Mark {
            places.push((at, length));
        }
        at += length;
    }
    (bytes, places)
}

/// Another record in place of one, with a checksum that is right.
fn forged(record: &[u8], change: impl FnOnce(&mut Record)) -> Vec<u8> {
    let (mut record, _) = format::decode(record).unwrap();
    change(&mut record);
    let mut out = Vec::new();
    format::encode(&record.envelope, &record.payload, &mut out);
    out.extend_from_slice(&record.payload);
    out
}

#[test]
fn what_was_recorded_is_proven_also_when_it_is_sealed() {
    let home = recorded();
    let said = home.ok(["verify", "latest"]);
    let records = home.only_run().frames.len() + 2;
    assert!(
        said.contains(&format!("{records} records, all proven, in 1 file")),
        "{said}"
    );
    assert_eq!(verdict(&home), (0, vec![], vec![]));
    home.ok(["retention"]);
    assert_eq!(home.only_journal().extension().unwrap(), "ats");
    assert_eq!(verdict(&home), (0, vec![], vec![]));
    assert!(home.ok(["verify", "--all"]).contains("all proven"));
}

#[test]
fn a_flipped_bit_is_damage() {
    let home = recorded();
    let journal = home.only_journal();
    let (mut bytes, places) = records(&journal);
    bytes[places[100].0 + 70] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    assert_faults(&home, &["damaged"]);
    // Sealing leaves it out, and does not hide that.
    home.ok(["retention"]);
    assert_faults(&home, &["missing"]);
}

#[test]
fn a_record_with_another_content_is_a_change_and_told_to_its_stretch() {
    let home = recorded();
    let journal = home.only_journal();
    let (mut bytes, places) = records(&journal);
    let (at, length) = places[100];
    let other = forged(&bytes[at..at + length], |record| {
        let last = record.payload.len() - 3;
        record.payload[last] ^= 1;
    });
    bytes.splice(at..at + length, other);
    fs::write(&journal, &bytes).unwrap();
    assert_faults(&home, &["changed"]);
    let told: Value =
        serde_json::from_str(&home.run(["verify", "latest", "--format", "json"]).out).unwrap();
    let stretch = &told[0]["faults"][0]["records"];
    let (first, last) = (stretch[0].as_u64().unwrap(), stretch[1].as_u64().unwrap());
    assert!(first <= 101 && 101 <= last, "{told}");
    assert!(
        told[0]["proven"].as_u64().unwrap() + (last - first + 1) >= 302,
        "{told}"
    );
    // Sealing does not launder it.
    home.ok(["retention"]);
    assert_faults(&home, &["changed"]);
}

#[test]
fn a_header_that_was_changed_is_a_change() {
    let home = recorded();
    let journal = home.only_journal();
    let bytes = fs::read(&journal).unwrap();
    let (mut header, end) = agent_trace_store::journal::Header::decode(&bytes).unwrap();
    header.workspace = "other".into();
    let mut changed = header.encode(&format::FILE_MAGIC).unwrap();
    changed.extend_from_slice(&bytes[end..]);
    fs::write(&journal, changed).unwrap();
    assert_faults(&home, &["changed"]);
}

#[test]
fn a_record_that_was_taken_out_is_missing_unless_the_numbers_were_changed_too() {
    let home = recorded();
    let journal = home.only_journal();
    let (whole, places) = records(&journal);
    let (at, length) = places[100];
    let mut bytes = whole.clone();
    bytes.drain(at..at + length);
    fs::write(&journal, &bytes).unwrap();
    assert_faults(&home, &["missing"]);
    // With the numbers of all later ones made to fit.
    let mut renumbered = whole[..at].to_vec();
    let mut rest = at + length;
    while rest < whole.len() {
        let (record, length) = format::decode(&whole[rest..]).unwrap();
        let raw = &whole[rest..rest + length];
        rest += length;
        match record.envelope.kind {
            Kind::Mark => renumbered.extend_from_slice(raw),
            _ => renumbered.extend(forged(raw, |record| record.envelope.sequence -= 1)),
        }
    }
    fs::write(&journal, &renumbered).unwrap();
    let (code, faults, _) = verdict(&home);
    assert_eq!(code, 1);
    assert!(
        !faults.is_empty() && faults.iter().all(|kind| kind == "changed"),
        "{faults:?}"
    );
}

#[test]
fn two_records_that_changed_places_are_a_change() {
    let home = recorded();
    let journal = home.only_journal();
    let (bytes, places) = records(&journal);
    let ((first, a), (second, b)) = (places[10], places[11]);
    let mut swapped = bytes[..first].to_vec();
    swapped.extend_from_slice(&bytes[second..second + b]);
    swapped.extend_from_slice(&bytes[first..first + a]);
    swapped.extend_from_slice(&bytes[second + b..]);
    fs::write(&journal, &swapped).unwrap();
    let said = home.run(["verify", "latest"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out
            .contains("not in the order in which they were written"),
        "{said:?}"
    );
}

#[test]
fn the_end_of_a_sealed_file_is_known() {
    let home = recorded();
    home.ok(["retention"]);
    let sealed = home.only_journal();
    let bytes = fs::read(&sealed).unwrap();
    fs::write(&sealed, &bytes[..bytes.len() - 5]).unwrap();
    assert_faults(&home, &["cut"]);
    fs::write(&sealed, &bytes[..bytes.len() / 2]).unwrap();
    let (code, faults, _) = verdict(&home);
    assert_eq!(code, 1);
    assert!(faults.contains(&"cut".to_owned()), "{faults:?}");
    let mut damaged = bytes;
    let middle = damaged.len() / 3;
    damaged[middle] ^= 1;
    fs::write(&sealed, damaged).unwrap();
    assert_faults(&home, &["damaged"]);
}

#[test]
fn the_end_of_a_journal_that_nobody_sealed_is_not_proven_where_its_mark_is_gone() {
    let home = recorded();
    let journal = home.only_journal();
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() - 10]).unwrap();
    // As a killed process leaves it: nothing tells the two apart, and that is said.
    let (code, faults, notes) = verdict(&home);
    assert_eq!(
        (code, faults, notes),
        (0, vec![], vec!["open_end".to_owned()])
    );
    let said = home.ok(["verify", "latest"]);
    assert!(said.contains("its end is not proven"), "{said}");
}

/// The journal without its marks.
fn unchained(bytes: &[u8], places: &[(usize, usize)]) -> Vec<u8> {
    let (_, end) = agent_trace_store::journal::Header::decode(bytes).unwrap();
    let mut out = bytes[..end].to_vec();
    for (at, length) in places {
        out.extend_from_slice(&bytes[*at..at + length]);
    }
    out
}

/// Out of the store and in again, by which a file is written anew.
fn written_anew(home: &Home) {
    let id = home.runs()[0].entry.id.to_string();
    let _ = fs::remove_file(home.at("work/anew.atrace"));
    home.ok(["export", &id, "-o", "anew.atrace"]);
    home.ok(["forget", &id]);
    home.ok(["import", "anew.atrace"]);
}

#[test]
fn what_nothing_proves_is_not_proven_when_it_is_sealed_or_written_anew() {
    let home = recorded();
    let journal = home.only_journal();
    let (bytes, places) = records(&journal);
    // As changed by somebody who takes the marks out.
    fs::write(&journal, unchained(&bytes, &places)).unwrap();
    let unproven = (2, vec![], vec!["unchained".to_owned()]);
    assert_eq!(verdict(&home), unproven);
    home.ok(["retention"]);
    assert_eq!(home.only_journal().extension().unwrap(), "ats");
    assert_eq!(verdict(&home), unproven);
    written_anew(&home);
    assert_eq!(verdict(&home), unproven);
    let said = home.run(["verify", "latest"]);
    assert!(said.out.contains(" 0 proven"), "{said:?}");
}

#[test]
fn an_end_that_is_not_proven_is_not_proven_by_being_sealed_or_written_anew() {
    let home = recorded();
    let journal = home.only_journal();
    let (bytes, places) = records(&journal);
    // In the middle of a stretch; then one more, which only whoever has no key can have put there.
    let (at, length) = places[100];
    let mut cut = bytes[..at + length].to_vec();
    cut.extend(forged(&bytes[at..at + length], |record| {
        record.envelope.sequence += 1;
    }));
    fs::write(&journal, cut).unwrap();
    let open = (0, vec![], vec!["open_end".to_owned()]);
    let proven = || {
        let told = home.json(["verify", "--all", "--format", "json"]);
        (told[0]["records"].as_u64(), told[0]["proven"].as_u64())
    };
    assert_eq!(verdict(&home), open);
    let before = proven();
    assert!(before.1 < before.0, "{before:?}");
    home.ok(["retention"]);
    assert_eq!((verdict(&home), proven()), (open.clone(), before));
    written_anew(&home);
    assert_eq!((verdict(&home), proven()), (open, before));
}

#[test]
fn records_after_the_end_are_a_change() {
    let home = recorded();
    let journal = home.only_journal();
    let (mut bytes, places) = records(&journal);
    let (at, length) = places[places.len() - 1];
    let more = forged(&bytes[at..at + length], |record| {
        record.envelope.sequence += 1;
    });
    bytes.extend(more);
    fs::write(&journal, &bytes).unwrap();
    assert_faults(&home, &["changed"]);
    home.ok(["retention"]);
    assert_faults(&home, &["changed"]);
    written_anew(&home);
    assert_faults(&home, &["changed"]);
    let told = home.run(["verify", "--all", "--format", "json"]).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told[0]["proven"], 0, "{told}");
}

#[test]
fn bytes_that_were_put_in_are_known_when_they_are_gone() {
    let home = recorded();
    let journal = home.only_journal();
    let (mut bytes, places) = records(&journal);
    bytes.splice(places[100].0..places[100].0, *b"something else");
    fs::write(&journal, &bytes).unwrap();
    assert_faults(&home, &["damaged"]);
    home.ok(["retention"]);
    assert_faults(&home, &["changed"]);
}

#[test]
fn a_journal_that_ends_inside_its_header_is_not_ok() {
    let home = recorded();
    let journal = home.only_journal();
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..30]).unwrap();
    assert_faults(&home, &["damaged"]);
}

#[test]
fn sealing_beside_it_is_no_fault() {
    let home = recorded();
    let header = home.only_run().entry.header;
    let store = home.store();
    let chain = key::load(&store).unwrap().chain();
    for process in 0..200 {
        let mut header = header.clone();
        header.process = agent_trace_model::ProcessId::new(process, [9; 10]);
        let mut writer = Writer::chained(&store, header, chain.clone()).unwrap();
        writer.append(&frame(1), b"{}").unwrap();
        writer.flush().unwrap();
        writer.roll().unwrap();
        writer.append(&frame(2), b"{}").unwrap();
        writer.flush().unwrap();
        writer.close().unwrap();
    }
    std::thread::scope(|scope| {
        let sealing = scope.spawn(|| retention::apply(&store, retention::Limits::default()));
        let mut is_over = false;
        while !is_over {
            is_over = sealing.is_finished();
            let mut seen = 0;
            verify::each(&store, None, |_, report| {
                assert!(!report.is_faulty(), "{report:?}");
                seen += 1;
            })
            .unwrap();
            assert_eq!(seen, 201);
        }
        assert!(sealing.join().unwrap().unwrap().failed.is_empty());
    });
}

fn frame(sequence: u64) -> Envelope {
    Envelope {
        kind: Kind::Frame,
        stream: agent_trace_model::Stream::ServerToClient,
        framing: Framing::Newline,
        flags: Flags::default(),
        session: 1,
        exchange: 0,
        sequence,
        wall: 1_796_040_000_000_000_000 + sequence,
        monotonic: sequence,
        length: 2,
        digest: None,
        spans: Vec::new(),
    }
}

/// A store with a journal of three files.
fn three_files() -> (Home, Vec<PathBuf>) {
    let home = recorded();
    let mut header = home.only_run().entry.header;
    fs::remove_file(home.only_journal()).unwrap();
    header.process = agent_trace_model::ProcessId::new(9, [9; 10]);
    let chain = key::load(&home.store()).unwrap().chain();
    let mut writer = Writer::chained(&home.store(), header, chain).unwrap();
    for sequence in 1..=300 {
        writer.append(&frame(sequence), b"{}").unwrap();
        writer.flush().unwrap();
        if sequence % 100 == 0 && sequence < 300 {
            writer.roll().unwrap();
        }
    }
    writer.close().unwrap();
    drop(writer);
    let mut files: Vec<PathBuf> = home
        .store_files()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    files.retain(|path| SegmentPath::parse(path.clone()).is_some());
    files.sort();
    assert_eq!(files.len(), 3);
    (home, files)
}

#[test]
fn a_file_that_is_not_there_is_told_by_those_around_it() {
    let (home, files) = three_files();
    assert_faults(&home, &[]);
    for (file, kind) in [(0, "missing"), (1, "missing"), (2, "missing")] {
        let bytes = fs::read(&files[file]).unwrap();
        fs::remove_file(&files[file]).unwrap();
        assert_faults(&home, &[kind]);
        fs::write(&files[file], bytes).unwrap();
    }
    assert_faults(&home, &[]);
}

#[test]
fn the_end_of_a_file_that_another_one_follows_is_known() {
    let (home, files) = three_files();
    let (bytes, places) = records(&files[1]);
    fs::write(&files[1], &bytes[..places[90].0]).unwrap();
    assert_faults(&home, &["cut"]);
    // With the file of another journal in its place.
    let (other, _) = three_files();
    let foreign = other.store_files();
    let foreign = foreign
        .iter()
        .find(|(path, _)| path.ends_with(files[1].file_name().unwrap()));
    fs::write(&files[1], &foreign.unwrap().1).unwrap();
    let (code, faults, notes) = verdict(&home);
    assert_eq!(
        (code, &notes[..]),
        (1, &["other_key".to_owned()][..]),
        "{faults:?}"
    );
}

#[test]
fn what_was_forgotten_is_removed_and_not_missing() {
    let home = recorded();
    let mut header = home.only_run().entry.header;
    fs::remove_file(home.only_journal()).unwrap();
    header.process = agent_trace_model::ProcessId::new(9, [9; 10]);
    let chain = key::load(&home.store()).unwrap().chain();
    let mut writer = Writer::chained(&home.store(), header, chain).unwrap();
    let opening = |number: u32| {
        json!({"type": "session_open", "transport": "http", "started": 1,
            "key": {"kind": KeyKind::Caller, "fingerprint": number.to_string()}})
    };
    let ended = json!({"ending": Ending::Idle});
    let mut sequence = 0;
    let mut append = |writer: &mut Writer, kind, session, exchange, payload: &Value| {
        sequence += 1;
        let envelope = Envelope {
            kind,
            session,
            exchange,
            ..frame(sequence)
        };
        writer
            .append(&envelope, payload.to_string().as_bytes())
            .unwrap();
    };
    for file in 0..3 {
        for session in [1, 2] {
            append(&mut writer, Kind::Meta, session, 0, &opening(session));
            for exchange in 1..50 {
                let number = file * 100 + session * 50 + exchange;
                append(&mut writer, Kind::Frame, session, number, &json!({}));
            }
            if file == 2 {
                append(&mut writer, Kind::End, session, 0, &ended);
            }
        }
        writer.flush().unwrap();
        if file < 2 {
            writer.roll().unwrap();
        }
    }
    writer.close().unwrap();
    drop(writer);
    assert_faults(&home, &[]);
    let runs = home.runs();
    assert_eq!(runs.len(), 2);
    let gone = runs[0].entry.id.to_string();
    // One file is rewritten, and the chain that goes through all of them still holds.
    home.ok(["forget", &gone]);
    assert_faults(&home, &[]);
    let said = home.ok(["verify", "latest"]);
    assert!(said.contains("removed records: 151"), "{said}");
    assert!(
        said.contains("151 records, all proven, in 3 files"),
        "{said}"
    );
    // Out and in again.
    let left = home.runs()[0].entry.id.to_string();
    home.ok(["export", &left, "-o", "x.atrace"]);
    home.ok(["forget", &left]);
    home.ok(["import", "x.atrace"]);
    assert_faults(&home, &[]);
}

#[test]
fn what_was_changed_before_a_run_was_forgotten_stays_known() {
    let (home, files) = three_files();
    // Make it a journal of two sessions by hand: with the key that is allowed.
    let (mut bytes, places) = records(&files[0]);
    let (at, length) = places[5];
    let other = forged(&bytes[at..at + length], |record| {
        record.payload = b"[]".to_vec();
    });
    bytes.splice(at..at + length, other);
    fs::write(&files[0], &bytes).unwrap();
    let id = home.runs()[0].entry.id.to_string();
    home.ok(["export", &id, "-o", "x.atrace"]);
    home.ok(["forget", &id]);
    home.ok(["import", "x.atrace"]);
    let said = home.run(["verify", "--all"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out
            .contains("it was changed before it was written anew"),
        "{said:?}"
    );
}

#[test]
fn what_another_store_wrote_cannot_be_judged() {
    let home = recorded();
    home.ok(["export", "latest", "-o", "x.atrace"]);
    let other = recorded();
    fs::copy(home.at("work/x.atrace"), other.at("work/x.atrace")).unwrap();
    other.ok(["import", "x.atrace"]);
    let said = other.run(["verify", "--all"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.out.contains("another store's key"), "{said:?}");
    let nothing = Home::new();
    assert_eq!(nothing.run(["verify", "--all"]).code, 2);
}

#[test]
fn records_removed_by_who_has_no_key_are_not_believed() {
    let home = recorded();
    let journal = home.only_journal();
    let (mut bytes, places) = records(&journal);
    let (at, length) = places[100];
    let removed = forged(&bytes[at..at + length], |record| {
        record.envelope.kind = Kind::Removed;
        record.envelope.session = 0;
        record.payload = serde_json::to_vec(&Removed { records: 1 }).unwrap();
    });
    bytes.splice(at..at + length, removed);
    fs::write(&journal, &bytes).unwrap();
    assert_faults(&home, &["changed"]);
}

#[test]
fn the_journal_of_a_running_process_is_proven_up_to_its_last_mark() {
    let home = Home::new();
    let server = Server::that_writes(ANSWER.repeat(100));
    let session = home.record().start(&server);
    wait_for("records", || {
        let run = home.store_runs().pop()?;
        (run.frames.len() >= 100).then_some(())
    });
    let (code, faults, notes) = verdict(&home);
    assert_eq!((code, faults, notes), (0, vec![], vec!["live".to_owned()]));
    session.close_input();
    session.wait();
    let mut proven = 0;
    verify::each(&home.store(), None, |_, report| proven = report.proven).unwrap();
    assert!(proven > 0);
}
