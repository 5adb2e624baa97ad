//! Short questions to rankings, for tests.

use super::weights::Rule;
use super::{Input, Ranking, rank};
use agent_trace_model::story::Story;

#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) ranking: Ranking,
}

pub(super) fn ranked(story: &Story) -> Ranked {
    ranked_by(&Input::of(story))
}

pub(super) fn ranked_with(story: &Story, passing: &[&Story], failing: &[&Story]) -> Ranked {
    ranked_by(&Input {
        passing,
        failing,
        ..Input::of(story)
    })
}

pub(super) fn ranked_by(input: &Input<'_>) -> Ranked {
    let ranking = rank(input);
    assert_eq!(ranking.dropped_quotes, 0);
    for suspect in &ranking.suspects {
        for reason in &suspect.reasons {
            assert!(reason.weight.0 <= reason.rule.weight(), "{reason:?}");
        }
        for quote in suspect.reasons.iter().flat_map(|reason| &reason.quotes) {
            let stories = || std::iter::once(&input.story).chain(input.passing);
            let stands = |story: &&Story| {
                let id = story.id.to_string();
                quote.run.as_ref().is_none_or(|run| *run == id) && quote.stands_in(story)
            };
            assert!(stories().any(stands), "{quote:?}");
        }
    }
    Ranked { ranking }
}

impl Ranked {
    pub(super) fn steps(&self) -> Vec<usize> {
        self.ranking.suspects.iter().map(|s| s.step).collect()
    }

    fn reasons(&self, step: usize) -> impl Iterator<Item = &super::Reason> {
        let suspects = self.ranking.suspects.iter();
        let suspects = suspects.filter(move |suspect| suspect.step == step);
        suspects.flat_map(|suspect| &suspect.reasons)
    }

    pub(super) fn rules(&self, step: usize) -> Vec<Rule> {
        self.reasons(step).map(|reason| reason.rule).collect()
    }

    pub(super) fn score(&self, step: usize) -> f64 {
        let suspects = self.ranking.suspects.iter();
        let mut of = suspects.filter(|suspect| suspect.step == step);
        of.next().map_or(0.0, |suspect| suspect.score.value())
    }

    /// What a rule says of a step.
    pub(super) fn because(&self, step: usize, rule: Rule) -> &str {
        let mut reasons = self.reasons(step).filter(|reason| reason.rule == rule);
        reasons.next().map_or("", |reason| &reason.because)
    }

    /// What a rule adds to the score of a step.
    pub(super) fn weight(&self, step: usize, rule: Rule) -> f64 {
        let mut reasons = self.reasons(step).filter(|reason| reason.rule == rule);
        reasons.next().map_or(0.0, |reason| reason.weight.value())
    }

    /// The first quote of the first reason that has one.
    pub(super) fn quote(&self, step: usize) -> &str {
        let mut quotes = self.reasons(step).flat_map(|reason| &reason.quotes);
        quotes.next().map_or("", |quote| &quote.recorded.text)
    }

    pub(super) fn quotes(&self, step: usize, rule: Rule) -> Vec<&str> {
        let reasons = self.reasons(step).filter(|reason| reason.rule == rule);
        let quotes = reasons.flat_map(|reason| &reason.quotes);
        quotes.map(|quote| &quote.recorded.text[..]).collect()
    }

    pub(super) fn left(&self, what: &str) -> u64 {
        let left = self.ranking.not_looked_at.iter();
        left.filter(|left| left.what == what)
            .map(|left| left.count)
            .sum()
    }
}
