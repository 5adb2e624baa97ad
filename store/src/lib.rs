//! Truth on disk. The only crate that touches the data directory.
//!
//! - [`layout`]: where things lie, and who may read them
//! - [`lock`]: one process for each purpose, and how others reach it
//! - `socket`: where that one can be asked
//! - [`key`]: the store's secret key, from which fingerprints are made
//! - [`redact`]: what must never reach the disk, and what stands in its place
//! - [`journal`]: the append-only files: format, writer, reader, sealing
//! - [`recorder`]: the tap of a relay: decode, redact, append
//! - [`trace`]: reading runs back: list, open, pair
//! - [`search`]: looking for text in journal files
//! - [`verify`]: whether the journal is what was recorded
//! - [`import`]: sessions that another program recorded
//! - [`portable`]: a run as one file, out and in
//! - [`state`]: what was decided, which no journal tells
//! - [`audit`]: who asked what through our MCP server
//!
//! The journal's format is described in `docs/format.md`.

pub mod audit;
pub mod import;
pub mod journal;
pub mod key;
pub mod layout;
pub mod lock;
pub mod portable;
pub mod process;
pub mod recorder;
pub mod redact;
pub mod retention;
pub mod search;
#[cfg(unix)]
pub mod socket;
pub mod state;
pub mod trace;
pub mod verify;

pub use layout::Store;
pub use state::State;
