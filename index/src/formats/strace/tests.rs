//! What came from agent-strace goes back as it was.

use super::write::Folder;
use crate::formats::import::{Report, State, import};
use agent_trace_model::story::Story;
use agent_trace_store::Store;
use agent_trace_store::journal::Bodies;
use agent_trace_store::recorder::{Durability, Options};
use agent_trace_store::trace::{Sessions, story};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

fn options(redact: bool) -> Options {
    Options {
        redact,
        user_rules: Vec::new(),
        bodies: Bodies::Full,
        durability: Durability::Timer,
        workspace: "default".into(),
    }
}

fn write(folder: &Path, session: &str, meta: Option<&str>, events: &str) {
    let place = folder.join(session);
    fs::create_dir_all(&place).unwrap();
    if let Some(meta) = meta {
        fs::write(place.join("meta.json"), meta).unwrap();
    }
    fs::write(place.join("events.ndjson"), events).unwrap();
}

fn take(store: &Store, folder: &Path, redact: bool) -> Report {
    let no_input = || unreachable!("standard input is not read");
    let paths = [folder.to_owned()];
    import(store, &options(redact), &paths, no_input, false).unwrap()
}

fn stories(store: &Store) -> Vec<Story> {
    let runs = store.list().unwrap().runs;
    let story = |entry: &agent_trace_store::trace::SessionEntry| {
        let session = store.open(entry).unwrap();
        story::of(entry.id, Vec::new(), &[&session])
    };
    runs.iter().map(story).collect()
}

/// What is in the events of a session, in order, without the chain.
fn events(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let parse = |line: &str| {
        let mut event: Map<String, Value> = serde_json::from_str(line).unwrap();
        event.remove("prev_hash");
        Value::Object(event)
    };
    text.lines().map(parse).collect()
}

/// Takes events in and out again.
fn there_and_back(lines: &[String]) -> (Vec<Value>, Vec<Value>) {
    let work = tempfile::tempdir().unwrap();
    let (there, back) = (work.path().join("there"), work.path().join("back"));
    let meta = r#"{"session_id":"s-1","started_at":1764000000.5}"#;
    write(&there, "s-1", Some(meta), &(lines.join("\n") + "\n"));
    let store = Store::at(work.path().join("store"));
    assert_eq!(take(&store, &there, false).taken[0].state, State::New);
    let stories = stories(&store);
    let mut folder = Folder::open(&back).unwrap();
    assert_eq!(folder.add(&stories[0]).unwrap(), ["s-1"]);
    assert!(folder.finish().is_empty());
    chain_holds(&back.join("s-1/events.ndjson"));
    let read = |folder: &Path| events(&folder.join("s-1/events.ndjson"));
    (read(&there), read(&back))
}

/// Each event names the hash of the line before, as their `verify` checks it.
fn chain_holds(file: &Path) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.is_ascii());
    let mut before: Option<String> = None;
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let told = event.get("prev_hash").and_then(Value::as_str);
        assert_eq!(told, before.as_deref());
        let digest = ring::digest::digest(&ring::digest::SHA256, line.as_bytes());
        let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        before = Some(digits.collect());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\u{0}-\u{ff}\u{2028}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Data of which some is what writers write, so that calls are paired, and some is not.
fn data() -> impl Strategy<Value = Value> {
    let known = (
        prop::option::of("[a-c]"),
        prop::option::of(0..4_u8),
        prop::option::of(value()),
        prop::option::of(any::<bool>()),
    );
    (known, value()).prop_map(|((tool, request, content, failed), other)| {
        let mut data = json!({"other": other});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                data[name] = value;
            }
        };
        set("tool_name", tool.map(Value::from));
        set("request_id", request.map(Value::from));
        set("arguments", content.clone());
        set("result", content);
        set("is_error", failed.map(Value::from));
        data
    })
}

