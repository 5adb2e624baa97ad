//! Whatever becomes of the recording, the relay goes on: the same bytes, the same exit status,
//! one line for the user, and where recording could go on a gap in the trace.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::journal::Flags;
use agent_trace_store::trace::session::Standing;
use std::fs;
use std::time::{Duration, Instant};
use support::disks::{SmallDisk, slow_disk};
use support::recorded::{ServerToClient, records};
use support::session::Record;
use support::{ANSWER, Home, REQUEST, Server, Session, assert_same, skip, wait_for};

/// A session that is under way: requests are numbered, and each is answered.
struct Talk<'a> {
    server: &'a Server,
    session: Session,
    sent: String,
}

impl<'a> Talk<'a> {
    fn begin(record: Record<'_>, server: &'a Server) -> Self {
        Self {
            server,
            session: record.start(server),
            sent: String::new(),
        }
    }

    /// One request and its answer.
    fn call(&mut self, text: &str) {
        self.sent.push_str(&request(text));
        self.session.send(request(text));
        self.session.wait_for_bytes(answers(&self.sent).len());
    }

    /// Ends it. Every byte must have passed, and the relay must end as the server does.
    #[track_caller]
    fn end(self) -> Vec<String> {
        self.session.close_input();
        let ended = self.session.wait();
        assert_eq!(ended.code, 6);
        assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
        assert_same(
            &ended.out,
            answers(&self.sent).as_bytes(),
            "what the client got",
        );
        assert_same(
            &self.server.input(),
            self.sent.as_bytes(),
            "what the server got",
        );
        let said = String::from_utf8(ended.err).unwrap();
        said.lines().map(Into::into).collect()
    }
}

/// An echo that ends with a status of its own.
fn server() -> Server {
    Server::echo().exits(6)
}

fn request(text: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{{\"text\":\"{text}\"}}}}\n")
}

fn answers(sent: &str) -> &str {
    sent
}

/// The only line on standard error is ours, and says this.
#[track_caller]
fn assert_one_line(said: &[String], part: &str) {
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("agent-trace: "), "{said:?}");
    assert!(said[0].contains(part), "{said:?}");
}

/// The gap is where a user looks: in `show`, `runs` and `doctor`.
#[track_caller]
fn assert_gap_is_visible(home: &Home, reason: &str) {
    let run = home.only_run();
    assert_eq!(run.gaps.len(), 1, "{:?}", run.gaps);
    assert!(run.gaps[0].1.reason.contains(reason), "{:?}", run.gaps);
    let shown = home.ok(["show", "latest"]);
    assert!(shown.contains("not recorded: "), "{shown}");
    assert!(shown.contains(reason), "{shown}");
    assert!(home.ok(["runs"]).contains("with gaps"));
    let doctor = home.run(["doctor"]);
    assert!(doctor.out.contains("not recorded ("), "{doctor:?}");
    assert!(doctor.out.contains(reason), "{doctor:?}");
}

fn texts(home: &Home) -> Vec<String> {
    let run = home.only_run();
    let payloads = records(&run, ServerToClient);
    let text = |payload: &[u8]| {
        let text = String::from_utf8_lossy(payload);
        text.split('"').rev().nth(1).unwrap_or_default().to_owned()
    };
    payloads
        .iter()
        .map(|record| text(&record.payload))
        .collect()
}

#[test]
fn a_disk_that_fills_up_leaves_a_gap_and_recording_goes_on_when_there_is_room() {
    let home = Home::new();
    let disk = match SmallDisk::under(&home) {
        Ok(disk) => disk,
        Err(reason) => return skip("a_disk_that_fills_up", reason),
    };
    let server = server();
    let mut talk = Talk::begin(home.record(), &server);
    talk.call("before");
    home.wait_for_run("the first records", |run| run.frames.len() >= 2);
    disk.fill();
    talk.call(&"full ".repeat(50_000));
    talk.session.wait_for_error("recording stopped: No space");
    talk.call("lost");
    disk.make_room();
    // The disk is tried again once a second, when there is something to record.
    wait_for("the gap", || {
        talk.call("again");
        let run = home.runs().remove(0);
        (!run.gaps.is_empty()).then_some(())
    });
    talk.call("after");
    let said = talk.end();
    assert_one_line(&said, "recording stopped: No space left on device");
    assert_gap_is_visible(&home, "No space left on device");
    let run = home.only_run();
    let gap = &run.gaps[0].1;
    assert!(gap.bytes > 500_000 && gap.frames >= 4, "{gap:?}");
    assert!(run.damage.is_empty(), "{:?}", run.damage);
    assert_eq!(run.standing(), Standing::Ended, "the end is recorded");
    let texts = texts(&home);
    assert_eq!(texts.first().unwrap(), "before");
    assert_eq!(texts.last().unwrap(), "after");
    assert!(!texts.contains(&"lost".to_owned()));
}

