//! Requests while many event streams are open, what the streams take, and what is left of
//! them when they are closed.

use crate::Result;
use crate::client::Client;
use crate::crowd::{Done, Hold, Work, text};
use crate::place::{Contender, HOLD, Place, Processors, contenders};
use crate::process::Tree;
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{median, quantile};
use crate::verdict::Recorded;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between the events of a stream.
const GAP: Duration = Duration::from_secs(1);
/// Between requests: 200 a second.
const PACE: Duration = Duration::from_millis(5);
/// How long descriptors may take to be closed.
const CLOSING: Duration = Duration::from_secs(5);

/// What one contender showed.
struct Seen {
    contender: Contender,
    /// Of requests, in milliseconds.
    median: f64,
    p99: f64,
    events: f64,
    /// Of events, in milliseconds.
    delay: f64,
    late: f64,
    /// A stream, in kB.
    memory: f64,
    /// More descriptors than before, of the contender and of the server.
    left: f64,
    recorded: Recorded,
}

pub(crate) fn run(streams: usize, seconds: usize) -> Result<Vec<Measured>> {
    let mut seen = Vec::new();
    for contender in contenders() {
        if contender != Contender::Off {
            seen.push(under(contender, streams, seconds)?);
        }
    }
    let line = |what: &str, goal, of: &dyn Fn(&Seen) -> f64| {
        let (mut value, mut parts) = (f64::NAN, Vec::new());
        for seen in &seen {
            if seen.contender == Contender::Relay {
                value = of(seen);
            } else if of(seen).is_finite() {
                parts.push(format!("{} {:.2}", seen.contender.name(), of(seen)));
            }
        }
        let recorded = seen.iter().map(|seen| seen.recorded.clone());
        Measured {
            what: format!("{streams} open streams: {what}"),
            goal,
            value,
            detail: parts.join(", "),
            recorded: recorded.fold(Recorded::All, Recorded::and),
            gaps_allowed: false,
        }
    };
    Ok(vec![
        line("median of calls, 200 a second, ms", Goal::None, &|seen| {
            seen.median
        }),
        line("99th percentile of the calls, ms", Goal::None, &|seen| {
            seen.p99
        }),
        line(
            "events delivered, part of those sent",
            Goal::AtLeast(1.0),
            &|seen| seen.events,
        ),
        line("median delay of events, ms", Goal::None, &|seen| seen.delay),
        line("99th percentile of that delay, ms", Goal::None, &|seen| {
            seen.late
        }),
        line("memory for a stream, kB", Goal::None, &|seen| seen.memory),
        line(
            "descriptors left when they are closed",
            Goal::AtMost(0.0),
            &|seen| seen.left,
        ),
    ])
}

fn under(contender: Contender, streams: usize, seconds: usize) -> Result<Seen> {
    let place = Place::new(Processors::Any)?;
    let standing = place.start(contender)?;
    let mut client = Client::start(standing.address)?;
    let text = text();
    for id in 0..200 {
        client.ask(&Work::Call.message(id, &text))?;
    }
    let (tree, origin) = (standing.tree(), place.origin.tree());
    tree.wait_until_idle();
    let descriptors = |tree: &Tree| tree.descriptors() as f64;
    let before = (tree.memory().now, descriptors(&tree) + descriptors(&origin));
    let mut crowd = place.crowd(
        HOLD,
        &Hold {
            address: standing.address,
            session: client.session.clone(),
            streams,
            events: seconds,
            gap: GAP,
        },
    )?;
    if crowd.line()? != "open" {
        return Err("the streams did not open".into());
    }
    let mut took = Vec::new();
    let started = Instant::now();
    for number in 0.. {
        let due = PACE * number;
        if due >= Duration::from_secs(seconds as u64) {
            break;
        }
        // One that waits because the one before took long has waited already.
        let waited = match due.checked_sub(started.elapsed()) {
            Some(early) => {
                sleep(early);
                Duration::ZERO
            }
            None => started.elapsed().saturating_sub(due),
        };
        let request = Work::Call.message(number as usize, &text);
        took.push(client.ask(&request)? / 1e3 + waited.as_secs_f64() * 1e3);
    }
    let memory = tree.memory().now;
    let done: Done = serde_json::from_str(&crowd.line()?)?;
    crowd.end()?;
    let end = Instant::now() + CLOSING;
    let left = loop {
        let left = descriptors(&tree) + descriptors(&origin) - before.1;
        if left <= 0.0 || Instant::now() > end {
            break left;
        }
        sleep(Duration::from_millis(10));
    };
    let mut traffic = client.traffic;
    traffic.add_all(&done.traffic);
    drop(client);
    standing.stop()?;
    Ok(Seen {
        contender,
        median: median(&took),
        p99: quantile(&took, 0.99),
        events: done.traffic.events.count as f64 / (streams * seconds) as f64,
        delay: done.median.unwrap_or(f64::NAN),
        late: done.p99.unwrap_or(f64::NAN),
        memory: match contender {
            Contender::Direct => f64::NAN,
            _ => (memory - before.0) * 1e3 / streams as f64,
        },
        left: left.max(0.0),
        recorded: match contender {
            Contender::Relay => recorded::compare(&place.store(), &traffic)?,
            _ => Recorded::All,
        },
    })
}
