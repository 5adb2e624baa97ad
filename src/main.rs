//! The `agent-trace` binary.
fn main() {}
