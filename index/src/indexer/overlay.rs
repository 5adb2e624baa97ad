//! Rows as they will be once a batch is applied.

use crate::engine::{Batch, Engine, EngineError};
use crate::rows::decode;
use std::collections::{BTreeMap, BTreeSet};

/// Rows as they will be once a batch is applied.
pub(super) struct Overlay<'a> {
    engine: &'a dyn Engine,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<'a> Overlay<'a> {
    pub(super) fn new(engine: &'a dyn Engine) -> Self {
        Self {
            engine,
            changes: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError> {
        match self.changes.get(key) {
            Some(changed) => Ok(changed.clone()),
            None => self.engine.get(key),
        }
    }

    pub(super) fn row<T: serde::de::DeserializeOwned>(
        &self,
        key: &[u8],
    ) -> Result<Option<T>, EngineError> {
        Ok(self.get(key)?.and_then(|row| decode(&row)))
    }

    /// Whether there is a row with such a key.
    pub(super) fn has(&self, prefix: &[u8]) -> Result<bool, EngineError> {
        let changed = self.changes.range(prefix.to_vec()..);
        let mut changed = changed.take_while(|(key, _)| key.starts_with(prefix));
        let mut found = changed.any(|(_, value)| value.is_some());
        if !found {
            self.engine.scan(prefix, None, &mut |key, _| {
                found = !self.changes.contains_key(key);
                !found
            })?;
        }
        Ok(found)
    }

    pub(super) fn scan(
        &self,
        prefix: &[u8],
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), EngineError> {
        let changed: BTreeSet<&Vec<u8>> = self
            .changes
            .range(prefix.to_vec()..)
            .map(|(key, _)| key)
            .take_while(|key| key.starts_with(prefix))
            .collect();
        self.engine.scan(prefix, None, &mut |key, value| {
            if changed.is_empty() || !self.changes.contains_key(key) {
                each(key, value);
            }
            true
        })?;
        for key in changed {
            if let Some(Some(value)) = self.changes.get(key) {
                each(key, value);
            }
        }
        Ok(())
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.changes.insert(key, Some(value));
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) {
        self.changes.insert(key, None);
    }

    pub(super) fn batch(self) -> Batch {
        Batch {
            changes: self.changes.into_iter().collect(),
        }
    }
}
