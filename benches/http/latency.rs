//! What a request costs more through the relay, in time until its answer and in processor
//! time, as multiples of what nginx costs.

use crate::Result;
use crate::client::Client;
use crate::crowd::{Work, text};
use crate::place::{Contender, Place, Processors, Standing, contenders};
use crate::process::{SETTLE, Tree};
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{added, median, order, times};
use crate::verdict::Recorded;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A turn: long enough to span some ticks of a recorder, whose work then falls into the turn
/// of the one that it works for.
const TURN: Duration = Duration::from_millis(25);
const WARM_UP: usize = 200;
const MOST_LATENCY: f64 = 1.5;

/// A contender with its figures in microseconds a request, a round each.
struct Runner {
    contender: Contender,
    standing: Standing,
    client: Client,
    tree: Tree,
    /// Processor time at the beginning of its last turn, and requests in it.
    mark: Option<(f64, usize)>,
    latency: Vec<f64>,
    cpu: Vec<f64>,
}

pub(crate) fn run(rounds: usize) -> Result<Vec<Measured>> {
    let mut lines = Vec::new();
    for processors in Processors::all() {
        lines.extend(on(processors, rounds)?);
    }
    Ok(lines)
}

fn on(processors: Processors, rounds: usize) -> Result<Vec<Measured>> {
    let place = Place::new(processors)?;
    let text = text();
    let mut runners = Vec::new();
    for contender in contenders() {
        let standing = place.start(contender)?;
        let mut client = Client::start(standing.address)?;
        for id in 0..WARM_UP {
            client.ask(&Work::Ping.message(id, &text))?;
            client.ask(&Work::Call.message(id, &text))?;
        }
        runners.push(Runner {
            contender,
            tree: standing.tree(),
            standing,
            client,
            mark: None,
            latency: Vec::new(),
            cpu: Vec::new(),
        });
    }
    let mut lines = Vec::new();
    for work in [Work::Ping, Work::Call] {
        for runner in &mut runners {
            runner.mark = None;
            runner.latency.clear();
            runner.cpu.clear();
        }
        for round in 0..rounds {
            for turn in order(round, runners.len()) {
                runners[turn].turn(work, &text)?;
                sleep(SETTLE);
            }
        }
        for runner in &mut runners {
            runner.read_cpu();
        }
        lines.extend(judge(work, processors, &runners));
    }
    let mut recorded = Recorded::All;
    for runner in runners {
        let traffic = runner.client.traffic;
        drop(runner.client);
        runner.standing.stop()?;
        if runner.contender == Contender::Relay {
            recorded = recorded::compare(&place.store(), &traffic)?;
        }
    }
    for line in &mut lines {
        line.recorded = recorded.clone();
    }
    Ok(lines)
}

impl Runner {
    fn turn(&mut self, work: Work, text: &str) -> Result<()> {
        self.read_cpu();
        let mut each = Vec::new();
        let started = Instant::now();
        while started.elapsed() < TURN {
            each.push(self.client.ask(&work.message(each.len(), text))?);
        }
        self.latency.push(median(&each));
        self.mark = self.mark.map(|(cpu, _)| (cpu, each.len()));
        Ok(())
    }

    /// Processor time counts from turn to turn, so that what is left for later is counted.
    fn read_cpu(&mut self) {
        let now = self.tree.cpu();
        if let Some((before, requests)) = self.mark.replace((now, 0)) {
            self.cpu.push((now - before) / requests as f64);
        }
    }
}

fn judge(work: Work, processors: Processors, runners: &[Runner]) -> Vec<Measured> {
    let nothing = vec![0.0; runners[0].cpu.len()];
    vec![
        line(
            &format!("{} {}: added latency", work.name(), processors.name()),
            // Where the system puts processes is luck, so that figure is only shown.
            match processors {
                Processors::Any => f64::INFINITY,
                _ => MOST_LATENCY,
            },
            runners,
            &runners[0].latency,
            |runner| &runner.latency,
        ),
        line(
            &format!("{} {}: CPU", work.name(), processors.name()),
            f64::INFINITY,
            runners,
            &nothing,
            |runner| &runner.cpu,
        ),
    ]
}

/// What the relay has more than `base`, as a multiple of what nginx has more; in microseconds
/// where there is no nginx.
fn line(
    what: &str,
    limit: f64,
    runners: &[Runner],
    base: &[f64],
    of: fn(&Runner) -> &Vec<f64>,
) -> Measured {
    let (mut detail, mut nginx, mut relay) = (String::from("µs:"), None, f64::NAN);
    for runner in runners {
        let more = added(of(runner), base);
        match runner.contender {
            Contender::Direct => {
                detail += &format!(" direct {:.1}", median(of(runner)));
                continue;
            }
            Contender::Nginx => nginx = Some(more),
            Contender::Relay => relay = more,
            Contender::Off => {}
        }
        detail += &format!(", {} {more:+.1}", runner.contender.name());
    }
    Measured {
        what: match nginx {
            Some(_) => format!("{what}, × nginx"),
            None => format!("{what}, µs"),
        },
        goal: match nginx {
            Some(_) if limit.is_finite() => Goal::AtMost(limit),
            _ => Goal::None,
        },
        value: nginx.map_or(relay, |nginx| times(relay, nginx)),
        detail,
        recorded: Recorded::All,
        gaps_allowed: false,
    }
}
