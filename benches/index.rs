//! Whether ten million events answer in milliseconds: `cargo bench --bench index`.
//!
//! A store is made, the same for the same seed; it is indexed and asked, once as journals and
//! once sealed. What it has to answer is known from its making: a figure counts only if the
//! answer is right.
//!
//! - [`sections`], [`options`], [`scale`]: what can be asked for
//! - [`generate`]: the store
//! - [`place`]: where it is, and the program that asks it
//! - [`reading`], [`indexing`], [`parts`], [`scanning`], [`questions`], [`peer`]: the sections;
//!   [`strace`]: what the peer reads
//! - [`process`]: what processes use
//! - [`report`], [`verdict`], [`stats`]: what is printed
//!
//! Linux only, as the others.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its figures and its progress"
)]

#[path = "common/generate.rs"]
mod generate;
#[path = "index/indexing.rs"]
mod indexing;
#[path = "common/options.rs"]
mod options;
#[path = "index/parts.rs"]
mod parts;
#[path = "index/peer.rs"]
mod peer;
#[path = "index/place.rs"]
mod place;
#[allow(dead_code, reason = "the other benchmarks use the rest")]
#[path = "common/process.rs"]
mod process;
#[path = "index/questions.rs"]
mod questions;
#[path = "index/reading.rs"]
mod reading;
#[path = "common/report.rs"]
mod report;
#[path = "index/scale.rs"]
mod scale;
#[path = "index/scanning.rs"]
mod scanning;
#[path = "index/sections.rs"]
mod sections;
#[allow(dead_code, reason = "likewise")]
#[path = "common/stats.rs"]
mod stats;
#[path = "index/strace.rs"]
mod strace;
#[allow(dead_code, reason = "likewise")]
#[path = "common/verdict.rs"]
mod verdict;

use options::Sections;
use place::{Form, Place, There};
use report::{Measured, Report};
use scale::Scale;
use sections::{Options, Section};
use std::error::Error;
use std::process::ExitCode;

const NAME: &str = "index";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    bench(std::env::args().skip(1).collect()).unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn bench(mut args: Vec<String>) -> Result<ExitCode> {
    let scale = Scale::take(&mut args)?;
    let Some(options) = Options::parse(args, NAME)? else {
        print!("{}{}", Options::usage(NAME), Scale::USAGE);
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
    let mut place = Place::new(&scale)?;
    let mut report = Report::new(options.json, "answer is right");
    for form in Form::ALL {
        for &section in options
            .sections
            .iter()
            .filter(|section| **section != Section::Peer)
        {
            let there = place.have(form)?;
            let name = format!("{}, {}", section.name(), form.name());
            eprintln!("{name} ...");
            report.add(&name, vec![measure(section, &place, &there)?]);
        }
    }
    if options.sections.contains(&Section::Peer) {
        eprintln!("peer ...");
        if let Some(lines) = peer::run(&scale)? {
            report.add(Section::Peer.name(), vec![lines]);
        }
    }
    report.end();
    let missed = options.check && !report.all_met();
    Ok(ExitCode::from(u8::from(missed)))
}

fn measure(section: Section, place: &Place, there: &There) -> Result<Vec<Measured>> {
    match section {
        Section::Reading => reading::run(place, there),
        Section::Indexing => indexing::run(place, there),
        Section::Parts => parts::run(place, there),
        Section::Scanning => scanning::run(place, there),
        Section::Cold => questions::cold(place, there),
        Section::Owner => questions::owner(place, there),
        // That has a store of its own.
        Section::Peer => Ok(Vec::new()),
    }
}
