//! Which assistants and servers there are.
//!
//! Nothing is started and nothing is changed. Values of environment variables and of header
//! lines are not kept: they are where secrets are. [`values`] reads them for who needs them.

mod entry;
#[cfg(test)]
mod tests;
mod values;

pub use entry::{Kind, Standing};
use entry::{Raw, raw};
pub use values::{Pair, Text, Values, values};

use crate::catalogue::{CLIENTS, Client, Place, Scope};
use crate::document::{self, Node};
use crate::machine::Machine;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How many servers of one file are looked at.
const MOST_ENTRIES: usize = 1000;

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The assistants of which a file is there.
    pub clients: Vec<&'static Client>,
    /// Their files, in the order of the catalogue. A file that several assistants read is there
    /// for each of them.
    pub files: Vec<ConfigFile>,
    /// The servers in them.
    pub entries: Vec<Entry>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// A configuration file.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Whose it is.
    pub client: &'static Client,
    /// What the catalogue says about it.
    pub place: &'static Place,
    /// Where it is.
    pub path: PathBuf,
}

/// A server in a configuration file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The assistant that would start it.
    pub client: &'static Client,
    /// Whose server it is.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
    /// The keys that lead to it in the file, its name last. With [`Scope::Local`] the one
    /// before the last but one is the project's folder.
    pub path: Vec<String>,
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub kind: Kind,
    /// Whether the assistant may start it.
    pub enabled: bool,
    /// Whether we stand before it.
    pub standing: Standing,
    /// The bytes of the entry in the file; of a TOML table those of its heading.
    pub span: Range<usize>,
    /// The bytes of its name.
    pub name_span: Range<usize>,
    /// The line of its name, from 1.
    pub line: usize,
}

/// A file that cannot be read, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whose file it is.
    pub client: &'static str,
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1, where there is one.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Looks for every assistant of the catalogue.
#[must_use]
pub fn discover(machine: &Machine<'_>) -> Found {
    let mut found = Found::default();
    for client in CLIENTS {
        look(machine, client, &mut found);
    }
    found
}

/// Looks for one assistant.
#[must_use]
pub fn discover_client(machine: &Machine<'_>, client: &'static Client) -> Found {
    let mut found = Found::default();
    look(machine, client, &mut found);
    found
}

fn look(machine: &Machine<'_>, client: &'static Client, found: &mut Found) {
    // Several places may be in one file: it is read once.
    let mut last: Option<(PathBuf, Vec<u8>, Node)> = None;
    for place in client.places {
        for path in machine.paths(place) {
            if last.as_ref().is_none_or(|(known, ..)| *known != path) {
                last = None;
                let bytes = match machine.files.read(&path) {
                    Ok(None) => continue,
                    Ok(Some(bytes)) => bytes,
                    Err(error) => {
                        found.problems.push(unreadable(client, &path, &error));
                        continue;
                    }
                };
                match place.format.read(&bytes) {
                    Ok(root) => last = Some((path.clone(), bytes, root)),
                    Err(fault) => {
                        found
                            .problems
                            .push(malformed(client, &path, &bytes, &fault));
                        continue;
                    }
                }
            }
            let Some((_, bytes, root)) = &last else {
                continue;
            };
            if !found.clients.iter().any(|known| known.id == client.id) {
                found.clients.push(client);
            }
            if !found
                .files
                .iter()
                .any(|file| file.path == path && file.client.id == client.id)
            {
                found.files.push(ConfigFile {
                    client,
                    place,
                    path: path.clone(),
                });
            }
            let mut raws = raw(root, place);
            if raws.len() > MOST_ENTRIES {
                raws.truncate(MOST_ENTRIES);
                found.problems.push(crowded(client, &path));
            }
            let lines = lines(bytes, raws.iter().map(|raw| raw.name_span.start).collect());
            for raw in raws {
                let line = lines.get(&raw.name_span.start).copied().unwrap_or(1);
                found.entries.push(entry(&raw, client, place, &path, line));
            }
        }
    }
}

fn entry(
    raw: &Raw<'_>,
    client: &'static Client,
    place: &'static Place,
    file: &Path,
    line: usize,
) -> Entry {
    Entry {
        client,
        scope: place.scope,
        file: file.to_owned(),
        path: raw.path.clone(),
        name: raw.name().to_owned(),
        kind: raw.kind(place.members),
        enabled: raw.is_enabled(place.members),
        standing: raw.standing(place.members),
        span: raw.node.span.clone(),
        name_span: raw.name_span.clone(),
        line,
    }
}

/// The lines of these bytes, from 1, in one pass.
fn lines(bytes: &[u8], mut starts: Vec<usize>) -> HashMap<usize, usize> {
    starts.sort_unstable();
    let (mut at, mut line) = (0, 1);
    let mut lines = HashMap::new();
    for start in starts {
        let between = bytes.get(at..start).unwrap_or_default();
        line += between.iter().filter(|byte| **byte == b'\n').count();
        at = start;
        lines.insert(start, line);
    }
    lines
}

fn crowded(client: &Client, path: &Path) -> Problem {
    Problem {
        client: client.id,
        file: path.to_owned(),
        place: None,
        what: format!("has more than {MOST_ENTRIES} servers; the others are left out"),
        remedy: "split it, if it is meant to have so many",
    }
}

fn unreadable(client: &Client, path: &Path, error: &io::Error) -> Problem {
    Problem {
        client: client.id,
        file: path.to_owned(),
        place: None,
        what: format!("cannot be read: {error}"),
        remedy: "make it readable to yourself, or remove it",
    }
}

fn malformed(client: &Client, path: &Path, bytes: &[u8], fault: &document::Fault) -> Problem {
    Problem {
        client: client.id,
        file: path.to_owned(),
        place: Some(document::place(bytes, fault.at)),
        what: fault.what.clone(),
        remedy: "mend it there: the assistant cannot read it either",
    }
}
