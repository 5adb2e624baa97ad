//! Where assistants keep their MCP servers.
//!
//! - [`catalogue`]: every assistant that is known: its files, and what stands where in them
//! - [`document`]: JSON, TOML and YAML with the place of each value
//! - [`machine`]: whose files are looked at: a home, a project, an environment
//! - [`mod@discover`]: which assistants and servers there are
//!
//! Configuration files belong to others. What is read from them is bounded and never executed;
//! a file that cannot be read is a [`discover::Problem`], and the others are read all the same.

pub mod catalogue;
pub mod discover;
pub mod document;
pub mod machine;

pub use catalogue::{CLIENTS, Client, Scope};
pub use discover::{Entry, Found, Kind, Problem, discover};
pub use machine::{Disk, Files, Machine, System};
