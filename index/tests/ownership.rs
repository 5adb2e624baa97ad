//! One process has the index at a time; what it finds damaged is begun anew; what it wrote
//! before it was killed is there as whole batches.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use agent_trace_index::engine::Batch;
use agent_trace_index::owner::Taken;
use agent_trace_index::protocol::{Query, Reply, Status};
use agent_trace_index::{Access, Owner, Runs, RunsError, Settings};
use agent_trace_store::Store;
use agent_trace_store::lock::{Lock, holder};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A store of a test's own, and what it was told.
struct Place {
    _folder: TempDir,
    store: Store,
    told: Arc<Mutex<Vec<String>>>,
    settings: Settings,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&told);
        let settings = Settings {
            // So that most of it has to be read from the disk.
            cache: 1 << 16,
            patience: Duration::from_millis(300),
            ..Settings::new("1.2.3", move |line| keep.lock().unwrap().push(line.into()))
        };
        Self {
            store: Store::at(folder.path()),
            _folder: folder,
            told,
            settings,
        }
    }

    fn take(&self) -> Owner {
        match Owner::take(&self.store, &self.settings).unwrap() {
            Taken::Ours(owner) => owner,
            Taken::Theirs(holder) => panic!("{holder:?} has it"),
        }
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }

    fn fill(&self, batches: u32) {
        let owner = self.take();
        for number in 0..batches {
            let mut batch = Batch::default();
            for row in 0..100_u32 {
                let key = [number.to_be_bytes(), row.to_be_bytes()].concat();
                batch.put(key, vec![number as u8; 300]);
            }
            owner.local().engine().apply(batch).unwrap();
        }
    }

    /// Overwrites parts of sled's file, as it lies there.
    fn spoil(&self) {
        let path = self.store.index().join("db");
        let file = fs::File::options().write(true).open(path).unwrap();
        let size = file.metadata().unwrap().len();
        for at in (0..size - 64).step_by(2048) {
            file.write_all_at(&[0x5a; 64], at).unwrap();
        }
    }

    fn is_one_aside(&self) -> bool {
        let entries = fs::read_dir(self.store.root()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let aside = names.filter(|name| name.to_string_lossy().starts_with("index.broken-"));
        aside.count() == 1
    }
}

async fn status(runs: &impl Runs) -> Result<Status, RunsError> {
    runs.ask(Query::Status).await.map(|reply| match reply {
        Reply::Status(status) => status,
        other => panic!("{other:?}"),
    })
}

#[tokio::test]
async fn a_lasting_owner_is_asked_by_others_and_followed() {
    let place = Place::new();
    let first = Access::lasting(&place.store, place.settings.clone());
    let second = Access::lasting(&place.store, place.settings.clone());
    let brief = Access::brief(&place.store, place.settings.clone());
    let since = status(&first).await.unwrap().since;
    for other in [&second, &brief] {
        assert_eq!(status(other).await.unwrap().since, since);
    }
    // Both of us are this process, so the time tells who it is.
    first.release().await;
    let later = status(&second).await.unwrap().since;
    assert!(later > since);
    for other in [&first, &brief] {
        assert_eq!(status(other).await.unwrap().since, later);
    }
    drop(second);
    assert!(status(&brief).await.unwrap().since > later);
    drop(brief);
    drop(first);
    assert_eq!(holder(&place.store.index_lock()).unwrap(), None);
    assert_eq!(place.told(), [""; 0]);
}

#[tokio::test]
async fn whoever_is_still_answering_keeps_it() {
    let place = Place::new();
    let owner = place.take();
    let local = owner.local().clone();
    drop(owner);
    let taken = Owner::take(&place.store, &place.settings).unwrap();
    let Taken::Theirs(holder) = taken else {
        panic!("taken twice");
    };
    assert_eq!(holder.pid, Some(std::process::id()));
    drop(local);
    drop(place.take());
    assert_eq!(place.told(), [""; 0]);
}

#[tokio::test]
async fn one_that_cannot_be_asked_is_not_waited_for_for_ever() {
    let place = Place::new();
    let access = Access::brief(&place.store, place.settings.clone());
    let lock = Lock::take(&place.store.index_lock()).unwrap();
    lock.sign(None).unwrap();
    let us = std::process::id();
    match status(&access).await {
        Err(RunsError::Busy(Some(pid))) => assert_eq!(pid, us),
        other => panic!("{other:?}"),
    }
    // It says where it can be asked, but nobody is there.
    lock.sign(Some(&place.store.root().join("x.sock"))).unwrap();
    match status(&access).await {
        Err(RunsError::Lost { pid, .. }) => assert_eq!(pid, Some(us)),
        other => panic!("{other:?}"),
    }
    drop(lock);
    assert!(status(&access).await.is_ok());
}

