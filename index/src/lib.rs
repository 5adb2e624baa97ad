//! What is derived from journals: runs, their grouping, and the questions about them.
//!
//! - [`engine`]: where rows are kept
//! - [`keys`], [`rows`]: what is kept
//! - [`engine`]: where derived rows are kept
//! - [`runs`]: asking, wherever the index is
//! - [`protocol`]: what is asked and answered
//! - [`local`]: questions answered from the index itself
//! - [`owner`]: one process has the index at a time
//! - [`access`]: the way to it, whoever that is
//! - `control`: the socket on which the owner is asked
//!
//! An index can be thrown away at any time: it is made again from the journals.

pub mod engine;
pub mod keys;
pub mod rows;

pub mod access;
#[cfg(unix)]
pub mod control;
pub mod local;
pub mod owner;
mod place;
pub mod protocol;
pub mod runs;

pub use access::Access;
pub use local::Local;
pub use owner::{Owner, Settings};
pub use place::SCHEMA;
pub use runs::{Runs, RunsError};
