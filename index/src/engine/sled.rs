//! Rows in sled: one tree, so that a batch is atomic whatever kinds of rows are in it.
//!
//! What sled keeps on the disk and in memory is two to three times what it is given, so
//! rows of some kinds are gathered in pages (`pages`). Kinds whose keys are all over the place
//! are not: each change would write a whole page.
//!
//! sled is of an age in which it has known faults: it may fail to open after an abrupt end,
//! and where it meets what it does not expect, it may panic. Panics are caught here and
//! become errors; whoever opens it moves what cannot be used aside and begins anew.

use super::pages::{Page, Rows, pages};
use super::{Batch, Engine, EngineError};
use crate::keys::kind;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// How much of the tree is kept in memory by default, in bytes. With a smaller one a process
/// that fills it is larger, since what is pushed out too early has to be read again.
pub const CACHE: u64 = 64 << 20;
/// After so many bytes of changes whoever makes them waits until they are with the system.
/// sled cleans up on a thread of its own twice a second, and lets what waits for that grow:
/// 500,000 rows of 300 bytes, written as fast as it takes them, made a process of 340 to
/// 770 MiB (1,860 MiB without that thread), and one of 180 MiB with this.
const UNFLUSHED: usize = 256 << 10;
/// What is written together, in bytes. sled writes all of a piece anew when half of it is of no
/// use any more: smaller ones than its default are so sooner. But what is larger than half of a
/// piece gets a file of its own, and many of these are never removed: 16 pages have to be smaller.
const SEGMENT: usize = 256 << 10;
/// How long sled's own lock is waited for: threads of one that was just closed, in this
/// process or in one that was killed, hold it for a moment longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// An open database. Closing it, by dropping it, writes what is not written yet.
pub struct Sled {
    db: sled::Db,
    /// First bytes of keys whose rows are gathered in pages.
    gathered: &'static [u8],
    /// Held by who changes rows: pages are read and written anew.
    changing: Mutex<()>,
    /// How many bytes of changes were made since the last flush.
    unflushed: AtomicUsize,
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
        Self::gathering(folder, cache, kind::IN_TIME)
    }

    /// The same, with rows gathered in pages whose keys begin with one of these bytes.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn gathering(
        folder: &Path,
        cache: u64,
        gathered: &'static [u8],
    ) -> Result<Self, EngineError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let config = sled::Config::new()
                .path(folder)
                .cache_capacity(cache)
                .segment_size(SEGMENT);
            match guarded(|| config.open()) {
                Ok(db) => {
                    return Ok(Self {
                        db,
                        gathered,
                        changing: Mutex::default(),
                        unflushed: AtomicUsize::new(0),
                    });
                }
                Err(error) if is_locked(&error) && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Sled {
    /// The kind of a key whose rows are gathered.
    fn kind(&self, key: &[u8]) -> Option<u8> {
        let kind = *key.first()?;
        self.gathered.contains(&kind).then_some(kind)
    }

    /// The page that a row of this kind is in if it is there at all, with its key.
    fn page(&self, kind: u8, key: &[u8]) -> Result<Option<(sled::IVec, sled::IVec)>, EngineError> {
        guarded(|| {
            self.db
                .range([kind].as_slice()..=key)
                .next_back()
                .transpose()
        })
    }

    /// Where the page after the one under this key begins, if there is one of its kind.
    fn end(&self, kind: u8, under: &[u8]) -> Result<Option<sled::IVec>, EngineError> {
        let after = (Bound::Excluded(under), Bound::Unbounded);
        let next = guarded(|| self.db.range::<&[u8], _>(after).next().transpose())?;
        let next = next.map(|(key, _)| key);
        Ok(next.filter(|key| key.first() == Some(&kind)))
    }

    /// Makes changes of sled's rows of those of one kind, which are in the order of their keys.
    fn gather(
        &self,
        kind: u8,
        changes: impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)>,
        out: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>,
    ) -> Result<(), EngineError> {
        let mut changes = changes.peekable();
        while let Some((key, _)) = changes.peek() {
            let (under, mut rows) = match self.page(kind, key)? {
                Some((under, page)) => (under.to_vec(), Page::read(&page)?.to_rows()),
                None => (vec![kind], Rows::new()),
            };
            let end = self.end(kind, &under)?;
            let is_before = |key: &[u8]| end.as_ref().is_none_or(|end| key < &end[..]);
            while let Some((key, value)) = changes.next_if(|(key, _)| is_before(key)) {
                match value {
                    Some(value) => drop(rows.insert(key, value)),
                    None => drop(rows.remove(&key)),
                }
            }
            if rows.is_empty() {
                out.push((under, None));
                continue;
            }
            let pages = pages(&under, &rows).into_iter();
            out.extend(pages.map(|(under, page)| (under, Some(page))));
        }
        Ok(())
    }
}

