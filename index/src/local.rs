//! Questions answered from the index itself: one function for each.

use crate::engine::{Engine, EngineError};
use crate::listing::Listed;
use crate::protocol::{Query, Reply, Status};
use crate::rows::RunRow;
use crate::runs::{Asked, Runs, RunsError};
use agent_trace_store::State;
use agent_trace_store::Store;
use agent_trace_store::state::Verdicts;
use std::sync::Arc;
use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// The index, opened in this process. Clones are the same one.
#[derive(Clone)]
pub struct Local {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<dyn Engine>,
    store: Store,
    /// What was decided about runs, as far as it was read.
    verdicts: RwLock<Verdicts>,
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
    /// where the engine keeps it on the disk, if it does.
    #[must_use]
    pub fn new(
        store: &Store,
        engine: Arc<dyn Engine>,
        program: &str,
        path: Option<String>,
    ) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let about = Status {
            pid: std::process::id(),
            program: program.to_owned(),
            since: u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX),
            path,
            ..Status::default()
        };
        let inner = Inner {
            engine,
            store: store.clone(),
            verdicts: RwLock::default(),
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
        let answered = match query {
            Query::Status => self.status().map(Reply::Status).map_err(Into::into),
            Query::Runs(query) => self.runs(query).map(Reply::Runs),
            Query::Run { workspace, name } => {
                let found = self.find(workspace, name);
                found.map(|found| Reply::Run(Box::new(found)))
            }
            Query::Stats(query) => self.stats(query).map(Reply::Stats),
        };
        answered.or_else(|error| match error.wrong() {
            Some(wrong) => Ok(Reply::Wrong(wrong)),
            None => Err(error),
        })
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
        Listed { row, decision }
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
