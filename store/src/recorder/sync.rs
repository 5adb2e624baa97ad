//! Forcing data to the disk itself, on a thread that nobody waits for.

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long written data may stay in the system's memory.
const INTERVAL: Duration = Duration::from_millis(500);

/// A thread that syncs the last file it was given.
#[derive(Clone, Debug, Default)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    dirty: Mutex<Option<Arc<File>>>,
    wake: Condvar,
}

impl Syncer {
    /// Starts the thread. Without one, data reaches the disk when the system decides so.
    pub(super) fn start() -> Self {
        let syncer = Self::default();
        let shared = Arc::clone(&syncer.shared);
        let started = std::thread::Builder::new()
            .name("sync".into())
            .stack_size(64 << 10)
            .spawn(move || shared.run());
        if let Err(error) = started {
            tracing::warn!("data is not synced: {error}");
        }
        syncer
    }

    /// There is new data in this file.
    pub(super) fn wrote(&self, file: &Arc<File>) {
        let mut dirty = self.shared.lock();
        if dirty.is_none() {
            *dirty = Some(Arc::clone(file));
            self.shared.wake.notify_one();
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let mut dirty = self.lock();
            while dirty.is_none() {
                dirty = self
                    .wake
                    .wait(dirty)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            drop(dirty);
            // Gather what else is written meanwhile; each later write makes it dirty again.
            std::thread::sleep(INTERVAL);
            let file = self.lock().take();
            if let Some(Err(error)) = file.map(|file| file.sync_data()) {
                tracing::warn!("cannot sync the journal: {error}");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<File>>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
