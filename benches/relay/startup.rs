//! How much later the first answer comes, from the start of the command on.

use crate::Result;
use crate::client::Client;
use crate::place::{Contender, Place, Processors};
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{added, median, order};
use std::time::Instant;

const MOST_MS: f64 = 5.0;

pub(crate) fn run(rounds: usize) -> Result<Vec<Measured>> {
    let place = Place::new(Processors::Any)?;
    let mut took = vec![Vec::new(); Contender::ALL.len()];
    let mut sessions = Vec::new();
    for round in 0..rounds {
        for turn in order(round, Contender::ALL.len()) {
            let contender = Contender::ALL[turn];
            let command = place.command(contender);
            let started = Instant::now();
            let mut client = Client::start(command)?;
            client.initialize()?;
            took[turn].push(started.elapsed().as_secs_f64() * 1e3);
            let traffic = client.close()?;
            if contender == Contender::Relay {
                sessions.push(traffic);
            }
        }
    }
    let [direct, pump, tee, relay] = &took[..] else {
        return Err("four contenders".into());
    };
    Ok(vec![Measured {
        what: "start to first answer, ms over direct".into(),
        goal: Goal::AtMost(MOST_MS),
        value: added(relay, direct),
        detail: format!(
            "ms: direct {:.2}, pump {:+.2}, pump+tee {:+.2}",
            median(direct),
            added(pump, direct),
            added(tee, direct)
        ),
        recorded: recorded::exactly(&place.store(), &sessions)?,
        gaps_allowed: false,
    }])
}
