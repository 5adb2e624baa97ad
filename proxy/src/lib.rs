//! Everything that moves MCP bytes. Bytes in are bytes out, always; only copies are looked
//! at, and those are handed to a [`Tap`](agent_trace_model::Tap) after they were forwarded.
//!
//! - [`stdio`]: the relay between a client's pipes and a server process
//! - `os`: what differs between operating systems, one module per concern

mod os;
pub mod stdio;
