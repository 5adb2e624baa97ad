//! What was decided about runs.

use super::{Entry, Stamp, State, StateError};
use agent_trace_model::{Judge, RunId, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// What someone decided about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The run, by the id that it had then.
    pub run: RunId,
    /// What was decided.
    pub verdict: Verdict,
    /// Why, redacted; empty where nothing was said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Who decided.
    pub by: Judge,
    /// When, in nanoseconds since 1970.
    pub at: u64,
}

/// The decisions that count: of each about each run the last.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// With the position of each among all entries.
    of: HashMap<RunId, BTreeMap<Judge, (usize, Decision)>>,
    stamp: Stamp,
}

impl Verdicts {
    pub(super) fn read(state: &State) -> Result<Self, StateError> {
        // Taken before: what comes in between is then read once more.
        let stamp = Stamp::of(&state.path())?;
        let mut verdicts = Self {
            stamp,
            ..Self::default()
        };
        for (position, entry) in state.entries()?.all.into_iter().enumerate() {
            if let Entry::Verdict(decision) = entry {
                let of = verdicts.of.entry(decision.run).or_default();
                of.insert(decision.by, (position, decision));
            }
        }
        Ok(verdicts)
    }

    /// Reads them again if the log has changed; tells whether it has.
    ///
    /// # Errors
    /// When it cannot be read; they are then as they were.
    pub fn refresh(&mut self, state: &State) -> Result<bool, StateError> {
        let changed = Stamp::of(&state.path())? != self.stamp;
        if changed {
            *self = Self::read(state)?;
        }
        Ok(changed)
    }

    /// The decision that counts for a run with these ids (its own and those that it also goes
    /// by): a person's before an evaluation's, that before a check's. Of each the last, under
    /// whichever id.
    pub fn decision(&self, ids: impl IntoIterator<Item = RunId>) -> Option<&Decision> {
        let known = ids.into_iter().filter_map(|id| self.of.get(&id));
        let all = known.flat_map(BTreeMap::iter);
        // The most important judge is the least.
        let best = all.max_by_key(|(by, (position, _))| (std::cmp::Reverse(**by), *position));
        best.map(|(_, (_, decision))| decision)
    }

    /// The verdict that counts for a run with these ids.
    pub fn verdict(&self, ids: impl IntoIterator<Item = RunId>) -> Verdict {
        self.decision(ids).map_or(Verdict::Unjudged, |d| d.verdict)
    }

    /// When a judge last decided about a run with these ids, in nanoseconds since 1970.
    #[must_use]
    pub fn judged_at(&self, judge: Judge, ids: impl IntoIterator<Item = RunId>) -> Option<u64> {
        let known = ids.into_iter().filter_map(|id| self.of.get(&id));
        let decisions = known.filter_map(|of| of.get(&judge));
        decisions.map(|(_, decision)| decision.at).max()
    }

    /// The ids of the runs about which something was decided, in no particular order.
    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.of.keys().copied()
    }
}
