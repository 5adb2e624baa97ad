//! The store that is asked, and the program that asks it.

use crate::Result;
use crate::generate::{self, Made, Plan};
use crate::scale::Scale;
use agent_trace_store::Store;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How many threads make the store.
const THREADS: usize = 2;
/// Bytes on disk for each message, about, with those of its sealed form.
const BYTES: u64 = 1_200;

/// In which form all journals of the store are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Form {
    Journals,
    Sealed,
}

impl Form {
    pub(crate) const ALL: [Self; 2] = [Self::Journals, Self::Sealed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Journals => "journals",
            Self::Sealed => "sealed",
        }
    }
}

/// A folder with a generated store.
pub(crate) struct Place {
    folder: PathBuf,
    plan: Plan,
    there: Option<There>,
    _temporary: Option<TempDir>,
}

/// What is in the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct There {
    pub(crate) plan: Plan,
    pub(crate) form: Form,
    pub(crate) made: Made,
    /// Seconds that it took to make, and to seal.
    pub(crate) seconds: (f64, f64),
}

impl Place {
    pub(crate) fn new(scale: &Scale) -> Result<Self> {
        let (folder, temporary) = match &scale.keep {
            Some(folder) => {
                fs::create_dir_all(folder)?;
                (folder.canonicalize()?, None)
            }
            None => {
                let temporary = tempfile::tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let mut place = Self {
            folder,
            plan: scale.plan,
            there: None,
            _temporary: temporary,
        };
        let text = fs::read(place.path("made.json")).unwrap_or_default();
        place.there = serde_json::from_slice(&text)
            .ok()
            .filter(|there: &There| there.plan == scale.plan);
        // The defaults, whatever the user's own configuration says.
        fs::write(place.path("config.toml"), "")?;
        Ok(place)
    }

    /// A temporary folder without a store.
    pub(crate) fn empty(scale: &Scale) -> Result<Self> {
        Self::new(&Scale {
            plan: scale.plan,
            keep: None,
        })
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.path("store"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Makes the store in this form, without an index, unless it is there in it.
    pub(crate) fn have(&mut self, form: Form) -> Result<There> {
        if let Some(there) = &self.there
            && there.form == form
        {
            return Ok(there.clone());
        }
        if self.there.is_none() || form == Form::Journals {
            self.there = None;
            self.generate()?;
        }
        let Some(there) = &mut self.there else {
            return Err("no store".into());
        };
        if form == Form::Sealed {
            eprintln!("sealing ...");
            let started = Instant::now();
            let store = Store::at(self.folder.join("store"));
            generate::seal(&store, THREADS)?;
            there.seconds.1 = started.elapsed().as_secs_f64();
            there.form = form;
            drop_index(&store)?;
            fs::write(self.folder.join("made.json"), serde_json::to_vec(there)?)?;
        }
        Ok(there.clone())
    }

    fn generate(&mut self) -> Result<()> {
        let Plan { runs, events, .. } = self.plan;
        let store = self.store();
        if store.root().exists() {
            // Nobody's but ours.
            if !self.path("made.json").exists() {
                return Err(format!("{} is not ours", store.root().display()).into());
            }
            fs::remove_dir_all(store.root())?;
        }
        let needed = events * BYTES;
        if store.free_space().is_some_and(|free| free < needed) {
            return Err(format!("the disk has less than {} MB free", needed / 1_000_000).into());
        }
        fs::write(self.path("made.json"), "{}")?;
        eprintln!("making {runs} runs of {events} events ...");
        let started = Instant::now();
        let made = generate::generate(&store, self.plan, THREADS)?;
        let there = There {
            plan: self.plan,
            form: Form::Journals,
            made,
            seconds: (started.elapsed().as_secs_f64(), 0.0),
        };
        fs::write(self.path("made.json"), serde_json::to_vec(&there)?)?;
        self.there = Some(there);
        Ok(())
    }

    /// The program with this store.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-trace"));
        command
            .arg("--store")
            .arg(self.path("store"))
            .arg("--config")
            .arg(self.path("config.toml"))
            .args(words)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<Ran> {
        let mut command = self.command(words);
        let started = Instant::now();
        let output = command.stderr(Stdio::piped()).output()?;
        let took = started.elapsed();
        // 1 is: something was found.
        if output.status.code().is_none_or(|code| code > 1) {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{command:?}: {}: {said}", output.status).into());
        }
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Ran { took, out })
    }
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) took: Duration,
    pub(crate) out: String,
}

impl Ran {
    pub(crate) fn milliseconds(&self) -> f64 {
        self.took.as_secs_f64() * 1e3
    }
}

/// Removes the index of a store, so that the next one is made from nothing.
pub(crate) fn drop_index(store: &Store) -> Result<()> {
    match fs::remove_dir_all(store.index()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// What everything in a folder takes: the lengths of files, and what the disk gave for them.
pub(crate) fn disk_use(folder: &Path) -> Result<(u64, u64)> {
    let (mut length, mut blocks) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let list = match folder.read_dir() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            list => list?,
        };
        for entry in list {
            let entry = entry?;
            let about = entry.metadata()?;
            length += if about.is_dir() { 0 } else { about.len() };
            blocks += about.blocks() * 512;
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok((length, blocks))
}
