//! Scanning all that was recorded, and once more when nothing is new.

use crate::Result;
use crate::place::{Place, There, drop_index};
use crate::report::{Goal, Measured};
use crate::stats::median;
use crate::verdict::Recorded;
use serde_json::Value;

const LEAST_PER_SECOND: f64 = 50_000.0;
/// How often it is scanned when nothing is new.
const TURNS: usize = 11;

pub(crate) fn run(place: &Place, there: &There) -> Result<Vec<Measured>> {
    drop_index(&place.store())?;
    let scan = ["mcp-scan", "--format", "json", "--fail-on", "critical"];
    let first = place.run(scan)?;
    let told: Value = serde_json::from_str(&first.out)?;
    let seconds = first.took.as_secs_f64();
    let again = (0..TURNS).map(|_| Ok(place.run(scan)?.milliseconds()));
    let again: Vec<f64> = again.collect::<Result<_>>()?;
    let frames = there.made.events as f64;
    Ok(vec![
        Measured {
            what: "scanning all from nothing, frames/s".into(),
            goal: Goal::AtLeast(LEAST_PER_SECOND),
            value: frames / seconds,
            detail: format!(
                "{seconds:.1} s for {frames} frames, {} tools, {} findings",
                told["tools"],
                told["findings"].as_array().map_or(0, Vec::len)
            ),
            recorded: Recorded::All,
            gaps_allowed: false,
        },
        Measured {
            what: "scanning once more, frames/s".into(),
            goal: Goal::AtLeast(LEAST_PER_SECOND),
            value: frames * 1e3 / median(&again),
            detail: format!("{:.0} ms, nothing is new", median(&again)),
            recorded: Recorded::All,
            gaps_allowed: false,
        },
    ])
}
