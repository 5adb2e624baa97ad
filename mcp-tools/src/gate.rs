//! Who asks, what they may, and how often. Workspace and user come from the key, never from
//! what is asked.

use crate::key::{self, Limit};
use crate::scope::{Scope, Scopes};
use agent_trace_index::listing::Projects;
use agent_trace_store::audit::{Audit, Call, Place};
use agent_trace_store::state::Keys;
use agent_trace_store::{State, Store};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// How many calls of one caller are answered at once.
const AT_ONCE: u32 = 8;

const SECOND: u64 = 1_000_000_000;

/// Somebody who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The id of the key; empty for one without.
    pub key: String,
    /// Who that is, in words of whoever made the key.
    pub who: String,
    /// The workspace whose runs there are.
    pub workspace: String,
    /// The project directories whose runs there are.
    pub projects: Projects,
    /// What may be done.
    pub scopes: Scopes,
    /// How often.
    pub limit: Limit,
}

impl Caller {
    /// Whoever started this process, and so can read the store as well: may read and scan.
    #[must_use]
    pub fn local(workspace: &str, projects: Projects) -> Self {
        Self {
            key: String::new(),
            who: "local".into(),
            workspace: workspace.into(),
            projects,
            scopes: Scopes::reading(),
            limit: Limit {
                calls: 600,
                seconds: 60,
            },
        }
    }

    /// Whether it has no key: it was let in because it can read the store itself.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.key.is_empty()
    }

    /// Whether this may be done.
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.has(scope)
    }
}

/// Why a caller is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such tool, as far as this caller is concerned.
    Unknown,
    /// It was asked too often.
    Limited {
        /// In how many seconds to try again.
        retry_after: u32,
    },
    /// Too much is being answered.
    Busy,
}

/// Lets callers in.
#[derive(Debug)]
pub struct Gate {
    state: State,
    audit: Audit,
    keys: Mutex<Option<Keys>>,
    calls: Arc<Mutex<Calls>>,
}

/// What was asked lately, by key.
#[derive(Debug, Default)]
struct Calls {
    place: Place,
    of: HashMap<String, Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// When they came, in the order in which they ended.
    at: VecDeque<u64>,
    running: u32,
    /// When a refusal was last written down.
    refused: u64,
}

impl Gate {
    /// The gate of this store.
    #[must_use]
    pub fn of(store: &Store) -> Self {
        Self {
            state: State::of(store),
            audit: Audit::of(store),
            keys: Mutex::default(),
            calls: Arc::default(),
        }
    }

    /// Who has this key; none where it is unknown, revoked or no longer valid. That a key was
    /// made or revoked counts for the next request.
    pub fn identify(&self, key: &str) -> Option<Caller> {
        let id = key::id(key)?;
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let read = match &mut *keys {
            Some(known) => known.refresh(&self.state),
            None => self.state.keys().map(|read| *keys = Some(read)),
        };
        if let Err(error) = read {
            // Nobody comes in by keys of which it is not known whether they still count.
            tracing::warn!("keys cannot be read: {error}");
            return None;
        }
        let (kept, revoked) = keys.as_ref()?.get(id)?;
        let is_valid = revoked.is_none() && kept.expires.is_none_or(|end| now() < end);
        if !key::is(key, kept) || !is_valid {
            return None;
        }
        let (calls, seconds) = kept.limit;
        let who = match (&kept.user[..], &kept.name[..]) {
            ("", name) => name.to_owned(),
            (user, name) => format!("{user}/{name}"),
        };
        Some(Caller {
            key: kept.id.clone(),
            who,
            workspace: kept.workspace.clone(),
            projects: Projects::All,
            scopes: Scopes::known(kept.scopes.iter().map(String::as_str)),
            limit: Limit { calls, seconds },
        })
    }

