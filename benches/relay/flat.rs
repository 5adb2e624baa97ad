//! Whether the last of many calls through one relay costs what the first did, in time and in
//! memory.

use crate::Result;
use crate::client::{Client, call};
use crate::place::{Contender, Place, Processors, SERVERS};
use crate::process::Tree;
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{added, median};

const BLOCK: usize = 250;
/// How much slower the last tenth may be: what two runs of the same differ by.
const MOST_SLOWER: f64 = 1.1;
const MOST_GROWTH_MB: f64 = 1.0;

pub(crate) fn run(calls: usize) -> Result<Vec<Measured>> {
    let place = Place::new(Processors::One)?;
    let mut direct = Client::start(place.command(Contender::Direct))?;
    let mut relay = Client::start(place.command(Contender::Relay))?;
    direct.initialize()?;
    relay.initialize()?;
    let memory = Tree::of(relay.pid()).without(&SERVERS);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let blocks = calls / BLOCK;
    let (tenth, mut early) = (blocks / 10, 0.0);
    for block in 0..blocks {
        if block == tenth {
            early = memory.memory().now;
        }
        // Turn by turn, so that what the machine does in the meantime hits both.
        without.push(ask(&mut direct, block)?);
        with.push(ask(&mut relay, block)?);
    }
    let late = memory.memory().now;
    direct.close()?;
    let session = relay.close()?;
    let recorded = recorded::exactly(&place.store(), &[session])?;
    let base = median(&without);
    let first = base + added(&with[..tenth], &without[..tenth]);
    let last = base + added(&with[blocks - tenth..], &without[blocks - tenth..]);
    let slower = Measured {
        what: format!("{calls} calls: last tenth, × the first"),
        goal: Goal::AtMost(MOST_SLOWER),
        value: last / first,
        detail: format!("µs: direct {base:.1}, first tenth {first:.1}, last tenth {last:.1}"),
        recorded: recorded.clone(),
        gaps_allowed: false,
    };
    let grown = Measured {
        what: format!("{calls} calls: growth of memory, MB"),
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
        let text = format!("\"text\":\"call number {id}\"");
        took.push(client.ask(&call(id, "echo", &text))?);
    }
    Ok(median(&took))
}
