//! Pure thought about runs. No I/O.
//!
//! - [`check`]: what is wrong in a run, rule by rule
//! - [`parts`]: what a step's messages hold

pub mod check;
pub mod parts;
