//! Sessions that another program recorded, on their way into the store.
//!
//! Who knows the foreign format hands over frames; here they are redacted, become sealed files,
//! and are published all at once or not at all:
//!
//! ```text
//! <data>/import.lock                  one import at a time
//! <data>/importing/<process>.<n>.ats  written here …
//! <data>/journal/import-<digits>/     … and there by one rename of the folder
//! ```
//! A file `replaces` in such a folder names the files that it takes the place of. From the rename
//! on nobody reads these any more, so that what is killed before they are removed has replaced
//! all or nothing.
//!
//! Each foreign session is a process of its own. Its id is derived from what the session is
//! called where it comes from, so that it is found when it comes again.
//!
//! - [`session`]: one session while it is written

pub mod session;

use crate::journal::header::{Imported, Meta, Redaction};
use crate::journal::reader::{OpenError, Segment};
use crate::journal::{Bodies, Header};
use crate::key;
use crate::layout::{REPLACES, SegmentPath, Store, create_private, open_lock, sync_folder};
use crate::process::Process;
use crate::recorder::Options;
use crate::redact::{Key, Redactor, RuleError};
use crate::trace::{processes, run_id};
use agent_trace_model::{ProcessId, RunId, SessionId};
use session::{Opening, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The store's files cannot be read or written.
    #[error("cannot write the store")]
    Io(#[from] io::Error),
    /// A file of a session that was imported before cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A rule of the user for secrets cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The configuration asks for digests in place of arguments and results.
    #[error(
        "recordings of other programs hold arguments and results, and only digests are to be kept"
    )]
    Digests,
}

/// What the store has of a foreign session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    No,
    /// The same.
    Same,
    /// It was imported when it was something else, or only the beginning of what it is now.
    Changed,
}

/// An import: sessions that are going to be published together. Dropped without
/// [`publish`](Self::publish) it leaves nothing behind.
#[derive(Debug)]
pub struct Import {
    store: Store,
    staging: PathBuf,
    key: Key,
    redactor: Redactor,
    redaction: Redaction,
    workspace: String,
    known: BTreeMap<ProcessId, Vec<SegmentPath>>,
    /// What was written, and what of it is there already and has to go.
    written: BTreeSet<ProcessId>,
    replaced: BTreeSet<ProcessId>,
    /// Held as long as this lives.
    _lock: File,
}

impl Import {
    /// Begins an import; waits for another one to end.
    ///
    /// # Errors
    /// When the store cannot be written, or what is configured cannot be kept to.
    pub fn begin(store: &Store, options: &Options) -> Result<Self, ImportError> {
        if options.bodies == Bodies::Digest {
            return Err(ImportError::Digests);
        }
        let key = key::load_or_create(store)?;
        let mut redactor = Redactor::new(key.clone(), &options.user_rules)?;
        // What is secret here may stand in what was recorded here.
        redactor.add_own_environment();
        let lock = open_lock(&store.root().join("import.lock"))?;
        lock.lock()?;
        let staging = store.root().join("importing");
        // Of an import that was killed.
        clear(&staging)?;
        store.make(&staging)?;
        Ok(Self {
            staging,
            redaction: Redaction {
                on: options.redact,
                key: key.id(),
                user_rules: options.user_rules.len(),
            },
            key,
            redactor,
            workspace: options.workspace.clone(),
            known: processes(store)?,
            store: store.clone(),
            written: BTreeSet::new(),
            replaced: BTreeSet::new(),
            _lock: lock,
        })
    }

    /// The process that a foreign session is: derived from the workspace, the format, and what
    /// the session is called there.
    #[must_use]
    pub fn process(&self, format: &str, name: &str) -> ProcessId {
        let mut hasher = blake3::Hasher::new();
        for part in ["agent-trace import", &self.workspace, format, name] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        ProcessId::from_digest(digest)
    }

    /// The run that a process is by itself.
    #[must_use]
    pub fn run(&self, process: ProcessId) -> RunId {
        let session = SessionId {
            process,
            ordinal: 1,
        };
        run_id(&self.workspace, session)
    }

    /// A keyed hasher for the digest of what is read.
    #[must_use]
    pub fn hasher(&self) -> blake3::Hasher {
        self.key.hasher()
    }

