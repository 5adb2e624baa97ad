//! Our MCP server: what was recorded, asked by the assistants themselves.
//!
//! - [`server`]: from a request to the tool that answers it; [`http`] and [`stdio`]: how it is
//!   reached
//! - [`guard`]: what stands before it and lets requests in
//! - [`gate`]: who asks, what they may, and how often; [`key`], [`scope`]: by which key
//! - `tools`: one file for each family of tools; `prompts`, `resources`: what else there is
//! - [`ask`]: runs as a caller may see them; `siblings`: those that one is compared with
//! - `text`: recorded bytes made safe to show; `view`: runs and steps in answers
//! - `answer`: what fits in an answer, and what is said of the rest
//!
//! An answer is read by a model. What was recorded is hostile, so it stands nowhere but under
//! members named `recorded`; everything else are words and numbers of ours.

mod answer;
pub mod ask;
pub mod gate;
pub mod guard;
pub mod http;
pub mod key;
mod prompts;
mod resources;
pub mod scope;
pub mod server;
mod siblings;
pub mod stdio;
mod text;
mod tools;
mod view;

pub use answer::{BYTES, LEAST};
pub use ask::Reader;
pub use gate::{Caller, Gate};
pub use guard::{Callers, Guard, Router};
pub use scope::{Scope, Scopes};
pub use server::Server;
