//! The index on the disk: opening it, and beginning anew where that cannot be done.
//!
//! ```text
//! <data>/index/schema    "agent-trace index 1": whose it is, and which rows are in it
//! <data>/index/...       sled's own files
//! ```

use crate::engine::memory::Memory;
use crate::engine::sled::Sled;
use crate::engine::{Batch, Engine, EngineError};
use agent_trace_store::Store;
use agent_trace_store::lock::Lock;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::Notify;

/// Which keys and rows an index has. Raised when one of them changes its meaning; an index of
/// another version is not read but begun anew.
pub const SCHEMA: u32 = crate::rows::SCHEMA;

/// What the file `schema` says before the version.
const MARK: &str = "agent-trace index ";
/// What it says once a row could not be read.
const DAMAGED: &str = "agent-trace index damaged";

/// An engine with the lock that lets nobody else use it. The engine is closed first: whoever
/// gets the lock finds it closed.
pub(crate) struct Held {
    engine: Box<dyn Engine>,
    /// Where it is on the disk, if it is.
    pub(crate) path: Option<PathBuf>,
    pub(crate) lock: Option<Lock>,
    /// Somebody waits to hear that it is damaged.
    pub(crate) damage: Notify,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Opens the index of a store whose lock is held. Where it cannot be used it is put aside and
/// begun anew; where it cannot be written it is kept in memory. Either is reported.
pub(crate) fn open(store: &Store, lock: Option<Lock>, cache: u64, report: &dyn Fn(&str)) -> Held {
    let path = store.index();
    match on_disk(store, cache, report) {
        Ok(engine) => Held {
            engine: Box::new(engine),
            path: Some(path),
            lock,
            damage: Notify::new(),
        },
        Err(why) => {
            report(&format!(
                "the index cannot be kept at {}, and is made in memory: {why}",
                path.display()
            ));
            in_memory(lock)
        }
    }
}

/// An index that is nowhere but in memory.
pub(crate) fn in_memory(lock: Option<Lock>) -> Held {
    Held {
        engine: Box::new(Memory::default()),
        path: None,
        lock,
        damage: Notify::new(),
    }
}

fn on_disk(store: &Store, cache: u64, report: &dyn Fn(&str)) -> Result<Sled, String> {
    let path = store.index();
    let failed = |error: io::Error| error.to_string();
    if let Some(why) = why_not(&path).map_err(failed)? {
        put_aside(store, &why, report)?;
    }
    prepare(store).map_err(failed)?;
    match Sled::open(&path, cache) {
        Err(error) if error.is_damage() => put_aside(store, &error.in_full(), report)?,
        opened => return opened.map_err(|error| error.in_full()),
    }
    prepare(store).map_err(failed)?;
    Sled::open(&path, cache).map_err(|error| error.in_full())
}

fn put_aside(store: &Store, why: &str, report: &dyn Fn(&str)) -> Result<(), String> {
    let aside = store.put_index_aside().map_err(|error| error.to_string())?;
    report(&format!(
        "the index cannot be used and is made anew from the journals ({why}); what was there \
         is at {}",
        aside.display()
    ));
    Ok(())
}

/// Why what lies there is no index that can be used, if that can be told without opening it.
fn why_not(path: &Path) -> io::Result<Option<String>> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Ok(Some("it is no folder".into()));
        }
        listed => {
            // Whoever made it came no further.
            if listed?.next().is_none() {
                return Ok(None);
            }
        }
    }
    let mark = match fs::read(path.join("schema")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let mark = String::from_utf8_lossy(&mark);
    let schema = mark.trim_end().strip_prefix(MARK);
    Ok(match schema.map(str::parse) {
        Some(Ok(SCHEMA)) => None,
        Some(Ok(other)) => Some(format!("it is of version {other}, not {SCHEMA}")),
        _ if mark.trim_end() == DAMAGED => Some("a part of it could not be read".into()),
        _ => Some("it is none of this program's".into()),
    })
}

/// Makes the folder and says whose it is.
fn prepare(store: &Store) -> io::Result<()> {
    let path = store.index();
    store.make(&path)?;
    let mark = path.join("schema");
    if mark.exists() {
        return Ok(());
    }
    write(&mark, &format!("{MARK}{SCHEMA}\n"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

impl Held {
    /// What was found damaged is begun anew by whoever opens it next.
    fn seen<T>(&self, done: Result<T, EngineError>) -> Result<T, EngineError> {
        if let (Err(error), Some(path)) = (&done, &self.path)
            && error.is_damage()
        {
            if let Err(error) = write(&path.join("schema"), DAMAGED) {
                tracing::warn!("cannot mark {} as damaged: {error}", path.display());
            }
            self.damage.notify_one();
        }
        done
    }
}

impl Engine for Held {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.seen(self.engine.get(key))
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError> {
        self.seen(self.engine.scan(prefix, after, each))
    }

    fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        self.seen(self.engine.apply(batch))
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.seen(self.engine.flush())
    }

    fn rows(&self) -> Result<u64, EngineError> {
        self.seen(self.engine.rows())
    }

    fn disk(&self) -> Result<u64, EngineError> {
        self.seen(self.engine.disk())
    }
}
