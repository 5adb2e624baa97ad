//! Pure thought about runs. No I/O.
//!
//! - [`filter`]: the filter language: which steps, and which runs
//! - [`outcomes`]: whether a run failed, why, and what it recovered from

pub mod filter;
pub mod outcomes;
