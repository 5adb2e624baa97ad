//! Pure thought about runs. No I/O.
//!
//! - [`baseline`]: findings that somebody accepted
//! - [`check`]: what is wrong in a run, rule by rule
//! - [`parts`]: what a step's messages hold
//! - [`filter`]: the filter language: which steps, and which runs
//! - [`outcomes`]: whether a run failed, why, and what it recovered from
//! - [`explain`]: a run in plain words
//! - [`timeline`], [`tree`]: how a run went in time, and what led to what
//! - [`why`]: where a step's values came from
//! - [`diff`], [`align`]: what is different between two runs
//! - [`escape`]: recorded text made safe to show
//! - [`scalars`], [`quote`], [`words`]: values in messages and where they stand, pieces to show,
//!   and words for numbers
//! - [`statistics`]: whether a difference may be chance
//! - [`suspects`]: which steps may have broken a run
//! - [`testing`]: small stories for tests

pub mod align;
pub mod baseline;
pub mod check;
pub mod diff;
pub mod escape;
pub mod explain;
pub mod filter;
pub mod outcomes;
pub mod parts;
pub mod quote;
pub mod scalars;
pub mod statistics;
pub mod suspects;
pub mod testing;
pub mod timeline;
pub mod tree;
pub mod why;
pub mod words;
