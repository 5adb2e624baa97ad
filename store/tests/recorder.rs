//! What is left at the recorder's tap is read back as a run, or counted as lost.

#![allow(clippy::unwrap_used)]

use agent_trace_analysis::outcomes;
use agent_trace_model::{Channel, End, Ending, Outcome, Stream, Tap};
use agent_trace_store::Store;
use agent_trace_store::journal::{Bodies, Flags};
use agent_trace_store::recorder::{Durability, Hooks, Options, Recorder, Setup, StdioSession};
use agent_trace_store::trace::{Session, Sessions, story};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

fn options() -> Options {
    Options {
        redact: true,
        user_rules: vec![],
        bodies: Bodies::Full,
        durability: Durability::Timer,
        workspace: "default".into(),
    }
}

fn setup(store: &Path, options: Options) -> Setup {
    Setup {
        store: Store::at(store),
        options,
        session: Some(StdioSession {
            command: vec!["server".into()],
            environment: vec![("API_KEY".into(), "l1teral-value-of-a-key".into())],
            ..StdioSession::default()
        }),
    }
}

type Reports = Arc<Mutex<Vec<String>>>;

fn start(setup: impl FnOnce() -> Result<Setup, String> + Send + 'static) -> (Recorder, Reports) {
    let reports = Reports::default();
    let told = Arc::clone(&reports);
    let hooks = Hooks {
        report: Box::new(move |text| told.lock().unwrap().push(text.to_owned())),
        acknowledge: None,
        opened: None,
    };
    (Recorder::start(setup, hooks).unwrap(), reports)
}

fn send(tap: &dyn Tap, stream: Stream, text: &str) {
    let channel = Channel {
        source: 1,
        exchange: 0,
        stream,
    };
    tap.copy(channel, tap.now(), text.as_bytes());
}

fn end() -> End {
    End {
        ending: Ending::ClientClosed,
        exit_code: Some(0),
        signal: None,
        killed: false,
        error: None,
    }
}

fn only_run(store: &Path) -> Session {
    let store = Store::at(store);
    let listing = store.list().unwrap();
    assert_eq!(listing.runs.len(), 1);
    store.open(&listing.runs[0]).unwrap()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const CALL: &str =
    "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{}}}\n";
const ANSWER: &str = "{\"id\":1,\"result\":{\"content\":[]}}\n";

#[test]
fn a_session_is_read_back_as_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let made = setup(folder.path(), options());
    let (recorder, reports) = start(move || Ok(made));
    let tap = recorder.tap();
    send(&*tap, Stream::ClientToServer, CALL);
    wait_until("the request is known to be open", || {
        tap.unanswered(1) == Some(1)
    });
    send(&*tap, Stream::Stderr, "serving l1teral-value-of-a-key\n");
    send(&*tap, Stream::ServerToClient, &ANSWER[..9]);
    send(&*tap, Stream::ServerToClient, &ANSWER[9..]);
    wait_until("its answer is known", || tap.unanswered(1) == Some(0));
    assert!(recorder.finish(1, end(), LIMIT));

    let run = only_run(folder.path());
    assert_eq!(reports.lock().unwrap().len(), 0);
    assert_eq!(run.steps.len(), 1);
    assert_eq!(
        (run.steps[0].tool(), run.steps[0].outcome),
        (Some("t"), Outcome::Ok)
    );
    let line = String::from_utf8_lossy(&run.errors[0].payload);
    assert!(line.starts_with("serving [REDACTED:"), "{line}");
    let ended = run.end.unwrap();
    assert_eq!(ended.frames, [1, 1, 1]);
    assert_eq!(ended.bytes, [CALL.len() as u64, ANSWER.len() as u64, 31]);
    assert_eq!(run.opening.env, ["API_KEY"]);
}