    /// Lets a call in, or tells why not; either is written down.
    ///
    /// # Errors
    /// Why it is not let in.
    pub fn enter(
        &self,
        caller: &Caller,
        tool: &str,
        arguments: &[u8],
        may: bool,
    ) -> Result<Pass, Refusal> {
        let call = Call {
            at: now(),
            key: caller.key.clone(),
            who: caller.who.clone(),
            tool: tool.into(),
            arguments: blake3::hash(arguments).to_hex()[..16].into(),
            outcome: String::new(),
        };
        let refused = match self.count(caller, call.at) {
            Ok(()) if may => None,
            Ok(()) => Some((Refusal::Unknown, "refused: not in its scopes")),
            Err(refusal @ Refusal::Limited { .. }) => Some((refusal, "refused: too often")),
            Err(refusal) => Some((refusal, "refused: too much at once")),
        };
        let pass = Pass {
            audit: self.audit.clone(),
            calls: Arc::clone(&self.calls),
            call,
            counted: !matches!(refused, Some((Refusal::Limited { .. } | Refusal::Busy, _))),
        };
        let Some((refusal, outcome)) = refused else {
            return Ok(pass);
        };
        if refusal == Refusal::Unknown || self.is_first_refusal(&pass.call) {
            pass.done(outcome);
        }
        Err(refusal)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, if there may be one more.
    fn count(&self, caller: &Caller, now: u64) -> Result<(), Refusal> {
        let mut calls = self.calls();
        let Calls { place, of } = &mut *calls;
        // What other processes let in, and this one before it was started again.
        let read = self.audit.since(place, &mut |call| {
            if !call.outcome.starts_with("refused: too") {
                of.entry(call.key).or_default().at.push_back(call.at);
            }
        });
        if let Err(error) = read {
            tracing::warn!("the audit log cannot be read: {error}");
            // Who has a key has a limit, of which nothing is known now.
            if !caller.key.is_empty() {
                return Err(Refusal::Busy);
            }
        }
        let recent = of.entry(caller.key.clone()).or_default();
        let span = u64::from(caller.limit.seconds) * SECOND;
        recent.at.retain(|at| at.saturating_add(span) > now);
        let most = usize::try_from(caller.limit.calls).unwrap_or(usize::MAX);
        let used = recent.at.len() + recent.running as usize;
        if used >= most {
            let free = recent
                .at
                .front()
                .map_or(SECOND, |at| at + span - now.min(at + span));
            let retry_after = free.div_ceil(SECOND).max(1);
            return Err(Refusal::Limited {
                retry_after: u32::try_from(retry_after).unwrap_or(u32::MAX),
            });
        }
        if recent.running >= AT_ONCE {
            return Err(Refusal::Busy);
        }
        recent.running += 1;
        Ok(())
    }

    /// Whether no refusal was written down in this second: they could fill the log.
    fn is_first_refusal(&self, call: &Call) -> bool {
        let mut calls = self.calls();
        let recent = calls.of.entry(call.key.clone()).or_default();
        let is_first = recent.refused + SECOND <= call.at;
        if is_first {
            recent.refused = call.at;
        }
        is_first
    }
}

/// A call that was let in.
#[derive(Debug)]
pub struct Pass {
    audit: Audit,
    calls: Arc<Mutex<Calls>>,
    call: Call,
    counted: bool,
}

impl Pass {
    /// Writes down what came of it.
    pub fn done(mut self, outcome: &str) {
        outcome.clone_into(&mut self.call.outcome);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.call.outcome.is_empty() {
            if !self.counted {
                return;
            }
            // Whoever asked did not wait for the answer.
            self.call.outcome = "cancelled".into();
        }
        let written = self.audit.append(&self.call);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = calls.of.entry(self.call.key.clone()).or_default();
        if let Err(error) = written {
            tracing::warn!("the audit log cannot be written: {error}");
            // It counts all the same, here at least.
            recent.at.push_back(self.call.at);
        }
        if self.counted {
            recent.running = recent.running.saturating_sub(1);
        }
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::key::{Wanted, make};
    use agent_trace_store::state::{Entry, keys::Revoked};

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        (folder, store)
    }

    fn hand_out(store: &Store, limit: &str, expires: Option<u64>) -> String {
        let wanted = Wanted {
            name: "n".into(),
            scopes: vec!["runs:read".into()],
            workspace: "w".into(),
            user: "u".into(),
            expires,
            limit: limit.parse().unwrap(),
        };
        let (key, kept) = make(wanted, now()).unwrap();
        State::of(store).append(&Entry::Key(kept)).unwrap();
        key
    }

    #[test]
    fn a_key_counts_until_it_is_revoked_or_too_old() {
        let (_folder, store) = store();
        let gate = Gate::of(&store);
        assert!(gate.identify("at_00000000_x").is_none());
        let key = hand_out(&store, "5/s", None);
        let caller = gate.identify(&key).unwrap();
        assert_eq!((&caller.workspace[..], &caller.who[..]), ("w", "u/n"));
        assert!(caller.may(Scope::RunsRead) && !caller.may(Scope::ScanRun));
        let old = hand_out(&store, "5/s", Some(1));
        assert!(gate.identify(&old).is_none());
        let id = key::id(&key).unwrap().to_owned();
        let revoked = Revoked { id, at: 1 };
        State::of(&store).append(&Entry::Revoked(revoked)).unwrap();
        assert!(gate.identify(&key).is_none());
    }

    #[test]
    fn a_limit_survives_a_restart_and_is_shared() {
        let (_folder, store) = store();
        let key = hand_out(&store, "3/h", None);
        let gate = Gate::of(&store);
        let caller = gate.identify(&key).unwrap();
        for _ in 0..2 {
            gate.enter(&caller, "t", b"{}", true).unwrap().done("ok");
        }
        // A call that its scopes do not allow counts like any other.
        assert_eq!(
            gate.enter(&caller, "t", b"", false).unwrap_err(),
            Refusal::Unknown
        );
        for gate in [&gate, &Gate::of(&store)] {
            let refused = gate.enter(&caller, "t", b"", true).unwrap_err();
            let Refusal::Limited { retry_after } = refused else {
                panic!("{refused:?}");
            };
            assert!((3_590..=3_600).contains(&retry_after), "{retry_after}");
        }
    }

    #[test]
    fn so_many_at_once_and_no_more() {
        let (_folder, store) = store();
        let key = hand_out(&store, "1000/s", None);
        let gate = Gate::of(&store);
        let caller = gate.identify(&key).unwrap();
        let enter = || gate.enter(&caller, "t", b"{}", true);
        let mut running: Vec<Pass> = (0..AT_ONCE).map(|_| enter().unwrap()).collect();
        assert_eq!(enter().unwrap_err(), Refusal::Busy);
        running.pop().unwrap().done("ok");
        assert!(enter().is_ok());
    }

    #[test]
    fn what_was_asked_is_written_down_and_not_with_which_words() {
        let (folder, store) = store();
        let gate = Gate::of(&store);
        let caller = Caller::local("w", Projects::All);
        let pass = gate.enter(&caller, "get_run", b"{\"run\":\"swordfish\"}", true);
        pass.unwrap().done("ok");
        drop(gate.enter(&caller, "get_step", b"{}", true));
        let text = std::fs::read_to_string(folder.path().join("state/audit")).unwrap();
        assert!(
            text.contains("get_run") && text.contains("\"outcome\":\"ok\""),
            "{text}"
        );
        assert!(
            text.contains("cancelled") && !text.contains("swordfish"),
            "{text}"
        );
    }
}
