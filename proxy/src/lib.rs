//! Everything that moves MCP bytes. Bytes in are bytes out, always; only copies are looked
//! at, and those are handed to a [`Tap`](agent_trace_model::Tap) after they were forwarded.
//!
//! - [`client`]: asks a server for what it lists
//! - [`http`]: the relay between HTTP clients and an MCP server
//! - [`stdio`]: the relay between a client's pipes and a server process
//! - `os`: what differs between operating systems, one module per concern

pub mod client;
pub mod http;
mod os;
pub mod stdio;
