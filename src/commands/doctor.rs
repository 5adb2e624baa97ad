//! `doctor`: does recording work, and what went wrong when it did not?

#[cfg(unix)]
mod daemon;

use crate::cap;
use crate::config::Config;
use crate::error::{CommandError, exit, in_one_line};
use crate::recording::is_off;
use crate::render::time::bytes;
use crate::render::{short, time};
use crate::units;
use agent_trace_store::redact::{Key, Redactor};
use agent_trace_store::retention::{self, Outcome};
use agent_trace_store::state::State;
use agent_trace_store::trace::session::Standing;
use agent_trace_store::trace::{Session, Sessions};
use agent_trace_store::{Store, key};
use owo_colors::OwoColorize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

/// How many of the newest runs are looked at.
const RUNS: usize = 50;
/// Less free space than this is worth a word.
const LITTLE_SPACE: u64 = 500_000_000;

/// What a check found.
enum Found {
    Good(String),
    /// Something to know; recording works.
    Note(String),
    /// Something that is wrong, and what to do about it.
    Wrong(String, &'static str),
}

pub(crate) fn run(config: &Result<Config, CommandError>) -> Result<u8, CommandError> {
    let mut found = Vec::new();
    match config {
        Ok(config) => {
            found.push(("configuration", configuration(config)));
            let store = config.store();
            found.push(("store", space(&store)));
            found.push(("store", writable(&store)));
            found.extend(readable(&store).map(|wrong| ("store", wrong)));
            found.push(("key", key_of(&store)));
            found.extend(limits(config, &store).map(|limits| ("limits", limits)));
            found.extend(verdicts(&store).map(|wrong| ("verdicts", wrong)));
            found.push(("recording", switch()));
            #[cfg(unix)]
            daemon::look(config, &mut found);
            runs(&store, &mut found);
        }
        Err(error) => {
            let what = in_one_line(error);
            found.push((
                "configuration",
                Found::Wrong(what, "nothing is recorded until it is mended"),
            ));
        }
    }
    let mut out = anstream::stdout().lock();
    let mut code = exit::SUCCESS;
    for (about, what) in found {
        match what {
            Found::Good(what) => writeln!(out, "{}  {about}: {what}", "   ok".green())?,
            Found::Note(what) => writeln!(out, "{}  {about}: {what}", " note".yellow())?,
            Found::Wrong(what, remedy) => {
                writeln!(out, "{}  {about}: {what}\n       {remedy}", "wrong".red())?;
                code = exit::FOUND;
            }
        }
    }
    Ok(code)
}

fn configuration(config: &Config) -> Found {
    // Any key will do to see whether the user's rules can be used.
    if let Err(error) = Redactor::new(Key::from_bytes([0; 32]), &config.file.redact.rule) {
        return Found::Wrong(
            error.to_string(),
            "nothing is recorded until it is mended; `agent-trace redact --test` tells more",
        );
    }
    match &config.path {
        Some(path) if config.exists => Found::Good(path.display().to_string()),
        _ => Found::Good("none; defaults are in use".into()),
    }
}

fn switch() -> Found {
    if is_off() {
        Found::Note("AGENT_TRACE=off: what is started from here is relayed unrecorded".into())
    } else {
        Found::Good("on".into())
    }
}

fn space(store: &Store) -> Found {
    match store.free_space() {
        Some(free) if free < LITTLE_SPACE => Found::Wrong(
            format!("{} left on its disk", bytes(free)),
            "recording stops when the disk is full: make room, or set [retention]",
        ),
        Some(free) => Found::Good(format!("{}, {} free", store.root().display(), bytes(free))),
        None => Found::Good(store.root().display().to_string()),
    }
}

fn writable(store: &Store) -> Found {
    match store.try_writing() {
        Ok(()) => Found::Good("can be written".into()),
        Err(error) => Found::Wrong(
            format!("cannot be written: {error}"),
            "runs are relayed but not recorded; mend its permissions, or give another --store",
        ),
    }
}

/// Whether others can read the store, which only happens when somebody else made it.
#[cfg(unix)]
fn readable(store: &Store) -> Option<Found> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(store.root()).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        Found::Wrong(
            format!("{} can be read by others", store.root().display()),
            "traces hold what your tools did: chmod 700 it",
        )
    })
}

#[cfg(not(unix))]
fn readable(_: &Store) -> Option<Found> {
    None
}

