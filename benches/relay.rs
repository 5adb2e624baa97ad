//! What relaying costs, against floors, all in one run: `cargo bench --bench relay`.
//!
//! The floors are no relay at all and a byte pump, without and with a file that it appends
//! every chunk to. All are alive at once and take turns in a changing order, so that load on
//! the machine hits all alike; what counts are ratios and differences within a round, never
//! times from two runs. This program plays the server, the pump and the client itself, and
//! reads every recording back: a figure counts only if what was recorded is what was sent.
//!
//! - [`sections`], [`options`]: what can be asked for
//! - [`latency`], [`startup`], [`big`], [`flat`], [`memory`]: the sections; [`abuse`]: what
//!   memory is put to the test with
//! - [`serve`], [`pump`], [`client`]: the parts that are played; [`answers`]: what servers say
//! - [`place`]: who takes part, and where they write; [`process`]: what they use
//! - [`recorded`]: whether what was recorded is what was sent
//! - [`report`], [`verdict`], [`stats`]: what is printed
//!
//! Linux only: what processes use is read from `/proc`, and `taskset` (util-linux) places
//! them.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures and its progress"
)]

#[path = "relay/abuse.rs"]
mod abuse;
#[path = "common/answers.rs"]
mod answers;
#[path = "relay/big.rs"]
mod big;
#[path = "relay/client.rs"]
mod client;
#[path = "relay/flat.rs"]
mod flat;
#[path = "relay/latency.rs"]
mod latency;
#[path = "relay/memory.rs"]
mod memory;
#[path = "common/options.rs"]
mod options;
#[path = "relay/place.rs"]
mod place;
#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "common/process.rs"]
mod process;
#[path = "relay/pump.rs"]
mod pump;
#[path = "relay/recorded.rs"]
mod recorded;
#[path = "common/report.rs"]
mod report;
#[path = "relay/sections.rs"]
mod sections;
#[path = "relay/serve.rs"]
mod serve;
#[path = "relay/startup.rs"]
mod startup;
#[allow(dead_code, reason = "likewise")]
#[path = "common/stats.rs"]
mod stats;
#[path = "common/verdict.rs"]
mod verdict;

use options::Sections;
use report::{Measured, Report};
use sections::{Options, Section};
use std::error::Error;
use std::process::ExitCode;

const NAME: &str = "relay";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some(place::SERVE) => serve::answer().map(|()| ExitCode::SUCCESS),
        Some(place::MIRROR) => serve::mirror().map(|()| ExitCode::SUCCESS),
        Some(place::PUMP) => pump::run(&args[1..]),
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
    let mut report = Report::new(options.json, "recorded = sent");
    for &section in &options.sections {
        let mut runs = Vec::new();
        // Memory takes the most time and varies the least.
        let once = options.quick && section == Section::Memory;
        let count = if once { 1 } else { options.runs };
        for number in 1..=count {
            eprintln!("{}, run {number} of {count} ...", section.name());
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
        Section::Latency => latency::run(if quick { 6 } else { 25 }),
        Section::Startup => startup::run(if quick { 20 } else { 60 }),
        Section::Big => big::run(if quick { 15 } else { 50 }),
        Section::Flat => flat::run(if quick { 20_000 } else { 100_000 }),
        Section::Memory => memory::run(quick),
    }
}
