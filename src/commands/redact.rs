//! `redact`: show what redaction hides in a text or in a recorded run.

use crate::cli::Redact;
use crate::config::Config;
use crate::error::{CommandError, exit};
use crate::query::{self, Opened};
use crate::render::short;
use crate::render::table::{self, Align};
use agent_trace_store::key;
use agent_trace_store::redact::{Redaction, Redactor};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

pub(crate) fn run(args: &Redact, config: &Config) -> Result<u8, CommandError> {
    let redactor = redactor(config)?;
    match (&args.run, &args.test) {
        (Some(run), _) => in_run(run, &redactor, config),
        (None, test) => in_text(test.as_deref().unwrap_or("-"), &redactor),
    }
}

/// With the store's own key, so that markers are those of its traces; before there is a
/// store, with a key for this once.
fn redactor(config: &Config) -> Result<Redactor, CommandError> {
    let store = config.store();
    let key = match key::load(&store) {
        Ok(key) => key,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            key::random().map_err(CommandError::failed("cannot make a key"))?
        }
        Err(error) => return Err(CommandError::path(&store.key_file())(error)),
    };
    let mut redactor = Redactor::new(key, &config.file.redact.rule)?;
    // What `record` would hide here: the values of secret variables of this environment.
    redactor.add_own_environment();
    Ok(redactor)
}

fn in_text(test: &str, redactor: &Redactor) -> Result<u8, CommandError> {
    let text = if test == "-" {
        let mut text = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut text)
            .map_err(CommandError::failed("cannot read standard input"))?;
        text
    } else {
        format!("{test}\n").into_bytes()
    };
    let (mut out, mut found) = (Vec::new(), Vec::new());
    // As a whole, so that a key of many lines is seen; a recording sees one message or line
    // at a time, and follows such keys from line to line.
    if !redactor.bytes(&text, &mut out, &mut found) {
        out.clone_from(&text);
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&out)?;
    stdout.flush()?;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for redaction in &found {
        *kinds.entry(redaction.kind.to_string()).or_default() += 1;
    }
    let list: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let what = if list.is_empty() {
        "nothing".to_owned()
    } else {
        list.join(", ")
    };
    writeln!(anstream::stderr(), "hidden: {what}")?;
    Ok(exit::SUCCESS)
}

fn in_run(name: &str, redactor: &Redactor, config: &Config) -> Result<u8, CommandError> {
    let Opened { run, sessions, .. } = query::open(config, name)?;
    let frames = sessions.iter().flat_map(|session| &session.frames);
    let records = frames.map(|frame| (&frame.record, frame.body()));
    let errors = sessions.iter().flat_map(|session| &session.errors);
    let errors = errors.map(|record| (record, &record.payload[..]));
    let mut rows = Vec::new();
    for (record, text) in records.chain(errors) {
        let (mut out, mut found) = (Vec::new(), Vec::new());
        redactor.bytes(text, &mut out, &mut found);
        let number = record.envelope.sequence;
        rows.extend(found.iter().map(|redaction| row(number, redaction, &out)));
    }
    let mut out = anstream::stdout().lock();
    if rows.is_empty() {
        writeln!(out, "run {}: nothing more to hide", short(run.row.id))?;
        return Ok(exit::SUCCESS);
    }
    use Align::{Left, Right};
    let heading = [
        ("FRAME", Right),
        ("KIND", Left),
        ("BYTES", Right),
        ("MARKER", Left),
    ];
    table::print(&mut out, heading, &rows)?;
    Ok(exit::FOUND)
}

fn row(frame: u64, redaction: &Redaction, out: &[u8]) -> [String; 4] {
    let at = redaction.at as usize;
    let marker = out
        .get(at..at + redaction.marker as usize)
        .unwrap_or_default();
    [
        frame.to_string(),
        redaction.kind.to_string(),
        redaction.original.to_string(),
        String::from_utf8_lossy(marker).into_owned(),
    ]
}
