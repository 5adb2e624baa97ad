//! A run can be exported, forgotten and imported again, and is then what it was; sealing changes
//! nothing but the size; what is no whole recording is refused.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::trace::Sessions;
use std::fs;
use std::path::{Path, PathBuf};
use support::{ANSWER, Home, REQUEST, Said, Server, wait_for};

/// Records a run with requests, an error, stray lines, standard error and a secret.
fn record(home: &Home, name: &str) -> String {
    let token = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let server = Server::mcp();
    let lines = [
        REQUEST.to_owned(),
        REQUEST
            .replace("\"id\":1,", "\"id\":2,")
            .replace("\"t\"", "\"fail\""),
        "not json\n".to_owned(),
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{{\"name\":\"complain\",\"arguments\":{{\"text\":\"{token}\"}}}}}}\n"
        ),
    ];
    let record = home.record().option("--server").option(name);
    assert_eq!(record.talk(&server, lines.concat()).code, 0);
    // The helper that forces data to the disk has the file open for a moment longer.
    wait_for("the end of the run", || {
        (!home.runs()[0].entry.live).then_some(())
    });
    home.newest()
}

/// Bytes of a mark of the hash chain in a journal.
const MARK: usize = 64 + 65;

/// All that can be printed of a run.
fn printed(home: &Home, run: &str) -> Vec<String> {
    [
        "-s 0 --stderr -n",
        "-c",
        "--frames --format json",
        "--format json",
        "--format jsonl",
        "--frame 3",
    ]
    .iter()
    .map(|options| home.ok(["show", run].into_iter().chain(options.split(' '))))
    .collect()
}

fn endings(home: &Home) -> Vec<String> {
    let files = home.store_files();
    let journals = home.store().journals();
    let endings = files
        .iter()
        .filter(|(path, _)| path.starts_with(&journals))
        .filter_map(|(path, _)| path.extension()?.to_str());
    let mut endings: Vec<String> = endings.map(ToOwned::to_owned).collect();
    endings.sort();
    endings
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_exported_run_comes_back_as_it_was() {
    let home = Home::new();
    let run = record(&home, "first");
    let before = printed(&home, &run);
    assert!(
        before[0].contains("[REDACTED:github-token:"),
        "{}",
        before[0]
    );

    let said = home.ok(["export", "latest"]);
    let file = format!("{}.atrace", &run[..8]);
    assert_eq!(said, format!("wrote run {} to {file}\n", &run[..8]));
    let bytes = fs::read(home.at(format!("work/{file}"))).unwrap();
    let direct = home
        .program()
        .args(["export", &run, "-o", "-"])
        .output()
        .unwrap();
    assert_eq!(direct.stdout, bytes, "the same run is the same file");

    assert_eq!(
        home.ok(["forget", &run]),
        format!("forgot run {}\n", &run[..8])
    );
    assert!(home.runs().is_empty());
    assert_eq!(endings(&home), [""; 0], "nothing is left of it");

    let imported = home.ok(["import", &file]);
    assert_eq!(
        imported,
        format!("imported run {} from {file}\n", &run[..8])
    );
    assert_eq!(printed(&home, &run), before);
    let again = home.ok(["import", &file]);
    assert_eq!(again, format!("has run {} from {file}\n", &run[..8]));
    assert_eq!(home.runs().len(), 1);

    // Another store, from standard input.
    let other = Home::new();
    let said = Said::by(other.program().args(["import", "-"]), &bytes);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(printed(&other, &run), before, "under the same id");
    // And on from there.
    other.ok(["export", "latest", "-o", "again.atrace"]);
    let third = Home::new();
    let again = other.at("work/again.atrace");
    third.ok([Path::new("import"), &again]);
    assert_eq!(printed(&third, &run), before);
}

#[test]
fn a_recording_that_is_not_whole_is_refused_and_leaves_nothing() {
    let home = Home::new();
    record(&home, "first");
    home.ok(["export", "latest", "-o", "whole"]);
    let whole = fs::read(home.at("work/whole")).unwrap();
    let journal = fs::read(home.only_journal()).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let half = whole.len() / 2;
    let other = Home::new();
    for (name, bytes) in [
        ("empty", vec![]),
        ("one byte", whole[..1].to_vec()),
        ("a header cut off", whole[..40].to_vec()),
        ("half", whole[..half].to_vec()),
        ("all but a byte", whole[..whole.len() - 1].to_vec()),
        ("a byte too many", [&whole[..], b"x"].concat()),
        ("damaged at its start", flipped(3)),
        ("damaged in its header", flipped(60)),
        ("damaged in the middle", flipped(half)),
        ("damaged at its end", flipped(whole.len() - 5)),
        ("a text", b"this is a text\n".to_vec()),
        ("JSON", b"{\"jsonrpc\":\"2.0\"}".to_vec()),
        ("a journal", journal),
        ("of a later version", later_version(&whole)),
    ] {
        let path = other.at("work/file");
        fs::write(&path, bytes).unwrap();
        let said = other.run(["import", "file"]);
        assert_eq!(said.code, 2, "{name}: {said:?}");
        assert!(said.err.starts_with("error: "), "{name}: {said:?}");
        assert!(said.err.contains("file"), "it is named: {said:?}");
        assert_eq!(said.out, "", "{name}");
        assert!(other.runs().is_empty(), "{name}");
        assert_eq!(endings(&other), [""; 0], "{name}");
    }
    let said = other.run(["import", "nowhere"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("nowhere"), "{said:?}");
}

fn later_version(whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[8] = 9;
    bytes
}

#[test]
fn a_mistake_in_one_name_forgets_nothing() {
    let home = Home::new();
    let (first, second) = (record(&home, "first"), record(&home, "second"));
    let said = home.run(["forget", &first, "ffffffffffff"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert_eq!(home.runs().len(), 2);
    let said = home.ok(["forget", &first, &second]);
    assert_eq!(said.lines().count(), 2);
    assert!(home.runs().is_empty());
}

#[test]
fn a_run_that_has_ended_can_be_forgotten_at_once() {
    for round in 0..20 {
        let home = Home::new();
        let server = Server::new().answers_each_line(ANSWER);
        assert_eq!(home.record().talk(&server, REQUEST).code, 0);
        let said = home.run(["forget", "latest"]);
        assert_eq!(said.code, 0, "round {round}: {said:?}");
    }
}

#[test]
fn a_sealed_run_reads_as_before() {
    let home = Home::new();
    let runs = [record(&home, "first"), record(&home, "second")];
    let before = runs.each_ref().map(|run| printed(&home, run));
    let listed = home.ok(["runs", "--format", "json"]);
    assert_eq!(endings(&home), ["atj", "atj"]);
    let said = home.ok(["retention"]);
    assert!(
        said.starts_with("sealed 2 files, removed 0 sessions: "),
        "{said}"
    );
    assert_eq!(endings(&home), ["ats", "ats"]);
    assert_eq!(runs.each_ref().map(|run| printed(&home, run)), before);
    assert_eq!(home.ok(["runs", "--format", "json"]), listed);
    assert!(home.ok(["retention"]).starts_with("sealed 0 files"));
    // Sealed runs leave and come back alike.
    home.ok(["export", &runs[0], "-o", "sealed.atrace"]);
    home.ok(["forget", &runs[0]]);
    assert_eq!(home.runs().len(), 1);
    home.ok(["import", "sealed.atrace"]);
    assert_eq!(printed(&home, &runs[0]), before[0]);
}

#[test]
fn damage_survives_sealing_as_damage_or_not_at_all() {
    let home = Home::new();
    let run = record(&home, "first");
    let journal = home.only_journal();
    let mut bytes = fs::read(&journal).unwrap();
    let end = bytes.len();
    // The last mark of the hash chain, and the end of the last record.
    bytes.truncate(end - MARK - 10);
    fs::write(&journal, bytes).unwrap();
    let before = printed(&home, &run);
    home.ok(["retention"]);
    assert_eq!(printed(&home, &run), before, "a torn end");
    assert!(home.ok(["runs"]).contains("cut off"));
}

#[test]
fn the_oldest_runs_go_first_when_there_is_too_much() {
    let home = Home::new();
    let runs: Vec<String> = ["first", "second", "third"]
        .map(|name| record(&home, name))
        .into();
    home.ok(["retention"]);
    let size = |name: &str| -> u64 {
        let files = home.store_files();
        let matching = files
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|e| e == name));
        matching.map(|(_, content)| content.len() as u64).sum()
    };
    let all = size("ats");
    let said = home.ok(["retention", "--max-bytes", &(all - 1).to_string()]);
    assert!(said.contains("removed 1 session:"), "{said}");
    assert_eq!(home.run_ids(), [runs[2].clone(), runs[1].clone()]);
    assert!(
        home.ok(["retention", "--max-age", "1h"])
            .contains("removed 0 sessions")
    );
    assert!(
        home.ok(["retention", "--max-age", "0s"])
            .contains("removed 2 sessions")
    );
    assert!(home.runs().is_empty());
    for wrong in ["5", "5 years", "x"] {
        assert_eq!(
            home.run(["retention", "--max-age", wrong]).code,
            2,
            "{wrong}"
        );
    }
}

#[test]
fn limits_in_the_configuration_are_followed() {
    let home = Home::new();
    record(&home, "first");
    let folder = home.at("home/.config/agent-trace");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        "[retention]\nmax_bytes = \"1B\"\n",
    )
    .unwrap();
    assert!(home.ok(["retention"]).contains("removed 1 session:"));
}

#[test]
fn only_the_owner_can_read_a_store() {
    let home = Home::new();
    record(&home, "first");
    let check = || {
        let mut folders: Vec<PathBuf> = vec![home.store_folder()];
        while let Some(folder) = folders.pop() {
            assert_eq!(mode(&folder), 0o700, "{}", folder.display());
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if folder == home.store().index() {
                    // sled makes its own; nobody else gets into their folder.
                } else if path.is_dir() {
                    folders.push(path);
                } else {
                    assert_eq!(mode(&path), 0o600, "{}", path.display());
                }
            }
        }
    };
    check();
    home.ok(["retention"]);
    check();
}

#[test]
fn what_would_go_is_shown_before_it_goes() {
    let home = Home::new();
    let runs: Vec<String> = ["first", "second", "third"]
        .map(|name| record(&home, name))
        .into();
    let plan = |words: &[&str]| {
        let words = ["retention", "plan", "--format", "json"]
            .iter()
            .chain(words);
        home.json(words)
    };
    let nothing = plan(&[]);
    assert_eq!(nothing["parts"], serde_json::json!([]));
    let text = home.ok(["retention", "plan"]);
    assert!(text.contains("no limits are set"), "{text}");
    let two = plan(&["--max-sessions", "1"]);
    let going: Vec<&str> = two["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["runs"][0].as_str().unwrap())
        .collect();
    let sessions = home.runs();
    let ids = sessions.iter().rev().map(|run| run.entry.id.to_string());
    let ids: Vec<String> = ids.take(2).collect();
    assert_eq!(going, ids, "the oldest first");
    // The same runs, by the ids that their sessions would have alone.
    for (id, run) in ids.iter().zip(&runs) {
        let shown = home.json(["show", id, "--format", "json"]);
        assert_eq!(shown["run"], run[..]);
    }
    assert_eq!(two["parts"][0]["reason"], "sessions");
    assert_eq!(two["parts"][0]["limit"], 1);
    let all = plan(&["--max-sessions", "1", "--all"]);
    assert_eq!(all["parts"][2]["fate"], "kept");
    assert_eq!(home.runs().len(), 3, "nothing is changed");
    let text = home.ok(["retention", "plan", "--max-sessions", "1"]);
    assert!(
        text.contains("more than 1 session") && text.contains("2 sessions to go"),
        "{text}"
    );
    let said = home.ok(["retention", "apply", "--max-sessions", "1"]);
    assert!(said.contains("removed 2 sessions"), "{said}");
    assert_eq!(home.newest(), runs[2]);
    // Another workspace is left alone.
    let said = home.ok([
        "retention",
        "apply",
        "--max-age",
        "0s",
        "--workspace",
        "other",
    ]);
    assert!(said.contains("removed 0 sessions"), "{said}");
    let said = home.ok([
        "retention",
        "apply",
        "--max-age",
        "0s",
        "--workspace",
        "default",
    ]);
    assert!(said.contains("removed 1 session:"), "{said}");
}

#[test]
fn what_is_being_written_is_kept_and_that_is_said() {
    let home = Home::new();
    let server = Server::that_writes(ANSWER);
    let session = home.record().start(&server);
    wait_for("the run", || home.store_runs().pop().map(drop));
    let plan = home.json([
        "retention",
        "plan",
        "--all",
        "--max-bytes",
        "1B",
        "--format",
        "json",
    ]);
    assert_eq!(plan["parts"][0]["fate"], "live");
    let text = home.ok(["retention", "plan", "--all", "--max-bytes", "1B"]);
    assert!(text.contains("it is being written"), "{text}");
    session.close_input();
    session.wait();
}

#[test]
fn what_the_disk_is_used_for_is_told_by_server_and_month() {
    let home = Home::new();
    for name in ["small", "small", "large"] {
        record(&home, name);
    }
    let usage = home.json(["retention", "usage", "--format", "json"]);
    let lines = usage.as_array().unwrap();
    assert_eq!(lines.len(), 2, "{usage}");
    let of = |name: &str| lines.iter().find(|line| line["server"] == name).unwrap();
    assert_eq!(
        (&of("small")["sessions"], &of("large")["sessions"]),
        (&2.into(), &1.into())
    );
    let told: u64 = lines
        .iter()
        .map(|line| line["bytes"].as_u64().unwrap())
        .sum();
    let there: u64 = home
        .store_files()
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "atj"))
        .map(|(_, content)| content.len() as u64)
        .sum();
    assert_eq!(told, there);
    let month = of("small")["month"].as_str().unwrap();
    assert!(month.len() == 7 && month.starts_with("20"), "{month}");
    let text = home.ok(["retention", "usage"]);
    assert!(
        text.starts_with("SERVER") && text.contains(" in all"),
        "{text}"
    );
}