fn event() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(super::KINDS.to_vec());
    let times = (1_764_000_000_u64..1_764_000_100, 0..1_000_000_u32);
    let id = "[0-9a-f]{12}|[a-c]";
    (
        kind,
        times,
        id,
        prop::option::of("[a-c]"),
        prop::option::of(0.0..1e6),
        data(),
    )
        .prop_map(|(kind, (second, micro), id, parent, duration, data)| {
            let data = data.to_string();
            let mut line = format!(
                "{{\"event_type\":\"{kind}\",\"timestamp\":{second}.{micro:06},\"event_id\":\"{id}\",\"session_id\":\"s-1\""
            );
            if let Some(parent) = parent {
                line.push_str(&format!(",\"parent_id\":\"{parent}\""));
            }
            if let Some(duration) = duration {
                line.push_str(&format!(",\"duration_ms\":{duration:?}"));
            }
            line + &format!(",\"data\":{data}}}")
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn events_come_back_in_order_with_their_ids_and_data(
        lines in prop::collection::vec(event(), 1..40),
    ) {
        let (there, back) = there_and_back(&lines);
        prop_assert_eq!(there, back);
    }
}

#[test]
fn what_they_would_refuse_does_not_go_out() {
    let work = tempfile::tempdir().unwrap();
    let there = work.path().join("there");
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let lines = [
        r#"{"event_type":"zap","timestamp":1764000000,"event_id":"a","data":{}}"#.to_owned(),
        r#"{"event_type":"decision","timestamp":NaN,"event_id":7,"data":[1],"later":1}"#.to_owned(),
        format!(r#"{{"event_type":"decision","timestamp":1764000001,"event_id":"../x","parent_id":"../x","data":{{"deep":{deep}}}}}"#),
        r#"{"event_type":"decision","timestamp":1e400,"duration_ms":"x","tenant_id":"a\nb","redacted":1}"#.to_owned(),
    ];
    let meta = r#"{"session_id":"../../x","started_at":"soon","later":1,"tool_calls":"many"}"#;
    write(&there, "x..", Some(meta), &lines.join("\n"));
    let store = Store::at(work.path().join("store"));
    let report = take(&store, &there, false);
    assert_eq!(report.count.unknown, 2);
    let mut folder = Folder::open(&work.path().join("back")).unwrap();
    let ids = folder.add(&stories(&store)[0]).unwrap();
    let left = folder.finish();
    assert_eq!(
        left.keys().collect::<Vec<_>>(),
        [
            "events of the kind \"zap\"",
            "members that agent-strace does not have",
            "values too deep or too long, of which all but the text",
        ]
    );
    assert_eq!(ids.len(), 1);
    assert!(ids[0].len() == 16 && ids[0].bytes().all(|byte| byte.is_ascii_hexdigit()));
    let place = work.path().join("back").join(&ids[0]);
    let events = events(&place.join("events.ndjson"));
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["data"], json!({"value": [1]}));
    assert_eq!(events[1]["event_id"], events[1]["parent_id"]);
    assert!(events[1]["data"]["deep"][0].is_array());
    let names: Vec<&String> = events[2].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["data", "event_id", "event_type", "session_id", "timestamp"]
    );
    let meta: Value = serde_json::from_slice(&fs::read(place.join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["session_id"], Value::from(ids[0].clone()));
    assert!(meta["started_at"].is_number() && meta.get("later").is_none());
}

#[test]
fn a_session_without_meta_is_told_from_its_events() {
    let work = tempfile::tempdir().unwrap();
    let there = work.path().join(".agent-traces");
    let lines = r#"{"event_type":"session_start","timestamp":1764000000.25,"event_id":"a","session_id":"s","data":{"mode":"codex-hooks","cwd":"/home/x/project"}}
{"event_type":"tool_call","timestamp":1764000001,"event_id":"b","session_id":"s","data":{"tool_name":"Bash"}}
"#;
    write(&there, "s", None, lines);
    let store = Store::at(work.path().join("store"));
    take(&store, work.path(), true);
    let stories = stories(&store);
    let [story] = &stories[..] else {
        panic!("one run")
    };
    assert_eq!(story.sessions[0].client, "codex");
    assert_eq!(story.project.as_deref(), Some("/home/x/project"));
    assert_eq!(story.started(), 1_764_000_000_250_000_000);
    // It has no end, and whether the call was answered is not known.
    assert_eq!(
        story.sessions[0].standing,
        agent_trace_model::story::Standing::CutOff
    );
    assert_eq!(
        story.steps[1].outcome,
        agent_trace_model::Outcome::NotRecorded
    );
}

#[test]
fn workspaces_are_found_and_links_are_not_followed() {
    let work = tempfile::tempdir().unwrap();
    let there = work.path().join("traces");
    let line = "{\"event_type\":\"decision\",\"timestamp\":1764000000,\"data\":{}}\n";
    write(&there, "a", None, line);
    write(&there.join("workspaces/w"), "a", None, line);
    fs::create_dir_all(there.join("datasets")).unwrap();
    fs::write(there.join("datasets/x.jsonl"), line).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(there.join("a"), there.join("b")).unwrap();
        let secret = work.path().join("elsewhere");
        fs::write(&secret, line).unwrap();
        fs::create_dir(there.join("c")).unwrap();
        std::os::unix::fs::symlink(&secret, there.join("c/events.ndjson")).unwrap();
    }
    let store = Store::at(work.path().join("store"));
    let report = take(&store, &there, true);
    assert_eq!(
        report.taken.len(),
        2,
        "the two are two, though they have one name"
    );
    assert_eq!(store.list().unwrap().runs.len(), 2);
}
