//! Tests of the state log.

use super::*;
use agent_trace_model::Verdict;
use std::fs;

fn run(n: u8) -> RunId {
    RunId::from_digest([n; 16])
}

fn decide(n: u8, verdict: Verdict, by: Judge) -> Entry {
    Entry::Verdict(Decision {
        run: run(n),
        verdict,
        reason: format!("reason {n}"),
        by,
        at: 7,
    })
}

struct Scratch {
    _folder: tempfile::TempDir,
    state: State,
}

fn scratch() -> Scratch {
    let folder = tempfile::tempdir().unwrap();
    let state = State::of(&Store::at(folder.path().join("data")));
    Scratch {
        _folder: folder,
        state,
    }
}

#[test]
fn what_was_decided_is_read_back() {
    let Scratch { state, .. } = &scratch();
    assert_eq!(state.entries().unwrap(), Entries::default());
    let entries = [
        decide(1, Verdict::Right, Judge::Check),
        decide(2, Verdict::Wrong, Judge::Person),
    ];
    for entry in &entries {
        state.append(entry).unwrap();
    }
    let read = state.entries().unwrap();
    assert_eq!((&read.all[..], read.damaged), (&entries[..], 0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(state.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_persons_word_counts_before_a_checks_and_the_last_before_the_first() {
    let Scratch { state, .. } = &scratch();
    let verdict = || state.verdicts().unwrap().verdict([run(1), run(2)]);
    assert_eq!(verdict(), Verdict::Unjudged);
    state
        .append(&decide(1, Verdict::Wrong, Judge::Person))
        .unwrap();
    state
        .append(&decide(1, Verdict::Right, Judge::Check))
        .unwrap();
    assert_eq!(verdict(), Verdict::Wrong);
    // Under another id of the same run, later.
    state
        .append(&decide(2, Verdict::Right, Judge::Person))
        .unwrap();
    assert_eq!(verdict(), Verdict::Right);
    state
        .append(&decide(1, Verdict::Unjudged, Judge::Person))
        .unwrap();
    assert_eq!(verdict(), Verdict::Unjudged);
    assert_eq!(
        state.verdicts().unwrap().verdict([run(3)]),
        Verdict::Unjudged
    );
}

#[test]
fn verdicts_are_read_again_when_there_is_something_new() {
    let Scratch { state, .. } = &scratch();
    let mut verdicts = state.verdicts().unwrap();
    assert!(!verdicts.refresh(state).unwrap());
    state
        .append(&decide(1, Verdict::Wrong, Judge::Person))
        .unwrap();
    assert!(verdicts.refresh(state).unwrap());
    assert!(!verdicts.refresh(state).unwrap());
    assert_eq!(verdicts.verdict([run(1)]), Verdict::Wrong);
}

#[test]
fn a_torn_end_and_a_damaged_record_cost_themselves() {
    let Scratch { state, .. } = &scratch();
    for n in 1..=3 {
        state
            .append(&decide(n, Verdict::Right, Judge::Person))
            .unwrap();
    }
    let whole = fs::read(state.path()).unwrap();
    let record = (whole.len() - 16) / 3;
    for cut in 1..record {
        fs::write(state.path(), &whole[..whole.len() - cut]).unwrap();
        assert_eq!(state.entries().unwrap().all.len(), 2, "{cut}");
        state
            .append(&decide(4, Verdict::Right, Judge::Person))
            .unwrap();
        let read = state.entries().unwrap();
        assert_eq!(read.all.len(), 3, "{cut}");
        assert_eq!(read.damaged, (record - cut) as u64, "{cut}");
    }
    // The last one with a length that is too large looks like a torn one, and is none.
    let mut longer = whole.clone();
    longer[16 + 2 * record + 9] ^= 1;
    fs::write(state.path(), &longer).unwrap();
    assert_eq!(state.entries().unwrap().damaged, record as u64);
    state
        .append(&decide(4, Verdict::Right, Judge::Person))
        .unwrap();
    let read = state.entries().unwrap();
    assert_eq!((read.all.len(), read.damaged), (3, record as u64));
    let bytes = fs::read(state.path()).unwrap();
    assert!(bytes.starts_with(&longer), "what is there stays");
    for at in (0..16).chain(16 + record..16 + 2 * record) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(state.path(), &damaged).unwrap();
        let read = match state.entries() {
            Err(StateError::Version { .. }) if (8..10).contains(&at) => continue,
            read => read.unwrap(),
        };
        assert!(read.all.len() >= if at < 16 { 3 } else { 2 }, "{at}");
        state
            .append(&decide(4, Verdict::Right, Judge::Person))
            .unwrap();
        let all = state.entries().unwrap().all;
        assert_eq!(all.last(), Some(&decide(4, Verdict::Right, Judge::Person)));
        assert_eq!(all.len(), read.all.len() + 1);
    }
}

#[test]
fn compaction_keeps_what_counts_and_what_is_not_known() {
    let Scratch { state, .. } = &scratch();
    for n in 0..10 {
        state
            .append(&decide(n % 2, Verdict::Right, Judge::Check))
            .unwrap();
    }
    state
        .append(&decide(0, Verdict::Wrong, Judge::Person))
        .unwrap();
    // A newer version's.
    let mut bytes = fs::read(state.path()).unwrap();
    let newer = br#"{"type":"pin","name":"x"}"#;
    bytes.extend(log::record(12, 0, newer));
    fs::write(state.path(), &bytes).unwrap();
    state.rewrite().unwrap();
    let entries = state.entries().unwrap().all;
    assert_eq!(
        entries,
        [
            decide(0, Verdict::Right, Judge::Check),
            decide(1, Verdict::Right, Judge::Check),
            decide(0, Verdict::Wrong, Judge::Person),
            Entry::Unknown,
        ]
    );
    let bytes = fs::read(state.path()).unwrap();
    assert!(bytes.ends_with(newer));
    // Numbers go on where they were.
    state
        .append(&decide(5, Verdict::Right, Judge::Check))
        .unwrap();
    let log = Log::read(&state.path()).unwrap().unwrap();
    assert_eq!(log.last, 13);
}

#[test]
fn what_was_decided_about_a_run_is_forgotten_with_it() {
    let Scratch { state, .. } = &scratch();
    state.forget(&[run(1)]).unwrap();
    assert!(!state.path().exists());
    for n in [1, 2, 1, 3] {
        state
            .append(&decide(n, Verdict::Wrong, Judge::Person))
            .unwrap();
    }
    let mut bytes = fs::read(state.path()).unwrap();
    bytes.extend_from_slice(b"damage");
    fs::write(state.path(), &bytes).unwrap();
    state.forget(&[run(1), run(3)]).unwrap();
    let read = state.entries().unwrap();
    assert_eq!(read.all, [decide(2, Verdict::Wrong, Judge::Person)]);
    assert_eq!(read.damaged, 6);
    let bytes = fs::read(state.path()).unwrap();
    for reason in ["reason 1", "reason 3"] {
        assert!(!bytes.windows(8).any(|part| part == reason.as_bytes()));
    }
}

#[test]
fn another_major_version_is_refused_and_left_as_it_is() {
    let Scratch { state, .. } = &scratch();
    state
        .append(&decide(1, Verdict::Right, Judge::Check))
        .unwrap();
    let mut bytes = fs::read(state.path()).unwrap();
    bytes[8] = 2;
    fs::write(state.path(), &bytes).unwrap();
    let error = state.append(&decide(1, Verdict::Right, Judge::Check));
    assert!(matches!(error, Err(StateError::Version { major: 2 })));
    assert_eq!(fs::read(state.path()).unwrap(), bytes);
}

fn approve(name: &str, hash: &str, views: usize) -> Entry {
    Entry::Approval(Approval {
        workspace: "default".into(),
        server: "npm:calc".into(),
        kind: "tool".into(),
        name: name.into(),
        forms: vec![pins::Form {
            hash: hash.into(),
            text: "x".repeat(10_000),
            views: vec!["0011223344556677".into(); views],
        }],
        at: 7,
    })
}

#[test]
fn the_last_approval_of_a_definition_counts_and_survives_compaction() {
    let Scratch { state, .. } = &scratch();
    let mut approvals = state.approvals().unwrap();
    assert_eq!(approvals.of("default").count(), 0);
    // Of several that are appended at once all are there.
    let both = [approve("add", "aa", 1), approve("sub", "bb", 1)];
    state.append_all(&both).unwrap();
    state
        .append(&decide(1, Verdict::Right, Judge::Check))
        .unwrap();
    for _ in 0..150 {
        state.append(&approve("add", "cc", 1)).unwrap();
    }
    assert!(fs::metadata(state.path()).unwrap().len() < 1 << 20);
    approvals.refresh(state).unwrap();
    let told = approvals.of("default");
    let told: Vec<(&str, &str)> = told.map(|a| (&a.name[..], &a.forms[0].hash[..])).collect();
    assert_eq!(told, [("add", "cc"), ("sub", "bb")]);
    assert_eq!(approvals.of("other").count(), 0);
    assert_eq!(state.verdicts().unwrap().verdict([run(1)]), Verdict::Right);
    // What is forgotten is about runs.
    state.forget(&[run(1)]).unwrap();
    assert_eq!(state.approvals().unwrap().of("default").count(), 2);
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let Scratch { state, .. } = &scratch();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for n in 0..20 {
                    let entry = decide(writer * 20 + n, Verdict::Right, Judge::Person);
                    state.append(&entry).unwrap();
                }
            });
        }
    });
    assert_eq!(state.verdicts().unwrap().runs().count(), 80);
    let log = Log::read(&state.path()).unwrap().unwrap();
    assert_eq!((log.last, log.damaged, log.torn), (80, 0, 0));
}

/// The committed file of the first version. `AGENT_TRACE_WRITE_FIXTURES=1` writes it anew, as in
/// `store/tests/format.rs`.
#[test]
fn a_file_of_version_1_0_is_read() {
    let Scratch { state, .. } = &scratch();
    let expected = [
        decide(1, Verdict::Right, Judge::Check),
        decide(1, Verdict::Wrong, Judge::Person),
    ];
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/format/1.0.state");
    if std::env::var_os("AGENT_TRACE_WRITE_FIXTURES").is_some() {
        for entry in &expected {
            state.append(entry).unwrap();
        }
        fs::copy(state.path(), file).unwrap();
    }
    fs::create_dir_all(&state.folder).unwrap();
    fs::copy(file, state.path()).unwrap();
    assert_eq!(state.entries().unwrap().all, expected);
}