#[test]
fn a_disk_that_is_full_to_the_end_keeps_what_it_had() {
    let home = Home::new();
    let disk = match SmallDisk::under(&home) {
        Ok(disk) => disk,
        Err(reason) => return skip("a_disk_that_is_full_to_the_end", reason),
    };
    let server = server();
    let mut talk = Talk::begin(home.record(), &server);
    talk.call("before");
    home.wait_for_run("the first records", |run| run.frames.len() >= 2);
    disk.fill();
    for _ in 0..20 {
        talk.call(&"more ".repeat(20_000));
    }
    let said = talk.end();
    assert_one_line(&said, "recording stopped: No space left on device");
    let run = home.only_run();
    assert!(run.damage.is_empty(), "{:?}", run.damage);
    assert_eq!(texts(&home)[0], "before");
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    // The gap and the end are small, and the last block of a file may have room for them.
    match run.standing() {
        Standing::CutOff => assert!(
            doctor.out.contains("its end was not recorded"),
            "{doctor:?}"
        ),
        _ => assert_gap_is_visible(&home, "No space left on device"),
    }
    disk.make_room();
    let doctor = home.run(["doctor"]);
    assert!(doctor.out.contains("can be written"), "{doctor:?}");
}

#[test]
fn a_store_that_turns_read_only_costs_the_record_alone() {
    let home = Home::new();
    let disk = match SmallDisk::under(&home) {
        Ok(disk) => disk,
        Err(reason) => return skip("a_store_that_turns_read_only", reason),
    };
    disk.make_read_only();
    let server = server();
    let mut talk = Talk::begin(home.record(), &server);
    talk.call("lost");
    let said = talk.end();
    assert_one_line(&said, "recording stopped: Read-only file system");
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(
        doctor.out.contains("cannot be written: Read-only"),
        "{doctor:?}"
    );
}

#[test]
fn a_store_that_can_only_be_made_later_begins_with_a_gap() {
    let home = Home::new();
    // A file where a folder should be stops root too.
    fs::write(home.store_folder(), "in the way").unwrap();
    let server = server();
    let mut talk = Talk::begin(home.record(), &server);
    talk.call("lost");
    talk.session.wait_for_error("recording stopped: ");
    talk.call("lost too");
    fs::remove_file(home.store_folder()).unwrap();
    wait_for("the gap", || {
        talk.call("again");
        let run = home.store();
        use agent_trace_store::trace::Sessions;
        let run = run.list().ok()?.runs.pop()?;
        (!home.store().open(&run).ok()?.gaps.is_empty()).then_some(())
    });
    talk.call("after");
    let said = talk.end();
    assert_one_line(&said, "recording stopped: ");
    assert_gap_is_visible(&home, "directory");
    let run = home.only_run();
    assert!(!run.opening.command.is_empty(), "the beginning is recorded");
    assert_eq!(texts(&home).last().unwrap(), "after");
    assert_eq!(run.standing(), Standing::Ended, "the end is recorded");
}

#[test]
fn a_store_that_can_never_be_made_costs_the_record_alone() {
    let home = Home::new();
    fs::write(home.at("file"), "in the way").unwrap();
    let server = server();
    let store = home.at("file/store");
    let mut talk = Talk::begin(home.record().env("AGENT_TRACE_DIR", store), &server);
    talk.call("lost");
    assert_one_line(&talk.end(), "recording stopped: ");
}

#[test]
fn a_store_that_is_removed_meanwhile_costs_the_record_alone() {
    let home = Home::new();
    let server = server();
    let mut talk = Talk::begin(home.record(), &server);
    talk.call("lost");
    home.wait_for_run("the first records", |run| run.frames.len() >= 2);
    fs::remove_dir_all(home.store_folder()).unwrap();
    talk.call(&"more ".repeat(100_000));
    talk.end();
}

