//! What a request costs more through the relay, in time until its answer and in processor
//! time, as multiples of what the recording pump adds.

use crate::Result;
use crate::client::{Client, call, ping};
use crate::place::{Contender, Place, Processors};
use crate::process::{SETTLE, Tree, allowed_processors};
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::stats::{added, median, order, times};
use crate::verdict::Recorded;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A turn: long enough to span some ticks of a recorder, whose work then falls into the turn
/// of the one that it works for.
const TURN: Duration = Duration::from_millis(15);
const WARM_UP: usize = 200;
const MOST_LATENCY: f64 = 1.0;
const MOST_CPU: f64 = 1.5;

#[derive(Clone, Copy)]
enum Work {
    Ping,
    /// A call that sends 2 kB and gets them back.
    Call,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Call => "tools/call",
        }
    }

    fn request(self, id: usize, text: &str) -> Vec<u8> {
        match self {
            Self::Ping => ping(id),
            Self::Call => call(id, "echo", text),
        }
    }
}

/// A contender with its figures in microseconds a request, a round each.
struct Runner {
    client: Client,
    tree: Tree,
    /// Processor time at the beginning of its last turn, and requests in it.
    mark: Option<(f64, usize)>,
    latency: Vec<f64>,
    cpu: Vec<f64>,
}

pub(crate) fn run(rounds: usize) -> Result<Vec<Measured>> {
    let mut lines = on(Processors::One, rounds)?;
    if allowed_processors().len() > 1 {
        lines.extend(on(Processors::Apart, rounds)?);
    }
    Ok(lines)
}

fn on(processors: Processors, rounds: usize) -> Result<Vec<Measured>> {
    let place = Place::new(processors)?;
    let text = format!("\"text\":\"{}\"", "y".repeat(2000));
    let mut runners = Vec::new();
    for contender in Contender::ALL {
        let mut client = Client::start(place.command(contender))?;
        client.initialize()?;
        for id in 0..WARM_UP {
            client.ask(&Work::Ping.request(id, &text))?;
            client.ask(&Work::Call.request(id, &text))?;
        }
        runners.push(Runner {
            tree: Tree::of(client.pid()),
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
    let mut sessions = Vec::new();
    for runner in runners {
        sessions.push(runner.client.close()?);
    }
    let relay = sessions.pop().into_iter().collect::<Vec<_>>();
    let recorded = recorded::exactly(&place.store(), &relay)?;
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
            each.push(self.client.ask(&work.request(each.len(), text))?);
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
    let place = match processors {
        Processors::Any => "",
        Processors::One => "on one processor",
        Processors::Apart => "across processors",
    };
    let line = |what: &str, limit: f64, of: fn(&Runner) -> &Vec<f64>| {
        let base = of(&runners[0]);
        let more: Vec<f64> = runners[1..].iter().map(|r| added(of(r), base)).collect();
        let mut detail = format!("µs: direct {:.1}", median(base));
        for (contender, more) in Contender::ALL[1..].iter().zip(&more) {
            detail += &format!(", {} {more:+.1}", contender.name());
        }
        Measured {
            what: format!("{} {place}: added {what}, × pump+tee", work.name()),
            goal: Goal::AtMost(limit),
            value: times(more[2], more[1]),
            detail,
            recorded: Recorded::All,
            gaps_allowed: false,
        }
    };
    vec![
        line("latency", MOST_LATENCY, |runner| &runner.latency),
        line("CPU", MOST_CPU, |runner| &runner.cpu),
    ]
}
