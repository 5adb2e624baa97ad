//! Pure thought about runs. No I/O.
//!
//! - [`parts`]: the parts of a step's messages
//! - [`scalars`], [`quote`]: values in them and where they stand, and pieces to show
//! - [`timeline`]: how a run went in time
//! - [`why`]: where a step's values came from
//! - [`diff`], [`align`]: what is different between two runs
//! - [`testing`]: small stories for tests

pub mod align;
pub mod diff;
pub mod parts;
pub mod quote;
pub mod scalars;
pub mod testing;
pub mod timeline;
pub mod why;