fn key_of(store: &Store) -> Found {
    match key::load(store) {
        Ok(key) => Found::Good(format!("{} makes the fingerprints", key.id())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Found::Good("none yet; the first run makes it".into())
        }
        Err(error) => Found::Wrong(
            error.to_string(),
            "move the file away: a new key is made, and older fingerprints stay comparable among themselves",
        ),
    }
}

/// Whether the limits of [retention] are kept to.
fn limits(config: &Config, store: &Store) -> Option<Found> {
    const REMEDY: &str = "`agent-trace retention apply` does it now, and tells what it cannot do";
    if config.retention().is_empty() {
        return None;
    }
    let Some((age, outcome)) = retention::last_time(store) else {
        return Some(Found::Good("not looked after yet; relays do it".into()));
    };
    let ago = format!("{} ago", units::shown(Duration::from_secs(age.as_secs())));
    Some(match outcome {
        Outcome::Done => Found::Good(format!("looked after {ago}")),
        Outcome::Begun if age < cap::EVERY => Found::Good("being looked after".into()),
        Outcome::Begun => Found::Wrong(format!("not looked after to the end, {ago}"), REMEDY),
        Outcome::Failed(why) => {
            let why = crate::render::escape::text(why.as_bytes(), 0);
            Found::Wrong(format!("not looked after, {ago}: {why}"), REMEDY)
        }
    })
}

/// Whether all that was decided about runs can be read.
fn verdicts(store: &Store) -> Option<Found> {
    const REMEDY: &str = "the rest counts; judge again what you miss (`agent-trace verdict`)";
    match State::of(store).entries() {
        Ok(entries) if entries.damaged == 0 => None,
        Ok(entries) => Some(Found::Wrong(
            format!("{} bytes of the state log can't be read", entries.damaged),
            REMEDY,
        )),
        Err(error) => Some(Found::Wrong(in_one_line(&error), "nothing is judged")),
    }
}

fn runs(store: &Store, found: &mut Vec<(&'static str, Found)>) {
    let listing = match store.list() {
        Ok(listing) => listing,
        Err(error) => {
            let what = format!("cannot be listed: {error}");
            found.push((
                "runs",
                Found::Wrong(what, "mend the permissions of the store"),
            ));
            return;
        }
    };
    for error in &listing.unreadable {
        found.push(("runs", Found::Note(in_one_line(error))));
    }
    let total = listing.runs.len();
    // Several runs may share a file.
    let ended = listing.runs.iter().filter(|run| !run.live);
    let journals = ended.flat_map(|run| &run.segments).filter(|s| !s.sealed);
    let unsealed: BTreeSet<_> = journals.map(|s| (s.process, s.number)).collect();
    let unsealed = unsealed.len();
    let newest = listing.runs.first();
    let newest = newest.map(|run| format!(", newest {}", time::date(run.started)));
    found.push((
        "runs",
        Found::Good(format!("{total}{}", newest.unwrap_or_default())),
    ));
    if unsealed > 1000 {
        let what =
            format!("{unsealed} finished journals are not sealed; `agent-trace retention` does it");
        found.push(("runs", Found::Note(what)));
    }
    let newest = &listing.runs[..listing.runs.len().min(RUNS)];
    let mut troubles = BTreeMap::new();
    store.open_each(newest, &mut |at, run| {
        if let Some(what) = run.ok().as_ref().and_then(trouble) {
            troubles.insert(at, what);
        }
    });
    let notes = troubles.into_values().map(Found::Note);
    found.extend(notes.map(|note| ("run", note)));
}

/// What the recording of a run went through.
fn trouble(run: &Session) -> Option<String> {
    let mut what = Vec::new();
    for (_, gap) in &run.gaps {
        let reason = crate::render::escape::text(gap.reason.as_bytes(), 80);
        what.push(format!("{} not recorded ({reason})", bytes(gap.bytes)));
    }
    if run.missing > 0 {
        what.push(format!("{} of its records are missing", run.missing));
    } else if !run.is_whole() {
        what.push("a part of its journal cannot be read".into());
    }
    if run.standing() == Standing::CutOff {
        what.push("its end was not recorded: the relay was killed, or the disk was full".into());
    }
    (!what.is_empty()).then(|| format!("{}: {}", short(run.entry.id), what.join("; ")))
}
