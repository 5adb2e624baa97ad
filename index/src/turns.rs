//! The prompts of a run, and the steps that belong to each.

use crate::digest::wire_keys::WireKeys;
use crate::rows::RunRow;
use agent_trace_model::Stream;
use agent_trace_model::story::{Story, Turn};
use std::collections::HashMap;

/// Says of each step which prompt it belongs to: the one that its request names, else the last
/// one that had begun.
pub(crate) fn fill(story: &mut Story, row: &RunRow) {
    let turns = row.turns.iter().map(|turn| Turn {
        id: turn.id.clone(),
        started: turn.started,
    });
    story.turns = turns.collect();
    if story.turns.is_empty() {
        return;
    }
    let known: HashMap<String, usize> = story
        .turns
        .iter()
        .enumerate()
        .map(|(position, turn)| (turn.id.clone(), position))
        .collect();
    for step in &mut story.steps {
        let request = step.request.as_ref();
        let request = request.filter(|_| step.from == Stream::ClientToServer);
        let named = request.and_then(|request| WireKeys::of(&request.text).turn);
        let named = named.and_then(|id| known.get(&id).copied());
        let begun = story
            .turns
            .partition_point(|turn| turn.started <= step.wall);
        step.turn = named.or_else(|| begun.checked_sub(1));
    }
}