#[test]
fn a_file_size_limit_costs_the_record_alone() {
    let home = Home::new();
    let server = server();
    // In blocks of 512 bytes or of 1 kB, as the shell likes it.
    let script = "ulimit -f 200 && exec \"$@\"";
    let relay = home.record().command(server.command());
    let mut limited = home.with_environment(std::process::Command::new("sh"));
    limited.args(["-c", script, "sh"]);
    limited.arg(relay.get_program()).args(relay.get_args());
    limited
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let session = Session::of(&mut limited);
    let mut sent = String::new();
    // The server notes what it reads, and must not reach the limit itself.
    let unit = request(&"x".repeat(1000));
    for _ in 0..70 {
        sent.push_str(&unit);
        session.send(&unit);
        session.wait_for_bytes(sent.len());
    }
    session.close_input();
    let ended = session.wait();
    assert_eq!(ended.code, 6, "{}", String::from_utf8_lossy(&ended.err));
    assert_same(&ended.out, sent.as_bytes(), "what the client got");
}

#[test]
fn a_slow_disk_delays_nobody() {
    let home = Home::new();
    let library = match slow_disk(&home) {
        Ok(library) => library,
        Err(reason) => return skip("a_slow_disk_delays_nobody", reason),
    };
    let server = server();
    let slow = |record: Record<'_>, milliseconds: &str| {
        let record = record.env("LD_PRELOAD", &library);
        let record = record.env("SLOW_DISK_NOTES", home.at("slow writes"));
        Talk::begin(record.env("SLOW_DISK_MS", milliseconds), &server)
    };
    let mut talk = slow(home.record(), "400");
    talk.call("first");
    let slow_writes = || {
        let notes = fs::read_to_string(home.at("slow writes")).unwrap_or_default();
        notes.lines().count()
    };
    wait_for("a slow write", || (slow_writes() > 0).then_some(()));
    let began = Instant::now();
    for number in 0..100 {
        talk.call(&format!("number {number}"));
    }
    // Had the relay waited for the disk once for each of them, this would be 40 seconds.
    assert!(began.elapsed() < Duration::from_secs(10), "{began:?}");
    // What cannot be written in time is not waited for either.
    talk.end();
    assert!(slow_writes() > 1);
}

#[test]
fn a_disk_that_hangs_does_not_hold_up_the_end() {
    let home = Home::new();
    let library = match slow_disk(&home) {
        Ok(library) => library,
        Err(reason) => return skip("a_disk_that_hangs", reason),
    };
    let server = server();
    let record = home
        .record()
        .env("LD_PRELOAD", &library)
        .env("SLOW_DISK_NOTES", home.at("slow writes"))
        .env("SLOW_DISK_MS", "100000");
    let mut talk = Talk::begin(record, &server);
    wait_for("a write that hangs", || {
        home.at("slow writes").exists().then_some(())
    });
    talk.call(&"x".repeat(100_000));
    let said = talk.end();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("too slow"), "{said:?}");
}

#[test]
fn a_configuration_that_cannot_be_read_costs_the_record_and_is_named() {
    for (text, part) in [
        ("[record", "config.toml"),
        ("[record]\nbody = 1\n", "unknown field `body`"),
        ("[record]\nbodies = \"some\"\n", "unknown variant `some`"),
        (
            "[[redact.rule]]\nkind = \"x\"\npattern = \"(x\"\n",
            "redaction rule 1 (x): invalid pattern",
        ),
        (
            "[[redact.rule]]\nkind = \"x\"\npattern = \"y*\"\n",
            "pattern matches everything",
        ),
        ("store = 7\n", "invalid type"),
    ] {
        let home = Home::new();
        let folder = home.at("home/.config/agent-trace");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
        let server = server();
        let mut talk = Talk::begin(home.record(), &server);
        talk.call("lost");
        let said = talk.end();
        assert_one_line(&said, "not recording: ");
        assert_one_line(&said, part);
        assert!(!home.store_folder().join("journal").exists());
        let doctor = home.run(["doctor"]);
        assert_eq!(doctor.code, 1, "{text}: {doctor:?}");
        assert!(doctor.out.contains("wrong"), "{text}: {doctor:?}");
    }
}

