//! Which runs of a task a run is compared with.

use crate::listing::Listed;
use agent_trace_analysis::suspects::{MOST_BYTES, MOST_SIBLINGS};
use agent_trace_model::story::Standing;

/// The newest runs of a task that are looked through.
pub const MOST: usize = 1_000;

/// Some runs of a task.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// Those that are compared, the nearest in time first.
    pub runs: Vec<Listed>,
    /// How many more there are.
    pub left: usize,
}

/// Of the runs of a task those that this run is compared with: the nearest in time, of those that
/// passed and of those that failed as many as are looked at. How a run ends that goes on is not
/// known, so it is none of them.
#[must_use]
pub fn choose(run: &Listed, of_task: Vec<Listed>) -> Chosen {
    let is_other = |other: &Listed| {
        let ended = other.row.standing != Standing::Live;
        ended && !other.row.probe && other.row.id != run.row.id
    };
    let mut all: Vec<Listed> = of_task.into_iter().filter(is_other).collect();
    all.sort_by_key(|other| {
        let distance = other.row.started.abs_diff(run.row.started);
        (distance, other.row.id)
    });
    let (mut passed, mut failed, mut bytes) = (0, 0, MOST_BYTES);
    let mut chosen = Chosen::default();
    for other in all {
        let of_kind = match other.failed() {
            true => &mut failed,
            false => &mut passed,
        };
        let size = other.row.tally.tools.iter().map(|tool| tool.bytes).sum();
        match bytes.checked_sub(size).filter(|_| *of_kind < MOST_SIBLINGS) {
            Some(rest) => {
                *of_kind += 1;
                bytes = rest;
                chosen.runs.push(other);
            }
            None => chosen.left += 1,
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;
    use crate::merge;
    use crate::rows::{Counts, GroupKey, Sketch, ToolTally, Tries};
    use agent_trace_model::RunId;
    use std::collections::HashMap;

    fn run(number: u8, started: u64, failed: u64) -> Listed {
        let group = Group {
            id: RunId::from_digest([number; 16]),
            aliases: Vec::new(),
            key: GroupKey::Session,
            members: Vec::new(),
        };
        let mut row = merge::run("w", &group, &[], &HashMap::new());
        (row.started, row.failed) = (started, failed);
        Listed {
            row,
            decision: None,
            left_out: 0,
        }
    }

    #[test]
    fn the_nearest_of_either_kind_are_chosen_and_the_rest_is_counted() {
        let own = run(1, 1_000, 1);
        let mut all: Vec<Listed> = (2..60).map(|n| run(n, u64::from(n) * 10, 0)).collect();
        all.push(run(60, 5_000, 1));
        all.push(own.clone());
        let mut live = run(61, 1_000, 0);
        live.row.standing = Standing::Live;
        all.push(live);
        let mut probe = run(62, 1_000, 0);
        probe.row.probe = true;
        all.push(probe);
        let chosen = choose(&own, all);
        assert_eq!((chosen.runs.len(), chosen.left), (21, 38));
        assert_eq!(chosen.runs[0].row.started, 590);
        assert_eq!(chosen.runs[19].row.started, 400);
        assert!(chosen.runs[20].failed());
    }

    #[test]
    fn what_is_too_large_is_left_out() {
        let mut large = run(2, 0, 0);
        large.row.tally.tools.push(ToolTally {
            server: 0,
            tool: "t".into(),
            calls: 1,
            outcomes: Counts::default(),
            shortest: 0,
            longest: 0,
            durations: Sketch::default(),
            bytes: MOST_BYTES + 1,
            tries: Tries::default(),
        });
        let chosen = choose(&run(1, 0, 1), vec![large, run(3, 9, 0)]);
        assert_eq!((chosen.runs.len(), chosen.left), (1, 1));
    }
}
