//! Which recordings there are in a file or a folder, and in which formats.
//!
//! A path that the user names may be a link; links inside of folders are not followed, and
//! what is neither file nor folder is not opened.

use super::error::FormatError;
use super::import::Count;
use super::json::{is_object, is_string};
use super::source::Source;
use agent_trace_store::journal::sealed::SEALED_MAGIC;
use agent_trace_wire::message::member;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// A recording that was found.
pub(super) enum Found {
    /// A portable file of ours.
    Portable(Source),
    /// A session's folder of agent-strace.
    StraceFolder {
        /// The folder.
        path: PathBuf,
        /// The workspace that it lies in.
        workspace: Option<String>,
    },
    /// Events of agent-strace, one a line.
    StraceLines(Source),
    /// Events of agent-strace in one document.
    StraceDocument(Source),
    /// A recording of agenttrace-vcr.
    Vcr(Source),
    /// A transcript of Claude Code.
    Claude(Source),
    /// A rollout of Codex.
    Codex(Source),
    /// The events of a session of Copilot CLI.
    Copilot(Source),
}

/// Folders in folders are looked at as far as this.
const MOST_DEPTH: usize = 8;
/// How many entries are looked at in all.
const MOST_ENTRIES: usize = 2_000_000;
/// How many lines may come before one that tells the format.
const LINES: usize = 64;
/// Where a document must begin to look like one that is known.
const START: u64 = 64 << 10;

/// What is in this file or folder.
pub(super) fn at(path: &Path, count: &mut Count) -> Result<Vec<Found>, FormatError> {
    let meta = path.metadata().map_err(FormatError::at(path))?;
    if !meta.is_dir() {
        return Ok(vec![in_source(&Source::File(path.to_owned()))?]);
    }
    let mut walk = Walk {
        found: Vec::new(),
        count,
        entries: 0,
    };
    walk.folder(path)?;
    if walk.found.is_empty() {
        return Err(unknown(path));
    }
    Ok(walk.found)
}

/// What this file is.
pub(super) fn in_source(source: &Source) -> Result<Found, FormatError> {
    detect(source, true)?.ok_or_else(|| unknown(source.path()))
}

fn unknown(path: &Path) -> FormatError {
    FormatError::Unknown {
        path: path.to_owned(),
    }
}

struct Walk<'a> {
    found: Vec<Found>,
    count: &'a mut Count,
    entries: usize,
}

impl Walk<'_> {
    fn folder(&mut self, root: &Path) -> Result<(), FormatError> {
        let mut waiting = vec![(root.to_owned(), 0)];
        while let Some((folder, depth)) = waiting.pop() {
            let inside = folder.join(".agent-traces");
            if is_session(&folder) {
                self.found.push(Found::StraceFolder {
                    path: folder,
                    workspace: None,
                });
                continue;
            }
            if is_folder(&inside) {
                self.strace(&inside, None)?;
                continue;
            }
            let entries = self.entries(&folder)?;
            if is_strace(&folder, &entries) {
                self.strace(&folder, None)?;
                continue;
            }
            for path in entries.into_iter().rev() {
                if is_folder(&path) {
                    match depth < MOST_DEPTH {
                        true => waiting.push((path, depth + 1)),
                        false => self.count.passed_over += 1,
                    }
                }
            }
            self.files(&folder)?;
        }
        Ok(())
    }

    /// Files of a folder that is no store of agent-strace.
    fn files(&mut self, folder: &Path) -> Result<(), FormatError> {
        for path in self.entries(folder)? {
            if is_folder(&path) {
                continue;
            }
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            let plain = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
            let worth = plain && ["json", "jsonl", "ndjson"].contains(&&*ending);
            let found = match worth {
                true => detect(&Source::File(path), false)?,
                false => None,
            };
            match found {
                Some(found) => self.found.push(found),
                None => self.count.passed_over += 1,
            }
        }
        Ok(())
    }

    /// A store of agent-strace, or a workspace in one.
    fn strace(&mut self, folder: &Path, workspace: Option<&str>) -> Result<(), FormatError> {
        for path in self.entries(folder)? {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if !is_folder(&path) || name.starts_with('.') {
                self.count.passed_over += u64::from(!name.starts_with('.'));
            } else if is_session(&path) {
                self.found.push(Found::StraceFolder {
                    path,
                    workspace: workspace.map(Into::into),
                });
            } else if name == "workspaces" && workspace.is_none() {
                for inner in self.entries(&path)? {
                    let name = inner
                        .file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned();
                    match is_folder(&inner) {
                        true => self.strace(&inner, Some(&name))?,
                        false => self.count.passed_over += 1,
                    }
                }
            } else {
                self.count.passed_over += 1;
            }
        }
        Ok(())
    }

    /// The entries of a folder by name.
    fn entries(&mut self, folder: &Path) -> Result<Vec<PathBuf>, FormatError> {
        let list = folder.read_dir().map_err(FormatError::at(folder))?;
        let mut paths = Vec::new();
        for entry in list {
            let entry: DirEntry = entry.map_err(FormatError::at(folder))?;
            self.entries += 1;
            if self.entries > MOST_ENTRIES {
                let what = format!("more than {MOST_ENTRIES} files and folders");
                return Err(FormatError::at(folder)(std::io::Error::other(what)));
            }
            paths.push(entry.path());
        }
        paths.sort();
        Ok(paths)
    }
}

