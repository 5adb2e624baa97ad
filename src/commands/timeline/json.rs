//! A timeline as JSON. Moments are nanoseconds since the run began.

use crate::render::time::rfc3339;
use crate::render::words::Named;
use agent_trace_analysis::timeline::{Idle, Phase, PhaseKind, Retry, Slow, Timeline};
use agent_trace_model::story::Story;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    run: String,
    started: String,
    duration: u64,
    busy: u64,
    median: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_at_once: Option<Most>,
    idle: &'a [Idle],
    phases: Vec<PhaseLine<'a>>,
}

#[derive(Debug, Serialize)]
struct Most {
    requests: usize,
    step: usize,
}

#[derive(Debug, Serialize)]
struct PhaseLine<'a> {
    phase: PhaseKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<&'a str>,
    started: u64,
    ended: u64,
    steps: Vec<BarLine<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct BarLine<'a> {
    #[serde(flatten)]
    step: Named<'a>,
    phase: PhaseKind,
    started: u64,
    ended: Option<u64>,
    at_once: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<Slow>,
}

pub(super) fn document<'a>(story: &'a Story, line: &'a Timeline) -> Document<'a> {
    let phase = |phase: &'a Phase| PhaseLine {
        phase: phase.kind,
        turn: turn(story, phase),
        started: phase.started,
        ended: phase.ended,
        steps: of_phase(story, phase).collect(),
    };
    Document {
        run: story.id.to_string(),
        started: rfc3339(line.started),
        duration: line.duration,
        busy: line.busy,
        median: line.median,
        most_at_once: line.most.map(|(requests, step)| Most { requests, step }),
        idle: &line.idle,
        phases: line.phases.iter().map(phase).collect(),
    }
}

/// The steps of all phases.
pub(super) fn bars<'a>(story: &'a Story, line: &'a Timeline) -> impl Iterator<Item = BarLine<'a>> {
    line.phases.iter().flat_map(|phase| of_phase(story, phase))
}

fn of_phase<'a>(story: &'a Story, phase: &'a Phase) -> impl Iterator<Item = BarLine<'a>> {
    phase.bars.iter().map(|bar| BarLine {
        step: Named::of(story, &story.steps[bar.step]),
        phase: phase.kind,
        started: bar.started,
        ended: bar.ended,
        at_once: bar.at_once,
        retry: bar.retry,
        slow: bar.slow,
    })
}

fn turn<'a>(story: &'a Story, phase: &Phase) -> Option<&'a str> {
    Some(&story.turns.get(phase.turn?)?.id)
}
