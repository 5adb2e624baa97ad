//! What experiments found about steps: the only evidence of a cause.

use super::share;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::View;
use crate::suspects::weights::Rule;
use crate::suspects::{Input, Support};
use std::collections::BTreeMap;

pub(super) fn find(input: &Input<'_>, view: &View<'_>, found: &mut Evidence) {
    // Where experiments disagree, the one that found something counts.
    let mut tests: BTreeMap<usize, Support> = BTreeMap::new();
    for tested in input.tested {
        let known = tests.entry(tested.step).or_insert(tested.support);
        let both = [*known, tested.support];
        let order = [Support::Supported, Support::NotSupported];
        let first = order.into_iter().find(|support| both.contains(support));
        *known = first.unwrap_or(Support::Undetermined);
    }
    for (step, support) in tests {
        let at = view.story.position(step);
        let Some(call) = at.and_then(|at| view.call(at)) else {
            continue;
        };
        // What was not found to matter makes no suspect.
        if support != Support::Supported && found.of_mut(call.at).is_none() {
            continue;
        }
        let (weight, because) = match support {
            Support::Supported => (
                100,
                "an experiment found that changing it changes how runs end",
            ),
            Support::NotSupported => (0, "an experiment found no sign that it matters"),
            Support::Undetermined => (0, "an experiment could not tell whether it matters"),
        };
        let weight = share(Rule::Tested.weight(), weight);
        if support == Support::NotSupported {
            for reason in found.of_mut(call.at).into_iter().flatten() {
                reason.weight = share(reason.weight, 25);
            }
        }
        found.add_weighing(call.at, Rule::Tested, weight, because, call.asked());
    }
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked_by;
    use crate::suspects::{Input, Support, Tested};
    use crate::testing::Tale;

    #[test]
    fn what_was_tested_counts_most() {
        let story = Tale::new()
            .call("a", r#"{"x":"first"}"#)
            .text("fine")
            .call("b", r#"{"x":"other"}"#)
            .tool_error("no")
            .told();
        let order = |support: &[(usize, Support)]| {
            let tested = support.iter().map(|(step, support)| Tested {
                step: *step,
                support: *support,
            });
            let tested: Vec<Tested> = tested.collect();
            ranked_by(&Input {
                tested: &tested,
                ..Input::of(&story)
            })
            .steps()
        };
        assert_eq!(order(&[]), [2]);
        assert_eq!(order(&[(1, Support::Supported)]), [1, 2]);
        assert_eq!(
            order(&[(1, Support::Supported), (2, Support::NotSupported)]),
            [1, 2]
        );
        // What could not be told changes nothing.
        assert_eq!(order(&[(2, Support::Undetermined)]), [2]);
        assert_eq!(order(&[(1, Support::Undetermined)]), [2]);
        assert_eq!(order(&[(1, Support::NotSupported)]), [2]);
    }
}