#[test]
fn a_store_that_cannot_be_made_is_tried_again_and_the_loss_is_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "a file where the store's parent should be").unwrap();
    let store = blocked.join("store");
    let made = setup(&store, options());
    let (recorder, reports) = start(move || Ok(made));
    let tap = recorder.tap();
    send(&*tap, Stream::ClientToServer, CALL);
    wait_until("the user is told", || !reports.lock().unwrap().is_empty());
    wait_until("the lost request is known to be open", || {
        tap.unanswered(1) == Some(1)
    });
    fs::remove_file(&blocked).unwrap();
    wait_until("recording goes on", || {
        send(&*tap, Stream::Stderr, "still here\n");
        store.exists()
    });
    send(&*tap, Stream::ServerToClient, ANSWER);
    assert!(recorder.finish(1, end(), LIMIT));

    let run = only_run(&store);
    assert_eq!(
        run.opening.command,
        ["server"],
        "the beginning is told all the same"
    );
    assert_eq!(run.gaps.len(), 1);
    let gap = &run.gaps[0].1;
    assert!(gap.frames >= 1 && gap.bytes >= CALL.len() as u64, "{gap:?}");
    assert_eq!(run.frames.len(), 1, "the answer was recorded");
    let reports = reports.lock().unwrap();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("recording stopped"), "{reports:?}");
}

#[test]
fn a_setup_that_fails_or_panics_stops_recording_only() {
    for panics in [false, true] {
        let (recorder, reports) = start(move || {
            assert!(!panics, "a bug");
            Err("the configuration is broken".into())
        });
        let tap = recorder.tap();
        for _ in 0..1000 {
            send(&*tap, Stream::ClientToServer, CALL);
        }
        assert!(recorder.finish(1, end(), LIMIT));
        let expected = usize::from(!panics);
        assert_eq!(reports.lock().unwrap().len(), expected);
    }
}

#[test]
fn what_the_queue_had_no_room_for_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let made = setup(folder.path(), options());
    let (recorder, _) = start(move || {
        // As slow as a disk can be: everything is sent before anything is taken.
        std::thread::sleep(Duration::from_millis(500));
        Ok(made)
    });
    let tap = recorder.tap();
    let line = format!(
        "{{\"method\":\"x\",\"params\":\"{}\"}}\n",
        "y".repeat(60_000)
    );
    for _ in 0..500 {
        send(&*tap, Stream::ClientToServer, &line);
    }
    assert!(recorder.finish(1, end(), LIMIT));
    let run = only_run(folder.path());
    let recorded: u64 = run
        .frames
        .iter()
        .map(|frame| frame.record.envelope.length)
        .sum();
    let lost: u64 = run.gaps.iter().map(|(_, gap)| gap.bytes).sum();
    assert!(lost > 0, "the queue is smaller than what was sent");
    assert_eq!(recorded + lost, 500 * line.len() as u64);
    let ended = run.end.unwrap();
    assert_eq!(
        (ended.bytes[0], ended.lost),
        (500 * line.len() as u64, lost)
    );
}

#[test]
fn what_the_queue_had_no_room_for_while_nothing_is_recorded_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "a file where the store's parent should be").unwrap();
    let store = blocked.join("store");
    let made = setup(&store, options());
    let (go, wait) = std::sync::mpsc::channel();
    let (recorder, _) = start(move || {
        // Everything is sent before anything is taken.
        let _ = wait.recv();
        Ok(made)
    });
    let tap = recorder.tap();
    // Messages in two parts, so that the hole begins within one.
    let message = format!(
        "{{\"method\":\"x\",\"params\":\"{}\"}}\n",
        "y".repeat(60_000)
    );
    let (first, second) = message.split_at(30_000);
    let mut sent = 0;
    for part in [first, second].repeat(400) {
        send(&*tap, Stream::ClientToServer, part);
        sent += part.len() as u64;
    }
    go.send(()).unwrap();
    wait_until("it is all taken", || recorder.stats().queued == 0);
    // The end of the message with the hole.
    send(&*tap, Stream::ClientToServer, "\n");
    sent += 1;
    wait_until("it is taken, too", || recorder.stats().queued == 0);
    fs::remove_file(&blocked).unwrap();
    wait_until("recording goes on", || {
        send(&*tap, Stream::Stderr, "x\n");
        sent += 2;
        store.exists()
    });
    assert!(recorder.finish(1, end(), LIMIT));

    let run = only_run(&store);
    let frames = run.frames.iter().map(|frame| &frame.record.envelope);
    let frames: u64 = frames
        .filter(|e| e.digest.is_none())
        .map(|e| e.length)
        .sum();
    let lines: u64 = run.errors.iter().map(|line| line.envelope.length).sum();
    let gaps: u64 = run.gaps.iter().map(|(_, gap)| gap.bytes).sum();
    let ended = run.end.unwrap();
    assert_eq!(ended.bytes.iter().sum::<u64>(), sent);
    assert_eq!(frames + lines + gaps, sent, "{:?}", run.gaps);
    assert_eq!(ended.lost, gaps);
}

