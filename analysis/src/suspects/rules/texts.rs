//! Answers that count as successes, and whose texts say otherwise.

use super::share;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::View;
use crate::suspects::weights::Rule;

pub(super) fn find(view: &View<'_>, found: &mut Evidence) {
    let again = view.next_same(|call| call.is_clean());
    for (index, call) in view.calls.iter().enumerate() {
        // A client's answers are not a tool's.
        if !call.is_ok() || !call.step.is_clients() {
            continue;
        }
        let answer = &call.answer;
        if let Some(place) = &answer.fails {
            let weight = Rule::SwallowedError.weight();
            let (part, because) = match again[index] {
                None => (
                    100,
                    "it counts as answered, but the answer says that it failed",
                ),
                Some(_) => (
                    40,
                    "its answer says that it failed; the same call went well later",
                ),
            };
            let spot = call.answer_at(Some(place));
            found.add_weighing(
                call.at,
                Rule::SwallowedError,
                share(weight, part),
                because,
                spot,
            );
        } else if let Some(place) = &answer.signs {
            let because = "its answer has signs of an error";
            found.add(
                call.at,
                Rule::ErrorSigns,
                because,
                call.answer_at(Some(place)),
            );
        }
        let is_sure = answer.fails.is_some() || answer.signs.is_some();
        if let Some(place) = answer.soft.as_ref().filter(|_| !is_sure) {
            let because = "its answer has words of failure";
            found.add(
                call.at,
                Rule::SoftFailure,
                because,
                call.answer_at(Some(place)),
            );
        }
        if let Some(place) = &answer.made_up {
            let because = "its answer says that something in it is assumed or made up";
            found.add(call.at, Rule::MadeUp, because, call.answer_at(Some(place)));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    #[test]
    fn an_error_that_was_swallowed_comes_before_what_it_led_to() {
        let story = Tale::new()
            .call("list", "{}")
            .text("notes, tasks")
            .call("fetch", r#"{"url":"http://localhost/prices"}"#)
            .text("Error: connection refused")
            .call("write", r#"{"text":"All prices are fine"}"#)
            .text("written")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [2]);
        assert_eq!(ranked.rules(2), [Rule::SwallowedError, Rule::FirstFailure]);
        assert_eq!(ranked.quote(2), "Error:");
    }

    #[test]
    fn words_weigh_little_and_in_order_of_how_sure_they_are() {
        let story = Tale::new()
            .call("a", "{}")
            .text("This page could not be loaded")
            .call("b", "{}")
            .text("We assume that it costs 7")
            .call("c", "{}")
            .text("ran 3 tests\nTypeError: x is undefined")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [3, 1, 2]);
        assert_eq!(ranked.rules(3), [Rule::ErrorSigns, Rule::FirstFailure]);
        assert_eq!(ranked.rules(1), [Rule::SoftFailure]);
        assert_eq!(ranked.rules(2), [Rule::MadeUp]);
    }

    #[test]
    fn what_went_well_the_next_time_weighs_less() {
        let fails = |tale: Tale| tale.call("get", r#"{"id":12}"#).text("Failed: busy");
        let once = fails(Tale::new())
            .call("get", r#"{"id":12}"#)
            .text("a note");
        assert_eq!(ranked(&once.told()).rules(1), [Rule::SwallowedError]);
        assert!(
            ranked(&fails(Tale::new()).told())
                .rules(1)
                .contains(&Rule::FirstFailure)
        );
    }
}
