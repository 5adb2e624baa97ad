//! How fast results of 1 MB come through, as a part of what the recording pump lets through:
//! one at a time, and several in a row, which a recorder has to keep up with meanwhile.

use crate::Result;
use crate::client::{Client, call, ping};
use crate::place::{Contender, Place, Processors};
use crate::process::SETTLE;
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{median, order};
use crate::verdict::Recorded;
use std::thread::sleep;

const SIZE: usize = 1_000_000;
const IN_A_ROW: usize = 10;
const LEAST: f64 = 0.9;

pub(crate) fn run(rounds: usize) -> Result<Vec<Measured>> {
    let place = Place::new(Processors::Any)?;
    let mut clients = Vec::new();
    for contender in Contender::ALL {
        let mut client = Client::start(place.command(contender))?;
        client.initialize()?;
        // The buffers on the way grow once.
        client.ask(&request())?;
        clients.push(client);
    }
    let alone = measure(&mut clients, rounds, 1)?;
    let row = measure(&mut clients, rounds.div_ceil(2), IN_A_ROW)?;
    let mut sessions = Vec::new();
    for client in clients {
        sessions.push(client.close()?);
    }
    let relay = sessions.pop().into_iter().collect::<Vec<_>>();
    let recorded = recorded::exactly(&place.store(), &relay)?;
    let what = "1 MB results: throughput, × pump+tee's";
    let alone = figures(what, Goal::AtLeast(LEAST), &alone, &recorded);
    // At a gigabyte a second on two processors the recorder competes with the relay.
    let row = figures("the same, 10 in a row", Goal::None, &row, &recorded);
    Ok(vec![alone, row])
}

/// Microseconds a result of each contender, a round each.
fn measure(clients: &mut [Client], rounds: usize, count: usize) -> Result<Vec<Vec<f64>>> {
    let mut took = vec![Vec::new(); clients.len()];
    for round in 0..rounds {
        for turn in order(round, clients.len()) {
            let client = &mut clients[turn];
            // All begin awake.
            client.ask(&ping(1))?;
            let mut sum = 0.0;
            for _ in 0..count {
                sum += client.ask(&request())?;
            }
            took[turn].push(sum / count as f64);
            sleep(SETTLE);
        }
    }
    Ok(took)
}

fn figures(what: &str, goal: Goal, took: &[Vec<f64>], recorded: &Recorded) -> Measured {
    let (tee, relay) = (&took[2], &took[3]);
    let ratios: Vec<f64> = tee.iter().zip(relay).map(|(t, r)| t / r).collect();
    let rates: Vec<String> = Contender::ALL
        .iter()
        .zip(took)
        .map(|(c, took)| format!("{} {:.0}", c.name(), SIZE as f64 / median(took)))
        .collect();
    Measured {
        what: what.into(),
        goal,
        value: median(&ratios),
        detail: format!("MB/s: {}", rates.join(", ")),
        recorded: recorded.clone(),
        gaps_allowed: false,
    }
}

fn request() -> Vec<u8> {
    call(1, "big", &format!("\"n\":{SIZE}"))
}
