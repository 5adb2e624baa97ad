//! The daemon's listeners: those that are, and how they become those that are wanted.

use super::protocol::Relayed;
use crate::config::relay::Listener;
use crate::error::{CommandError, in_one_line};
use crate::serving::Serving;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long an address may be in use that we gave up ourselves a moment ago.
const CLOSING: Duration = Duration::from_millis(500);

/// Every listener that is wanted, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    slots: Vec<Slot>,
    /// The number that was given out last. None is used twice: the trace tells by it.
    last: u32,
}

#[derive(Debug)]
struct Slot {
    source: u32,
    wanted: Listener,
    /// Its address, or why it does not listen.
    state: Result<SocketAddr, String>,
    gap: Duration,
}

/// What became of it, in lines.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) done: Vec<String>,
    pub(super) failed: Vec<String>,
}

impl Listeners {
    /// Adds what is new, changes what has the same `listen`, and removes the rest. What is
    /// open goes on in any case.
    pub(super) fn apply(
        &mut self,
        serving: &Serving,
        wanted: &[Listener],
        gap: Duration,
    ) -> Changes {
        let mut changes = Changes::default();
        let mut before = std::mem::take(&mut self.slots);
        let mut found = Vec::new();
        for listener in wanted {
            let same = before
                .iter()
                .position(|slot| slot.wanted.listen == listener.listen);
            found.push(same.map(|at| before.remove(at)));
        }
        // First of all, since their addresses may be wanted by others.
        let mut gave_up = false;
        for slot in before {
            if let Ok(address) = slot.state {
                serving.remove(slot.source);
                gave_up = true;
                let line = format!("no longer relaying {}", slot.wanted.url(address));
                changes.done.push(line);
            }
        }
        let patience = if gave_up { CLOSING } else { Duration::ZERO };
        for (listener, slot) in wanted.iter().zip(found) {
            let slot = match slot {
                Some(slot) => slot.change(serving, listener, gap, &mut changes),
                None => {
                    self.last += 1;
                    let mut slot = Slot {
                        source: self.last,
                        wanted: listener.clone(),
                        state: Err("not tried yet".into()),
                        gap,
                    };
                    slot.open(serving, patience, &mut changes);
                    slot
                }
            };
            self.slots.push(slot);
        }
        changes
    }

    /// Tries again those that could not listen.
    pub(super) fn retry(&mut self, serving: &Serving) -> Changes {
        let mut changes = Changes::default();
        for slot in self.slots.iter_mut().filter(|slot| slot.state.is_err()) {
            slot.open(serving, Duration::ZERO, &mut changes);
        }
        changes
    }

    /// How each does.
    pub(super) fn status(&self, serving: &Serving) -> Vec<Relayed> {
        let status = |slot: &Slot| {
            let address = *slot.state.as_ref().unwrap_or(&slot.wanted.listen);
            Relayed {
                name: slot.wanted.name.clone(),
                client: slot.wanted.client.clone(),
                listen: address.to_string(),
                url: slot.wanted.url(address),
                to: slot.wanted.to.to_string(),
                error: slot.state.as_ref().err().cloned(),
                totals: serving.totals(slot.source),
            }
        };
        self.slots.iter().map(status).collect()
    }
}

impl Slot {
    fn open(&mut self, serving: &Serving, patience: Duration, changes: &mut Changes) {
        let end = Instant::now() + patience;
        let opened = loop {
            match serving.listen(self.source, &self.wanted, self.gap) {
                Err(CommandError::Listen { .. }) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => break opened,
            }
        };
        match opened {
            Ok(address) => {
                let line = format!(
                    "relaying {} -> {}",
                    self.wanted.url(address),
                    self.wanted.to
                );
                changes.done.push(line);
                self.state = Ok(address);
            }
            Err(error) => {
                let why = in_one_line(&error);
                changes.failed.push(why.clone());
                self.state = Err(why);
            }
        }
    }

    fn change(
        mut self,
        serving: &Serving,
        wanted: &Listener,
        gap: Duration,
        changes: &mut Changes,
    ) -> Self {
        let Ok(address) = self.state else {
            (self.wanted, self.gap) = (wanted.clone(), gap);
            self.open(serving, Duration::ZERO, changes);
            return self;
        };
        let is_new = self.wanted != *wanted;
        if !is_new && self.gap == gap {
            return self;
        }
        match serving.update(self.source, wanted, address, gap) {
            Ok(()) => {
                (self.wanted, self.gap) = (wanted.clone(), gap);
                if is_new {
                    let line = format!("now relaying {} -> {}", wanted.url(address), wanted.to);
                    changes.done.push(line);
                }
            }
            // It goes on as it was.
            Err(error) => changes.failed.push(in_one_line(&error)),
        }
        self
    }
}
