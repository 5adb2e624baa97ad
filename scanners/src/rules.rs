//! Rules: which signals, close together, make a finding.
//!
//! - [`definition`]: for what servers say of their tools
//! - [`result`]: for what tools give back
//!
//! A rule is data. Its examples are its tests, and what `explain` shows.

pub(crate) mod definition;
pub(crate) mod result;

use crate::finding::{Confidence, Severity};
use crate::sentence::Sentence;
use crate::signal::{Mask, Sig};

/// A combination of signals that is reported.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
    /// One of each must be there.
    pub(crate) all: &'static [Mask],
    /// None of these may be there.
    pub(crate) not: Mask,
    /// Over how many sentences, one after the other.
    pub(crate) window: usize,
    /// Texts that it finds.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) bad: &'static [&'static str],
    /// Texts like them that no rule flags.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(crate) good: &'static [&'static str],
}

/// Windows are no longer than this, in bytes.
const WIDEST: u32 = 1200;

/// A rule that holds in some sentences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) rule: &'static Rule,
    /// First and last byte in the view.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The rules that hold, each where it holds first. `extra`: signals that all sentences have.
pub(crate) fn apply(rules: &'static [Rule], sentences: &[Sentence], extra: Mask) -> Vec<Hit> {
    let everything = sentences
        .iter()
        .fold(extra, |all, sentence| all.and(sentence.mask));
    let possible = |rule: &&Rule| rule.all.iter().all(|group| everything.meets(*group));
    rules
        .iter()
        .filter(possible)
        .filter_map(|rule| first(rule, sentences, extra))
        .collect()
}

fn first(rule: &'static Rule, sentences: &[Sentence], extra: Mask) -> Option<Hit> {
    (0..sentences.len()).find_map(|from| {
        let start = sentences[from].start;
        let mut mask = extra;
        for sentence in sentences[from..].iter().take(rule.window) {
            if sentence.end - start > WIDEST && sentence.start > start {
                return None;
            }
            mask = mask.and(sentence.mask);
            if mask.meets(rule.not) {
                return None;
            }
            if rule.all.iter().all(|group| mask.meets(*group)) {
                let end = sentence.end;
                return Some(Hit { rule, start, end });
            }
        }
        None
    })
}

/// Any of these.
const fn any(sigs: &[Sig]) -> Mask {
    Mask::of(sigs)
}
