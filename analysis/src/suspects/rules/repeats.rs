//! The same call with the same outcome, again and again.

use crate::parts::answer;
use crate::suspects::evidence::Evidence;
use crate::suspects::view::{Call, View};
use crate::suspects::weights::Rule;
use std::collections::HashMap;

/// So many times make a loop.
const TIMES: usize = 3;

/// Calls that got the same answer one after another.
#[derive(Debug)]
struct Run {
    first: usize,
    last: usize,
    times: usize,
}

pub(super) fn find(view: &View<'_>, found: &mut Evidence) {
    let mut runs: HashMap<u64, Run> = HashMap::new();
    let mut loops: Vec<Run> = Vec::new();
    for (index, call) in view.calls.iter().enumerate() {
        // Errors that repeat are retries.
        if call.tool.is_none() || !call.is_ok() {
            continue;
        }
        let new = Run {
            first: index,
            last: index,
            times: 1,
        };
        match runs.get_mut(&call.same) {
            Some(run) if is_same(&view.calls[run.last], call) => {
                run.last = index;
                run.times += 1;
            }
            Some(run) => loops.push(std::mem::replace(run, new)),
            None => drop(runs.insert(call.same, new)),
        }
    }
    loops.extend(runs.into_values());
    loops.retain(|run| run.times >= TIMES);
    loops.sort_unstable_by_key(|run| run.first);
    for run in loops {
        let (first, last) = (&view.calls[run.first], &view.calls[run.last]);
        let because = format!(
            "the same call got the same answer {} times, the last time at step {}",
            run.times, last.step.number
        );
        let spots = [first.asked(), first.said()];
        found.add(first.at, Rule::Loop, because, spots.into_iter().flatten());
    }
}

/// Whether the answers are the same, byte by byte.
fn is_same(a: &Call<'_>, b: &Call<'_>) -> bool {
    let (a, b) = (answer(a.step), answer(b.step));
    a.is_some() && a == b
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    fn poll(answers: &[&str]) -> crate::suspects::testing::Ranked {
        let mut tale = Tale::new();
        for answer in answers {
            tale = tale.call("status", r#"{"job":"j-12"}"#).text(answer);
            tale = tale
                .call("wait", "{}")
                .text(&format!("waited for {answer}"));
        }
        ranked(&tale.told())
    }

    #[test]
    fn a_loop_begins_with_its_first_call() {
        let ranked = poll(&["running", "running", "running"]);
        assert_eq!(ranked.steps(), [1, 2]);
        assert_eq!(ranked.rules(1), [Rule::Loop]);
    }

    #[test]
    fn what_changes_is_no_loop() {
        assert_eq!(
            poll(&["running", "running", "done"]).steps(),
            [] as [usize; 0]
        );
    }
}
