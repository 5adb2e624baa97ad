//! A recorder and an HTTP relay in front of it, from their start to their end: what `relay`
//! and the daemon share.
//!
//! - [`signals`]: what the process is told from outside
//! - [`counts`]: what went through each listener

mod counts;
pub(crate) mod signals;

use crate::cap::Cap;
use crate::config::relay::Listener;
use crate::error::CommandError;
use crate::recording::{acknowledge, is_off};
use agent_trace_model::{NoTap, Tap};
use agent_trace_proxy::http::{self, Relay};
use agent_trace_store::recorder::{Hooks, Recorder, Setup, Stats};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) use counts::{Counts, Totals};

/// How long the end waits for the last records. A disk that is slower than that loses them.
const FLUSH: Duration = Duration::from_secs(5);

/// A relay and its recorder, both running.
#[derive(Debug)]
pub(crate) struct Serving {
    relay: Arc<Relay>,
    recorder: Mutex<Option<Recorder>>,
    counts: Arc<Counts>,
    /// What the recorder reported last.
    trouble: Arc<Mutex<Option<String>>>,
}

/// Whether what is relayed is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recording {
    On,
    /// The user wants it so.
    Off,
    /// Why it is not.
    Failed(String),
}

impl Serving {
    /// Starts both. `setup` runs on the recorder's thread; where it fails nothing is
    /// recorded, which `report` tells the user as it does all that recording meets.
    pub(crate) fn start(
        workers: usize,
        setup: impl FnOnce() -> Result<Setup, String> + Send + 'static,
        report: fn(&str),
        limits: Option<Cap>,
    ) -> Result<Self, CommandError> {
        #[cfg(unix)]
        want_descriptors();
        let trouble: Arc<Mutex<Option<String>>> = Arc::default();
        let told = Arc::clone(&trouble);
        let hooks = Hooks {
            report: Box::new(move |text| {
                report(text);
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
            }),
            acknowledge: acknowledge(),
            opened: limits.map(|cap| Box::new(move |_: &_| cap.look_after()) as Box<_>),
        };
        let recorder = if is_off() {
            None
        } else {
            Recorder::start(setup, hooks)
                .map_err(|error| {
                    let text = format!("not recording: {error}");
                    report(&text);
                    *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
                })
                .ok()
        };
        let tap: Arc<dyn Tap> = recorder
            .as_ref()
            .map_or_else(|| Arc::new(NoTap) as _, Recorder::tap);
        let counts = Arc::new(Counts::new(tap));
        let relay = Relay::start(workers, Arc::clone(&counts) as _)
            .map_err(CommandError::failed("cannot start the relay's threads"))?;
        Ok(Self {
            relay: Arc::new(relay),
            recorder: Mutex::new(recorder),
            counts,
            trouble,
        })
    }

    /// Opens a listener, which gets this number. Returns its address, in which a port is
    /// known that was 0 before.
    pub(crate) fn listen(
        &self,
        source: u32,
        listener: &Listener,
        session_gap: Duration,
    ) -> Result<SocketAddr, CommandError> {
        let opened = http::bind(listener.listen)
            .and_then(|socket| Ok((socket.local_addr()?, socket)))
            .map_err(|source| CommandError::Listen {
                address: listener.listen,
                source,
            });
        let (address, socket) = opened?;
        self.counts.add(source);
        self.make_known(source, listener, address, session_gap);
        self.relay
            .add(source, socket, listener.settings())
            .map_err(cannot_relay(listener))?;
        Ok(address)
    }

    /// Changes how a listener relays; what is open goes on as it began.
    pub(crate) fn update(
        &self,
        source: u32,
        listener: &Listener,
        address: SocketAddr,
        session_gap: Duration,
    ) -> Result<(), CommandError> {
        self.relay
            .update(source, listener.settings())
            .map_err(cannot_relay(listener))?;
        self.make_known(source, listener, address, session_gap);
        Ok(())
    }

    /// Closes a listener; what is open goes on.
    pub(crate) fn remove(&self, source: u32) {
        self.relay.remove(source);
    }

    fn make_known(&self, source: u32, listener: &Listener, address: SocketAddr, gap: Duration) {
        if let Some(recorder) = &*self.recorder() {
            recorder.listener(source, listener.in_trace(address, gap));
        }
    }

    /// Whether what is relayed is recorded.
    pub(crate) fn recording(&self) -> Recording {
        if is_off() {
            return Recording::Off;
        }
        let stats = self.recorded();
        let told = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match &*told {
            _ if stats.recording => Recording::On,
            Some(why) => Recording::Failed(why.clone()),
            // The journal is made when there is something to put into it.
            None if stats.bytes.iter().sum::<u64>() == 0 => Recording::On,
            None => Recording::Failed("the recorder failed; relaying goes on without it".into()),
        }
    }

    /// What the recorder counted.
    pub(crate) fn recorded(&self) -> Stats {
        let recorder = self.recorder();
        recorder.as_ref().map(Recorder::stats).unwrap_or_default()
    }

    /// What the relay counted.
    pub(crate) fn relayed(&self) -> Arc<http::Stats> {
        self.relay.stats()
    }

    /// What went through a listener.
    pub(crate) fn totals(&self, source: u32) -> Totals {
        self.counts.of(source)
    }

    fn recorder(&self) -> std::sync::MutexGuard<'_, Option<Recorder>> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets open exchanges come to their end, but not longer than `drain` and not beyond
    /// `cut`, and writes what was recorded.
    pub(crate) async fn stop(&self, drain: Duration, cut: impl Future<Output = ()>) {
        let stop = |limit| {
            let relay = Arc::clone(&self.relay);
            tokio::task::spawn_blocking(move || relay.stop(limit))
        };
        let mut draining = stop(drain);
        let cut_off = tokio::select! {
            done = &mut draining => done.unwrap_or_default(),
            () = cut => {
                // Whichever of the two finds them open tells how many there were.
                let cut_off = stop(Duration::ZERO).await.unwrap_or_default();
                cut_off.max(draining.await.unwrap_or_default())
            }
        };
        if cut_off > 0 {
            tracing::warn!("exchanges that were cut off: {cut_off}");
        }
        let recorder = self.recorder().take();
        let flushed = tokio::task::spawn_blocking(|| recorder.is_none_or(|r| r.stop(FLUSH)));
        if !flushed.await.unwrap_or(false) {
            tracing::warn!("the disk was too slow for the last records");
        }
    }
}

fn cannot_relay(listener: &Listener) -> impl FnOnce(std::io::Error) -> CommandError {
    CommandError::failed(format!("cannot relay to {}", listener.to.origin()))
}

/// Each open stream takes two descriptors, and the usual limit of 1024 is there for programs
/// that use `select`: we do not.
#[cfg(unix)]
fn want_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}
