//! Decoders of what MCP looks like on a wire. No I/O: bytes go in, borrowed slices come out.
//!
//! Everything here works on a *copy* of relayed bytes and treats them as hostile: memory is
//! bounded, nothing recurses over the input and nothing panics. No value is ever rebuilt;
//! what is handed out is always a piece of what was sent, in its own spelling.
//!
//! - [`body`]: the body of an HTTP message
//! - [`coding`]: content codings of such bodies, undone with a bound
//! - [`frame`]: one message with what is around it on the wire
//! - [`http`]: heads of HTTP messages
//! - [`json`]: a tokenizer with the place of each token, and string escapes with a way back
//!   to the bytes they came from
//! - [`message`]: what kind of JSON-RPC message a frame holds, batches taken apart
//! - [`sse`]: events of a server-sent event stream
//! - [`stdio`]: frames of a byte stream, by newline or Content-Length, and the stray text
//!   between them

mod assembly;
pub mod body;
pub mod coding;
pub mod frame;
pub mod http;
pub mod json;
pub mod message;
pub mod sse;
pub mod stdio;

pub use assembly::Budget;
