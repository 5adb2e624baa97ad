//! What five real clients sent, recorded in ../shared/assistants/payloads, becomes the runs
//! that a person would count.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

#[path = "support/index.rs"]
mod index;
#[path = "support/journal.rs"]
mod journal;

use agent_trace_index::rows::{Failure, GroupKey, RunRow};
use agent_trace_model::exchange::{Finished, Request, Response};
use agent_trace_model::story::Standing;
use agent_trace_model::{Channel, End, Ending, Finish, Outcome, Stream};
use agent_trace_store::journal::Bodies;
use agent_trace_store::journal::header::{KeyKind, Meta, SessionKey, SessionOpen};
use agent_trace_store::process::Process;
use agent_trace_store::recorder::{Durability, Hooks, Options, Recorder, Setup, StdioSession};
use agent_trace_wire::frame::Framing;
use index::Place;
use journal::{Journal, START};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The captures that are there; says so where there are none.
fn streams(test: &str) -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder.join("../../shared/assistants/payloads/mcp-streams");
    let Ok(files) = fs::read_dir(folder) else {
        skip(test, "there are no ../shared/assistants/payloads here");
        return None;
    };
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    Some(files)
}

/// Says that a test cannot run here, on its standard error and to whoever sums up.
fn skip(test: &str, reason: &str) {
    let line = format!("skipped: {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("AGENT_TRACE_TEST_SKIPS") {
        let file = fs::File::options().append(true).create(true).open(path);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Milliseconds since the first line.
fn time(line: &Value, first: f64) -> u64 {
    ((line["t"].as_f64().unwrap() - first).max(0.0) * 1000.0) as u64
}

/// Writes what was on a pipe, one process for each time that the server was started.
fn write_stdio(place: &Place, file: &Path, number: u8, client: u32, upto: Option<&str>) {
    let lines = lines(file);
    let first = lines[0]["t"].as_f64().unwrap();
    let mut journal: Option<Journal> = None;
    let mut started = 0;
    for line in &lines {
        let now = time(line, first);
        let event = line["ev"].as_str().unwrap();
        let data = line["data"].as_str().unwrap_or_default();
        if upto.is_some_and(|upto| data.contains(upto)) {
            break;
        }
        match event {
            "start" => {
                started += 1;
                let number = number * 4 + started;
                journal = Some(Journal::stdio(&place.store, number, client, now));
            }
            "c2s" | "s2c" => {
                let journal = journal.as_mut().unwrap().at(now);
                for message in data.lines() {
                    match event {
                        "c2s" => journal.asks(message),
                        _ => journal.answers(message),
                    };
                }
            }
            "signal" => {
                let mut journal = journal.take().unwrap();
                journal.at(now).end(1, Ending::Signalled, None).close();
            }
            "exit" => {
                if let Some(mut journal) = journal.take() {
                    let code = i32::try_from(line["rc"].as_i64().unwrap()).unwrap();
                    journal.at(now).exits(code).close();
                }
            }
            _ => {}
        }
    }
    if let Some(mut journal) = journal {
        journal.end(1, Ending::ClientClosed, Some(0)).close();
    }
}

/// Writes what was on HTTP connections, as one session.
fn write_http(place: &Place, file: &Path, number: u8, client: u32) {
    let lines = lines(file);
    let first = lines[0]["t"].as_f64().unwrap();
    let text = fs::read_to_string(file).unwrap().to_ascii_lowercase();
    let kind = match text.contains("mcp-session-id") {
        true => KeyKind::McpSession,
        false => KeyKind::Caller,
    };
    let mut journal = Journal::new(&place.store, number, 1, 0);
    let open = SessionOpen {
        transport: "http".into(),
        started: START,
        upstream: Some("http://mini.example/mcp".into()),
        key: Some(SessionKey {
            kind,
            fingerprint: format!("{number:08x}"),
        }),
        process: Some(Process {
            pid: client,
            started: 5,
            name: String::new(),
        }),
        ..SessionOpen::default()
    };
    let (to, from) = (Stream::ClientToServer, Stream::ServerToClient);
    journal.meta(1, 0, to, &Meta::SessionOpen(open));
    let mut exchange = 0;
    for line in &lines {
        journal.at(time(line, first));
        let body = line.get("body").filter(|body| !body.is_null());
        let body = body.map(Value::to_string);
        if line["dir"] == "in" && line["method"].is_string() {
            exchange += 1;
            let header = |pair: &Value| {
                let text = |at: usize| pair[at].as_str().unwrap().to_owned();
                (text(0), text(1))
            };
            let headers = line["headers"].as_array().unwrap().iter().map(header);
            let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("mcp-session-id"));
            let request = Meta::Request(Request {
                connection: 1,
                method: line["method"].as_str().unwrap().into(),
                target: line["path"].as_str().unwrap().into(),
                headers: headers.collect(),
                ..Request::default()
            });
            journal.meta(1, exchange, to, &request);
            if let Some(body) = body {
                journal.frame(1, exchange, to, Framing::Body, &body);
            }
        } else if line["dir"] == "out" {
            let status = u16::try_from(line["status"].as_u64().unwrap()).unwrap();
            let response = Response {
                status,
                ..Response::default()
            };
            journal.meta(1, exchange, from, &Meta::Response(response));
            if let Some(body) = body {
                journal.frame(1, exchange, from, Framing::Body, &body);
            }
            if line.get("note").is_none() {
                let finished = Finished {
                    finish: Finish::Complete,
                    request_bytes: 0,
                    response_bytes: 0,
                };
                journal.meta(1, exchange, from, &Meta::Finished(finished));
            }
        }
    }
    journal.end(1, Ending::RelayStopped, None).close();
}

fn shown(runs: &[RunRow]) -> Vec<&RunRow> {
    runs.iter().filter(|run| !run.probe).collect()
}

#[test]
fn each_conversation_is_one_run_and_fails_if_it_failed() {
    let Some(files) = streams("each_conversation_is_one_run_and_fails_if_it_failed") else {
        return;
    };
    let mut checked = 0;
    for file in files.iter().filter(|file| name(file).contains(".stdio.")) {
        let mut place = Place::new();
        write_stdio(&place, file, 1, 100, None);
        let runs = place.catch_up();
        place.check();
        let name = name(file);
        assert_eq!(runs.len(), 1, "{name}: {runs:#?}");
        let run = &runs[0];
        assert!(!run.probe, "{name}");
        let outcomes = run.tally.outcomes;
        if name.contains(".fail.") {
            let tools: Vec<&str> = run
                .failures
                .iter()
                .map(|failure| match failure {
                    Failure::LastCallFailed { tool, .. } => &tool[..],
                    other => panic!("{name}: {other:?}"),
                })
                .collect();
            assert_eq!(tools, ["fail", "rpc_error"], "{name}");
            assert_eq!((outcomes.tool_error, outcomes.error), (1, 1), "{name}");
            assert!(run.tally.codes.contains(&("-32000".into(), 1)), "{name}");
        } else if name.contains(".crash.") {
            assert_eq!(run.standing, Standing::Crashed, "{name}");
            assert_eq!(outcomes.of(Outcome::Crashed), 1, "{name}");
        } else {
            assert_eq!((run.failed, run.recovered), (0, 0), "{name}: {run:#?}");
        }
        // A cancel after completion changes nothing.
        assert_eq!(outcomes.cancelled, 0, "{name}");
        let conversation = matches!(run.key, GroupKey::Conversation(_));
        assert_eq!(
            conversation,
            name.starts_with("codex"),
            "{name}: {:?}",
            run.key
        );
        assert_eq!(run.turns.len(), usize::from(conversation), "{name}");
        checked += 1;
    }
    assert!(checked >= 15, "{checked} streams were there");
}

#[test]
fn over_http_likewise() {
    let Some(files) = streams("over_http_likewise") else {
        return;
    };
    for file in files
        .iter()
        .filter(|file| name(file).ends_with(".http.add.both.jsonl"))
    {
        let mut place = Place::new();
        write_http(&place, file, 1, 100);
        let runs = place.catch_up();
        place.check();
        let name = name(file);
        assert_eq!(shown(&runs).len(), 1, "{name}: {runs:#?}");
        assert_eq!(runs[0].failed, 0, "{name}: {:#?}", runs[0].failures);
        let call = &runs[0].tally.tools[0];
        assert_eq!(
            (&call.tool[..], call.calls, call.outcomes.ok),
            ("add_numbers", 1, 1)
        );
    }
}

#[test]
fn a_client_that_leaves_after_listing_is_a_probe() {
    let Some(files) = streams("a_client_that_leaves_after_listing_is_a_probe") else {
        return;
    };
    for file in files.iter().filter(|file| name(file).contains(".stdio.")) {
        let mut place = Place::new();
        write_stdio(&place, file, 1, 100, Some("\"tools/call\""));
        let runs = place.catch_up();
        assert_eq!(shown(&runs), Vec::<&RunRow>::new(), "{}", name(file));
        assert!(runs[0].tally.steps > 1, "{}", name(file));
        place.check();
    }
}

#[test]
fn all_of_them_at_once_are_as_many_runs_and_each_failure_is_one() {
    let test = "all_of_them_at_once_are_as_many_runs_and_each_failure_is_one";
    let Some(files) = streams(test) else {
        return;
    };
    let stdio: Vec<&PathBuf> = files
        .iter()
        .filter(|f| name(f).contains(".stdio."))
        .collect();
    let mut ids = Vec::new();
    for reverse in [false, true] {
        let mut place = Place::new();
        let mut order: Vec<(u8, &&PathBuf)> = (0..).zip(&stdio).collect();
        if reverse {
            order.reverse();
        }
        for (number, file) in order {
            write_stdio(&place, file, number, 100 + u32::from(number), None);
            place.catch_up();
            if number % 3 == 0 {
                place.take_over();
            }
        }
        let runs = place.runs();
        place.check();
        assert_eq!(shown(&runs).len(), stdio.len());
        let bad = |f: &&&PathBuf| name(f).contains(".fail.") || name(f).contains(".crash.");
        let failed = runs.iter().filter(|run| run.failed > 0).count();
        assert_eq!(failed, stdio.iter().filter(bad).count());
        let mut found: Vec<_> = runs.iter().map(|run| run.id).collect();
        found.sort_unstable();
        ids.push(found);
    }
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_conversation_of_codex_has_the_ids_that_its_hooks_have() {
    let test = "a_conversation_of_codex_has_the_ids_that_its_hooks_have";
    let Some(files) = streams(test) else {
        return;
    };
    for file in files
        .iter()
        .filter(|file| name(file).starts_with("codex-0.171.0.stdio."))
    {
        let scenario = name(file).rsplit('.').nth(1).unwrap();
        let hooks = file
            .parent()
            .unwrap()
            .join("../hooks/codex-0.171.0")
            .join(scenario);
        let Ok(hook) = fs::read(hooks.join("02-UserPromptSubmit.json")) else {
            continue;
        };
        let hook: Value = serde_json::from_slice(&hook).unwrap();
        let mut place = Place::new();
        write_stdio(&place, file, 1, 100, None);
        let runs = place.catch_up();
        let session = hook["session_id"].as_str().unwrap().to_owned();
        assert_eq!(runs[0].key, GroupKey::Conversation(session));
        assert_eq!(runs[0].turns[0].id, hook["turn_id"].as_str().unwrap());
        let story = place.story(runs[0].id);
        let calls = story.steps.iter().filter(|step| step.tool().is_some());
        assert!(calls.clone().count() > 0);
        assert!(calls.clone().all(|step| step.turn == Some(0)));
        assert_eq!(story.steps[0].turn, None, "before the prompt");
    }
}

#[test]
fn the_ids_of_a_conversation_survive_redaction() {
    let Some(files) = streams("the_ids_of_a_conversation_survive_redaction") else {
        return;
    };
    let file = files
        .iter()
        .find(|file| name(file) == "codex-0.171.0.stdio.fail.jsonl")
        .unwrap();
    let mut place = Place::new();
    let setup = Setup {
        store: place.store.clone(),
        options: Options {
            redact: true,
            user_rules: vec![],
            bodies: Bodies::Full,
            durability: Durability::Timer,
            workspace: "default".into(),
        },
        session: Some(StdioSession::default()),
    };
    let hooks = Hooks {
        report: Box::new(|text| panic!("{text}")),
        acknowledge: None,
        opened: None,
    };
    let recorder = Recorder::start(move || Ok(setup), hooks).unwrap();
    let tap = recorder.tap();
    for line in lines(file) {
        let stream = match line["ev"].as_str().unwrap() {
            "c2s" => Stream::ClientToServer,
            "s2c" => Stream::ServerToClient,
            _ => continue,
        };
        let channel = Channel {
            source: 1,
            exchange: 0,
            stream,
        };
        tap.copy(
            channel,
            tap.now(),
            line["data"].as_str().unwrap().as_bytes(),
        );
    }
    let end = End {
        ending: Ending::ClientClosed,
        exit_code: Some(0),
        signal: None,
        killed: false,
        error: None,
    };
    assert!(recorder.finish(1, end, Duration::from_secs(30)));
    let runs = place.catch_up();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].failed, 2);
    let GroupKey::Conversation(id) = &runs[0].key else {
        panic!("{:?}", runs[0].key);
    };
    assert_eq!(id, "01a22bea-c0a7-7d03-bed7-a9188df46a76");
    assert_eq!(runs[0].turns.len(), 1);
    place.check();
}
