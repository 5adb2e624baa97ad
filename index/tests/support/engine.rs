//! An engine that fails when it is told to, and counts what is written.

#![allow(dead_code, reason = "each test file uses a part of it")]

use agent_trace_index::engine::memory::Memory;
use agent_trace_index::engine::{Batch, Engine, EngineError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is to go wrong with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is written.
    Refused,
    /// All of it is written, and said not to be.
    Unsure,
}

#[derive(Debug, Default)]
pub(crate) struct Faulty {
    rows: Memory,
    /// After so many more writes, this.
    fault: Mutex<Option<(u32, Fault)>>,
    /// How many changes were made.
    pub(crate) changes: AtomicU64,
}

impl Faulty {
    pub(crate) fn fail_after(&self, writes: u32, fault: Fault) {
        *self.fault.lock().unwrap() = Some((writes, fault));
    }

    fn next(&self) -> Option<Fault> {
        let mut place = self.fault.lock().unwrap();
        let (writes, fault) = (*place)?;
        *place = writes.checked_sub(1).map(|writes| (writes, fault));
        (writes == 0).then_some(fault)
    }
}

impl Engine for Faulty {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        self.rows.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError> {
        self.rows.scan(prefix, after, each)
    }

    fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let fault = self.next();
        if fault != Some(Fault::Refused) {
            let count = batch.changes.len() as u64;
            self.changes.fetch_add(count, Ordering::Relaxed);
            self.rows.apply(batch)?;
        }
        match fault {
            Some(fault) => Err(EngineError(format!("{fault:?}").into())),
            None => Ok(()),
        }
    }

    fn flush(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn rows(&self) -> Result<u64, EngineError> {
        self.rows.rows()
    }

    fn disk(&self) -> Result<u64, EngineError> {
        self.rows.disk()
    }
}
