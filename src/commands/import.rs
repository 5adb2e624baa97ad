//! `import`: runs from portable files and from recordings of other programs.

use crate::cli::formats::Import;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::Index;
use crate::render::escape::text;
use crate::render::short;
use agent_trace_index::formats::import::{self, Count, State, Taken};
use agent_trace_model::RunId;
use std::io::{self, Read, Write};

/// Of more runs than this the ids are those that their sessions would have alone, which name
/// them as well: looking each up takes a moment.
const MOST_NAMED: usize = 100;

pub(crate) fn run(args: &Import, config: &Config) -> Result<u8, CommandError> {
    let stdin = || {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    };
    let (store, options) = (config.store(), config.recording());
    let report = import::import(&store, &options, &args.paths, stdin, args.replace)?;
    let mut out = anstream::stdout().lock();
    let named: Vec<RunId> = report
        .taken
        .iter()
        .take(MOST_NAMED)
        .map(|t| t.run)
        .collect();
    let named = Index::of(store)?.find_all(&named)?;
    for (position, taken) in report.taken.iter().enumerate() {
        let run = named.get(position).and_then(Option::as_ref);
        let run = run.map_or(taken.run, |found| found.run.row.id);
        writeln!(out, "{}", line(taken, run))?;
    }
    out.flush()?;
    let mut err = anstream::stderr().lock();
    for note in notes(&report.count) {
        // What was done is done, whether anybody reads this or not.
        let _ = writeln!(err, "note: {note}");
    }
    let changed = report
        .taken
        .iter()
        .any(|taken| taken.state == State::Changed);
    Ok(if changed { exit::FOUND } else { exit::SUCCESS })
}

fn line(taken: &Taken, run: RunId) -> String {
    let (id, path) = (short(run), taken.path.display().to_string());
    let path = text(path.as_bytes(), 0);
    let what = match taken.state {
        State::New => "imported run",
        State::Known => "has run",
        State::Changed => "has changed since it was imported, --replace takes it anew: run",
        State::Replaced => "replaced run",
    };
    format!("{what} {id} from {path}")
}

fn notes(count: &Count) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, one: &str, many: &str| match count {
        0 => {}
        1 => notes.push(format!("1 {one}")),
        count => notes.push(format!("{count} {many}")),
    };
    note(
        count.unknown,
        "event of a kind, or with a member, that agent-strace does not have was kept",
        "events of kinds, or with members, that agent-strace does not have were kept",
    );
    note(
        count.unread_meta,
        "meta.json cannot be read; its session was told from its events",
        "files meta.json cannot be read; their sessions were told from their events",
    );
    note(
        count.passed_over,
        "other file was passed over",
        "other files were passed over",
    );
    notes
}