#[test]
fn a_configuration_file_that_was_named_must_be_there() {
    let home = Home::new();
    let server = server();
    let mut talk = Talk::begin(home.record().env("AGENT_TRACE_CONFIG", "/nowhere"), &server);
    talk.call("lost");
    assert_one_line(&talk.end(), "not recording: cannot read /nowhere");
    let said = home.run(["--config", "/nowhere", "runs"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("hint: "), "{said:?}");
}

#[test]
fn a_damaged_key_costs_the_record_and_is_named() {
    let home = Home::new();
    fs::create_dir(home.store_folder()).unwrap();
    fs::write(home.store().key_file(), "short").unwrap();
    let server = server();
    let mut talk = Talk::begin(home.record(), &server);
    talk.call("lost");
    assert_one_line(&talk.end(), "key does not hold a key of 32 bytes");
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.out.contains("wrong  key:"), "{doctor:?}");
}

#[test]
fn without_any_place_to_record_to_the_relay_works() {
    let home = Home::new();
    let server = server();
    let nowhere = |command: &mut std::process::Command| {
        command.env_remove("HOME").env_remove("AGENT_TRACE_DIR");
    };
    let mut talk = Talk::begin(home.record().with(nowhere), &server);
    talk.call("lost");
    assert_one_line(&talk.end(), "not recording: no place to record to");
}

#[test]
fn switched_off_nothing_is_recorded_and_nothing_is_said() {
    let home = Home::new();
    let server = server();
    let mut talk = Talk::begin(home.record().env("AGENT_TRACE", "off"), &server);
    talk.call("lost");
    assert_eq!(talk.end(), [""; 0]);
    assert!(!home.store_folder().exists());
}

#[test]
fn a_recorder_that_cannot_speak_does_not_hurt_either() {
    let home = Home::new();
    fs::write(home.store_folder(), "in the way").unwrap();
    let server = server();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let record = home.record().with(|command| {
        command.stderr(writer);
    });
    let mut talk = Talk::begin(record, &server);
    talk.call("lost");
    assert_eq!(talk.end(), [""; 0]);
}

#[test]
fn random_bytes_are_recorded_without_a_word() {
    let mut state = 7_u64;
    let mut noise = |size: usize| -> Vec<u8> {
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..size).map(|_| next()).collect()
    };
    for size in [1000, 1 << 20] {
        let home = Home::new();
        let (out, input) = (noise(size), noise(size));
        let server = Server::that_writes(&out).exits(6);
        let ended = home.record().talk(&server, &input);
        assert_same(&ended.out, &out, "what the client got");
        assert_same(&server.input(), &input, "what the server got");
        assert_eq!((ended.code, &ended.err[..]), (6, &b""[..]));
        let run = home.only_run();
        assert!(run.gaps.is_empty() && run.damage.is_empty());
        assert_eq!(home.run(["show", "latest"]).code, 0);
    }
}

#[test]
fn the_sum_of_what_is_recorded_and_what_is_not_is_what_passed() {
    let home = Home::new();
    let unit = format!("{ANSWER}{REQUEST}").repeat(500);
    let size = 40 << 20;
    let server = Server::new().fills(&unit, size).reads_to_the_end().exits(6);
    let session = home.record().reading_only(unit).start(&server);
    session.wait_for_count(size);
    // At its end a relay does not wait long for what is still to be recorded.
    session.process.wait_until_idle();
    session.close_input();
    let ended = session.wait();
    assert_eq!((ended.code, ended.count), (6, size));
    let run = home.only_run();
    let end = run.end.as_ref().unwrap();
    assert_eq!(end.bytes[1], size);
    let lost: u64 = run.gaps.iter().map(|(_, gap)| gap.bytes).sum();
    assert_eq!(lost, end.lost);
    // What was lost may belong to frames of which the rest is there, or not.
    let records = records(&run, ServerToClient);
    let length = |lossy: bool| -> u64 {
        let chosen = records
            .iter()
            .filter(|record| record.envelope.flags.has(Flags::LOSSY) == lossy);
        chosen.map(|record| record.envelope.length).sum()
    };
    let (whole, torn) = (length(false), length(true));
    assert!(whole + lost <= size, "{whole} + {lost}");
    assert!(whole + torn + lost >= size, "{whole} + {torn} + {lost}");
}
