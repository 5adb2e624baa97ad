//! How much later than direct an event of a stream reaches the client.

use crate::Result;
use crate::client::Client;
use crate::place::{Contender, Place, Processors, contenders};
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{added, median, order, quantile};
use crate::verdict::Recorded;
use std::time::Duration;

const GAP: Duration = Duration::from_millis(2);
/// In a stream.
const EVENTS: usize = 200;
const MOST_MS: f64 = 1.0;

pub(crate) fn run(rounds: usize) -> Result<Vec<Measured>> {
    let place = Place::new(Processors::Any)?;
    let contenders = contenders();
    let (mut all, mut medians, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for &contender in &contenders {
        let standing = place.start(contender)?;
        let client = Client::start(standing.address)?;
        all.push((standing, client));
        medians.push(Vec::new());
        late.push(Vec::new());
    }
    for round in 0..rounds {
        for turn in order(round, contenders.len()) {
            let took = all[turn].1.events(EVENTS, GAP)?;
            medians[turn].push(median(&took));
            late[turn].push(quantile(&took, 0.99));
        }
    }
    let mut recorded = Recorded::All;
    for (contender, (standing, client)) in contenders.iter().zip(all) {
        let traffic = client.traffic;
        drop(client);
        standing.stop()?;
        if *contender == Contender::Relay {
            recorded = recorded::compare(&place.store(), &traffic)?;
        }
    }
    let line = |what: &str, goal, values: &[Vec<f64>]| {
        let mut detail = format!("µs: direct {:.1}", median(&values[0]));
        let mut value = f64::NAN;
        for (contender, of) in contenders.iter().zip(values).skip(1) {
            let more = added(of, &values[0]);
            detail += &format!(", {} {more:+.1}", contender.name());
            if *contender == Contender::Relay {
                value = more / 1e3;
            }
        }
        Measured {
            what: format!("events: {what} of the added delay, ms"),
            goal,
            value,
            detail,
            recorded: recorded.clone(),
            gaps_allowed: false,
        }
    };
    Ok(vec![
        line("median", Goal::AtMost(MOST_MS), &medians),
        line("99th percentile", Goal::None, &late),
    ])
}
