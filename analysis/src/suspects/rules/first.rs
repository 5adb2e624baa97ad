//! What failed before everything else: what comes later is often its consequence.

use crate::suspects::evidence::Evidence;
use crate::suspects::view::View;
use crate::suspects::weights::Rule;

/// Kinds of failure, the surest first: only the first of the surest that there is counts.
const KINDS: [&[Rule]; 2] = [&[Rule::Error, Rule::SwallowedError], &[Rule::ErrorSigns]];

pub(super) fn find(view: &View<'_>, found: &mut Evidence) {
    for kinds in KINDS {
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
