//! Forcing data to the disk itself, on a thread that nobody waits for, and giving back the
//! memory in which the system holds what is on the disk.
//!
//! A file that only grows takes memory that was not in use a moment ago, page after page. In a
//! virtual machine whose host has to find each page first, that costs more than all else of
//! recording. So the pages of what was written before are given back for what comes next.

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long written data may stay in the system's memory alone.
const INTERVAL: Duration = Duration::from_millis(500);
/// After so many bytes memory is given back in between: to sync more often would hold up those
/// who write.
const MUCH: u64 = 2 << 20;
/// So many bytes before the end of a file stay in memory too, for those who read what was
/// recorded just now.
const KEPT: u64 = 8 << 20;
/// The same while nothing is written: what comes next finds memory to take over.
const KEPT_AT_REST: u64 = 2 * KEPT;

/// A thread that syncs the files it is given.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    runs: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// Files with data that was not synced, in the order in which they follow one another.
    dirty: Mutex<Vec<Dirty>>,
    wake: Condvar,
}

#[derive(Debug)]
struct Dirty {
    file: Arc<File>,
    /// How long it was when it became dirty, or memory was given back, and how long it is.
    from: u64,
    length: u64,
}

impl Syncer {
    /// Starts the thread. Without one, data reaches the disk when the system decides so.
    pub(super) fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let started = std::thread::Builder::new()
            .name("sync".into())
            .stack_size(64 << 10)
            .spawn(move || own.run());
        if let Err(error) = &started {
            tracing::warn!("data is not synced: {error}");
        }
        let runs = started.is_ok();
        Self { shared, runs }
    }

    /// There is new data in this file, which is so long now.
    pub(super) fn wrote(&self, file: &Arc<File>, length: u64) {
        if !self.runs {
            return;
        }
        let mut dirty = self.shared.lock();
        let (clean, was_much) = (dirty.is_empty(), is_much(&dirty));
        let last = dirty.last_mut();
        match last.filter(|last| Arc::ptr_eq(&last.file, file)) {
            Some(last) => last.length = length,
            None => dirty.push(Dirty {
                file: Arc::clone(file),
                from: length,
                length,
            }),
        }
        if clean || is_much(&dirty) && !was_much {
            self.shared.wake.notify_one();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut last: Option<Arc<File>> = None;
        loop {
            for Dirty { file, length, .. } in self.take() {
                if let Err(error) = file.sync_data() {
                    tracing::warn!("cannot sync the journal: {error}");
                    continue;
                }
                give_back(&file, length.saturating_sub(KEPT_AT_REST));
                let before = last.replace(Arc::clone(&file));
                if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, &file)) {
                    let length = before.metadata().map_or(0, |known| known.len());
                    give_back(&before, length);
                }
            }
        }
    }

    /// Waits until there is something to sync, and gathers what else is written meanwhile.
    fn take(&self) -> Vec<Dirty> {
        let dirty = self.lock();
        let mut dirty = self
            .wake
            .wait_while(dirty, |dirty| dirty.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let due = Instant::now() + INTERVAL;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let waited = self
                .wake
                .wait_timeout_while(dirty, left, |dirty| !is_much(dirty));
            let (mut now, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            let much = now.last_mut().filter(|_| !left.is_zero());
            let Some(much) = much.filter(|_| !timed_out.timed_out()) else {
                return std::mem::take(&mut *now);
            };
            much.from = much.length;
            let (file, length) = (Arc::clone(&much.file), much.length);
            drop(now);
            give_back(&file, length.saturating_sub(KEPT));
            dirty = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Dirty>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_much(dirty: &[Dirty]) -> bool {
    let last = dirty.last();
    last.is_some_and(|last| last.length.saturating_sub(last.from) >= MUCH)
}

/// Gives back the memory of the first part of a file, as far as that is on the disk; what is
/// not is on its way there from now on.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
fn give_back(file: &File, end: u64) {
    #[cfg(target_os = "linux")]
    if let Some(end) = std::num::NonZero::new(end) {
        // Advice: nothing depends on it.
        _ = rustix::fs::fadvise(file, 0, Some(end), rustix::fs::Advice::DontNeed);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Command;

    /// How many bytes of a file are in the system's memory; none where that cannot be told.
    fn in_memory(path: &std::path::Path) -> Option<u64> {
        let mut command = Command::new("fincore");
        command.args(["--bytes", "--noheadings", "--output", "RES"]);
        let output = command.arg(path).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    }

    #[test]
    fn of_what_is_on_the_disk_only_the_end_stays_in_memory() {
        const TMPFS: u64 = 0x0102_1994;
        let folder = tempfile::tempdir().unwrap();
        let kind = rustix::fs::statfs(folder.path()).unwrap().f_type;
        let path = folder.path().join("file");
        let syncer = Syncer::start();
        for name in ["before", "file"] {
            let file = Arc::new(File::create(folder.path().join(name)).unwrap());
            for megabytes in 1..=(4 * KEPT) >> 20 {
                (&*file).write_all(&[b'x'; 1 << 20]).unwrap();
                syncer.wrote(&file, megabytes << 20);
            }
        }
        if u64::try_from(kind).is_ok_and(|kind| kind == TMPFS) {
            return eprintln!("skipped: the temporary folder is in memory");
        }
        let (before, end) = (folder.path().join("before"), Instant::now());
        while let (Some(old), Some(new)) = (in_memory(&before), in_memory(&path)) {
            if old == 0 && (1..=KEPT_AT_REST + MUCH).contains(&new) {
                return;
            }
            let waited = end.elapsed() < Duration::from_secs(60);
            assert!(waited, "{old} and {new} bytes are in memory");
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("skipped: there is no fincore (util-linux) to ask");
    }
}