#[test]
fn with_digests_no_argument_and_no_result_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let digest = Options {
        bodies: Bodies::Digest,
        ..options()
    };
    let made = setup(folder.path(), digest);
    let (recorder, _) = start(move || Ok(made));
    let tap = recorder.tap();
    let call = "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"x\":\"private words\"}}}\n";
    let answer =
        "{\"id\":1,\"result\":{\"content\":[{\"text\":\"private words\"}],\"isError\":true}}\n";
    send(&*tap, Stream::ClientToServer, call);
    send(&*tap, Stream::ServerToClient, answer);
    send(&*tap, Stream::ServerToClient, "private words\n");
    send(&*tap, Stream::Stderr, "private words\n");
    assert!(recorder.finish(1, end(), LIMIT));
    let run = only_run(folder.path());
    let step = &run.steps[0];
    assert_eq!((step.tool(), step.outcome), (Some("t"), Outcome::ToolError));
    for file in fs::read_dir(Store::at(folder.path()).live()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(memchr::memmem::find(&bytes, b"private").is_none());
    }
}

#[test]
fn a_secret_in_a_line_that_is_cut_does_not_get_through() {
    let secret = ["ghp", "0123456789abcdEFGHijklmnopqrSTUVwxyz"].join("_");
    for (stream, before) in [
        (Stream::Stderr, (64 << 10) - 18),
        (Stream::ClientToServer, (8 << 20) - 18),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let made = setup(folder.path(), options());
        let (recorder, _) = start(move || Ok(made));
        let tap = recorder.tap();
        let line = format!("{}{secret} tail\nnext\n", "x".repeat(before));
        send(&*tap, stream, &line);
        assert!(recorder.finish(1, end(), LIMIT));
        let run = only_run(folder.path());
        let records: Vec<_> = match stream {
            Stream::Stderr => run.errors.iter().collect(),
            _ => run.frames.iter().map(|frame| &frame.record).collect(),
        };
        assert_eq!(records.len(), 2, "the line is one, whatever its length");
        assert!(records[0].envelope.flags.has(Flags::CUT));
        assert_eq!(records[0].envelope.length, line.len() as u64 - 5);
        assert_eq!(records[1].payload, b"next\n");
        for file in fs::read_dir(Store::at(folder.path()).live()).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            let leaks = |part: &[u8]| memchr::memmem::find(&bytes, part).is_some();
            assert!(!secret.as_bytes()[4..].windows(8).any(leaks));
        }
    }
}

#[test]
fn an_answer_too_large_to_keep_is_still_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let made = setup(folder.path(), options());
    let (recorder, _) = start(move || Ok(made));
    let tap = recorder.tap();
    send(&*tap, Stream::ClientToServer, CALL);
    send(
        &*tap,
        Stream::ServerToClient,
        "{\"id\":1,\"result\":{\"content\":[\"",
    );
    for _ in 0..10 {
        send(&*tap, Stream::ServerToClient, &"y".repeat(1 << 20));
        // Not faster than it is taken: this is about the size of a frame.
        std::thread::sleep(Duration::from_millis(20));
    }
    send(&*tap, Stream::ServerToClient, "\"]}}\n");
    wait_until("it is known to be answered", || {
        tap.unanswered(1) == Some(0)
    });
    assert!(recorder.finish(1, end(), LIMIT));
    let run = only_run(folder.path());
    assert_eq!((run.steps.len(), run.steps[0].outcome), (1, Outcome::Ok));
    let story = story::of(run.entry.id, Vec::new(), &[&run]);
    assert_eq!(outcomes::failures(&story), []);
}
