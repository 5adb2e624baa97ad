//! How many requests go through on several connections, with client, server and what is
//! between them on the same processors, as a part of what goes through nginx.

use crate::Result;
use crate::client::Client;
use crate::crowd::{Done, Flood, Work};
use crate::place::{Contender, FLOOD, Place, Processors, contenders};
use crate::process::SETTLE;
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{median, order};
use crate::tally::Traffic;
use crate::verdict::Recorded;
use std::thread::sleep;
use std::time::Duration;

const CONNECTIONS: usize = 8;
const LEAST: f64 = 0.8;

pub(crate) fn run(rounds: usize, turn: Duration) -> Result<Vec<Measured>> {
    let place = Place::new(Processors::Any)?;
    let contenders = contenders();
    let (mut all, mut recorded) = (Vec::new(), Traffic::default());
    for &contender in &contenders {
        let standing = place.start(contender)?;
        let client = Client::start(standing.address)?;
        all.push((standing, client));
    }
    let mut lines = Vec::new();
    for work in [Work::Ping, Work::Call] {
        let mut rates = vec![Vec::new(); contenders.len()];
        for round in 0..rounds {
            for turn_of in order(round, contenders.len()) {
                let (standing, client) = &all[turn_of];
                let mut crowd = place.crowd(
                    FLOOD,
                    &Flood {
                        address: standing.address,
                        session: client.session.clone(),
                        connections: CONNECTIONS,
                        time: turn,
                        work,
                    },
                )?;
                let done: Done = serde_json::from_str(&crowd.line()?)?;
                crowd.end()?;
                rates[turn_of].push(done.traffic.exchanges as f64 / done.seconds);
                if contenders[turn_of] == Contender::Relay {
                    recorded.add_all(&done.traffic);
                }
                sleep(SETTLE);
            }
        }
        lines.push(judge(work, &contenders, &rates));
    }
    let mut result = Recorded::All;
    for (contender, (standing, client)) in contenders.iter().zip(all) {
        let traffic = client.traffic;
        drop(client);
        standing.stop()?;
        if *contender == Contender::Relay {
            recorded.add_all(&traffic);
            result = recorded::compare(&place.store(), &recorded)?;
        }
    }
    for line in &mut lines {
        line.recorded = result.clone();
    }
    Ok(lines)
}

fn judge(work: Work, contenders: &[Contender], rates: &[Vec<f64>]) -> Measured {
    let of = |wanted| {
        let at = contenders.iter().position(|&c| c == wanted)?;
        Some(median(&rates[at]))
    };
    let each = contenders.iter().zip(rates);
    let parts: Vec<String> = each
        .map(|(contender, rates)| format!("{} {:.0}", contender.name(), median(rates)))
        .collect();
    let relay = of(Contender::Relay).unwrap_or(f64::NAN);
    let (unit, goal, value) = match of(Contender::Nginx) {
        Some(nginx) => ("× nginx", Goal::AtLeast(LEAST), relay / nginx),
        None => ("1/s", Goal::None, relay),
    };
    Measured {
        what: format!(
            "{}, {CONNECTIONS} connections: throughput, {unit}",
            work.name()
        ),
        goal,
        value,
        detail: format!("1/s: {}", parts.join(", ")),
        recorded: Recorded::All,
        gaps_allowed: false,
    }
}
