//! Latency outliers.

use crate::outcomes;
use crate::suspects::Input;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::{self, View};
use crate::suspects::weights::Rule;
use crate::timeline::{SLOW_FACTOR, SLOW_LEAST, SLOW_SAMPLE};
use std::collections::HashMap;

pub(super) fn find(input: &Input<'_>, view: &View<'_>, found: &mut Evidence) {
    // Times by server and target, of the run and of siblings that passed.
    let mut times: HashMap<(&str, &str), Vec<u64>> = HashMap::new();
    for story in std::iter::once(input.story).chain(input.passing.iter().copied()) {
        for step in story.steps.iter().filter(|step| step.tool().is_some()) {
            let target = step.target.as_deref().unwrap_or_default();
            let key = (view::server(story, step), target);
            times.entry(key).or_default().extend(step.duration);
        }
    }
    let medians: HashMap<(&str, &str), u64> = times
        .into_iter()
        .filter(|(_, times)| times.len() >= SLOW_SAMPLE)
        .map(|(key, mut times)| {
            let middle = (times.len() - 1) / 2;
            let (_, median, _) = times.select_nth_unstable(middle);
            (key, *median)
        })
        .collect();
    for call in &view.calls {
        let Some(took) = call.step.duration.filter(|_| call.tool.is_some()) else {
            continue;
        };
        let ms = took / 1_000_000;
        let target = call.step.target.as_deref().unwrap_or_default();
        let median = medians.get(&(call.server, target)).copied();
        let factor = median.map(|median| took / median.max(1));
        let outlier = factor.filter(|factor| took >= SLOW_LEAST && *factor >= SLOW_FACTOR);
        let because = match outlier {
            Some(factor) => format!("it took {ms} ms, {factor} times the median of its kind"),
            None if took >= outcomes::SLOW => format!("it took {ms} ms"),
            None => continue,
        };
        found.add(call.at, Rule::Slow, because, call.asked());
    }
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    #[test]
    fn what_took_far_longer_than_its_kind_is_told() {
        let mut tale = Tale::new();
        for (number, took) in [20, 25, 30, 22, 21, 900].into_iter().enumerate() {
            tale = tale.call("get", &format!("{{\"id\":{}}}", number + 100));
            tale = tale.text(&format!("note {number}")).takes(took);
        }
        let ranked = ranked(&tale.told());
        assert_eq!(ranked.steps(), [6]);
        assert_eq!(ranked.rules(6), [Rule::Slow]);
    }
}
