//! The index while the daemon runs: it owns it as soon as nobody else does.

use super::Daemon;
use crate::error::in_one_line;
use agent_trace_index::control::server::Answering;
use agent_trace_index::protocol::Query;
use agent_trace_index::runs::Asked;
use agent_trace_index::{Local, Owner, Runs, RunsError, Settings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// After how long it is tried again where it cannot be had.
const RETRY: Duration = Duration::from_secs(30);

/// How long an assistant waits for the index, and how often it is looked for.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// The index, while it is ours.
#[derive(Debug, Default)]
pub(super) struct Index(Mutex<Option<Ours>>);

/// The index in this process, and what answers for it on a socket.
#[derive(Clone, Debug)]
struct Ours {
    local: Local,
    answering: Arc<Answering>,
}

impl Index {
    pub(super) fn answering(&self) -> Option<Arc<Answering>> {
        self.ours().map(|ours| ours.answering)
    }

    fn ours(&self) -> Option<Ours> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, ours: Option<Ours>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ours;
    }
}

impl Runs for Daemon {
    fn ask(&self, query: Query) -> Asked<'_> {
        Box::pin(async move {
            // Just started, or another process has it for a moment.
            let ours = async {
                loop {
                    match self.index.ours() {
                        Some(ours) => return ours,
                        None => tokio::time::sleep(LOOK).await,
                    }
                }
            };
            match tokio::time::timeout(PATIENCE, ours).await {
                Ok(ours) => ours.local.ask(query).await,
                Err(_) => Err(RunsError::Busy(None)),
            }
        })
    }
}

/// Owns the index until the daemon ends; others ask for it on this socket.
pub(super) async fn own(daemon: Arc<Daemon>, socket: PathBuf) {
    let settings = Settings::new(env!("CARGO_PKG_VERSION"), |line| tracing::warn!("{line}"));
    let ending = daemon.shutdown.clone();
    let owning = async {
        loop {
            if let Err(error) = own_once(&daemon, &settings, &socket).await {
                tracing::warn!("no index: {}", in_one_line(&error));
                tokio::time::sleep(RETRY).await;
            }
        }
    };
    ending.run_until_cancelled(owning).await;
    daemon.index.set(None);
}

/// Owns it until it is found damaged: opened again, it is begun anew.
async fn own_once(
    daemon: &Arc<Daemon>,
    settings: &Settings,
    socket: &std::path::Path,
) -> Result<(), RunsError> {
    let owner = Owner::wait(&daemon.store, settings).await?;
    let stop = Arc::new(AtomicBool::new(false));
    // Stops when this is dropped, however that comes about.
    let _stops = Stop(Arc::clone(&stop));
    let (of, stops) = (Arc::clone(daemon), Arc::clone(&stop));
    tokio::task::spawn_blocking(move || super::judging::follow(&of, &stops));
    let following = owner.local().clone();
    let mut follows = tokio::task::spawn_blocking(move || following.follow(&stop));
    daemon.index.set(Some(Ours {
        local: owner.local().clone(),
        answering: Arc::new(Answering::new(owner.local().clone())),
    }));
    if let Err(error) = owner.sign(socket) {
        tracing::warn!("others cannot ask the daemon for the index: {error}");
    }
    tracing::info!("the index is open");
    let ended = tokio::select! {
        () = owner.damaged() => Ok(()),
        ended = &mut follows => ended.unwrap_or_else(|error| Err(RunsError::Failed(error.into()))),
    };
    daemon.index.set(None);
    ended
}

/// Tells who follows to stop.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
