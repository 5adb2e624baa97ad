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
//! - `answers`: all that a server answered to who asked for its lists
//! - [`run`]: a recorded run
//! - [`pin`]: definitions in one form, their hashes, and what changed
//! - [`storm`]: servers that announce new lists again and again
//! - [`flow`]: what its calls carry out, one after the other
//! - [`codes`]: what the codes mean
//! - [`key`]: what tells a finding from others, the next time as well
//! - [`spot`]: where in a file a finding stands
//! - [`sarif`]: findings in the format that CI systems read
//! - [`launch`]: how a configuration starts a server
//! - [`rows`]: labelled rows, line by line, for measuring
//!
//! All of it is linear in the length of the text; there are no regular expressions.

mod answers;
pub mod codes;
mod collide;
mod decode;
mod finding;
pub mod flow;
mod form;
#[doc(hidden)]
pub mod held_out;
mod hidden;
pub mod key;
pub mod launch;
mod lexicon;
mod listing;
mod params;
mod pieces;
pub mod pin;
pub mod rows;
mod rules;
pub mod run;
pub mod sarif;
mod scan;
mod sentence;
mod sequence;
mod signal;
pub mod spot;
pub mod storm;
mod stretch;
mod text;
mod view;
mod walk;

/// Raised when rules say something else of the same text: what was found by others is found anew.
pub const RULES: u32 = 2;

pub use answers::{Answers, answers};
pub use finding::{Confidence, Finding, Place, Severity, escaped};
pub use listing::{Listing, listing};
pub use scan::{Server, definition, message, result, server, signals, tool};
