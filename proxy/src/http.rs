//! The relay between HTTP clients and an MCP server that speaks HTTP.
//!
//! ```text
//! client ⇄ Connection ⇄ Link ⇄ server        both on one thread, chunk by chunk
//!               └ Copies → tap               after what they are copies of was written
//! ```
//! - [`settings`], [`upstream`]: how one listener relays, and where to
//! - [`stats`]: what is counted, for metrics
//! - `worker`: the threads, and accepting
//! - `connection`, `forward`, `exchange`, `body`: a connection, its requests, their bodies
//! - [`client`]: one request of our own
//! - `link`, `tls`, `socket`: the connection to the server
//! - `turns`: which of the two connections has something to do
//! - `policy`: who may call; `answer`: what the listener answers by itself
//! - `head`, `expect`, `rewrite`: what HTTP wants of a relay
//! - `copies`, `meter`: what the tap is told, and how long bytes stayed
//!
//! hyper speaks HTTP on both sides. Nothing is retried, nothing is cached, no redirect is
//! followed and no stream ends by a time-out of ours.

mod answer;
mod body;
pub mod client;
mod connection;
mod copies;
mod exchange;
mod expect;
mod forward;
mod head;
mod link;
mod meter;
mod policy;
mod rewrite;
pub mod settings;
mod socket;
pub mod stats;
mod tls;
mod turns;
pub mod upstream;
mod worker;

use agent_trace_model::Tap;
use connection::Shared;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub(crate) use tls::Tls;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use worker::{Listening, Work, Workers};

pub use settings::{HostHeader, Settings};
pub use stats::Stats;
pub use upstream::{Upstream, UpstreamError};

/// How often a relay that is being stopped looks whether all is done.
const LOOK: Duration = Duration::from_millis(10);

/// All HTTP listeners of a process, and the threads that serve them.
pub struct Relay {
    shared: Shared,
    workers: Workers,
    state: Mutex<State>,
    /// The time until which a stop waits was changed.
    hurry: Condvar,
}

#[derive(Default)]
struct State {
    listeners: HashMap<u32, Handle>,
    threads: Vec<JoinHandle<()>>,
    /// The system's certificates, read when they are first needed.
    tls: Option<Arc<Tls>>,
    /// Until when open exchanges may go on, once the relay is being stopped.
    deadline: Option<Instant>,
}

/// A listener as seen from outside its thread.
struct Handle {
    settings: watch::Sender<(Arc<Settings>, Option<Arc<Tls>>)>,
    gone: CancellationToken,
}

impl Relay {
    /// Starts this many threads, each of which serves its connections alone.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(workers: usize, tap: Arc<dyn Tap>) -> io::Result<Self> {
        let shared = Shared {
            tap,
            stats: Arc::default(),
            exchanges: Arc::new(AtomicU32::new(0)),
            connections: Arc::new(AtomicU32::new(0)),
            stopping: CancellationToken::new(),
            cut: CancellationToken::new(),
        };
        let (workers, threads) = Workers::start(workers, &shared)?;
        let state = State {
            threads,
            ..State::default()
        };
        Ok(Self {
            shared,
            workers,
            state: Mutex::new(state),
            hurry: Condvar::new(),
        })
    }

    /// Begins to accept connections. `source` is the listener's number in what the tap is
    /// told.
    ///
    /// # Errors
    /// When the listener cannot be used, or there are no certificates to check the server's
    /// with.
    pub fn add(&self, source: u32, listener: TcpListener, settings: Settings) -> io::Result<()> {
        let mut state = self.lock();
        let tls = state.tls_for(&settings)?;
        let (settings, receiver) = watch::channel((Arc::new(settings), tls));
        let gone = self.shared.stopping.child_token();
        self.workers.give(Work::Listen(Listening {
            listener,
            source,
            settings: receiver,
            gone: gone.clone(),
        }))?;
        state.listeners.insert(source, Handle { settings, gone });
        Ok(())
    }

    /// Changes how a listener relays. Connections that are open go on as they began.
    ///
    /// # Errors
    /// When there are no certificates to check the server's with; nothing is changed then.
    pub fn update(&self, source: u32, settings: Settings) -> io::Result<()> {
        let mut state = self.lock();
        let tls = state.tls_for(&settings)?;
        if let Some(handle) = state.listeners.get(&source) {
            handle.settings.send_replace((Arc::new(settings), tls));
        }
        Ok(())
    }

    /// Stops accepting, and closes connections as soon as nothing is on its way on them.
    /// Open exchanges, streams among them, go on.
    pub fn remove(&self, source: u32) {
        if let Some(handle) = self.lock().listeners.remove(&source) {
            handle.gone.cancel();
        }
    }

    /// Ends: stops accepting, lets open exchanges come to their end, but not longer than
    /// `drain`, and then closes what is left. Blocks until all is closed. A second call from
    /// another thread with a shorter time cuts the first one short. Returns how many
    /// exchanges were cut off.
    pub fn stop(&self, drain: Duration) -> usize {
        let wanted = Instant::now() + drain;
        let mut state = self.lock();
        if state.deadline.is_none_or(|deadline| wanted < deadline) {
            state.deadline = Some(wanted);
            self.hurry.notify_all();
        }
        self.shared.stopping.cancel();
        let open = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed) > 0;
        let stats = &self.shared.stats;
        while open(&stats.connections_open)
            && state.deadline.is_some_and(|until| Instant::now() < until)
        {
            state = self
                .hurry
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let cut = stats.exchanges_open.load(Ordering::Relaxed);
        self.shared.cut.cancel();
        for thread in std::mem::take(&mut state.threads) {
            _ = thread.join();
        }
        usize::try_from(cut).unwrap_or(usize::MAX)
    }

    /// What was counted since the start.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.shared.stats)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tls_for(&mut self, settings: &Settings) -> io::Result<Option<Arc<Tls>>> {
        if !settings.upstream.tls() {
            return Ok(None);
        }
        if self.tls.is_none() {
            self.tls = Some(Arc::new(Tls::load()?));
        }
        Ok(self.tls.clone())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}

/// Opens a listener that [`Relay::add`] takes.
///
/// # Errors
/// What the system says, as that the address is in use.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
