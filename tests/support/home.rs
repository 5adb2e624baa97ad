//! A store and a home directory of one test's own, and the commands that read the store.

use super::session::{Record, Session};
use super::{LIMIT, wait_for};
use agent_trace_store::Store;
use agent_trace_store::trace::{Session as Run, Sessions};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A home: `home`, `work` (the folder that things run in), `tmp` and `store` lie in it.
pub(crate) struct Home {
    folder: TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("agent-trace-test-")
            .tempdir()
            .unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// A place in it.
    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store_folder(&self) -> PathBuf {
        self.at("store")
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.store_folder())
    }

    /// The program with the environment of this home: nothing of ours but PATH.
    pub(crate) fn program(&self) -> Command {
        self.with_environment(Command::new(env!("CARGO_BIN_EXE_agent-trace")))
    }

    /// Gives another program the same environment.
    pub(crate) fn with_environment(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.at("home"))
            .env("TMPDIR", self.at("tmp"))
            .env("AGENT_TRACE_DIR", self.store_folder())
            .env("TZ", "UTC")
            .current_dir(self.at("work"));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Said {
        let mut command = self.program();
        command.args(words);
        Said::by(&mut command, b"")
    }

    /// Runs a command that must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> String {
        let said = self.run(words);
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    }

    /// Runs a command that must succeed and print JSON.
    #[track_caller]
    pub(crate) fn json<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Value {
        let text = self.ok(words);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Begins to describe a relay.
    pub(crate) fn record(&self) -> Record<'_> {
        Record::new(self)
    }

    /// The ids of all runs, as they are listed: newest first.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        let runs = self.json(["runs", "--all", "-n", "0", "--format", "json"]);
        let runs = runs.as_array().unwrap().iter();
        runs.map(|run| run["run"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The id of the newest run.
    pub(crate) fn newest(&self) -> String {
        self.run_ids().remove(0)
    }

    /// All runs in the store, newest first.
    pub(crate) fn runs(&self) -> Vec<Run> {
        let store = self.store();
        let listing = store.list().unwrap();
        assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
        let open = |entry| store.open(entry).unwrap();
        listing.runs.iter().map(open).collect()
    }

    /// The runs that can be read now, while things are being written.
    pub(crate) fn store_runs(&self) -> Vec<Run> {
        let entries = self
            .store()
            .list()
            .map_or(Vec::new(), |listing| listing.runs);
        let open = |entry| self.store().open(entry).ok();
        entries.iter().filter_map(open).collect()
    }

    /// The one run in the store.
    #[track_caller]
    pub(crate) fn only_run(&self) -> Run {
        let mut runs = self.runs();
        assert_eq!(runs.len(), 1, "runs in the store");
        runs.remove(0)
    }

    /// Waits until the one run in the store is as it should be.
    pub(crate) fn wait_for_run(&self, what: &str, is: impl Fn(&Run) -> bool) -> Run {
        wait_for(what, || {
            let mut runs = self.store().list().ok()?.runs;
            let run = self.store().open(&runs.pop()?).ok()?;
            is(&run).then_some(run)
        })
    }

    /// Every file in the store with its content.
    pub(crate) fn store_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.store_folder()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push((path.clone(), std::fs::read(&path).unwrap()));
                }
            }
        }
        found
    }

    /// Of these the journals, sealed or not.
    pub(crate) fn journal_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = self.store_files();
        let journals = self.store().journals();
        files.retain(|(path, _)| path.starts_with(&journals));
        files
    }

    /// The one journal file in the store.
    #[track_caller]
    pub(crate) fn only_journal(&self) -> PathBuf {
        let files = self.store_files();
        let mut journals = files
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.starts_with(self.store().journals()))
            .filter(|path| path.extension().is_some());
        let journal = journals.next().expect("a journal");
        assert_eq!(journals.next(), None, "one journal");
        journal
    }
}

impl Said {
    /// Runs a command with this input to its end.
    pub(crate) fn by(command: &mut Command, input: &[u8]) -> Self {
        let about = format!("{command:?}");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let session = Session::of(command);
        session.send(input);
        session.close_input();
        let ended = session.wait_at_most(2 * LIMIT, &about);
        Self {
            code: ended.code,
            out: String::from_utf8_lossy(&ended.out).into_owned(),
            err: String::from_utf8_lossy(&ended.err).into_owned(),
        }
    }
}
