//! Requests that are repeated with the input that the server asked for (MCP 2026-07-28).
//!
//! The server answers `{resultType: "input_required", requestState?, …}`, and the client sends
//! the request once more, with a new id and the input. What links the rounds is an equal
//! `requestState`, or where there is none the same method and parameters.

use super::super::step::{Frame, Step};
use agent_trace_wire::message::{Message, member};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

/// Members that differ from round to round.
const OF_A_ROUND: [&str; 3] = ["inputResponses", "requestState", "_meta"];

/// Steps that wait for the client's input.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    by_state: HashMap<Vec<u8>, usize>,
    by_params: HashMap<[u8; 32], Vec<usize>>,
    waiting: HashMap<usize, Waiting>,
}

#[derive(Clone, Debug)]
struct Waiting {
    /// Where it was answered.
    exchange: u32,
    state: Option<Vec<u8>>,
    params: [u8; 32],
}

impl Rounds {
    /// Whether this answer asks for input. The step then waits for it.
    pub(super) fn wait(
        &mut self,
        position: usize,
        step: &Step,
        answer: &Message<'_>,
        exchange: u32,
        frames: &[Frame],
    ) -> bool {
        let Some(result) = answer.result else {
            return false;
        };
        if member(result, "resultType") != Some(b"\"input_required\"") {
            return false;
        }
        let state = member(result, "requestState").map(<[u8]>::to_vec);
        let params = fingerprint(step.method.as_deref(), step.params(frames));
        if let Some(state) = &state {
            self.by_state.insert(state.clone(), position);
        }
        self.by_params.entry(params).or_default().push(position);
        let waiting = Waiting {
            exchange,
            state,
            params,
        };
        self.waiting.insert(position, waiting);
        true
    }

    /// The positions of the steps that wait.
    pub(super) fn steps(&self) -> impl Iterator<Item = usize> {
        let listed = self
            .by_state
            .values()
            .chain(self.by_params.values().flatten());
        listed.chain(self.waiting.keys()).copied()
    }

    /// Positions have changed.
    pub(super) fn renumber(&mut self, new: impl Fn(usize) -> usize) {
        let listed = self.by_state.values_mut();
        for step in listed.chain(self.by_params.values_mut().flatten()) {
            *step = new(*step);
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting = waiting.into_iter().map(|(s, w)| (new(s), w)).collect();
    }

    pub(super) fn is_waiting(&self, step: usize) -> bool {
        self.waiting.contains_key(&step)
    }

    /// The step that this request goes on with, if it does, and the exchange of the round
    /// before. It waits no longer.
    pub(super) fn take(&mut self, request: &Message<'_>) -> Option<(usize, u32)> {
        if self.waiting.is_empty() {
            return None;
        }
        let params = request.params?;
        let state = member(params, "requestState");
        if state.is_none() && member(params, "inputResponses").is_none() {
            return None;
        }
        let step = match state {
            Some(state) => *self.by_state.get(state)?,
            None => {
                let params = fingerprint(request.method.as_deref(), Some(params));
                *self.by_params.get(&params)?.last()?
            }
        };
        let waiting = self.waiting.remove(&step)?;
        if let Some(state) = waiting.state {
            self.by_state.remove(&state);
        }
        if let Some(steps) = self.by_params.get_mut(&waiting.params) {
            steps.retain(|waits| *waits != step);
            if steps.is_empty() {
                self.by_params.remove(&waiting.params);
            }
        }
        Some((step, waiting.exchange))
    }
}

/// What a request is about, without what differs from round to round.
fn fingerprint(method: Option<&str>, params: Option<&[u8]>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(method.unwrap_or_default().as_bytes());
    let params = params.unwrap_or_default();
    match serde_json::from_slice::<BTreeMap<String, &RawValue>>(params) {
        Ok(members) => {
            for (name, value) in members {
                if !OF_A_ROUND.contains(&&name[..]) {
                    add(name.as_bytes());
                    add(value.get().as_bytes());
                }
            }
        }
        Err(_) => add(params),
    }
    *hasher.finalize().as_bytes()
}
