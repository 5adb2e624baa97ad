//! Whether the last of many exchanges of one session costs what the first did, in time and in
//! memory.

use crate::Result;
use crate::client::{Client, call};
use crate::place::{Contender, Place, Processors};
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{added, median};

const BLOCK: usize = 250;
/// How much slower the last tenth may be: what two runs of the same differ by.
const MOST_SLOWER: f64 = 1.1;
const MOST_GROWTH_MB: f64 = 1.0;

pub(crate) fn run(calls: usize) -> Result<Vec<Measured>> {
    let place = Place::new(Processors::One)?;
    let standing = place.start(Contender::Relay)?;
    let mut direct = Client::start(place.origin.address)?;
    let mut relay = Client::start(standing.address)?;
    let tree = standing.tree();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let blocks = calls / BLOCK;
    let (tenth, mut early) = (blocks / 10, 0.0);
    for block in 0..blocks {
        if block == tenth {
            early = tree.memory().now;
        }
        // Turn by turn, so that what the machine does in the meantime hits both.
        without.push(ask(&mut direct, block)?);
        with.push(ask(&mut relay, block)?);
    }
    let late = tree.memory().now;
    let traffic = relay.traffic;
    drop(relay);
    standing.stop()?;
    let recorded = recorded::compare(&place.store(), &traffic)?;
    let base = median(&without);
    let first = base + added(&with[..tenth], &without[..tenth]);
    let last = base + added(&with[blocks - tenth..], &without[blocks - tenth..]);
    let slower = Measured {
        what: format!("{calls} calls of a session: last tenth, × the first"),
        goal: Goal::AtMost(MOST_SLOWER),
        value: last / first,
        detail: format!("µs: direct {base:.1}, first tenth {first:.1}, last tenth {last:.1}"),
        recorded: recorded.clone(),
        gaps_allowed: false,
    };
    let grown = Measured {
        what: format!("{calls} calls of a session: growth of memory, MB"),
        goal: Goal::AtMost(MOST_GROWTH_MB),
        value: late - early,
        detail: format!("MB: {early:.1} after the first tenth, {late:.1} at the end"),
        recorded,
        gaps_allowed: false,
    };
    Ok(vec![slower, grown])
}

/// Some calls. Returns the median of what they took, in microseconds.
fn ask(client: &mut Client, block: usize) -> Result<f64> {
    let mut took = Vec::with_capacity(BLOCK);
    for id in block * BLOCK..(block + 1) * BLOCK {
        took.push(client.ask(&call(id, &format!("call number {id}")))?);
    }
    Ok(median(&took))
}
