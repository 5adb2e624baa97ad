//! What is derived from journals: runs, their grouping, and the questions about them.
//!
//! - [`engine`]: where rows are kept
//! - [`keys`], [`rows`]: what is kept
//! - [`formats`]: recordings in formats of other programs, in and out

pub mod engine;
pub mod formats;
pub mod keys;
pub mod rows;
