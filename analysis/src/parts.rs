//! The parts of a step's messages, as JSON text: exactly as recorded.

use agent_trace_model::step::{Message, Step};
use agent_trace_wire::message::member;

/// The parameters of its request.
#[must_use]
pub fn params(step: &Step) -> Option<&[u8]> {
    member(&step.request.as_ref()?.text, "params")
}

/// What is worth showing of the parameters: of a call its arguments.
#[must_use]
pub fn arguments(step: &Step) -> Option<&[u8]> {
    let params = params(step)?;
    match step.method.as_deref() {
        Some("tools/call" | "prompts/get") => member(params, "arguments"),
        _ => Some(params),
    }
}

/// The result or the error of its answer.
#[must_use]
pub fn answer(step: &Step) -> Option<&[u8]> {
    let text = &step.response.as_ref()?.text;
    member(text, "result").or_else(|| member(text, "error"))
}

/// The error of its answer.
#[must_use]
pub fn error(step: &Step) -> Option<&[u8]> {
    member(&step.response.as_ref()?.text, "error")
}

/// The text of a message; empty where there is none.
#[must_use]
pub fn text(message: Option<&Message>) -> &[u8] {
    message.map_or(&[], |message| &message.text)
}
