//! An index compared with one that is made anew.

use super::{IndexError, Indexer};
use crate::engine::Engine;
use crate::engine::memory::Memory;
use crate::keys::{self, kind};
use crate::rows::{ProcessRow, decode, encode};
use agent_trace_store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So often two indexes are brought up to date while journals grow.
const TRIES: usize = 5;

/// A row that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What row it is.
    pub row: String,
    /// What is wrong with it.
    pub what: What,
}

/// What is wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It should be there and is not.
    Missing,
    /// It is there and should not be.
    Extra,
    /// It says something else than the journals.
    Other,
}

/// The most differences that are told.
const MOST: usize = 100;

impl Indexer {
    /// Brings the index up to date, makes another one in memory and compares them row by row.
    /// None are left if they are equal.
    ///
    /// # Errors
    /// As [`Indexer::catch_up`].
    pub fn verify(&mut self) -> Result<Vec<Difference>, IndexError> {
        let mut found = Vec::new();
        for _ in 0..TRIES {
            self.catch_up()?;
            found = compare(&self.store, &*self.engine, self.idle)?;
            // What was written meanwhile is in one and not in the other.
            if found.is_empty() || self.growing.is_empty() {
                break;
            }
        }
        Ok(found)
    }
}

/// Makes an index of this store in memory and compares it with what this engine holds.
///
/// # Errors
/// As [`Indexer::catch_up`].
pub fn compare(
    store: &Store,
    engine: &dyn Engine,
    idle: u64,
) -> Result<Vec<Difference>, IndexError> {
    let anew: Arc<dyn Engine> = Arc::new(Memory::default());
    Indexer::new(store, Arc::clone(&anew), idle)?.catch_up()?;
    let (is, should_be) = (rows(engine)?, rows(&*anew)?);
    let mut found = Vec::new();
    for (key, value) in &is {
        match should_be.get(key) {
            Some(other) if other == value => {}
            Some(_) => found.push((key, What::Other)),
            None => found.push((key, What::Extra)),
        }
    }
    let missing = should_be.keys().filter(|key| !is.contains_key(*key));
    found.extend(missing.map(|key| (key, What::Missing)));
    found.sort_by_key(|(key, _)| *key);
    let told = found.into_iter().take(MOST);
    let told = told.map(|(key, what)| Difference {
        row: named(key),
        what,
    });
    Ok(told.collect())
}

/// The rows that have to be equal.
fn rows(engine: &dyn Engine) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, IndexError> {
    let mut rows = BTreeMap::new();
    engine.scan(&[], None, &mut |key, value| {
        match key.first() {
            // When a folder was read is no matter, nor how sure it is that a process is dead.
            Some(&kind::FOLDER) => {}
            Some(&kind::PROCESS) => {
                let row = decode::<ProcessRow>(value).map(|row| {
                    encode(&ProcessRow {
                        finished: true,
                        ..row
                    })
                });
                rows.insert(key.to_vec(), row.unwrap_or_default());
            }
            _ => drop(rows.insert(key.to_vec(), value.to_vec())),
        }
        true
    })?;
    Ok(rows)
}

fn named(key: &[u8]) -> String {
    let run = || keys::run_at_end(key).map_or_else(String::new, |run| run.to_string());
    let part = || match keys::part_at_end(key) {
        Some((session, part)) => format!("{session} part {part}"),
        None => String::new(),
    };
    let process = || match keys::process_in(key) {
        Some(process) => process.to_string(),
        None => String::new(),
    };
    match key.first() {
        Some(&kind::RUN) => format!("run {}", run()),
        Some(&kind::TASK) => format!("task of run {}", run()),
        Some(&kind::ALIAS) => format!("name {}", run()),
        Some(&kind::SESSION) => match key.last_chunk::<4>() {
            Some(ordinal) => format!("session {}.{}", process(), u32::from_be_bytes(*ordinal)),
            None => "session".into(),
        },
        Some(&kind::PROCESS) => format!("process {}", process()),
        Some(&kind::KEY) => format!("key of session {}", part()),
        Some(&kind::FILED) => format!("findings of session {}", process()),
        Some(&kind::ACROSS) => format!("findings of run {}", run()),
        Some(&kind::LIST) => "list of definitions".into(),
        Some(&kind::SEEN) => "list of a session".into(),
        Some(&kind::MEMBER) => format!("run of session {}", part()),
        _ => format!("row {:?}", String::from_utf8_lossy(key)),
    }
}