#[test]
fn limits_that_are_not_kept_to_are_told() {
    let home = Home::new();
    home.record().talk(&Server::that_writes(ANSWER), "");
    let doctor = || home.run(["doctor"]);
    assert!(!doctor().out.contains("limits:"));
    let folder = home.at("home/.config/agent-trace");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        "[retention]\nmax_sessions = 9\n",
    )
    .unwrap();
    assert!(
        doctor().out.contains("limits: not looked after yet"),
        "{:?}",
        doctor()
    );
    home.ok(["retention", "apply", "--in-background"]);
    assert!(
        doctor().out.contains("ok  limits: looked after"),
        "{:?}",
        doctor()
    );
    // A file that cannot be sealed.
    let live = home.store().live();
    let name = format!("{}.1.atj", "0".repeat(32));
    fs::write(live.join(name), [b'x'; 100]).unwrap();
    let background = home.run(["retention", "apply", "--in-background"]);
    assert_eq!(background.code, 2, "{background:?}");
    let said = doctor();
    assert!(
        said.out.contains("wrong  limits: not looked after"),
        "{said:?}"
    );
    assert!(said.out.contains("cannot read"), "{said:?}");
}

#[test]
fn damage_to_what_was_decided_is_told() {
    let home = Home::new();
    home.record().talk(&Server::that_writes(ANSWER), "");
    for _ in 0..2 {
        home.ok(["verdict", "latest", "wrong", "--reason", "some reason"]);
    }
    home.ok(["verify", "--all"]);
    assert!(!home.run(["doctor"]).out.contains("verdicts"));
    let path = home.store().root().join("state/log");
    let mut log = fs::read(&path).unwrap();
    log[100] ^= 1;
    fs::write(&path, log).unwrap();
    let said = home.run(["verify", "--all"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains("of the state log can't be read"),
        "{said:?}"
    );
    let said = home.run(["doctor"]);
    assert!(
        said.out.contains("of the state log can't be read"),
        "{said:?}"
    );
}

#[test]
fn a_cap_holds_without_a_daemon() {
    let home = Home::new();
    record(&home, "first");
    let folder = home.at("home/.config/agent-trace");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        "[retention]\nmax_sessions = 1\n",
    )
    .unwrap();
    // The next relay starts who looks after it, and waits for nothing.
    let server = Server::that_writes(ANSWER);
    let session = home.record().start(&server);
    let first_is_gone = || {
        let runs = home.store().list().ok()?.runs;
        (runs.len() == 1 && runs[0].live).then_some(())
    };
    wait_for("the first run to go", first_is_gone);
    session.close_input();
    assert_eq!(session.wait().code, 0);
    // Within some minutes nobody does it again.
    record(&home, "third");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(home.runs().len(), 2);
}
