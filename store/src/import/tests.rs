use super::session::Opening;
use super::*;
use crate::recorder::Durability;
use crate::redact::UserRule;
use crate::trace::Sessions;
use agent_trace_model::{Outcome, Stream};

fn options() -> Options {
    Options {
        redact: true,
        user_rules: Vec::<UserRule>::new(),
        bodies: Bodies::Full,
        durability: Durability::Timer,
        workspace: "default".into(),
    }
}

const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"password":"correct-horse-9"}}}"#;
const RESULT: &[u8] = br#"{"jsonrpc":"2.0","id":"a","result":{"content":[]}}"#;

/// Writes one session of this many calls.
fn write(import: &mut Import, name: &str, digest: &str, calls: usize) -> ProcessId {
    let process = import.process("f", name);
    let opening = Opening {
        started: 1_764_000_000_000_000_000,
        client: Some("agent".into()),
        imported: Imported {
            format: "f".into(),
            session: name.into(),
            digest: digest.into(),
            ..Imported::default()
        },
        ..Opening::default()
    };
    let mut writer = import.session(process, opening).unwrap();
    for call in 0..calls as u64 {
        let wall = 1_764_000_000_000_000_000 + call * 1_000;
        writer.frame(Stream::ClientToServer, wall, CALL).unwrap();
        writer
            .frame(Stream::ServerToClient, wall + 500, RESULT)
            .unwrap();
    }
    writer.finish(None).unwrap();
    process
}

fn folders(store: &Store) -> Vec<String> {
    let mut names: Vec<String> = store
        .root()
        .read_dir()
        .unwrap()
        .chain(
            store
                .root()
                .join("journal")
                .read_dir()
                .into_iter()
                .flatten(),
        )
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("import"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_session_appears_when_it_is_published_and_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let mut import = Import::begin(&store, &options()).unwrap();
    let process = write(&mut import, "one", "d1", 3);
    assert!(store.list().unwrap().runs.is_empty());
    let run = import.run(process);
    import.publish().unwrap();

    let listing = store.list().unwrap();
    assert!(listing.unreadable.is_empty());
    assert_eq!(listing.runs.len(), 1);
    assert_eq!(listing.runs[0].id, run);
    let session = store.open(&listing.runs[0]).unwrap();
    assert!(session.is_whole());
    assert_eq!(session.transport(), "imported");
    let steps: Vec<_> = session
        .steps
        .iter()
        .map(|step| (step.tool(), step.duration, step.outcome))
        .collect();
    assert_eq!(steps, vec![(Some("t"), Some(500), Outcome::Ok); 3]);
    let text = String::from_utf8_lossy(session.frames[0].body()).into_owned();
    assert!(
        text.contains("[REDACTED:") && !text.contains("correct-horse"),
        "{text}"
    );
}

#[test]
fn what_was_not_published_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let mut import = Import::begin(&store, &options()).unwrap();
    write(&mut import, "one", "d1", 1);
    drop(import);
    assert_eq!(folders(&store), ["import.lock"]);
    assert!(store.list().unwrap().runs.is_empty());

    // Nor does what was killed.
    store.make(&store.root().join("importing")).unwrap();
    fs::write(store.root().join("importing/x"), b"x").unwrap();
    Import::begin(&store, &options())
        .unwrap()
        .publish()
        .unwrap();
    assert_eq!(folders(&store), ["import.lock"]);
}

#[test]
fn the_same_is_known_and_what_changed_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let mut import = Import::begin(&store, &options()).unwrap();
    let process = write(&mut import, "one", "d1", 1);
    write(&mut import, "two", "d2", 1);
    assert_eq!(import.known(process, "d1").unwrap(), Known::Same);
    import.publish().unwrap();

    let mut import = Import::begin(&store, &options()).unwrap();
    assert_eq!(import.known(process, "d1").unwrap(), Known::Same);
    assert_eq!(import.known(process, "d3").unwrap(), Known::Changed);
    let other = import.process("f", "three");
    assert_eq!(import.known(other, "d1").unwrap(), Known::No);
    write(&mut import, "one", "d3", 5);
    import.publish().unwrap();
    let runs = store.list().unwrap().runs;
    assert_eq!(runs.len(), 2);
    let one = runs.iter().find(|run| run.session.process == process);
    assert_eq!(store.open(one.unwrap()).unwrap().steps.len(), 5);
}

#[test]
fn a_long_session_goes_on_in_further_files_and_nothing_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let mut import = Import::begin(&store, &options()).unwrap();
    let process = import.process("f", "long");
    let mut writer = import.session(process, Opening::default()).unwrap();
    let text = format!(
        "{{\"method\":\"x\",\"params\":\"{}\"}}",
        "y ".repeat(1 << 20)
    );
    for wall in 1..40 {
        writer
            .frame(Stream::ClientToServer, wall, text.as_bytes())
            .unwrap();
    }
    writer.finish(None).unwrap();
    import.publish().unwrap();
    let runs = store.list().unwrap().runs;
    assert_eq!((runs.len(), runs[0].segments.len()), (1, 3));
    let session = store.open(&runs[0]).unwrap();
    assert!(session.is_whole());
    assert_eq!(session.steps.len(), 39);
    let mut proven = 0;
    crate::verify::each(&store, None, |_, report| {
        assert!(!report.is_faulty() && !report.is_doubtful(), "{report:?}");
        proven += report.files;
    })
    .unwrap();
    assert_eq!(proven, 3);
}

#[test]
fn digests_alone_cannot_be_kept_of_what_others_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        bodies: Bodies::Digest,
        ..options()
    };
    let refused = Import::begin(&Store::at(folder.path()), &options);
    assert!(matches!(refused, Err(ImportError::Digests)));
}

#[test]
fn what_is_killed_has_replaced_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let calls = || {
        let listing = store.list().unwrap();
        assert!(listing.unreadable.is_empty());
        let steps = |run| store.open(run).unwrap().steps.len();
        let mut steps: Vec<usize> = listing.runs.iter().map(steps).collect();
        steps.sort_unstable();
        steps
    };
    let mut import = Import::begin(&store, &options()).unwrap();
    let one = write(&mut import, "one", "d1", 1);
    write(&mut import, "two", "d1", 2);
    import.publish().unwrap();
    // What is there has one more file than what replaces it.
    let old = store.segments().unwrap();
    let old = old.iter().find(|file| file.process == one).unwrap();
    let second = old.path.with_file_name(SegmentPath::name(one, 2, true));
    fs::copy(&old.path, &second).unwrap();

    let mut import = Import::begin(&store, &options()).unwrap();
    write(&mut import, "one", "d2", 3);
    write(&mut import, "two", "d2", 4);
    assert_eq!(calls().len(), 2);
    assert!(old.path.exists());
    // Killed as soon as it is in its place.
    let lock = store.lock().unwrap();
    import.commit().unwrap();
    drop(lock);
    drop(import);
    assert!(old.path.exists() && second.exists());
    assert_eq!(calls(), [3, 4]);
    let in_folder = |file: &SegmentPath| {
        let name = file.path.parent().unwrap().file_name().unwrap();
        store.segments_in(name.to_str().unwrap()).unwrap().len()
    };
    assert_eq!(in_folder(old), 0);
    // Who changes the store next cleans up.
    drop(store.lock().unwrap());
    assert!(!old.path.exists() && !second.exists());
    assert_eq!(calls(), [3, 4]);
    assert_eq!(folders(&store).len(), 2, "{:?}", folders(&store));
    let place = store.segments().unwrap()[0].path.with_file_name(REPLACES);
    assert!(!place.exists());
}
