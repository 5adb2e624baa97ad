//! Where derived rows are kept: ordered keys and values behind one trait.
//!
//! Rows can always be derived anew, so an engine owes atomic batches and order, not
//! durability: what it lost in a crash is indexed again, since the checkpoint of a journal is
//! in the same batch as the rows that it covers.
//!
//! - [`memory`]: a map, for tests
//! - [`sled`]: on the disk; `pages`, `pack`: in less room

pub mod memory;
mod pack;
mod pages;
pub mod sled;

use std::io;
use std::ops::Bound;

/// An ordered map of byte strings.
pub trait Engine: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, EngineError>;

    /// Hands out the entries whose keys begin with `prefix` and are greater than `after`, in
    /// the order of their keys, until `each` returns false. What is changed meanwhile, by
    /// `each` or by others, is seen or not.
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

    /// How many keys there are. Looks at every one of them.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn rows(&self) -> Result<u64, EngineError>;

    /// How many bytes it takes on the disk.
    ///
    /// # Errors
    /// When the engine cannot be read.
    fn disk(&self) -> Result<u64, EngineError>;
}

/// Where a scan begins.
fn begin<'a>(prefix: &'a [u8], after: Option<&'a [u8]>) -> Bound<&'a [u8]> {
    match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    }
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

impl EngineError {
    /// Whether it is about what lies on the disk, so that beginning anew helps; not about a
    /// disk that is full, or a file that may not be written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self.0.downcast_ref() {
            // What the system says has a number, what sled found out by itself has none.
            Some(::sled::Error::Io(error)) => match error.kind() {
                io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => true,
                _ => error.raw_os_error().is_none() && !sled::is_locked(self),
            },
            _ => true,
        }
    }

    /// The causes in one line.
    pub(crate) fn in_full(&self) -> String {
        self.0.to_string().replace('\n', " ")
    }
}
