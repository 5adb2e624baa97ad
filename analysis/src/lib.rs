//! Pure thought about runs. No I/O.
//!
//! - [`parts`]: what a step's messages hold
//! - [`filter`]: the filter language: which steps, and which runs
//! - [`outcomes`]: whether a run failed, why, and what it recovered from

pub mod filter;
pub mod outcomes;
pub mod parts;
