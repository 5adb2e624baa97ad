//! What is derived from journals: runs, their grouping, and the questions about them.
//!
//! - [`engine`]: where rows are kept
//! - [`keys`], [`rows`]: what is kept

pub mod engine;
pub mod keys;
pub mod rows;
