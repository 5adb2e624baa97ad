//! The journal: append-only files, one series for each process that records.
//!
//! - [`mod@format`]: the bytes of a header and of a record
//! - [`header`]: what a file says of itself
//! - [`writer`]: appending, rolling over, going on after a full disk
//! - [`reader`]: reading what is there, whatever state it is in
//! - [`sealed`]: the compressed form of a finished file
//! - `chain`: the keyed hash chain that tells what was changed
//! - `pack`: compression; `varint`: numbers in few bytes
//! - [`bloom`]: which words a sealed file may hold

pub mod bloom;
pub(crate) mod chain;
pub mod format;
pub mod header;
mod pack;
pub mod reader;
pub mod sealed;
mod varint;
pub mod writer;

pub use format::{Envelope, Flags, Kind, Record};
pub use header::{Bodies, Header};
pub use reader::{Damage, Segment};
