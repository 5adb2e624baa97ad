//! Letting go of steps about which nothing more will be learned, so that a session of any
//! length can be followed in bounded memory.

use super::super::step::Frame;
use super::{Key, Steps};
use std::collections::{BTreeSet, HashMap};

impl Steps {
    /// Lets go of the steps that are settled and were told of, and of the frames that no
    /// other step refers to. Positions of steps and frames change, numbers do not. What comes
    /// next means the same as if nothing had been let go.
    pub(in super::super) fn compact(&mut self, frames: &mut Vec<Frame>) {
        let kept = self.referred();
        let mut steps = HashMap::with_capacity(kept.len());
        let mut all = Vec::with_capacity(kept.len());
        for (position, step) in std::mem::take(&mut self.all).into_iter().enumerate() {
            if kept.contains(&position) {
                steps.insert(position, all.len());
                all.push(step);
            } else {
                self.dropped += 1;
            }
        }
        self.all = all;
        self.renumber(&steps);
        self.compact_frames(frames);
    }

    /// The positions of the steps that may still change or be told of.
    fn referred(&self) -> BTreeSet<usize> {
        let mut kept: BTreeSet<usize> = self.unsettled.clone();
        kept.extend(&self.settled);
        let known = self.open.values().chain(self.progress.values());
        kept.extend(known.flatten().map(|(_, step)| *step));
        kept.extend(self.tokens.keys());
        for running in self.exchanges.values() {
            kept.extend(&running.asked);
            kept.extend(running.step);
        }
        kept.extend(self.rounds.steps());
        kept
    }

    fn renumber(&mut self, to: &HashMap<usize, usize>) {
        let new = |step: usize| to.get(&step).copied().unwrap_or(step);
        let known = |known: &mut HashMap<Key, Vec<(u32, usize)>>| {
            for (_, step) in known.values_mut().flatten() {
                *step = new(*step);
            }
        };
        known(&mut self.open);
        known(&mut self.progress);
        self.unsettled = self.unsettled.iter().map(|step| new(*step)).collect();
        self.settled.iter_mut().for_each(|step| *step = new(*step));
        let tokens = std::mem::take(&mut self.tokens);
        self.tokens = tokens.into_iter().map(|(s, t)| (new(s), t)).collect();
        for running in self.exchanges.values_mut() {
            running.asked.iter_mut().for_each(|step| *step = new(*step));
            running.step = running.step.map(new);
        }
        self.rounds.renumber(new);
    }

    fn compact_frames(&mut self, frames: &mut Vec<Frame>) {
        let steps = self.all.iter_mut();
        let of_steps = steps.flat_map(|step| step.opened.iter_mut().chain(&mut step.closed));
        let running = self.exchanges.values_mut();
        let of_running = running.flat_map(|r| r.body.iter_mut().chain(&mut r.answer));
        let mut places: Vec<_> = of_steps.chain(of_running).collect();
        let kept: BTreeSet<usize> = places.iter().map(|place| place.frame).collect();
        let mut to = HashMap::with_capacity(kept.len());
        let mut left = Vec::with_capacity(kept.len());
        for (position, frame) in std::mem::take(frames).into_iter().enumerate() {
            if kept.contains(&position) {
                to.insert(position, left.len());
                left.push(frame);
            }
        }
        *frames = left;
        for place in &mut places {
            place.frame = to.get(&place.frame).copied().unwrap_or(usize::MAX);
        }
    }
}
