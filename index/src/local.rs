//! Questions answered from the index itself: one function for each.

use crate::engine::{Engine, EngineError};
use crate::indexer::events::Events;
use crate::indexer::verify::Difference;
use crate::indexer::{IndexError, Indexer, Progress};
use crate::listing::Listed;
use crate::protocol::{Query, Reply, Status};
use crate::rows::RunRow;
use crate::runs::{Asked, Runs, RunsError};
use crate::table::Watched;
use agent_trace_model::{RunId, Verdict};
use agent_trace_store::State;
use agent_trace_store::Store;
use agent_trace_store::state::{Approvals, Verdicts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The index, opened in this process. Clones are the same one.
#[derive(Clone)]
pub struct Local {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<dyn Engine>,
    watched: Arc<Watched>,
    store: Store,
    /// After so long a pause, in nanoseconds, a client begins a new run.
    idle: u64,
    indexer: Mutex<Option<Indexer>>,
    /// What was decided about runs, as far as it was read.
    verdicts: RwLock<Verdicts>,
    /// What was approved of servers' definitions, likewise.
    approvals: RwLock<Arc<Approvals>>,
    /// What stays the same of it.
    about: Status,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("about", &self.inner.about)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// The index of this store, kept in this engine by this version of the program. `path` is
    /// where the engine keeps it on the disk, if it does. A client that does nothing for `idle`
    /// nanoseconds begins a new run.
    #[must_use]
    pub fn new(
        store: &Store,
        engine: Arc<dyn Engine>,
        program: &str,
        path: Option<String>,
        idle: u64,
    ) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let about = Status {
            pid: std::process::id(),
            program: program.to_owned(),
            since: u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX),
            path,
            ..Status::default()
        };
        let watched = Arc::new(Watched::new(engine));
        let engine: Arc<dyn Engine> = Arc::<Watched>::clone(&watched);
        let inner = Inner {
            engine,
            watched,
            store: store.clone(),
            idle,
            indexer: Mutex::new(None),
            verdicts: RwLock::default(),
            approvals: RwLock::default(),
            about,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Where the rows are.
    #[must_use]
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.inner.engine
    }

    /// Where the journals are.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Which version of the program this is.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.inner.about.program
    }

    /// Answers a question, and blocks meanwhile.
    ///
    /// # Errors
    /// When the index or a journal cannot be read.
    pub fn answer(&self, query: &Query) -> Result<Reply, RunsError> {
        if !matches!(query, Query::Status) {
            self.refresh()?;
        }
        let answered = match query {
            Query::Status => self.status().map(Reply::Status).map_err(Into::into),
            Query::Runs(query) => self.runs(query).map(Reply::Runs),
            Query::Run {
                workspace,
                projects,
                name,
            } => {
                let found = self.find(workspace, projects, name);
                found.map(|found| Reply::Run(Box::new(found)))
            }
            Query::Stats(query) => self.stats(query).map(Reply::Stats),
            Query::Scan(query) => self.scanned(query).map(Reply::Scanned),
            Query::Pins(query) => self.pins(query).map(Reply::Pins),
            Query::Rebuild => self.rebuild().map(Reply::Rebuilt),
            Query::Verify => self.verify().map(Reply::Verified),
        };
        answered.or_else(|error| match error.wrong() {
            Some(wrong) => Ok(Reply::Wrong(wrong)),
            None => Err(error),
        })
    }

    /// Reads what was recorded and decided since the last time.
    ///
    /// # Errors
    /// When the journals cannot be listed, or the index cannot be written.
    pub fn refresh(&self) -> Result<Progress, RunsError> {
        let progress = self.index(Indexer::catch_up)?;
        let mut verdicts = self
            .inner
            .verdicts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // What was decided before is better than no answer.
        if let Err(error) = verdicts.refresh(&State::of(self.store())) {
            tracing::warn!("what was decided about runs cannot be read: {error}");
        }
        drop(verdicts);
        let mut approvals = self
            .inner
            .approvals
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = Arc::make_mut(&mut approvals).refresh(&State::of(self.store())) {
            tracing::warn!("what was approved cannot be read: {error}");
        }
        Ok(progress)
    }

    /// Makes the index anew.
    ///
    /// # Errors
    /// As [`Local::refresh`].
    pub fn rebuild(&self) -> Result<Progress, RunsError> {
        self.index(Indexer::rebuild)
    }

    /// Compares the index with one that is made anew in memory.
    ///
    /// # Errors
    /// As [`Local::refresh`].
    pub fn verify(&self) -> Result<Vec<Difference>, RunsError> {
        self.index(Indexer::verify)
    }

    /// Keeps the index up to date until this says to stop; blocks meanwhile.
    ///
    /// # Errors
    /// When the index cannot be written. That journals cannot be listed for a moment is no
    /// reason to stop.
    pub fn follow(&self, stop: &AtomicBool) -> Result<(), RunsError> {
        let events = Events::new(self.store());
        while !stop.load(Ordering::Relaxed) {
            match self.refresh() {
                Ok(_) => self.keep_in_memory()?,
                Err(RunsError::Store(error)) => {
                    tracing::warn!("the journals cannot be listed: {error}");
                }
                Err(error) => return Err(error),
            }
            events.wait(stop);
        }
        Ok(())
    }

    /// Has something done by what brings the index up to date, which is made when it is first
    /// needed. After an error, or a fault of ours, it may know of things that are not in the
    /// index: the next one begins with what is.
    fn index<T>(
        &self,
        work: impl FnOnce(&mut Indexer) -> Result<T, IndexError>,
    ) -> Result<T, RunsError> {
        let place = self.inner.indexer.lock();
        let mut place = place.unwrap_or_else(PoisonError::into_inner);
        let mut indexer = match place.take() {
            Some(indexer) => indexer,
            None => Indexer::new(self.store(), Arc::clone(self.engine()), self.inner.idle)?,
        };
        let done = work(&mut indexer)?;
        *place = Some(indexer);
        Ok(done)
    }

    /// Has what filters ask for in memory from now on: for a process that lives long.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn keep_in_memory(&self) -> Result<(), RunsError> {
        Ok(self.inner.watched.load()?)
    }

    pub(crate) fn watched(&self) -> &Watched {
        &self.inner.watched
    }

    /// What was decided about a run that goes by these ids.
    pub(crate) fn verdict(&self, ids: impl Iterator<Item = RunId>) -> Verdict {
        let verdicts = self
            .inner
            .verdicts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        verdicts.verdict(ids)
    }

    /// What was approved of servers' definitions.
    pub(crate) fn approvals(&self) -> Arc<Approvals> {
        let approvals = self.inner.approvals.read();
        Arc::clone(&approvals.unwrap_or_else(PoisonError::into_inner))
    }

    /// A run with what was decided about it.
    pub(crate) fn listed(&self, row: RunRow) -> Listed {
        let verdicts = self
            .inner
            .verdicts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let ids = [row.id].into_iter().chain(row.aliases.iter().copied());
        let decision = verdicts.decision(ids).cloned();
        drop(verdicts);
        Listed {
            row,
            decision,
            left_out: 0,
        }
    }

    fn status(&self) -> Result<Status, EngineError> {
        Ok(Status {
            bytes: self.engine().disk()?,
            rows: self.engine().rows()?,
            ..self.inner.about.clone()
        })
    }
}

impl Runs for Local {
    fn ask(&self, query: Query) -> Asked<'_> {
        let this = self.clone();
        Box::pin(async move {
            // Whoever waits for other things on this thread is not to wait for a disk.
            let answered = tokio::task::spawn_blocking(move || this.answer(&query)).await;
            answered.unwrap_or_else(|error| Err(RunsError::Failed(Box::new(error))))
        })
    }
}
