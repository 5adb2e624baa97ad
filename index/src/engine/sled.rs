//! Rows in sled: one tree, so that a batch is atomic whatever kinds of rows are in it.
//!
//! sled is of an age in which it has known faults: it may fail to open after an abrupt end,
//! and where it meets what it does not expect, it may panic. Panics are caught here and
//! become errors; whoever opens it moves what cannot be used aside and begins anew.

use super::{Batch, Engine, EngineError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much of the tree is kept in memory by default, in bytes.
pub const CACHE: u64 = 32 << 20;
/// How long sled's own lock is waited for: threads of one that was just closed, in this
/// process or in one that was killed, hold it for a moment longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// An open database. Closing it, by dropping it, writes what is not written yet.
pub struct Sled {
    db: sled::Db,
}

impl std::fmt::Debug for Sled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sled").finish_non_exhaustive()
    }
}

impl Sled {
    /// Opens the database in this folder, and makes one where there is none. `cache` is how
    /// many bytes of the tree may be kept in memory.
    ///
    /// # Errors
    /// When what is there cannot be used, or a new one cannot be made.
    pub fn open(folder: &Path, cache: u64) -> Result<Self, EngineError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let config = sled::Config::new().path(folder).cache_capacity(cache);
            match guarded(|| config.open()) {
                Ok(db) => return Ok(Self { db }),
                Err(error) if is_locked(&error) && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Engine for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        guarded(|| Ok(self.db.get(key)?.map(|value| value.to_vec())))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError> {
        let range = (super::begin(prefix, after), std::ops::Bound::Unbounded);
        let mut entries = self.db.range::<&[u8], _>(range);
        // What is called may panic for reasons of its own, which is none of sled's faults.
        while let Some((key, value)) = guarded(|| entries.next().transpose())? {
            if !key.starts_with(prefix) || !each(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let mut changes = sled::Batch::default();
        for (key, value) in batch.changes {
            match value {
                Some(value) => changes.insert(key, value),
                None => changes.remove(key),
            }
        }
        guarded(|| self.db.apply_batch(changes))
    }

    fn flush(&self) -> Result<(), EngineError> {
        guarded(|| self.db.flush()).map(drop)
    }

    fn rows(&self) -> Result<u64, EngineError> {
        let mut rows = 0;
        self.scan(b"", None, &mut |_, _| {
            rows += 1;
            true
        })?;
        Ok(rows)
    }

    fn disk(&self) -> Result<u64, EngineError> {
        guarded(|| self.db.size_on_disk())
    }
}

/// Does something with sled, and makes an error of what it panics with.
fn guarded<T>(work: impl FnOnce() -> Result<T, sled::Error>) -> Result<T, EngineError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| EngineError(Box::new(error))),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(EngineError(text.unwrap_or("sled panicked").into()))
        }
    }
}

/// Whether somebody else has it open. sled gives no kind of its own to that.
pub(super) fn is_locked(error: &EngineError) -> bool {
    let error = error.0.downcast_ref();
    matches!(error, Some(sled::Error::Io(error)) if error.to_string().contains("could not acquire lock"))
}
