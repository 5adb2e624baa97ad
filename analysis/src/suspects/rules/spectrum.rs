//! What failing siblings have and passing ones have not: spectrum-based ranking with Ochiai.
//!
//! An element is who was asked for what, with arguments of which shape, and what came of it: ok,
//! nothing, or how it failed. The shape has the names and types of arguments, and the values of
//! short ones that have at most eight values over all runs. Ochiai = ef / √((ef + nf)(ef + ep)).
//! Beside it stands whether that may be chance (Fisher's exact test with Holm's correction): it is
//! told, and weighs nothing.

use super::share;
use crate::parts;
use crate::scalars::hash;
use crate::statistics::{fisher, holm};
use crate::suspects::answers::Answer;
use crate::suspects::evidence::Evidence;
use crate::suspects::result::Element;
use crate::suspects::view::{self, View};
use crate::suspects::walk::{self, Leaf};
use crate::suspects::weights::Rule;
use crate::suspects::{Input, Siblings};
use agent_trace_model::step::Step;
use agent_trace_model::story::Story;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Values over all runs up to which an argument is one of a few.
const VALUES: usize = 8;

/// The longest value that is told apart, in bytes of JSON text.
const SHORT: usize = 24;

/// Arguments of a step that are looked at.
const ARGUMENTS: usize = 200;

/// Missing elements that are told.
const MISSING: usize = 10;

/// For server, target and pointer: the values that were seen, while they are few.
type Values = HashMap<u64, HashSet<u64>>;

/// In how many runs an element is.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    failing: usize,
    passing: usize,
    /// A step that has it: which run, in the order of [`runs`], and which step.
    at: (usize, usize),
}

pub(super) fn find(
    input: &Input<'_>,
    view: &View<'_>,
    siblings: &Siblings,
    found: &mut Evidence,
) -> Vec<Element> {
    if siblings.passing == 0 {
        return Vec::new();
    }
    let values = values(input);
    let mut counts: BTreeMap<u64, Counts> = BTreeMap::new();
    let mut own: HashMap<usize, u64> = HashMap::new();
    for (run, (story, passes)) in runs(input).enumerate() {
        let mut seen = BTreeSet::new();
        for (at, step) in steps(story) {
            let element = element(story, step, &values);
            if run == 0 {
                own.insert(at, element);
            }
            if seen.insert(element) {
                let counts = counts.entry(element).or_insert(Counts {
                    at: (run, at),
                    ..Counts::default()
                });
                match passes {
                    true => counts.passing += 1,
                    false => counts.failing += 1,
                }
            }
        }
    }
    let strength = if siblings.weak { 50 } else { 100 };
    // What every run has tells nothing.
    let tells = |c: &Counts| (c.failing, c.passing) != (siblings.failing, siblings.passing);
    let elements = own.values().collect::<BTreeSet<_>>().into_iter();
    let elements = elements.filter(|element| counts.get(element).is_some_and(tells));
    let absent = missing(input, siblings, &counts);
    let chance = Chance::of(siblings, &counts, elements, absent.len());
    for call in &view.calls {
        let element = own.get(&call.at);
        let known = element.and_then(|element| Some((element, counts.get(element)?)));
        let Some((element, counts)) = known.filter(|(_, counts)| tells(counts)) else {
            continue;
        };
        let (ef, ep) = (counts.failing, counts.passing);
        let ochiai = ochiai(ef, siblings.failing - ef, ep);
        let weight = share(share(Rule::Spectrum.weight(), strength), ochiai);
        let because = format!(
            "a step like it is in {ef} of {} failing runs and in {ep} of {} passing ones (Ochiai 0.{ochiai:02}, {}{})",
            siblings.failing,
            siblings.passing,
            in_words(chance.of.get(element).copied().unwrap_or(1.0)),
            if siblings.weak {
                "; few siblings, weak"
            } else {
                ""
            },
        );
        let because = because.replace("0.100", "1.00");
        found.add_weighing(call.at, Rule::Spectrum, weight, because, call.asked());
    }
    let absent = absent.into_iter();
    let absent = absent.map(|element| Element {
        p: chance.absent,
        ..element
    });
    absent.collect()
}

/// How likely differences as large are by chance: Fisher's exact test, two-sided, corrected by
/// Holm for all elements that are told.
struct Chance {
    of: BTreeMap<u64, f64>,
    /// Of each of those that only passing runs have, which all of them do.
    absent: f64,
}

impl Chance {
    fn of<'a>(
        siblings: &Siblings,
        counts: &BTreeMap<u64, Counts>,
        elements: impl Iterator<Item = &'a u64>,
        absent: usize,
    ) -> Self {
        let (failing, passing) = (siblings.failing, siblings.passing);
        let elements: Vec<u64> = elements.copied().collect();
        let counted = elements.iter().filter_map(|element| counts.get(element));
        let mut all: Vec<f64> = counted
            .map(|c| fisher((c.failing, failing), (c.passing, passing)))
            .collect();
        all.extend((0..absent).map(|_| fisher((0, failing), (passing, passing))));
        holm(&mut all);
        Self {
            absent: all.get(elements.len()).copied().unwrap_or(1.0),
            of: elements.into_iter().zip(all).collect(),
        }
    }
}

/// The p of chance in words.
fn in_words(p: f64) -> String {
    match p < 0.001 {
        true => "p < 0.001".into(),
        false => format!("p {p:.3}"),
    }
}

/// Ochiai in hundredths, rounded down.
fn ochiai(ef: usize, nf: usize, ep: usize) -> u32 {
    let under = ((ef + nf) * (ef + ep)) as u64;
    let over = 10_000 * (ef * ef) as u64;
    over.checked_div(under).unwrap_or(0).isqrt() as u32
}

