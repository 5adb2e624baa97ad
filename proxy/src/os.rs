//! What differs between operating systems, one module per concern.
//!
//! Linux is where all of this runs and is tested. What stands under `cfg` for macOS and
//! Windows is written from their documentation and has not been run; each such part says so.
//!
//! - `descriptors`: taking over our standard streams, and waiting on them
//! - `group`: the server's process group and the guardian that outlives us
//! - `nested`: are we inside another relay of ours?
//! - `orphans`: what a server left behind outside of its group
//! - `resolve`: from a command's name to a program
//! - `watch`: signals, our parent's death, the server's exit, a client that stopped reading
//! - `sys`: the calls that need `unsafe`

pub(crate) mod descriptors;
pub(crate) mod group;
pub(crate) mod nested;
#[cfg(unix)]
pub(crate) mod orphans;
pub(crate) mod resolve;
pub(crate) mod watch;

#[cfg(unix)]
mod sys;
