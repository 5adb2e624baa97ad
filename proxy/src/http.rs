//! The relay between HTTP clients and an MCP server that speaks HTTP.
//!
//! - [`upstream`]: where a listener forwards to
//! - [`settings`]: how one listener relays
//! - [`stats`]: what is counted, for metrics
//! - [`relay`](Relay): listeners and the threads that serve them

pub mod settings;
pub mod stats;
pub mod upstream;

use agent_trace_model::Tap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

pub use settings::{HostHeader, Settings};
pub use stats::Stats;
pub use upstream::{Upstream, UpstreamError};

/// All HTTP listeners of a process, and the threads that serve them.
#[derive(Debug)]
pub struct Relay {}

impl Relay {
    /// Starts this many threads, each of which serves its connections alone.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(workers: usize, tap: Arc<dyn Tap>) -> io::Result<Self> {
        let _ = (workers, tap);
        Ok(Self {})
    }

    /// Begins to accept connections. `source` is the listener's number in what the tap is
    /// told.
    ///
    /// # Errors
    /// When the listener cannot be used.
    pub fn add(&self, source: u32, listener: TcpListener, settings: Settings) -> io::Result<()> {
        let _ = (source, listener, settings);
        Ok(())
    }

    /// Changes how a listener relays. Connections that are open go on as they began.
    pub fn update(&self, source: u32, settings: Settings) {
        let _ = (source, settings);
    }

    /// Stops accepting, and closes connections as soon as nothing is on its way on them.
    /// Open exchanges, streams among them, go on.
    pub fn remove(&self, source: u32) {
        let _ = source;
    }

    /// Ends: stops accepting, lets open exchanges come to their end, but not longer than
    /// `drain`, and then closes what is left. Blocks until all is closed. A second call from
    /// another thread with a shorter time cuts the first one short. Returns how many
    /// exchanges were cut off.
    pub fn stop(&self, drain: Duration) -> usize {
        let _ = drain;
        0
    }

    /// What was counted since the start.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::default()
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