/// All runs, this one first, and whether they passed.
fn runs<'a>(input: &Input<'a>) -> impl Iterator<Item = (&'a Story, bool)> {
    let failing = input.failing.iter().map(|story| (*story, false));
    let passing = input.passing.iter().map(|story| (*story, true));
    std::iter::once((input.story, false))
        .chain(failing)
        .chain(passing)
}

/// The steps of which elements are made.
fn steps(story: &Story) -> impl Iterator<Item = (usize, &Step)> {
    let steps = story.steps.iter().enumerate();
    steps.filter(|(_, step)| view::is_candidate(step))
}

/// What passing runs have and no failing one has.
fn missing(input: &Input<'_>, siblings: &Siblings, counts: &BTreeMap<u64, Counts>) -> Vec<Element> {
    let all: Vec<&Story> = runs(input).map(|(story, _)| story).collect();
    let absent = counts.values();
    let absent = absent.filter(|c| c.failing == 0 && c.passing == siblings.passing);
    let mut places: Vec<(usize, usize)> = absent.map(|counts| counts.at).collect();
    places.sort_unstable();
    let elements = places.into_iter().take(MISSING).filter_map(|(run, at)| {
        let story = all.get(run)?;
        Some(Element {
            ef: 0,
            ep: siblings.passing,
            nf: siblings.failing,
            np: 0,
            p: 1.0,
            recorded: view::called(story, story.steps.get(at)?),
        })
    });
    elements.collect()
}

/// The values of arguments over all runs.
fn values(input: &Input<'_>) -> Values {
    let mut values = Values::new();
    for (story, _) in runs(input) {
        for (_, step) in steps(story) {
            arguments(story, step, &mut |place, _, raw| {
                let known = values.entry(place).or_default();
                if known.len() <= VALUES {
                    known.insert(hash(raw));
                }
            });
        }
    }
    values
}

/// The arguments of a step: a number for server, target and pointer; the type; the text.
fn arguments(story: &Story, step: &Step, each: &mut dyn FnMut(u64, Leaf, &[u8])) {
    let text = parts::arguments(step).unwrap_or_default();
    let outer = hash((view::server(story, step), &step.method, &step.target));
    let mut left = ARGUMENTS;
    walk::leaves(text, &mut |way, leaf, range| {
        if way.key(0).as_deref() != Some(b"_meta") {
            left -= 1;
            // Items of a list have one shape.
            let mut place = outer;
            for level in 0..way.depth() {
                place = hash((place, way.key(level)));
            }
            each(place, leaf, &text[range]);
        }
        left > 0
    });
}

/// A number for an element.
fn element(story: &Story, step: &Step, values: &Values) -> u64 {
    let mut shape: BTreeSet<u64> = BTreeSet::new();
    arguments(story, step, &mut |place, leaf, raw| {
        let few = values
            .get(&place)
            .is_some_and(|known| known.len() <= VALUES);
        let told = few && raw.len() <= SHORT;
        shape.insert(hash((place, leaf as u8, told.then_some(raw))));
    });
    let outer = (
        view::server(story, step),
        step.from,
        &step.method,
        &step.target,
    );
    let nothing = Answer::of(step).is_nothing();
    hash((outer, shape, step.outcome, nothing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suspects::testing::ranked_with;
    use crate::testing::Tale;

    #[test]
    fn ochiai_is_as_defined() {
        assert_eq!(ochiai(1, 0, 0), 100);
        assert_eq!(ochiai(1, 0, 1), 70);
        assert_eq!(ochiai(3, 0, 0), 100);
        assert_eq!(ochiai(2, 2, 2), 50);
        assert_eq!(ochiai(0, 0, 0), 0);
    }

    fn run(unit: &str, checks: bool) -> Story {
        let tale = Tale::new()
            .call("weigh", &format!("{{\"unit\":\"{unit}\"}}"))
            .text("twelve");
        let tale = match checks {
            true => tale.call("check", "{}").text("fine"),
            false => tale,
        };
        tale.call("send", r#"{"now":true}"#).text("sent").told()
    }

    #[test]
    fn what_only_failing_runs_have_is_told() {
        let (failed, passed) = (run("lb", false), run("kg", true));
        let weak = ranked_with(&failed, &[&passed], &[]);
        assert_eq!(weak.steps()[0], 1);
        assert!(weak.rules(1).contains(&Rule::Spectrum));
        assert!(!weak.rules(2).contains(&Rule::Spectrum));
        assert!(weak.ranking.siblings.weak);
        let reasons = |ranked: &crate::suspects::testing::Ranked| {
            let first = &ranked.ranking.suspects[0].reasons;
            let own = first.iter().find(|reason| reason.rule == Rule::Spectrum);
            own.unwrap().because.clone()
        };
        assert!(reasons(&weak).contains("Ochiai 1.00, p 1.000; few siblings"));
        let missing: Vec<_> = weak
            .ranking
            .missing
            .iter()
            .map(|e| &e.recorded.target)
            .collect();
        assert_eq!(missing[1], &Some("check".to_owned()));
        let strong = ranked_with(&failed, &[&passed; 3], &[&failed; 2]);
        assert!(!strong.ranking.siblings.weak);
        assert!(strong.score(1) > weak.score(1));
        // Three elements are told, each by chance in one of ten.
        assert!(reasons(&strong).contains("Ochiai 1.00, p 0.300)"));
        assert!(
            strong
                .ranking
                .missing
                .iter()
                .all(|e| (e.p - 0.3).abs() < 1e-9)
        );
        let many = ranked_with(&failed, &[&passed; 12], &[&failed; 11]);
        assert!(reasons(&many).contains("p < 0.001"));
    }
}
