//! Which steps may have broken a run: a ranking by fixed rules. No model, no network; the same
//! input gives the same bytes.
//!
//! Each [rule](weights) that finds something against a step adds its weight to the step's score;
//! of equal scores the earlier step comes first. A score orders the steps of one run. It is no
//! probability: what broke a run is known when an experiment shows it ([`Tested`]).
//!
//! Everything is looked at once or a bounded number of times, so the time it takes is about
//! linear in the run and its siblings; what most bounds left out is told ([`Left`]).
//!
//! Bytes that were recorded stand under members named `recorded` only, in what is serialised,
//! too. Each [`Quote`] is cut out of the stored bytes at its offset.
//!
//! - [`judge`]: what a model is asked beside it, where the user wants that, and what counts of it
//! - `result`: what a ranking says
//! - [`weights`]: the rules by name, and what each weighs
//! - `rules`: the rules
//! - `view`, `answers`, `definitions`: the run as the rules see it; `signs`: words in texts
//! - `schema`: whether arguments fit a schema
//! - `walk`, `quotes`: values and where they stand
//! - `evidence`, `left`: what was found, and what was not looked at

mod answers;
mod definitions;
mod evidence;
pub mod judge;
mod left;
mod quotes;
mod result;
mod rules;
#[cfg(test)]
mod scenarios;
mod schema;
mod signs;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod view;
mod walk;
pub mod weights;

use agent_trace_model::Verdict;
use agent_trace_model::story::Story;
use evidence::Found;
use left::Lefts;
pub use result::{
    Baseline, Called, Element, Failed, Left, Quote, Quoted, Ranking, Reason, Score, Siblings, Side,
    Suspect,
};
use std::cmp::Reverse;
use view::View;
pub use weights::Rule;

/// Siblings of either kind that are looked at.
pub const MOST_SIBLINGS: usize = 20;

/// Bytes of siblings' messages that are looked at.
pub const MOST_BYTES: u64 = 64 << 20;

const UNSEEN: &str = "siblings that were not looked at, to keep to a bound";

/// Numbers of steps in a list that is no list of suspects.
const MOST_NUMBERS: usize = 1_000;

/// So many failing and so many passing siblings are not weak.
const STRONG: usize = 3;

/// A run, and what is known beside it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The run.
    pub story: &'a Story,
    /// What was decided about it.
    pub verdict: Verdict,
    /// Siblings that passed: runs of the same declared agent and input digest, the same
    /// experiment or the same explicit task, and nothing else. The nearest first.
    pub passing: &'a [&'a Story],
    /// Siblings that failed.
    pub failing: &'a [&'a Story],
    /// How many more siblings there are.
    pub unseen: usize,
    /// What experiments found about its steps.
    pub tested: &'a [Tested],
    /// How many suspects are told at most.
    pub most: usize,
}

impl<'a> Input<'a> {
    /// A run of which nothing else is known.
    #[must_use]
    pub fn of(story: &'a Story) -> Self {
        Self {
            story,
            verdict: Verdict::Unjudged,
            passing: &[],
            failing: &[],
            unseen: 0,
            tested: &[],
            most: 20,
        }
    }
}

/// Ranks the steps of a run beside its siblings, each given with whether it failed. There are
/// `unseen` more of them.
#[must_use]
pub fn rank_beside<'a>(
    story: &Story,
    verdict: Verdict,
    siblings: impl Iterator<Item = (&'a Story, bool)>,
    unseen: usize,
    most: usize,
) -> Ranking {
    let (mut passing, mut failing) = (Vec::new(), Vec::new());
    for (sibling, failed) in siblings {
        match failed {
            true => failing.push(sibling),
            false => passing.push(sibling),
        }
    }
    rank(&Input {
        verdict,
        passing: &passing,
        failing: &failing,
        unseen,
        most,
        ..Input::of(story)
    })
}

/// What an experiment found about a step of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tested {
    /// The number of the step.
    pub step: usize,
    /// What was found.
    pub support: Support,
}

/// Whether an experiment found that a step matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Changing it changes how runs end.
    Supported,
    /// It does not, as far as could be seen.
    NotSupported,
    /// That could not be told.
    Undetermined,
}

