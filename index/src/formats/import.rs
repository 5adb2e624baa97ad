//! Recordings of other programs, and portable files of ours, on their way in: all or nothing.

use super::claude::Claude;
use super::codex::Codex;
use super::copilot::Copilot;
use super::error::FormatError;
use super::find::{self, Found};
use super::source::Source;
use super::strace::read as strace;
use super::transcript;
use super::vcr;
use agent_trace_model::{End, RunId};
use agent_trace_store::Store;
use agent_trace_store::import::session::{Opening, Writer};
use agent_trace_store::import::{Import, Known};
use agent_trace_store::portable;
use agent_trace_store::recorder::Options;
use std::path::{Path, PathBuf};

/// What became of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is in the store now.
    New,
    /// It was there, and the same.
    Known,
    /// It was there, and has changed since; what is there was left alone.
    Changed,
    /// It was there, had changed, and was taken anew.
    Replaced,
}

/// A recording that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The run that it is by itself.
    pub run: RunId,
    /// What became of it.
    pub state: State,
    /// What it is called where it comes from; empty where it has no name.
    pub session: String,
    /// Where it comes from.
    pub path: PathBuf,
}

/// What importing did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The recordings, in the order of their places.
    pub taken: Vec<Taken>,
    /// What else was seen.
    pub count: Count,
}

/// What was seen beside recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Events of kinds that are not known, or with members that are not; they were kept.
    pub unknown: u64,
    /// Files `meta.json` that cannot be read; their sessions were told from the events.
    pub unread_meta: u64,
    /// Files in folders that are no recordings, and links, which are not followed.
    pub passed_over: u64,
}

/// Takes what is in files and folders; `-` is standard input, of which `stdin` is the content.
/// With `replace`, recordings that have changed since they were imported are taken anew.
///
/// # Errors
/// When something cannot be read, is in no format that is known, or the store does not take
/// it. Nothing is then imported, except for portable files when it is another one of them that
/// is refused.
pub fn import(
    store: &Store,
    options: &Options,
    paths: &[PathBuf],
    stdin: impl FnOnce() -> std::io::Result<Vec<u8>>,
    replace: bool,
) -> Result<Report, FormatError> {
    let mut report = Report::default();
    let mut found = Vec::new();
    let mut stdin = Some(stdin);
    for path in paths {
        if path == Path::new("-") {
            let Some(stdin) = stdin.take() else { continue };
            let source = Source::Memory(stdin().map_err(FormatError::at(path))?);
            found.push(find::in_source(&source)?);
        } else {
            found.append(&mut find::at(path, &mut report.count)?);
        }
    }
    let (files, foreign): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|found| matches!(found, Found::Portable(_)));
    let import = match foreign.is_empty() {
        true => None,
        false => Some(stage(store, options, &foreign, replace, &mut report)?),
    };
    for file in files {
        if let Found::Portable(source) = file {
            take_portable(store, &source, &mut report)?;
        }
    }
    if let Some(import) = import {
        import.publish()?;
    }
    Ok(report)
}

/// Writes foreign recordings, so that they only have to be published.
fn stage(
    store: &Store,
    options: &Options,
    found: &[Found],
    replace: bool,
    report: &mut Report,
) -> Result<Import, FormatError> {
    let mut import = Import::begin(store, options)?;
    let mut take = Take {
        import: &mut import,
        replace,
        report,
    };
    for found in found {
        match found {
            Found::StraceFolder { path, workspace } => {
                let count = &mut take.report.count;
                let place = strace::folder(path, workspace.clone(), count)?;
                strace::take(&place, &mut take)?;
            }
            Found::StraceLines(source) => {
                strace::take(&strace::Place::Lines(source.clone()), &mut take)?;
            }
            Found::StraceDocument(source) => strace::take(&strace::document(source)?, &mut take)?,
            Found::Vcr(source) => vcr::take(source, &mut take)?,
            Found::Claude(source) => transcript::take::<Claude>(source, &mut take)?,
            Found::Codex(source) => transcript::take::<Codex>(source, &mut take)?,
            Found::Copilot(source) => transcript::take::<Copilot>(source, &mut take)?,
            Found::Portable(_) => {}
        }
    }
    Ok(import)
}

fn take_portable(store: &Store, source: &Source, report: &mut Report) -> Result<(), FormatError> {
    let path = source.path();
    let bytes = source.start(u64::MAX)?;
    let imported = portable::import(store, bytes).map_err(|source| FormatError::Portable {
        path: path.to_owned(),
        source,
    })?;
    let taken = imported.into_iter().map(|run| Taken {
        run: run.run,
        state: if run.known { State::Known } else { State::New },
        session: String::new(),
        path: path.to_owned(),
    });
    report.taken.extend(taken);
    Ok(())
}

/// A foreign session that was found.
pub(super) struct Session {
    /// The format that it is in.
    pub(super) format: &'static str,
    /// What tells it from others of that format.
    pub(super) name: String,
    /// What to call it.
    pub(super) shown: String,
    /// Where it is.
    pub(super) path: PathBuf,
}

/// Takes foreign sessions into the store, unless they are there.
pub(super) struct Take<'a> {
    import: &'a mut Import,
    replace: bool,
    report: &'a mut Report,
}

impl Take<'_> {
    /// For the digest of what is read.
    pub(super) fn hasher(&self) -> blake3::Hasher {
        self.import.hasher()
    }

    /// Takes a session: `write` writes its frames and says how it ended.
    pub(super) fn session(
        &mut self,
        found: Session,
        opening: Opening,
        write: impl FnOnce(&mut Writer<'_>, &mut Count) -> Result<Option<(End, u64)>, FormatError>,
    ) -> Result<(), FormatError> {
        let process = self.import.process(found.format, &found.name);
        let known = self.import.known(process, &opening.imported.digest)?;
        let state = match known {
            Known::No => State::New,
            Known::Same => State::Known,
            Known::Changed if self.replace => State::Replaced,
            Known::Changed => State::Changed,
        };
        if matches!(state, State::New | State::Replaced) {
            let mut writer = self.import.session(process, opening)?;
            let end = write(&mut writer, &mut self.report.count)?;
            writer.finish(end).map_err(FormatError::at(&found.path))?;
        }
        self.report.taken.push(Taken {
            run: self.import.run(process),
            state,
            session: found.shown,
            path: found.path,
        });
        Ok(())
    }
}
