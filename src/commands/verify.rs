//! `verify`: is the journal what was recorded?

use crate::cli::Format;
use crate::cli::verify::Verify;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query;
use crate::render::words::count;
use crate::render::{escape, json, short};
use agent_trace_model::ProcessId;
use agent_trace_store::state::State;
use agent_trace_store::trace::Sessions;
use agent_trace_store::verify::{self, Fault, Note, Report};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// How many runs of a process are named.
const NAMED: usize = 3;

pub(crate) fn run(args: &Verify, config: &Config) -> Result<u8, CommandError> {
    let store = config.store();
    let mut wanted = None;
    let mut runs: BTreeMap<ProcessId, Vec<String>> = BTreeMap::new();
    if let Some(name) = args.run.as_deref().filter(|_| !args.all) {
        let (run, sessions) = query::entries(config, name)?;
        let of = sessions.iter().map(|session| session.session.process);
        let of: BTreeSet<ProcessId> = of.collect();
        runs.extend(
            of.iter()
                .map(|process| (*process, vec![run.row.id.to_string()])),
        );
        wanted = Some(Vec::from_iter(of));
    } else {
        // By the ids that the sessions have by themselves: those of runs, or other names of them.
        for entry in store.list().map_err(CommandError::path(store.root()))?.runs {
            let of = runs.entry(entry.session.process).or_default();
            of.push(entry.id.to_string());
        }
    }
    let mut lines = Vec::new();
    verify::each(&store, wanted.as_deref(), |process, report| {
        lines.push(Line {
            process: process.to_string(),
            runs: runs.remove(&process).unwrap_or_default(),
            report,
        });
    })
    .map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CommandError::Usage {
            what: "the store has no key, so nothing can be proven".into(),
            hint: "the key is made when something is first recorded",
        },
        _ => CommandError::path(store.root())(error),
    })?;
    match args.format {
        Format::Text => text(&mut anstream::stdout().lock(), &lines)?,
        Format::Json => json::document(&lines.iter().map(Told::of).collect::<Vec<_>>())?,
        Format::Jsonl => lines
            .iter()
            .map(Told::of)
            .try_for_each(|l| json::line(&l))?,
    }
    let damaged = match args.all {
        true => State::of(&store).entries()?.damaged,
        false => 0,
    };
    if damaged > 0 {
        let what = format!("{damaged} bytes of the state log can't be read: verdicts may be lost");
        // It is no journal: what is printed of these stays as it is.
        let _ = writeln!(anstream::stderr(), "{} {what}", "warning:".yellow());
    }
    Ok(
        if damaged > 0 || lines.iter().any(|line| line.report.is_faulty()) {
            exit::FOUND
        } else if lines.iter().any(|line| line.report.is_doubtful()) {
            exit::FAILURE
        } else {
            exit::SUCCESS
        },
    )
}

/// What is said of a process.
struct Line {
    process: String,
    runs: Vec<String>,
    report: Report,
}

fn text(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    for line in lines {
        let report = &line.report;
        let files = count(report.files, "file");
        let verdict = if report.is_faulty() {
            format!("{:>9}", "not whole").red().to_string()
        } else if report.is_doubtful() {
            format!("{:>9}", "unproven").yellow().to_string()
        } else {
            format!("{:>9}", "ok").green().to_string()
        };
        let Report {
            records, proven, ..
        } = report;
        let proven = match proven == records {
            true => "all".to_owned(),
            false => proven.to_string(),
        };
        let how = format!("{}, {proven} proven", count(*records, "record"));
        writeln!(out, "{verdict}  {}: {how}, in {files}", names(line))?;
        for fault in &report.faults {
            writeln!(out, "           {}", in_words(fault))?;
        }
        if report.removed > 0 {
            writeln!(out, "           removed records: {}", report.removed)?;
        }
        for note in &report.notes {
            writeln!(out, "           {}", note_in_words(note))?;
        }
    }
    let faulty = lines.iter().filter(|line| line.report.is_faulty()).count();
    let all = lines.len();
    match faulty {
        _ if all == 1 => Ok(()),
        0 => writeln!(out, "{all} journals: nothing was changed, cut or taken out"),
        _ => writeln!(out, "{faulty} of {all} journals are not what was recorded"),
    }
}

/// The runs of a process by their short ids.
fn names(line: &Line) -> String {
    let named = line.runs.iter().take(NAMED).map(short);
    let named = named.collect::<Vec<_>>().join(", ");
    match line.runs.len() {
        0 => format!("process {}", line.process),
        1 => format!("run {named}"),
        count if count <= NAMED => format!("runs {named}"),
        count => format!("runs {named} and {} more", count - NAMED),
    }
}

fn in_words(fault: &Fault) -> String {
    let place = match fault.records {
        Some((first, last)) if first == last => format!(", record {first}"),
        Some((first, last)) => format!(", records {first} to {last}"),
        None => String::new(),
    };
    let what = escape::text(fault.what.as_bytes(), 0);
    format!(
        "{}: file {}{place}: {what}",
        fault.kind.as_str().red(),
        fault.file
    )
}

fn note_in_words(note: &Note) -> String {
    match note {
        Note::Live(records) => {
            let records = count(*records, "record");
            format!("it is still being written; {records} at its end not proven yet")
        }
        Note::OpenEnd(records) => format!(
            "its end is not proven (its process was killed, or the end was cut off): \
             {} after the last mark",
            count(*records, "record")
        ),
        Note::Unchained(file) => format!("file {file} has no hash chain"),
        Note::OtherKey(file) => {
            format!("file {file} was written with another store's key, and can't be judged")
        }
        Note::Clipped(file) => format!(
            "files before number {file} are not there: retention removed them, or somebody did"
        ),
    }
}

/// The same as JSON.
#[derive(Serialize)]
struct Told<'a> {
    process: &'a str,
    runs: &'a [String],
    /// `ok`, `faulty` or `unproven`.
    verdict: &'static str,
    files: usize,
    records: u64,
    proven: u64,
    removed: u64,
    faults: Vec<ToldFault<'a>>,
    notes: Vec<ToldNote>,
}

#[derive(Serialize)]
struct ToldFault<'a> {
    kind: &'static str,
    file: u32,
    /// First and last record of the stretch that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<(u64, u64)>,
    what: &'a str,
}

#[derive(Serialize)]
struct ToldNote {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<u32>,
    /// How many records it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
}

impl<'a> Told<'a> {
    fn of(line: &'a Line) -> Self {
        let report = &line.report;
        let fault = |fault: &'a Fault| ToldFault {
            kind: fault.kind.as_str(),
            file: fault.file,
            records: fault.records,
            what: &fault.what,
        };
        let note = |note: &Note| {
            let (kind, file, records) = match *note {
                Note::Live(records) => ("live", None, Some(records)),
                Note::OpenEnd(records) => ("open_end", None, Some(records)),
                Note::Unchained(file) => ("unchained", Some(file), None),
                Note::OtherKey(file) => ("other_key", Some(file), None),
                Note::Clipped(file) => ("clipped", Some(file), None),
            };
            ToldNote {
                kind,
                file,
                records,
            }
        };
        Self {
            process: &line.process,
            runs: &line.runs,
            verdict: match () {
                () if report.is_faulty() => "faulty",
                () if report.is_doubtful() => "unproven",
                () => "ok",
            },
            files: report.files,
            records: report.records,
            proven: report.proven,
            removed: report.removed,
            faults: report.faults.iter().map(fault).collect(),
            notes: report.notes.iter().map(note).collect(),
        }
    }
}
