//! Arguments that are other ones than in siblings that passed.
//!
//! Steps are matched as [`diff`](crate::diff) does it. An argument counts where all siblings that
//! have the step have the same value there, and this run another one: what is different each
//! time (ids, times, folders) says nothing.

use super::share;
use crate::diff::{self, Entry};
use crate::parts;
use crate::scalars::Place;
use crate::suspects::evidence::Evidence;
use crate::suspects::left::Lefts;
use crate::suspects::quotes::{self, Spot};
use crate::suspects::result::Side;
use crate::suspects::view::View;
use crate::suspects::walk;
use crate::suspects::weights::Rule;
use crate::suspects::{Input, Siblings};
use agent_trace_model::story::Story;
use std::collections::{BTreeMap, BTreeSet};

/// Siblings that are compared step by step.
const COMPARED: usize = 5;

/// The longest value that sets something, in bytes.
const SHORT: usize = 40;

/// A value at one place of one step that is another one than in siblings.
#[derive(Debug)]
struct Differs {
    /// What siblings have there.
    before: BTreeSet<Option<String>>,
    siblings: Vec<(usize, usize)>,
    place: Place,
    now: Option<String>,
}

pub(super) fn find(
    input: &Input<'_>,
    view: &View<'_>,
    siblings: &Siblings,
    found: &mut Evidence,
    left: &mut Lefts,
) {
    let mut places: BTreeMap<(usize, String), Differs> = BTreeMap::new();
    let mut added: BTreeMap<usize, usize> = BTreeMap::new();
    let compared = input.passing.len().min(COMPARED);
    left.add(
        "siblings_not_compared",
        input.passing.len() - compared,
        "siblings that passed were not compared step by step, to keep to a bound",
    );
    for (sibling, story) in input.passing.iter().take(COMPARED).enumerate() {
        for entry in diff::of(story, input.story).entries {
            let both = match entry {
                Entry::Both(both) => both,
                Entry::OnlyB(at) => {
                    *added.entry(at).or_default() += 1;
                    continue;
                }
                Entry::OnlyA(_) => continue,
            };
            for change in both.arguments.told {
                let key = (both.b, change.at.to_string());
                let differs = places.entry(key).or_insert_with(|| Differs {
                    before: BTreeSet::new(),
                    siblings: Vec::new(),
                    place: change.at,
                    now: change.after,
                });
                differs.before.insert(change.before);
                differs.siblings.push((sibling, both.a));
            }
        }
    }
    // What differs first may be why the rest does.
    let mut first = true;
    for ((at, _), differs) in places {
        let Some(call) = view.call(at) else {
            continue;
        };
        // One sibling cannot tell what is different each time.
        let agree = differs.before.len() == 1 && differs.siblings.len() == compared;
        let alone = compared == 1 && !differs.is_setting();
        if !agree || alone {
            continue;
        }
        let mut weight = Rule::ArgumentDiffers.weight();
        if siblings.weak {
            weight = share(weight, 60);
        }
        if !std::mem::take(&mut first) {
            weight = share(weight, 60);
        }
        let because = match compared {
            1 => "an argument is another one than in the sibling that passed".to_owned(),
            n => format!("an argument is another one than in all {n} siblings that were compared"),
        };
        let own = call
            .argument(&differs.place.pointer)
            .or_else(|| call.asked());
        let other = differs.siblings.first().and_then(|(sibling, at)| {
            let story = input.passing.get(*sibling)?;
            Some(argument(story, *at, &differs.place.pointer)?.in_sibling(*sibling))
        });
        let spots = own.into_iter().chain(other);
        found.add_weighing(at, Rule::ArgumentDiffers, weight, because, spots);
    }
}

impl Differs {
    /// Whether it looks like something that sets how a tool works, and not like an id, a time or
    /// a path: short, and with no long number in it.
    fn is_setting(&self) -> bool {
        let before = self.before.iter().flatten();
        before.chain(&self.now).all(|value| {
            let digits = value.bytes().filter(u8::is_ascii_digit).count();
            value.len() <= SHORT && digits <= 3 && !value.contains(['/', '\\', '…'])
        })
    }
}

fn argument(story: &Story, at: usize, pointer: &str) -> Option<Spot> {
    let step = story.steps.get(at)?;
    let arguments = parts::arguments(step)?;
    let text = quotes::text(step, Side::Request)?;
    let outer = quotes::range_in(text, arguments)?;
    let range = walk::locate(arguments, pointer)?;
    let range = outer.start + range.start..outer.start + range.end;
    Some(Spot::new(at, Side::Request, range))
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::{Ranked, ranked_with};
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;
    use agent_trace_model::story::Story;

    fn run(state: &str, id: u32, found: &str) -> Story {
        Tale::new()
            .call(
                "list",
                &format!("{{\"state\":\"{state}\",\"request\":{id}}}"),
            )
            .text(found)
            .call("write", r#"{"what":"a report"}"#)
            .text("ok")
            .told()
    }

    fn compared(passing: &[Story]) -> Ranked {
        let passing: Vec<&Story> = passing.iter().collect();
        let mut failed = run("open", 1003, "one and two");
        failed.id = agent_trace_model::RunId::from_digest([9; 16]);
        ranked_with(&failed, &passing, &[])
    }

    #[test]
    fn a_filter_that_differs_is_told_with_both_values() {
        let ranked = compared(&[run("all", 1001, "one to three")]);
        assert_eq!(ranked.steps()[0], 1);
        let quotes = ranked.quotes(1, Rule::ArgumentDiffers);
        assert_eq!(quotes, ["\"open\"", "\"all\""]);
    }

    #[test]
    fn what_is_different_each_time_says_nothing() {
        let same = [
            run("open", 1001, "one and two"),
            run("open", 1002, "one and two"),
        ];
        assert!(!compared(&same).rules(1).contains(&Rule::ArgumentDiffers));
        let one = compared(&same[..1]);
        assert!(!one.rules(1).contains(&Rule::ArgumentDiffers));
        let passing = [run("all", 1001, "one"), run("all", 1002, "one")];
        let ranked = compared(&passing);
        let quotes = ranked.quotes(1, Rule::ArgumentDiffers);
        assert_eq!(quotes, ["\"open\"", "\"all\""]);
    }

    #[test]
    fn more_siblings_weigh_more() {
        let passing: Vec<Story> = (0..3).map(|n| run("all", n + 1000, "one")).collect();
        let failed = run("open", 1003, "one and two");
        let weight = |passing: &[Story], failing: &[&Story]| {
            let passing: Vec<&Story> = passing.iter().collect();
            let mut own = failed.clone();
            own.id = agent_trace_model::RunId::from_digest([9; 16]);
            ranked_with(&own, &passing, failing).weight(1, Rule::ArgumentDiffers)
        };
        assert_eq!(weight(&passing[..2], &[]), 1.2);
        assert_eq!(weight(&passing, &[&failed; 2]), 2.0);
    }
}
