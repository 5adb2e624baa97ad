//! The words of agent-trace as types. No I/O.
//!
//! - [`stream`]: the byte streams of a session and their copies on the way to a recorder
//!   ([`Tap`])
//! - [`id`]: how processes, sessions and runs are named
//! - [`end`]: how a session, and an HTTP exchange, ended
//! - [`outcome`]: what happened to a step

pub mod end;
pub mod id;
pub mod outcome;
pub mod stream;

pub use end::{End, Ending, Finish};
pub use id::{ParseIdError, ProcessId, RunId, SessionId};
pub use outcome::Outcome;
pub use stream::{Caller, Channel, Moment, NoTap, Stream, Tap, Told};
