//! Calls, errors and times of each tool: `show -c`.

use super::escape::text;
use super::table::{self, Align};
use super::time::{bytes, seconds};
use agent_trace_analysis::parts;
use agent_trace_model::step::{Message, Step, StepKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One line of the summary.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// The tool, or where it is no tool the method.
    pub(crate) name: String,
    pub(crate) calls: usize,
    pub(crate) failed: usize,
    /// Nanoseconds; the nearest-rank percentiles of those calls that were answered.
    pub(crate) p50: Option<u64>,
    pub(crate) p95: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) total: u64,
    /// Bytes of requests and answers as recorded.
    pub(crate) bytes: u64,
}

/// The summary of steps, longest total first.
pub(crate) fn of<'a>(steps: impl Iterator<Item = &'a Step>) -> Vec<Line> {
    let mut groups: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    for step in steps.filter(|step| step.kind == StepKind::Request) {
        let name = step.tool().or(step.method.as_deref()).unwrap_or("?");
        groups.entry(name).or_default().push(step);
    }
    let mut lines: Vec<Line> = groups
        .into_iter()
        .map(|(name, steps)| line(name, &steps))
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.total));
    lines
}

fn line(name: &str, steps: &[&Step]) -> Line {
    let mut times: Vec<u64> = steps.iter().filter_map(|step| step.duration).collect();
    times.sort_unstable();
    let size = |step: &Step| {
        let messages = [&step.request, &step.response];
        let length = |message: &Option<Message>| parts::text(message.as_ref()).len();
        messages.into_iter().map(length).sum::<usize>() as u64
    };
    Line {
        name: name.to_owned(),
        calls: steps.len(),
        failed: steps
            .iter()
            .filter(|step| step.outcome.is_failure())
            .count(),
        p50: percentile(&times, 50),
        p95: percentile(&times, 95),
        max: times.last().copied(),
        total: times
            .iter()
            .fold(0, |total, time| total.saturating_add(*time)),
        bytes: steps.iter().map(|step| size(step)).sum(),
    }
}

/// The nearest-rank percentile of sorted values.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Prints it as columns.
pub(crate) fn print(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    let time = |time: Option<u64>| time.map_or_else(|| "-".into(), seconds);
    let rows: Vec<[String; 8]> = lines
        .iter()
        .map(|line| {
            [
                text(line.name.as_bytes(), 60),
                line.calls.to_string(),
                line.failed.to_string(),
                time(line.p50),
                time(line.p95),
                time(line.max),
                seconds(line.total),
                bytes(line.bytes),
            ]
        })
        .collect();
    use Align::{Left, Right};
    let heading = [
        ("CALL", Left),
        ("CALLS", Right),
        ("FAILED", Right),
        ("P50", Right),
        ("P95", Right),
        ("MAX", Right),
        ("TOTAL", Right),
        ("BYTES", Right),
    ];
    table::print(out, heading, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let times: Vec<u64> = (1..=20).collect();
        assert_eq!(percentile(&times, 50), Some(10));
        assert_eq!(percentile(&times, 95), Some(19));
        assert_eq!(percentile(&[7], 95), Some(7));
        assert_eq!(percentile(&[], 50), None);
    }
}
