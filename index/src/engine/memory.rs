//! Rows in memory: for tests, and for what is asked once of files that are not in the store.

use super::{Batch, Engine, EngineError};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

/// So many entries are taken out of the map at once, so that whoever gets them may change it.
const TAKEN: usize = 256;

/// An ordered map of its own, which nothing survives.
#[derive(Debug, Default)]
pub struct Memory {
    rows: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Engine for Memory {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError> {
        let mut from = super::begin(prefix, after).map(<[u8]>::to_vec);
        loop {
            let taken: Vec<_> = {
                let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
                let range = rows.range((from.clone(), Bound::Unbounded));
                range
                    .take_while(|(key, _)| key.starts_with(prefix))
                    .take(TAKEN)
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect()
            };
            for (key, value) in &taken {
                if !each(key, value) {
                    return Ok(());
                }
            }
            match taken.into_iter().next_back() {
                Some((last, _)) => from = Bound::Excluded(last),
                None => return Ok(()),
            }
        }
    }

    fn apply(&self, batch: Batch) -> Result<(), EngineError> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in batch.changes {
            match value {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn rows(&self) -> Result<u64, EngineError> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.len() as u64)
    }

    fn disk(&self) -> Result<u64, EngineError> {
        Ok(0)
    }
}