/// Ranks the steps of a run.
#[must_use]
pub fn rank(input: &Input<'_>) -> Ranking {
    let mut left = Lefts::default();
    let mut bytes = MOST_BYTES;
    let passing = bounded(input.passing, &mut bytes, &mut left);
    let failing = bounded(input.failing, &mut bytes, &mut left);
    left.add("siblings", input.unseen, UNSEEN);
    let input = Input {
        passing: &passing,
        failing: &failing,
        ..*input
    };
    let view = View::of(input.story);
    left::of_recording(&input, &view, &mut left);
    let siblings = Siblings {
        passing: passing.len(),
        failing: failing.len() + 1,
        weak: passing.len() < STRONG || failing.len() + 1 < STRONG,
    };
    let (evidence, missing) = rules::apply(&input, &view, &siblings, &mut left);
    let mut steps: Vec<(usize, Vec<Found>)> = evidence.into_steps().into_iter().collect();
    steps.retain(|(at, _)| view.call(*at).is_some());
    let weigh = |found: &[Found]| found.iter().map(|found| found.weight).sum::<u32>();
    let (known, others): (Vec<_>, Vec<_>) = {
        let has = |at: usize| steps.binary_search_by_key(&at, |(at, _)| *at).is_ok();
        let numbers = view.calls.iter().map(|call| (call.at, call.step.number));
        numbers.partition(|(at, _)| has(*at))
    };
    steps.sort_by_key(|(at, found)| (Reverse(weigh(found)), *at));
    let mut dropped = 0;
    let told = steps.len().min(input.most);
    let suspects = steps.drain(..told);
    let suspects: Vec<Suspect> = suspects
        .map(|(at, found)| suspect(&input, at, found, &mut dropped))
        .collect();
    let numbers = |of: &mut dyn Iterator<Item = usize>| of.take(MOST_NUMBERS).collect();
    Ranking {
        run: input.story.id.to_string(),
        failed: Failed {
            verdict: input.verdict,
            steps: numbers(&mut view.failures.iter().map(|at| input.story.steps[*at].number)),
            crashed: view.crashed.len(),
        },
        more: known.len() - suspects.len(),
        suspects,
        more_others: others.len().saturating_sub(MOST_NUMBERS),
        others: numbers(&mut others.iter().map(|(_, number)| *number)),
        baseline: Baseline {
            first: view
                .calls
                .iter()
                .take(input.most)
                .map(|c| c.step.number)
                .collect(),
            last: view
                .calls
                .iter()
                .rev()
                .take(input.most)
                .map(|c| c.step.number)
                .collect(),
        },
        siblings,
        missing,
        not_looked_at: left.told(),
        dropped_quotes: dropped,
    }
}

fn suspect(input: &Input<'_>, at: usize, mut found: Vec<Found>, dropped: &mut usize) -> Suspect {
    let step = &input.story.steps[at];
    found.sort_by_key(|found| (Reverse(found.weight), found.rule));
    let score = Score(found.iter().map(|found| found.weight).sum());
    let reasons = found.into_iter().map(|found| {
        let quotes = found.spots.iter().filter_map(|spot| {
            let story = match spot.sibling {
                None => Some(&input.story),
                Some(sibling) => input.passing.get(sibling),
            };
            let quote = story.and_then(|story| spot.quote(story));
            let quote = quote.filter(|quote| is_stored(input, quote));
            *dropped += usize::from(quote.is_none());
            quote
        });
        Reason {
            rule: found.rule,
            weight: Score(found.weight),
            quotes: quotes.collect(),
            because: found.because,
        }
    });
    Suspect {
        step: step.number,
        score,
        outcome: step.outcome,
        recorded: view::called(input.story, step),
        reasons: reasons.collect(),
    }
}

/// Whether what a quote says stands where it says that it does: looked up by the names and
/// numbers that it has, as whoever reads it will.
fn is_stored(input: &Input<'_>, quote: &Quote) -> bool {
    match &quote.run {
        None => quote.stands_in(input.story),
        Some(run) => {
            let mut named = input.passing.iter().filter(|s| s.id.to_string() == *run);
            named.any(|story| quote.stands_in(story))
        }
    }
}

/// As many siblings as there is room for.
fn bounded<'a>(siblings: &[&'a Story], bytes: &mut u64, left: &mut Lefts) -> Vec<&'a Story> {
    let size = |story: &Story| -> u64 {
        let messages = story.steps.iter().flat_map(|s| [&s.request, &s.response]);
        messages
            .flatten()
            .map(|message| message.text.len() as u64)
            .sum()
    };
    let mut taken = Vec::new();
    for story in siblings.iter().take(MOST_SIBLINGS) {
        match bytes.checked_sub(size(story)) {
            Some(rest) => *bytes = rest,
            None => continue,
        }
        taken.push(*story);
    }
    left.add("siblings", siblings.len() - taken.len(), UNSEEN);
    taken
}