/// Whether this is a folder, and no link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file())
}

/// Whether a folder is a session of agent-strace. One that was just begun has no events.
fn is_session(folder: &Path) -> bool {
    is_plain(&folder.join("events.ndjson"))
        || is_plain(&folder.join("meta.json")) && !folder.join("events.ndjson").is_symlink()
}

/// Whether a folder is a store of agent-strace.
fn is_strace(folder: &Path, entries: &[PathBuf]) -> bool {
    let named = folder
        .file_name()
        .is_some_and(|name| name == ".agent-traces");
    let workspaces = || {
        let inner = folder.join("workspaces").read_dir().into_iter().flatten();
        let mut inner = inner.flatten().map(|entry| entry.path());
        inner.any(|workspace| {
            let sessions = workspace.read_dir().into_iter().flatten().flatten();
            sessions
                .map(|entry| entry.path())
                .any(|path| is_folder(&path) && is_session(&path))
        })
    };
    named
        || entries
            .iter()
            .any(|path| is_folder(path) && is_session(path))
        || workspaces()
}

/// The format of a file. A document is read as a whole only where it was `named`, or begins
/// like one.
fn detect(source: &Source, named: bool) -> Result<Option<Found>, FormatError> {
    let start = source.start(START)?;
    if start.starts_with(&SEALED_MAGIC) {
        return Ok(Some(Found::Portable(source.clone())));
    }
    let text = start.trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        // Told by what reads it: it may be a recording of a later version.
        return Ok(named
            .then(|| Found::Portable(source.clone()))
            .filter(|_| is_ours(&start)));
    }
    if let Some(found) = by_lines(source, text)? {
        return Ok(Some(found));
    }
    let holds = |word: &str| memchr::memmem::find(text, word.as_bytes()).is_some();
    if !named && !holds("\"events\"") && !holds("\"event_type\"") {
        return Ok(None);
    }
    by_document(source)
}

/// Whether a file begins as all of ours do: it was cut off, or is of another kind.
fn is_ours(start: &[u8]) -> bool {
    start.starts_with(&SEALED_MAGIC[..4]) || start.starts_with(b"\x89AT")
}

/// The format of a file with one object a line, if the first lines tell.
fn by_lines(source: &Source, start: &[u8]) -> Result<Option<Found>, FormatError> {
    // Of a document over many lines the first one is no JSON.
    let first = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let cut = first.len() == start.len() && start.len() as u64 >= START;
    if !cut && !super::json::is_valid(first) && super::json::without_python_numbers(first).is_none()
    {
        return Ok(None);
    }
    let mut lines = source.lines()?;
    for _ in 0..LINES {
        let line = match lines.next() {
            Ok(Some((line, _))) => line,
            Ok(None) | Err(FormatError::Line { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let has = |name: &str| member(line, name);
        let is_text = |value: Option<&[u8]>| value.is_some_and(is_string);
        if has("event_type").is_some() && has("events").is_none() {
            return Ok(Some(Found::StraceLines(source.clone())));
        }
        let ids = ["sessionId", "uuid", "leafUuid", "messageId", "parentUuid"];
        if is_text(has("type")) && ids.iter().any(|id| has(id).is_some()) {
            return Ok(Some(Found::Claude(source.clone())));
        }
        let holds = |name: &str| has(name).is_some_and(is_object);
        if is_text(has("type")) && is_text(has("timestamp")) && holds("payload") {
            return Ok(Some(Found::Codex(source.clone())));
        }
        if is_text(has("type")) && has("parentId").is_some() && holds("data") {
            return Ok(Some(Found::Copilot(source.clone())));
        }
    }
    Ok(None)
}

/// The format of a file that is one document.
fn by_document(source: &Source) -> Result<Option<Found>, FormatError> {
    let text = source.whole(super::MOST_DOCUMENT)?;
    let text = text.trim_ascii();
    if let [b'[', ..] = text {
        let first = super::json::elements(text)
            .first()
            .copied()
            .unwrap_or_default();
        let ours = member(first, "event_type").is_some();
        return Ok(ours.then(|| Found::StraceDocument(source.clone())));
    }
    let list = member(text, "events").is_some_and(|events| events.starts_with(b"["));
    if !list {
        return Ok(None);
    }
    let meta = ["session", "meta"]
        .iter()
        .find_map(|name| member(text, name));
    if meta.is_some_and(is_object) {
        return Ok(Some(Found::StraceDocument(source.clone())));
    }
    let id = member(text, "id").is_some_and(is_string);
    Ok(id.then(|| Found::Vcr(source.clone())))
}
