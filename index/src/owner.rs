//! Who owns the index: one process at a time, under a lock.

use crate::engine::Engine;
use crate::local::Local;
use crate::place::{self, Held};
use crate::runs::RunsError;
use agent_trace_store::Store;
use agent_trace_store::lock::{Holder, Lock, LockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How the index is opened and asked.
#[derive(Clone)]
pub struct Settings {
    /// Which version of the program this is.
    pub program: &'static str,
    /// How many bytes of the index may be kept in memory.
    pub cache: u64,
    /// After so long a pause, in nanoseconds, a client begins a new run.
    pub idle: u64,
    /// How long somebody who has the index and cannot be asked is waited for.
    pub patience: Duration,
    /// Is told, in one line each, what the user is to know.
    pub report: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Settings {
    /// The usual ones.
    pub fn new(program: &'static str, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            program,
            cache: crate::engine::sled::CACHE,
            idle: crate::indexer::IDLE,
            patience: Duration::from_secs(30),
            report: Arc::new(report),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// The index is ours. It is closed, and others may have it, once this and everything that
/// came from [`Owner::local`] is dropped.
#[derive(Debug)]
pub struct Owner {
    local: Local,
    held: Arc<Held>,
}

/// Whether the index can be had.
#[derive(Debug)]
pub enum Taken {
    /// It is ours.
    Ours(Owner),
    /// Another process has it.
    Theirs(Holder),
}

impl Owner {
    /// Takes the index if nobody has it, and opens it; blocks meanwhile. A store that cannot
    /// be written to is nobody's: its index is made in memory.
    ///
    /// # Errors
    /// When there is no store, or its lock cannot be used.
    pub fn take(store: &Store, settings: &Settings) -> Result<Taken, RunsError> {
        if !store.root().is_dir() {
            return Err(RunsError::NoStore(store.root().to_owned()));
        }
        let path = store.index_lock();
        let held = match Lock::try_take(&path) {
            Err(LockError::Held(holder)) => return Ok(Taken::Theirs(holder)),
            Err(LockError::Io(error)) if is_read_only(&error) => place::in_memory(None),
            Err(LockError::Io(source)) => return Err(RunsError::Lock { path, source }),
            Err(other) => {
                let source = io::Error::other(other);
                return Err(RunsError::Lock { path, source });
            }
            Ok(lock) => {
                // Who waits for us can say for whom. That the disk is full is no reason not
                // to answer.
                if let Err(error) = lock.sign(None) {
                    tracing::debug!("{}: {error}", path.display());
                }
                place::open(store, Some(lock), settings.cache, &*settings.report)
            }
        };
        let place = held.path.as_deref().map(Path::to_string_lossy);
        let place = place.map(std::borrow::Cow::into_owned);
        let held = Arc::new(held);
        let engine: Arc<dyn Engine> = Arc::<Held>::clone(&held);
        let local = Local::new(store, engine, settings.program, place, settings.idle);
        Ok(Taken::Ours(Self { local, held }))
    }

    /// Waits until nobody has the index, however long that is, and takes it.
    ///
    /// # Errors
    /// When there is no store, or its lock cannot be used.
    pub async fn wait(store: &Store, settings: &Settings) -> Result<Self, RunsError> {
        loop {
            match Self::take_aside(store, settings).await? {
                Taken::Ours(owner) => return Ok(owner),
                Taken::Theirs(_) => tokio::time::sleep(jitter(50, 200)).await,
            }
        }
    }

    /// Takes it as [`Owner::take`] does, on a thread that may block.
    pub(crate) async fn take_aside(store: &Store, settings: &Settings) -> Result<Taken, RunsError> {
        let (store, settings) = (store.clone(), settings.clone());
        let taken = tokio::task::spawn_blocking(move || Self::take(&store, &settings)).await;
        taken.unwrap_or_else(|error| Err(RunsError::Failed(Box::new(error))))
    }

    /// The index.
    #[must_use]
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// Waits until a part of the index is found that cannot be read. It is begun anew once it
    /// is opened again.
    pub async fn damaged(&self) {
        self.held.damage.notified().await;
    }

    /// Tells others that they can ask on this socket.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn sign(&self, socket: &Path) -> io::Result<()> {
        let lock = self.held.lock.as_ref();
        lock.map_or(Ok(()), |lock| lock.sign(Some(socket)))
    }
}

fn is_read_only(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | StorageFull
    )
}

/// A span of time that is another one for everybody who waits, in milliseconds.
pub(crate) fn jitter(least: u64, most: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = u64::from(now.unwrap_or_default().subsec_nanos());
    let mixed = (nanos ^ u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Duration::from_millis(least + mixed % (most - least))
}
