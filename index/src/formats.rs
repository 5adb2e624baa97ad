//! Recordings in formats of other programs, in and out.
//!
//! What comes in is foreign and hostile: it is read in bounded pieces, nothing in it names a
//! place on this disk, and it goes through redaction like all that is recorded. What goes out
//! was redacted when it was recorded. What becomes of what is in `docs/formats.md`.
//!
//! - [`mod@import`]: files and folders in; `find`: which recordings they hold
//! - [`export`]: runs out; `jsonl`, `csv`, `har`, `chrome`: the formats that are one file
//! - [`strace`]: agent-strace, in and out; `vcr`: agenttrace-vcr
//! - `transcript`: what assistants write down; `claude`, `codex`, `copilot`
//! - `frames`: messages as they may have been on the wire
//! - `source`, `lines`, `json`, `time`: reading what others wrote

pub mod export;
pub mod import;
pub mod strace;

mod chrome;
mod claude;
mod codex;
mod copilot;
mod csv;
mod error;
mod find;
mod frames;
mod har;
mod json;
mod jsonl;
mod lines;
mod source;
mod time;
mod transcript;
mod vcr;

pub use error::FormatError;

/// A document that is not read line by line has to be in memory as a whole.
const MOST_DOCUMENT: u64 = 256 << 20;
