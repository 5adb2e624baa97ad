//! An index in memory, and what is in it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use agent_trace_analysis::outcomes;
use agent_trace_index::engine::Engine;
use agent_trace_index::engine::memory::Memory;
use agent_trace_index::indexer::{IDLE, Indexer, verify};
use agent_trace_index::keys::{self, kind};
use agent_trace_index::opening;
use agent_trace_index::rows::{NameRow, RunRow, decode};
use agent_trace_model::RunId;
use agent_trace_model::story::Story;
use agent_trace_store::Store;
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) indexer: Indexer,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let (engine, indexer) = index(&store);
        Self {
            folder,
            store,
            engine,
            indexer,
        }
    }

    /// The index is dropped by whoever has it, and taken over by another one.
    pub(crate) fn take_over(&mut self) {
        self.indexer = Indexer::new(&self.store, Arc::clone(&self.engine), IDLE).unwrap();
    }

    pub(crate) fn catch_up(&mut self) -> Vec<RunRow> {
        self.indexer.catch_up().unwrap();
        self.runs()
    }

    /// All runs, the oldest first.
    pub(crate) fn runs(&self) -> Vec<RunRow> {
        let mut runs: Vec<RunRow> = Vec::new();
        self.engine
            .scan(&[kind::RUN], None, &mut |_, row| {
                runs.push(decode(row).unwrap());
                true
            })
            .unwrap();
        runs.sort_by_key(|run| (run.started, run.id));
        runs
    }

    pub(crate) fn story(&self, id: RunId) -> Story {
        let name = self.engine.get(&keys::alias(id)).unwrap();
        let name: NameRow = decode(&name.expect("a name")).unwrap();
        let row = self.engine.get(&name.key()).unwrap().expect("a run");
        opening::story(&self.store, &*self.engine, &decode(&row).unwrap()).unwrap()
    }

    /// What the rows say of each run is what its steps say.
    pub(crate) fn check(&self) {
        let different = verify::compare(&self.store, &*self.engine, IDLE).unwrap();
        assert_eq!(different, [], "equal to a rebuild");
        for run in self.runs() {
            let story = self.story(run.id);
            let what = format!("{run:#?}\n{story:#?}");
            assert_eq!(run.tally.steps, story.steps.len() as u64, "{what}");
            for outcome in agent_trace_model::Outcome::ALL {
                let steps = story.steps.iter().filter(|step| step.outcome == outcome);
                assert_eq!(
                    run.tally.outcomes.of(outcome),
                    steps.count() as u64,
                    "{what}"
                );
            }
            let failures = outcomes::failures(&story);
            assert_eq!(run.failed, failures.len() as u64, "{failures:?} {what}");
            let recovered = outcomes::recovered(&story).len() as u64;
            assert_eq!(run.recovered, recovered, "{what}");
            let longest = story.steps.iter().filter(|step| {
                step.is_clients() && step.kind == agent_trace_model::step::StepKind::Request
            });
            let longest = longest.filter_map(|step| step.duration).max();
            assert_eq!(run.tally.longest.map(|(long, _)| long), longest, "{what}");
            for alias in run.aliases.iter().chain([&run.id]) {
                assert_eq!(self.story(*alias).id, run.id);
            }
        }
    }
}

pub(crate) fn index(store: &Store) -> (Arc<dyn Engine>, Indexer) {
    let engine: Arc<dyn Engine> = Arc::new(Memory::default());
    let indexer = Indexer::new(store, Arc::clone(&engine), IDLE).unwrap();
    (engine, indexer)
}
