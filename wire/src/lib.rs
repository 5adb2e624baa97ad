//! Decoders of what MCP looks like on a wire. No I/O: bytes go in, borrowed slices come out.
//!
//! Everything here works on a *copy* of relayed bytes and treats them as hostile: memory is
//! bounded, nothing recurses over the input and nothing panics. No value is ever rebuilt;
//! what is handed out is always a piece of what was sent, in its own spelling.
//!
//! - [`json`]: a tokenizer with the place of each token, and string escapes with a way back
//!   to the bytes they came from
//! - [`message`]: what kind of JSON-RPC message a frame holds, batches taken apart
//! - [`stdio`]: frames of a byte stream, by newline or Content-Length, and the stray text
//!   between them

pub mod json;
pub mod message;
pub mod stdio;
