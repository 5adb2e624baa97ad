//! What is derived from journals: runs, their grouping, and the questions about them.
//!
//! - [`engine`]: where derived rows are kept
//! - [`keys`], [`rows`]: what is kept
//! - [`formats`]: recordings in formats of other programs, in and out
//! - [`digest`]: from the journal of a process to rows of its sessions
//! - [`group`]: which parts of sessions make up which run
//! - [`indexer`]: following journals
//! - [`merge`]: from rows of sessions to the row of a run
//! - [`runs`]: asking, wherever the index is
//! - [`protocol`]: what is asked and answered
//! - [`local`]: questions answered from the index itself: [`listing`] (which runs),
//!   [`finding`] (the one that is meant), [`stats`] (what tools did), [`filed`] (what scans
//!   found), [`pins`] (what servers define, and what changed), `table` (what of a row filters
//!   ask for, in memory)
//! - [`siblings`]: which runs of a task one is compared with
//! - `fit`: answers are cut to what can be sent
//! - [`opening`]: from a row to the run's story
//! - [`owner`]: one process has the index at a time
//! - [`access`]: the way to it, whoever that is
//! - `control`: the socket on which the owner is asked
//!
//! An index can be thrown away at any time: it is made again from the journals.

pub mod digest;
pub mod engine;
pub mod formats;
pub mod group;
pub mod indexer;
pub mod keys;
pub mod merge;
pub mod rows;

pub mod access;
#[cfg(unix)]
pub mod control;
pub mod filed;
pub mod finding;
mod fit;
pub mod listing;
pub mod local;
pub mod opening;
pub mod owner;
pub mod pins;
mod place;
pub mod protocol;
pub mod runs;
pub mod siblings;
pub mod stats;
mod table;
mod turns;

pub use access::Access;
pub use indexer::{IndexError, Indexer};
pub use local::Local;
pub use owner::{Owner, Settings};
pub use place::SCHEMA;
pub use runs::{Runs, RunsError};
