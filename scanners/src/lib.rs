//! Finds instructions to models in what MCP servers say.
//!
//! A scan takes strings with their place and gives [`Finding`]s: no I/O, no clock, no model. The
//! way of a string, each step a module:
//!
//! - `walk`: the strings of a tool, with their JSON pointers
//! - `view`, `hidden`, `decode`: what a string says once nothing hides it, with the way
//!   back to its bytes
//! - `stretch`: which parts of a long string are read closely
//! - `lexicon`, `form`, `signal`, `sequence`, `sentence`: weak signals, and how they stand together
//! - `rules`: which of them together are reported
//! - `params`: parameters that carry context out
//! - `collide`: copies of other servers' tools
//! - `pieces`: instructions that are split over several tools
//! - `scan`, `listing`: whole definitions, servers and results
//! - [`run`]: a recorded run
//! - [`flow`]: what its calls carry out, one after the other
//! - [`codes`]: what the codes mean
//! - [`rows`]: labelled rows, line by line, for measuring
//!
//! All of it is linear in the length of the text; there are no regular expressions.

pub mod codes;
mod collide;
mod decode;
mod finding;
pub mod flow;
mod form;
#[doc(hidden)]
pub mod held_out;
mod hidden;
mod lexicon;
mod listing;
mod params;
mod pieces;
pub mod rows;
mod rules;
pub mod run;
mod scan;
mod sentence;
mod sequence;
mod signal;
mod stretch;
mod text;
mod view;
mod walk;

pub use finding::{Confidence, Finding, Place, Severity, escaped};
pub use listing::{Listing, listing};
pub use scan::{Server, definition, message, result, server, signals, tool};
