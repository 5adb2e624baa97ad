//! The control socket: how other processes ask the one that owns the index.
//!
//! - [`server`]: the owner's side; the daemon serves its own commands on the same socket
//! - [`client`]: the other side

pub mod client;
pub mod server;
