//! What is derived from journals: runs, their grouping, and the questions about them.
//!
//! - [`engine`]: where rows are kept
//! - [`keys`], [`rows`]: what is kept
//! - [`digest`]: from the journal of a process to rows of its sessions

pub mod digest;
pub mod engine;
pub mod keys;
pub mod rows;
