//! Waiting for something to happen in the journals.

use agent_trace_store::Store;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often it is looked whether something happened, where the system tells of it …
const TOLD: Duration = Duration::from_secs(2);
/// … and where it does not.
const UNTOLD: Duration = Duration::from_millis(250);
/// After something happened, more is waited for so long.
const CALM: Duration = Duration::from_millis(20);
/// How soon it is noticed that nothing is waited for any more.
const GLANCE: Duration = Duration::from_millis(100);

/// Tells when something happens in the journals of a store.
#[derive(Debug)]
pub struct Events {
    events: Receiver<()>,
    _events: Sender<()>,
    watcher: Option<RecommendedWatcher>,
    store: Store,
}

impl Events {
    /// Events of this store. Where the system tells of none it is looked at now and then.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        let (sender, events) = channel();
        let mut this = Self {
            events,
            _events: sender.clone(),
            watcher: None,
            store: store.clone(),
        };
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // What is only read changes nothing; reading it would go on forever.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = sender.send(());
            }
        });
        match watcher {
            Ok(watcher) => this.watch(watcher),
            Err(error) => tracing::debug!("journals are polled: {error}"),
        }
        this
    }

    fn watch(&mut self, mut watcher: RecommendedWatcher) {
        let journal = self.store.root().join("journal");
        // Nothing was recorded yet: without a folder there is nothing to watch.
        let made = self.store.make(&self.store.live());
        let watched = made.is_ok() && watcher.watch(&journal, RecursiveMode::Recursive).is_ok();
        if watched {
            self.watcher = Some(watcher);
        } else {
            tracing::debug!("{}: polled", journal.display());
        }
    }

    /// Waits until something happens, or it is time to look, or this says to stop.
    pub fn wait(&self, stop: &AtomicBool) {
        let mut left = if self.watcher.is_some() { TOLD } else { UNTOLD };
        while !left.is_zero() && !stop.load(Ordering::Relaxed) {
            let glance = left.min(GLANCE);
            match self.events.recv_timeout(glance) {
                Ok(()) => {
                    std::thread::sleep(CALM);
                    while self.events.try_recv().is_ok() {}
                    return;
                }
                Err(RecvTimeoutError::Timeout) => left -= glance,
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(glance);
                    left -= glance;
                }
            }
        }
    }
}
