//! What was found against steps, until it is added up.

use super::quotes::Spot;
use super::weights::Rule;
use std::collections::BTreeMap;

/// Quotes of one reason.
const QUOTES: usize = 3;

/// What one rule found against one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) rule: Rule,
    /// In hundredths.
    pub(super) weight: u32,
    pub(super) because: String,
    pub(super) spots: Vec<Spot>,
}

/// What was found, by the positions of steps.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    steps: BTreeMap<usize, Vec<Found>>,
}

impl Evidence {
    /// A rule found something, of its full weight.
    pub(super) fn add(
        &mut self,
        at: usize,
        rule: Rule,
        because: impl Into<String>,
        spots: impl IntoIterator<Item = Spot>,
    ) {
        self.add_weighing(at, rule, rule.weight(), because, spots);
    }

    /// The same with another weight. What a rule finds twice against a step counts once, with
    /// the greater weight.
    pub(super) fn add_weighing(
        &mut self,
        at: usize,
        rule: Rule,
        weight: u32,
        because: impl Into<String>,
        spots: impl IntoIterator<Item = Spot>,
    ) {
        let found = self.steps.entry(at).or_default();
        let known = found.iter_mut().find(|found| found.rule == rule);
        let new = || Found {
            rule,
            weight,
            because: because.into(),
            spots: spots.into_iter().take(QUOTES).collect(),
        };
        match known {
            Some(known) if known.weight >= weight => {}
            Some(known) => *known = new(),
            None => found.push(new()),
        }
    }

    /// The weight that a rule's finding against a step has.
    pub(super) fn weight(&self, at: usize, rule: Rule) -> u32 {
        let found = self.steps.get(&at).into_iter().flatten();
        let found = found.filter(|found| found.rule == rule);
        found.map(|found| found.weight).max().unwrap_or(0)
    }

    /// Everything, by positions.
    pub(super) fn into_steps(self) -> BTreeMap<usize, Vec<Found>> {
        self.steps
    }

    /// What is known against a step, to be changed.
    pub(super) fn of_mut(&mut self, at: usize) -> Option<&mut Vec<Found>> {
        self.steps.get_mut(&at)
    }
}
