//! What cannot be derived from journals: what people, checks and evaluations decided.
//!
//! One append-only file, `<data>/state/log`, of records in the journal's format, each with one
//! entry as JSON. No rebuild of an index touches it. What [`State::append`] returned for is on
//! the disk.
//!
//! Writers take turns under `<data>/state/lock`; readers need no lock, since the file only
//! grows or is replaced as a whole.
//!
//! - `log`: the file's bytes
//! - [`verdicts`]: what was decided about runs
//! - [`keys`]: who may ask what
//! - [`pins`]: which definitions of servers were approved
//! - [`consents`]: which servers a scan may start

pub mod consents;
pub mod keys;
mod log;
pub mod pins;
#[cfg(test)]
mod tests;
pub mod verdicts;

pub use consents::{Consent, Consents};
pub use keys::{Key, Keys};
pub use log::StateError;
pub use pins::{Approval, Approvals};
pub use verdicts::{Decision, Verdicts};

use crate::layout::{Aside, Store};
use agent_trace_model::{Judge, RunId};
use log::Log;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// From this size on it is looked whether the file can be made smaller.
const COMPACT_AT: u64 = 1 << 20;

/// One thing that was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// A verdict about a run.
    Verdict(Decision),
    /// A key was handed out.
    Key(Key),
    /// A key counts no longer.
    Revoked(keys::Revoked),
    /// A definition of a server was approved.
    Approval(Approval),
    /// A server may be started.
    Consent(Consent),
    /// A type that this version does not know. It stays in the file as it is.
    #[serde(other)]
    Unknown,
}

/// Everything in the log, and what of it cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// In the order in which they were appended.
    pub all: Vec<Entry>,
    /// Bytes that cannot be read: of entries that were damaged, or of appends that were
    /// interrupted.
    pub damaged: u64,
}

/// A store's state log.
#[derive(Clone, Debug)]
pub struct State {
    store: Store,
    folder: PathBuf,
}

