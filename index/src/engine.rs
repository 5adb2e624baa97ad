//! Where derived rows are kept: ordered keys and values behind one trait.
//!
//! Rows can always be derived anew, so an engine owes atomic batches and order, not
//! durability: what it lost in a crash is indexed again, since the checkpoint of a journal is
//! in the same batch as the rows that it covers.

/// An ordered map of byte strings.
pub trait Engine: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;

    /// Hands out the entries whose keys begin with `prefix` and are greater than `after`, in
    /// the order of their keys, until `each` returns false.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), EngineError>;

    /// Makes all of these changes or none, in their order.
    ///
    /// # Errors
    /// When they cannot be made.
    fn apply(&self, batch: Batch) -> Result<(), EngineError>;

    /// Waits until everything that was applied is with the system.
    ///
    /// # Errors
    /// When it cannot be written.
    fn flush(&self) -> Result<(), EngineError>;
}

/// Changes that are made together: a value, or nothing to remove the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Keys and their new values.
    pub changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Batch {
    /// Sets a key.
    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.changes.push((key, Some(value)));
    }

    /// Removes a key.
    pub fn remove(&mut self, key: Vec<u8>) {
        self.changes.push((key, None));
    }
}

/// What an engine could not do.
#[derive(Debug, thiserror::Error)]
#[error("the index cannot be used")]
pub struct EngineError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