impl Engine for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(kind) = self.kind(key) else {
            return guarded(|| Ok(self.db.get(key)?.map(|value| value.to_vec())));
        };
        match self.page(kind, key)? {
            Some((_, page)) => Ok(Page::read(&page)?.get(key)),
            None => Ok(None),
        }
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError> {
        let begin = super::begin(prefix, after);
        let (Bound::Included(first) | Bound::Excluded(first)) = begin else {
            return Ok(());
        };
        let page = match self.kind(first) {
            Some(kind) => self.page(kind, first)?,
            None => None,
        };
        let from = page
            .as_ref()
            .map_or(begin, |(under, _)| Bound::Included(under));
        let mut entries = self.db.range::<&[u8], _>((from, Bound::Unbounded));
        // The last one of a page: what comes again where the page was parted meanwhile.
        let mut last: Option<Vec<u8>> = None;
        // What is called may panic for reasons of its own, which is none of sled's faults.
        while let Some((key, value)) = guarded(|| entries.next().transpose())? {
            if self.kind(&key).is_none() {
                if !key.starts_with(prefix) || !each(&key, &value) {
                    return Ok(());
                }
                continue;
            }
            let page = Page::read(&value)?;
            let mut newest = None;
            for (key, value) in page.rows() {
                let is_past = match begin {
                    Bound::Excluded(after) => key > after,
                    _ => key >= first,
                };
                if !is_past || last.as_deref().is_some_and(|last| key <= last) {
                    continue;
                }
                if !key.starts_with(prefix) || !each(key, value) {
                    return Ok(());
                }
                newest = Some(key);
            }
            if let Some(key) = newest {
                last = Some(key.to_vec());
            }
        }
        Ok(())
    }

    fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::new();
        let mut kinds: BTreeMap<u8, BTreeMap<Vec<u8>, Option<Vec<u8>>>> = BTreeMap::new();
        for (key, value) in batch.changes {
            match self.kind(&key) {
                Some(kind) => drop(kinds.entry(kind).or_default().insert(key, value)),
                None => out.push((key, value)),
            }
        }
        for (kind, changes) in kinds {
            self.gather(kind, changes.into_iter(), &mut out)?;
        }
        let mut changes = sled::Batch::default();
        let mut size = 0;
        for (key, value) in out {
            size += key.len() + value.as_ref().map_or(0, Vec::len);
            match value {
                Some(value) => changes.insert(key, value),
                None => changes.remove(key),
            }
        }
        guarded(|| self.db.apply_batch(changes))?;
        if self.unflushed.fetch_add(size, Ordering::Relaxed) + size > UNFLUSHED {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.unflushed.store(0, Ordering::Relaxed);
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
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Such a panic is no news: it is reported as the error that it becomes.
            if !IS_GUARDED.get() {
                others(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    match done {
        Ok(done) => done.map_err(|error| EngineError(Box::new(error))),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(EngineError(text.unwrap_or("sled panicked").into()))
        }
    }
}

thread_local! {
    /// Whether this thread is in sled.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether somebody else has it open. sled gives no kind of its own to that.
pub(super) fn is_locked(error: &EngineError) -> bool {
    let error = error.0.downcast_ref();
    matches!(error, Some(sled::Error::Io(error)) if error.to_string().contains("could not acquire lock"))
}