#[tokio::test]
async fn who_waits_long_is_told_for_whom() {
    let mut place = Place::new();
    place.settings.patience = Duration::from_secs(20);
    let lock = Lock::take(&place.store.index_lock()).unwrap();
    lock.sign(None).unwrap();
    let access = Access::brief(&place.store, place.settings.clone());
    let told = Arc::clone(&place.told);
    let release = std::thread::spawn(move || {
        let end = Instant::now() + Duration::from_secs(15);
        while told.lock().unwrap().is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(lock);
    });
    assert!(status(&access).await.is_ok());
    release.join().unwrap();
    let expected = format!(
        "waiting for process {}, which has the index",
        std::process::id()
    );
    assert_eq!(place.told(), [expected]);
}

#[test]
fn a_damaged_index_is_begun_anew_when_it_is_opened() {
    let place = Place::new();
    let database = place.store.index().join("db");
    let open = || {
        let file = fs::File::options().write(true).open(&database).unwrap();
        let size = file.metadata().unwrap().len();
        (file, size)
    };
    let damages: [(&str, &dyn Fn()); 5] = [
        ("half of it", &|| {
            let (file, size) = open();
            file.set_len(size / 2).unwrap();
        }),
        ("its beginning", &|| {
            open().0.write_all_at(&[0x5a; 1 << 20], 0).unwrap();
        }),
        ("a spot", &|| {
            let (file, size) = open();
            file.write_all_at(&[0x5a; 512], size / 3).unwrap();
        }),
        ("all of it", &|| open().0.set_len(0).unwrap()),
        ("here and there", &|| place.spoil()),
    ];
    let mut refused = 0;
    for (what, damage) in damages {
        place.fill(500);
        damage();
        let owner = place.take();
        let engine = owner.local().engine();
        // sled may also find nothing wrong, and have lost the rows and what says so alike.
        let told = place.told();
        assert!(told.len() <= 1, "{what}: {told:?}");
        if let Some(told) = told.first() {
            refused += 1;
            assert!(told.starts_with("the index cannot be used and is made anew"));
            assert!(place.is_one_aside());
            assert_eq!(engine.rows().unwrap(), 0, "{what}");
        }
        let mut batch = Batch::default();
        batch.put(b"works".to_vec(), b"again".to_vec());
        engine.apply(batch).unwrap();
        assert_eq!(engine.get(b"works").unwrap().unwrap(), b"again");
        drop(owner);
        fs::remove_dir_all(place.store.index()).unwrap();
    }
    assert!(refused > 0);
}

#[tokio::test]
async fn damage_that_is_found_later_is_mended_by_asking() {
    let place = Place::new();
    place.fill(200);
    let access = Access::brief(&place.store, place.settings.clone());
    assert_eq!(status(&access).await.unwrap().rows, 20_000);
    place.spoil();
    assert_eq!(status(&access).await.unwrap().rows, 0);
    let told = place.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("a part of it could not be read"),
        "{told:?}"
    );
    assert!(place.is_one_aside());
}

/// Where the child of the next test writes.
const CHILD: &str = "AGENT_TRACE_TEST_INDEX";

#[test]
fn a_killed_owner_leaves_whole_batches() {
    if let Some(root) = std::env::var_os(CHILD) {
        write_until_killed(Path::new(&root));
    }
    let mut place = Place::new();
    place.settings.cache = 1 << 20;
    let mut least = 0;
    for round in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_killed_owner_leaves_whole_batches"])
            .env(CHILD, place.store.root())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let is_written = || fs::metadata(place.store.root().join("begun")).is_ok();
        while !is_written() {
            assert!(Instant::now() < end, "the child does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(40 + 130 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(place.store.root().join("begun")).unwrap();

        let owner = place.take();
        let engine = owner.local().engine();
        // All rows of a batch have the same number, whatever the last one was.
        let mut numbers = Vec::new();
        engine
            .scan(b"row", None, &mut |_, value| {
                numbers.push(u64::from_be_bytes(value[..8].try_into().unwrap()));
                true
            })
            .unwrap();
        numbers.dedup();
        assert!(numbers.len() <= 1, "round {round}: {numbers:?}");
        let number = numbers.first().copied().unwrap_or_default();
        let told = place.told();
        if told.is_empty() {
            // What an earlier round closed is not lost.
            assert!(number >= least, "round {round}: {number} after {least}");
        }
        least = number;
    }
}

/// Writes one batch after another, each over the rows of the one before.
fn write_until_killed(root: &Path) -> ! {
    let settings = Settings::new("1.2.3", |_| {});
    let Ok(Taken::Ours(owner)) = Owner::take(&Store::at(root), &settings) else {
        panic!("somebody has it");
    };
    let engine = owner.local().engine();
    let last = engine.get(b"row0").unwrap();
    let last = last.map(|value| u64::from_be_bytes(value[..8].try_into().unwrap()));
    let mut number = last.unwrap_or_default();
    loop {
        number += 1;
        let mut batch = Batch::default();
        for row in 0..40 {
            let mut value = number.to_be_bytes().to_vec();
            value.resize(400, 1);
            batch.put(format!("row{row}").into_bytes(), value);
        }
        engine.apply(batch).unwrap();
        fs::write(root.join("begun"), "").unwrap();
    }
}
