//! Pure thought about runs. No I/O.
//!
//! - [`parts`]: what a step's messages hold

pub mod parts;
