//! The words of agent-trace as types. No I/O.
//!
//! - [`stream`]: the byte streams of a session and their copies on the way to a recorder
//!   ([`Tap`])
//! - [`id`]: how processes, sessions and runs are named
//! - [`end`]: how a session, and an HTTP exchange, ended
//! - [`exchange`]: HTTP exchanges
//! - [`step`], [`story`]: a run as one ordered list of steps
//! - [`outcome`]: what happened to a step
//! - [`verdict`]: what someone decided about a run

pub mod end;
pub mod exchange;
pub mod id;
pub mod outcome;
pub mod step;
pub mod story;
pub mod stream;
pub mod verdict;

pub use end::{End, Ending, Finish};
pub use id::{ParseIdError, ProcessId, RunId, SessionId};
pub use outcome::Outcome;
pub use stream::{Caller, Channel, Moment, NoTap, Stream, Tap, Told};
pub use verdict::{Judge, Verdict};
