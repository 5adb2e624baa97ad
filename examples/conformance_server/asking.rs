//! Tools that ask the client something within their call. The requests that they send exist up to
//! revision 2025-11-25; see [`rounds`](crate::rounds) for what came after.

use crate::server::Context;
use crate::tools::said;
use rmcp::ErrorData;
use rmcp::model::*;
use serde_json::{Value, json};

/// None: it is no tool of these.
pub(crate) async fn call(
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Result<CallToolResult, ErrorData>> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        let value = arguments.and_then(|arguments| arguments.get(name)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    Some(Ok(match request.name.as_ref() {
        "test_sampling" => sample(context, &argument("prompt")).await,
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": { "type": "string", "description": "How you are called" },
                    "email": { "type": "string", "description": "Where you get mail" },
                },
                "required": ["username", "email"],
            });
            elicit(context, &argument("message"), schema).await
        }
        "test_elicitation_sep1034_defaults" => {
            elicit(context, "All of it is filled in already", defaults()).await
        }
        "test_elicitation_sep1330_enums" => elicit(context, "Choose", choices()).await,
        _ => return None,
    }))
}

/// What the client said that it can be asked. Without a session it said nothing.
fn can(context: &Context) -> ClientCapabilities {
    let about = context.peer.peer_info();
    about
        .map(|about| about.capabilities.clone())
        .unwrap_or_default()
}

async fn sample(context: &Context, prompt: &str) -> CallToolResult {
    if can(context).sampling.is_none() {
        return failed("it did not say so");
    }
    let messages = vec![SamplingMessage::user_text(prompt)];
    let request = CreateMessageRequestParams::new(messages, 100);
    match context.peer.create_message(request).await {
        Ok(answer) => said(format!("The client says: {}", json!(answer.message))),
        Err(error) => failed(&error.to_string()),
    }
}

async fn elicit(context: &Context, message: &str, schema: Value) -> CallToolResult {
    if can(context).elicitation.is_none() {
        return failed("it did not say so");
    }
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).expect("a schema for questions"),
    };
    match context.peer.create_elicitation(request).await {
        Ok(answer) => said(format!("The user answers: {}", json!(answer))),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!(
        "The client cannot: {why}"
    ))])
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
        "required": [],
    })
}

fn choices() -> Value {
    let titled = |names: [&str; 3]| -> Vec<Value> {
        let titled = names.iter().enumerate();
        titled
            .map(|(n, title)| json!({ "const": format!("value{}", n + 1), "title": title }))
            .collect()
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled(["First", "Second", "Third"]) },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["One", "Two", "Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": plain },
            },
            "titledMulti": {
                "type": "array",
                "items": { "anyOf": titled(["First", "Second", "Third"]) },
            },
        },
        "required": [],
    })
}
