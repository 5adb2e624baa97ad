//! The way to the index, whoever owns it: this process where nobody else does, else the one
//! that does; and this one again where that one ends.
//!
//! A command that has the index for the few milliseconds of its life serves nobody: who comes
//! meanwhile waits for it. A process that lives long serves others on a socket.

use crate::local::Local;
use crate::owner::{Owner, Settings, Taken, jitter};
use crate::protocol::{Query, Reply};
use crate::runs::{Asked, Runs, RunsError};
use agent_trace_store::Store;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

#[cfg(unix)]
use crate::control::client::Remote;

/// After how long the user is told that somebody is waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// The way to the index of a store.
#[derive(Debug)]
pub struct Access {
    store: Store,
    settings: Settings,
    /// Whether others are served where the index is ours.
    serves: bool,
    ours: Mutex<Option<Ours>>,
}

/// The index in this process, and what serves it to others. That ends first.
#[derive(Debug)]
struct Ours {
    #[cfg(unix)]
    _serving: Option<serving::Serving>,
    owner: Owner,
}

/// Where a question goes.
enum Way {
    Local(Local),
    #[cfg(unix)]
    Remote(Remote),
}

impl Access {
    /// The way of a command that ends soon.
    #[must_use]
    pub fn brief(store: &Store, settings: Settings) -> Self {
        Self::new(store, settings, false)
    }

    /// The way of a process that lives long: where the index is its own, it serves others.
    #[must_use]
    pub fn lasting(store: &Store, settings: Settings) -> Self {
        Self::new(store, settings, true)
    }

    fn new(store: &Store, settings: Settings, serves: bool) -> Self {
        Self {
            store: store.clone(),
            settings,
            serves,
            ours: Mutex::new(None),
        }
    }

    /// Lets others have the index, if it is ours. The next question takes it again.
    pub async fn release(&self) {
        *self.ours.lock().await = None;
    }

    async fn answer(&self, query: Query) -> Result<Reply, RunsError> {
        let mut waiting = Waiting::new(&self.settings);
        let mut is_mended = false;
        loop {
            let answered = match self.way(&mut waiting).await? {
                Way::Local(local) => local.ask(query.clone()).await,
                #[cfg(unix)]
                Way::Remote(remote) => remote.ask(query.clone()).await,
            };
            match answered {
                // It ended, and somebody takes over, maybe we.
                Err(RunsError::Lost { pid, source }) => {
                    if !waiting.pause(pid).await {
                        return Err(RunsError::Lost { pid, source });
                    }
                }
                // Opened again it is begun anew.
                Err(RunsError::Engine(error)) if error.is_damage() && !is_mended => {
                    is_mended = true;
                    self.release().await;
                }
                other => return other,
            }
        }
    }

    /// Where a question goes now.
    async fn way(&self, waiting: &mut Waiting<'_>) -> Result<Way, RunsError> {
        let mut ours = self.ours.lock().await;
        loop {
            if let Some(ours) = &*ours {
                return Ok(Way::Local(ours.owner.local().clone()));
            }
            match Owner::take_aside(&self.store, &self.settings).await? {
                Taken::Ours(owner) => *ours = Some(self.open(owner)),
                Taken::Theirs(holder) => {
                    #[cfg(unix)]
                    if let Some(remote) = Remote::of(&holder) {
                        return Ok(Way::Remote(remote));
                    }
                    if !waiting.pause(holder.pid).await {
                        return Err(RunsError::Busy(holder.pid));
                    }
                }
            }
        }
    }

    #[cfg(unix)]
    fn open(&self, owner: Owner) -> Ours {
        let serving = self.serves.then(|| serving::begin(&self.store, &owner));
        let serving = serving.and_then(|begun| {
            begun
                .inspect_err(|error| {
                    let text = format!("others cannot ask this process for the index: {error}");
                    (self.settings.report)(&text);
                })
                .ok()
        });
        Ours {
            _serving: serving,
            owner,
        }
    }

    #[cfg(not(unix))]
    fn open(&self, owner: Owner) -> Ours {
        let _ = self.serves;
        Ours { owner }
    }
}

impl Runs for Access {
    fn ask(&self, query: Query) -> Asked<'_> {
        Box::pin(self.answer(query))
    }
}

/// Waiting for somebody who has the index, not for ever.
struct Waiting<'a> {
    settings: &'a Settings,
    begun: Instant,
    is_told: bool,
}

impl<'a> Waiting<'a> {
    fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            begun: Instant::now(),
            is_told: false,
        }
    }

    /// Waits a moment; false where it was too long already.
    async fn pause(&mut self, pid: Option<u32>) -> bool {
        let waited = self.begun.elapsed();
        if waited > self.settings.patience {
            return false;
        }
        if waited > SILENCE && !self.is_told {
            self.is_told = true;
            let pid = pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            (self.settings.report)(&format!("waiting for process{pid}, which has the index"));
        }
        tokio::time::sleep(jitter(5, 50)).await;
        true
    }
}

#[cfg(unix)]
mod serving {
    use super::Owner;
    use crate::control::server::{Answering, serve};
    use agent_trace_store::Store;
    use agent_trace_store::socket::{self, Socket};
    use std::io;
    use std::sync::Arc;
    use tokio::net::UnixListener;
    use tokio::task::JoinHandle;

    /// Serves others until it is dropped.
    #[derive(Debug)]
    pub(super) struct Serving {
        task: JoinHandle<()>,
        _socket: Socket,
    }

    pub(super) fn begin(store: &Store, owner: &Owner) -> io::Result<Serving> {
        let (socket, listener) = socket::open(store, socket::INDEX)?;
        let listener = UnixListener::from_std(listener)?;
        owner.sign(&socket.path)?;
        let answering = Answering::new(owner.local().clone());
        Ok(Serving {
            task: tokio::spawn(serve(listener, Arc::new(answering))),
            _socket: socket,
        })
    }

    impl Drop for Serving {
        fn drop(&mut self) {
            self.task.abort();
        }
    }
}