    /// Whether a session is there already, and the same: what was read of it has this digest.
    ///
    /// # Errors
    /// When the file of it cannot be read.
    pub fn known(&self, process: ProcessId, digest: &str) -> Result<Known, ImportError> {
        if self.written.contains(&process) {
            // Twice among what is imported now.
            return Ok(Known::Same);
        }
        let Some(file) = self.known.get(&process).and_then(|files| files.first()) else {
            return Ok(Known::No);
        };
        let before = imported(file)?.map(|imported| imported.digest);
        Ok(match before.as_deref() == Some(digest) {
            true => Known::Same,
            false => Known::Changed,
        })
    }

    /// Begins to write a session. One that is there already is going to be replaced.
    ///
    /// # Errors
    /// When the file cannot be begun.
    pub fn session(
        &mut self,
        process: ProcessId,
        opening: Opening,
    ) -> Result<Writer<'_>, ImportError> {
        self.written.insert(process);
        if self.known.contains_key(&process) {
            self.replaced.insert(process);
        }
        let header = Header {
            process,
            segment: 1,
            version: env!("CARGO_PKG_VERSION").into(),
            started: opening.started,
            host: String::new(),
            boot: String::new(),
            relay: Process::default(),
            client: None,
            redaction: self.redaction.clone(),
            bodies: Bodies::Full,
            workspace: self.workspace.clone(),
            project: None,
        };
        Ok(Writer::begin(self, header, opening)?)
    }

    /// Makes all sessions that were written appear at once; nothing of them where that fails.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn publish(mut self) -> Result<(), ImportError> {
        if self.written.is_empty() {
            return Ok(());
        }
        let _journal = self.store.lock()?;
        self.commit()?;
        self.written.clear();
        // Nobody reads them any more, and who changes the store next would remove them.
        let _ = self.store.remove_replaced();
        Ok(())
    }

    /// Puts what was written in its place. The store must be locked.
    fn commit(&self) -> Result<(), ImportError> {
        // What came in by a portable file meanwhile, or was forgotten.
        let there = processes(&self.store)?;
        let mut gone = Vec::new();
        for process in &self.written {
            let Some(files) = there.get(process) else {
                continue;
            };
            if self.replaced.contains(process) {
                gone.extend(files.iter().map(|file| file.path.clone()));
                continue;
            }
            for path in self.staged(*process)? {
                fs::remove_file(path)?;
            }
        }
        if !gone.is_empty() {
            let names = self.store.names(&gone);
            create_private(&self.staging.join(REPLACES))?.write_all(names.as_bytes())?;
        }
        sync(&self.staging)?;
        let mut digits = [0; 8];
        getrandom::fill(&mut digits).map_err(|error| io::Error::other(error.to_string()))?;
        let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = self.store.day(&format!("import-{digits}"));
        fs::rename(&self.staging, &place)?;
        sync_folder(&place)?;
        Ok(())
    }

    /// The files of a process that wait for being published.
    fn staged(&self, process: ProcessId) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in self.staging.read_dir()? {
            let path = entry?.path();
            let segment = SegmentPath::parse(path.clone());
            if segment.is_some_and(|segment| segment.process == process) {
                found.push(path);
            }
        }
        Ok(found)
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        let _ = clear(&self.staging);
    }
}

/// Where a file says that its session came from.
fn imported(file: &SegmentPath) -> Result<Option<Imported>, OpenError> {
    let segment = Segment::open(file)?;
    let mut views = segment.views().flatten();
    let opening = views.find_map(|view| serde_json::from_slice(view.payload).ok());
    Ok(match opening {
        Some(Meta::SessionOpen(open)) => open.imported.map(|imported| *imported),
        _ => None,
    })
}

fn clear(staging: &std::path::Path) -> io::Result<()> {
    match fs::remove_dir_all(staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Forces all files of a folder to the disk.
fn sync(folder: &std::path::Path) -> io::Result<()> {
    // Thousands of small files one by one would take minutes.
    #[cfg(target_os = "linux")]
    {
        let folder = File::open(folder)?;
        Ok(rustix::fs::syncfs(folder)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        for entry in folder.read_dir()? {
            File::open(entry?.path())?.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
