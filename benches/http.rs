//! What relaying HTTP costs, against nginx in the same run: `cargo bench --bench http`.
//!
//! The floors are no relay at all and nginx as a plain reverse proxy. All are alive at once
//! and take turns in a changing order, so that load on the machine hits all alike; what counts
//! are ratios and differences within a round, never times from two runs. This program plays
//! the server and the clients itself, so that these cost as little as they can, and reads
//! every recording back: a figure counts only if what was recorded is what was sent.
//!
//! - [`sections`], [`options`]: what can be asked for
//! - [`latency`], [`throughput`], [`events`], [`load`], [`flat`]: the sections
//! - [`origin`], [`client`], [`crowd`]: the parts that are played; [`message`]: the HTTP that
//!   they speak; [`answers`]: what the server says
//! - [`nginx`]: the floor
//! - [`place`]: who takes part, and where they write; [`process`]: what they use
//! - [`tally`], [`recorded`]: whether what was recorded is what was sent
//! - [`report`], [`verdict`], [`stats`]: what is printed
//!
//! Linux only: what processes use is read from `/proc`, and `taskset` and `prlimit`
//! (util-linux) place and permit them.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures and its progress"
)]

#[path = "common/answers.rs"]
mod answers;
#[path = "http/client.rs"]
mod client;
#[path = "http/crowd.rs"]
mod crowd;
#[path = "http/events.rs"]
mod events;
#[path = "http/flat.rs"]
mod flat;
#[path = "http/latency.rs"]
mod latency;
#[path = "http/load.rs"]
mod load;
#[path = "http/message.rs"]
mod message;
#[path = "http/nginx.rs"]
mod nginx;
#[path = "common/options.rs"]
mod options;
#[path = "http/origin.rs"]
mod origin;
#[path = "http/place.rs"]
mod place;
#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "common/process.rs"]
mod process;
#[path = "http/recorded.rs"]
mod recorded;
#[path = "common/report.rs"]
mod report;
#[path = "http/sections.rs"]
mod sections;
#[path = "common/stats.rs"]
mod stats;
#[path = "http/tally.rs"]
mod tally;
#[path = "http/throughput.rs"]
mod throughput;
#[path = "common/verdict.rs"]
mod verdict;

use options::Sections;
use report::{Measured, Report};
use sections::{Options, Section};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAME: &str = "http";
/// Files that the load needs open in one process: a stream takes two in a relay.
const DESCRIPTORS: u64 = 4096;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let plan = args.get(1).map_or("", String::as_str);
    let done = match args.first().map(String::as_str) {
        Some(place::ORIGIN) => origin::run().map(|()| ExitCode::SUCCESS),
        Some(place::FLOOD) => crowd::flood(plan).map(|()| ExitCode::SUCCESS),
        Some(place::HOLD) => crowd::hold(plan).map(|()| ExitCode::SUCCESS),
        _ => bench(args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn bench(args: Vec<String>) -> Result<ExitCode> {
    let Some(options) = Options::parse(args, NAME)? else {
        print!("{}", Options::usage(NAME));
        return Ok(ExitCode::SUCCESS);
    };
    if !cfg!(target_os = "linux") {
        return Err("this benchmark reads /proc, which only Linux has".into());
    }
    if cfg!(debug_assertions) {
        // `cargo test --benches` comes here.
        eprintln!("skipped: figures of a build with debug assertions mean nothing");
        return Ok(ExitCode::SUCCESS);
    }
    if nginx::find().is_none() {
        eprintln!("skipped: {}", nginx::MISSING);
    }
    let permitted = process::permit_descriptors(DESCRIPTORS);
    let mut report = Report::new(options.json, "recorded = sent");
    for &section in &options.sections {
        if section == Section::Load && !permitted {
            eprintln!("skipped: load: fewer than {DESCRIPTORS} open files are permitted");
            continue;
        }
        let mut runs = Vec::new();
        for number in 1..=options.runs {
            eprintln!("{}, run {number} of {} ...", section.name(), options.runs);
            runs.push(measure(section, options.quick)?);
        }
        report.add(section.name(), runs);
    }
    report.end();
    let missed = options.check && !report.all_met();
    Ok(ExitCode::from(u8::from(missed)))
}

fn measure(section: Section, quick: bool) -> Result<Vec<Measured>> {
    match section {
        Section::Latency => latency::run(if quick { 6 } else { 24 }),
        Section::Throughput => match quick {
            true => throughput::run(4, Duration::from_millis(200)),
            false => throughput::run(8, Duration::from_millis(400)),
        },
        Section::Events => events::run(if quick { 4 } else { 8 }),
        Section::Load => match quick {
            true => load::run(200, 3),
            false => load::run(1000, 10),
        },
        Section::Flat => flat::run(if quick { 20_000 } else { 100_000 }),
    }
}

/// The time, for processes of this machine to compare.
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as u64)
}