impl State {
    /// The state log of this store. Nothing is read or made until it is needed.
    #[must_use]
    pub fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            folder: store.root().join("state"),
        }
    }

    /// The file. It is not there before something was appended.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Reads all entries. What cannot be read costs itself only.
    ///
    /// # Errors
    /// When the file cannot be read, or is of another major version.
    pub fn entries(&self) -> Result<Entries, StateError> {
        let Some(log) = Log::read(&self.path())? else {
            return Ok(Entries::default());
        };
        let entry = |record: &log::Place| parse(log.payload(record));
        Ok(Entries {
            all: log.records.iter().map(entry).collect(),
            damaged: log.damaged + log.torn,
        })
    }

    /// Reads all verdicts.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn verdicts(&self) -> Result<Verdicts, StateError> {
        Verdicts::read(self)
    }

    /// Reads all keys.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn keys(&self) -> Result<Keys, StateError> {
        Keys::read(self)
    }

    /// Reads all approvals.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn approvals(&self) -> Result<Approvals, StateError> {
        Approvals::read(self)
    }

    /// Reads which servers may be started.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn consents(&self) -> Result<Consents, StateError> {
        Consents::read(self)
    }

    /// Appends an entry. When this returns it is on the disk.
    ///
    /// # Errors
    /// When it could not be written; nothing of it is then in the file.
    pub fn append(&self, entry: &Entry) -> Result<(), StateError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Appends several entries, all of them or none.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_all(&self, entries: &[Entry]) -> Result<(), StateError> {
        let payloads = entries.iter().map(serde_json::to_vec);
        let payloads: Vec<Vec<u8>> = payloads
            .collect::<Result<_, _>>()
            .map_err(io::Error::from)?;
        let _lock = self.lock()?;
        let path = self.path();
        if !path.exists() {
            self.clean_up();
            Aside::write(&path, &log::header())?.publish()?;
        }
        // What is there must be known: its last number. An end that cannot be read stays: it may
        // be no append that was interrupted, but an entry of which the length was damaged.
        let log = Log::read(&path)?.unwrap_or_default();
        let mut file = OpenOptions::new().append(true).open(&path)?;
        let record = |(at, payload): (u64, &Vec<u8>)| log::record(log.last + at, now(), payload);
        let records: Vec<Vec<u8>> = (1..).zip(&payloads).map(record).collect();
        let good = log.length;
        let written = file
            .write_all(&records.concat())
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            let _ = file.set_len(good).and_then(|()| file.sync_data());
            return Err(error.into());
        }
        if good > COMPACT_AT {
            // It is written; that the file stays large is no reason to say otherwise.
            let _ = self.rewrite();
        }
        Ok(())
    }

    /// Removes what was decided about runs with these ids. What cannot be read stays.
    ///
    /// # Errors
    /// When the file cannot be read, or not be written anew; it is then as it was.
    pub fn forget(&self, runs: &[RunId]) -> Result<(), StateError> {
        if !self.path().exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let path = self.path();
        let log = Log::read(&path)?.unwrap_or_default();
        let goes = |record: &&log::Place| match parse(log.payload(record)) {
            Entry::Verdict(decision) => runs.contains(&decision.run),
            Entry::Key(_)
            | Entry::Revoked(_)
            | Entry::Approval(_)
            | Entry::Consent(_)
            | Entry::Unknown => false,
        };
        let gone: Vec<&log::Place> = log.records.iter().filter(goes).collect();
        if gone.is_empty() {
            return Ok(());
        }
        self.clean_up();
        Aside::write(&path, &log.without(&gone))?.replace()?;
        Ok(())
    }

    /// Removes entries that later ones took the place of, where that is half of them or more.
    /// Nothing is removed from a file with damaged records, which someone may still want to
    /// look at. Under the lock only.
    fn rewrite(&self) -> Result<(), StateError> {
        let path = self.path();
        let Some(log) = Log::read(&path)? else {
            return Ok(());
        };
        // The last word of each about each run counts, and about each definition.
        let mut last: HashMap<(RunId, Judge), usize> = HashMap::new();
        let mut approved = HashMap::new();
        let entries: Vec<Entry> = log.records.iter().map(|r| parse(log.payload(r))).collect();
        for (position, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Verdict(decision) => {
                    last.insert((decision.run, decision.by), position);
                }
                Entry::Approval(approval) => {
                    approved.insert(approval.about(), position);
                }
                _ => {}
            }
        }
        let is_kept = |position: usize| match &entries[position] {
            Entry::Verdict(decision) => last.get(&(decision.run, decision.by)) == Some(&position),
            Entry::Approval(approval) => approved.get(&approval.about()) == Some(&position),
            Entry::Key(_) | Entry::Revoked(_) | Entry::Consent(_) | Entry::Unknown => true,
        };
        let kept: Vec<&log::Place> = (0..entries.len())
            .filter(|position| is_kept(*position))
            .map(|position| &log.records[position])
            .collect();
        // Half of it at least: else each append would rewrite the file.
        if log.damaged + log.torn > 0 || kept.len() * 2 > entries.len() {
            return Ok(());
        }
        let mut bytes = log::header();
        for record in kept {
            bytes.extend_from_slice(log.raw(record));
        }
        self.clean_up();
        Aside::write(&path, &bytes)?.replace()?;
        Ok(())
    }

    /// Waits for other writers, and keeps them from writing until what it returns is dropped.
    fn lock(&self) -> io::Result<File> {
        self.store.make(&self.folder)?;
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(self.folder.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Removes what writers that were killed left behind. Under the lock only.
    fn clean_up(&self) {
        let Ok(entries) = self.folder.read_dir() else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with("log.tmp") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn parse(payload: &[u8]) -> Entry {
    serde_json::from_slice(payload).unwrap_or(Entry::Unknown)
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What changes when the file does: enough to know whether to read it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    file: u64,
    length: u64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Ok(about) => Ok(Self {
                #[cfg(unix)]
                file: std::os::unix::fs::MetadataExt::ino(&about),
                #[cfg(not(unix))]
                file: 0,
                length: about.len(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }
}
