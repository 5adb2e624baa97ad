//! What failed before everything else: what comes later is often its consequence.

use super::share;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::{Call, View};
use crate::suspects::weights::Rule;

/// Kinds of failure, the surest first: only the first of the surest that there is counts. Signs in
/// texts, which may only speak of errors, do not where the protocol shows something.
const KINDS: [(&[Rule], &[Rule]); 2] = [
    (&[Rule::Error, Rule::SwallowedError], &[]),
    (
        &[Rule::ErrorSigns],
        &[
            Rule::EmptyResult,
            Rule::TruncatedResult,
            Rule::InvalidArguments,
            Rule::ArgumentDiffers,
        ],
    ),
];

pub(super) fn find(view: &View<'_>, found: &mut Evidence) {
    for (kinds, unless) in KINDS {
        let half = |at: usize, rule: Rule| found.weight(at, rule) >= share(rule.weight(), 50);
        let any = |call: &Call<'_>| unless.iter().any(|rule| half(call.at, *rule));
        if view.calls.iter().any(any) {
            return;
        }
        let failed = |at: usize| {
            let full = |rule: &&Rule| found.weight(at, **rule) == rule.weight();
            kinds.iter().find(full).is_some()
        };
        let mut places = view.calls.iter().map(|call| call.at);
        if let Some(first) = places.find(|at| failed(*at)) {
            let because = "nothing failed before it that was not made good";
            found.add(first, Rule::FirstFailure, because, None);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    #[test]
    fn the_first_failure_comes_before_later_ones() {
        let story = Tale::new()
            .call("make", r#"{"name":"garden"}"#)
            .tool_error("no room")
            .call("open", r#"{"name":"garden"}"#)
            .tool_error("unknown: garden")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [1, 2]);
        assert!(ranked.rules(1).contains(&Rule::FirstFailure));
        assert!(!ranked.rules(2).contains(&Rule::FirstFailure));
    }
}
