//! The list of tools, and those that just answer.

use crate::server::{Context, Server};
use crate::{documents, rounds, tasks};
use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::{Value, json};
use std::time::Duration;

/// A wave file of no samples.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// All tools, those of the other modules too.
pub(crate) fn list() -> Vec<Tool> {
    let none = json!({ "type": "object", "properties": {} });
    let text = |name: &str| {
        let properties = json!({ name: { "type": "string" } });
        json!({ "type": "object", "properties": properties, "required": [name] })
    };
    let own = [
        ("test_simple_text", "Answers with a text", none.clone()),
        ("test_image_content", "Answers with an image", none.clone()),
        ("test_audio_content", "Answers with a sound", none.clone()),
        (
            "test_embedded_resource",
            "Answers with a resource",
            none.clone(),
        ),
        (
            "test_multiple_content_types",
            "Answers with a text, an image and a resource",
            none.clone(),
        ),
        ("test_error_handling", "Fails", none.clone()),
        (
            "test_tool_with_logging",
            "Logs three messages",
            none.clone(),
        ),
        (
            "test_logging_tool",
            "Logs a message if the request asks for messages",
            none.clone(),
        ),
        (
            "test_tool_with_progress",
            "Tells its progress",
            none.clone(),
        ),
        (
            "test_reconnection",
            "Closes the stream of its answer; who resumes it gets the answer",
            none.clone(),
        ),
        (
            "test_trigger_tool_change",
            "Says to all listeners that the tools have changed",
            none.clone(),
        ),
        (
            "test_trigger_prompt_change",
            "Says to all listeners that the prompts have changed",
            none.clone(),
        ),
        (
            "test_missing_capability",
            "Refuses clients that cannot sample",
            none.clone(),
        ),
        (
            "test_custom_header",
            "Wants its argument as a header too",
            json!({
                "type": "object",
                "properties": { "value": { "type": "string", "x-mcp-header": "Value" } },
                "required": ["value"],
            }),
        ),
        (
            "json_schema_2020_12_tool",
            "Has an input schema that older dialects cannot express",
            schema_of_2020(),
        ),
        ("test_sampling", "Lets the client sample", text("prompt")),
        (
            "test_elicitation",
            "Asks the user two things",
            text("message"),
        ),
        (
            "test_elicitation_sep1034_defaults",
            "Asks the user things that have defaults",
            none.clone(),
        ),
        (
            "test_elicitation_sep1330_enums",
            "Asks the user to choose, in each way there is",
            none,
        ),
    ];
    let tools = own.into_iter().chain(rounds::list()).chain(tasks::list());
    tools
        .map(|(name, description, schema)| Tool::new(name, description, object(schema)))
        .collect()
}

pub(crate) fn object(value: Value) -> JsonObject {
    let Value::Object(object) = value else {
        unreachable!("written as an object");
    };
    object
}

fn schema_of_2020() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// A result of one text.
pub(crate) fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(crate) async fn call(
    server: &Server,
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResult, ErrorData> {
    Ok(match request.name.as_ref() {
        "test_simple_text" => said("A text, and nothing but a text."),
        "test_image_content" => CallToolResult::success(vec![image()]),
        "test_audio_content" => {
            let sound = AudioContent::new(SOUND, "audio/wav");
            CallToolResult::success(vec![ContentBlock::Audio(sound)])
        }
        "test_embedded_resource" => {
            let contents = ResourceContents::text("A note.", "test://embedded-resource");
            CallToolResult::success(vec![ContentBlock::resource(contents)])
        }
        "test_multiple_content_types" => {
            let contents = ResourceContents::text("{\"test\":1}", "test://mixed-content-resource");
            CallToolResult::success(vec![
                ContentBlock::text("A text, an image, a resource:"),
                image(),
                ContentBlock::resource(contents),
            ])
        }
        "test_error_handling" => {
            CallToolResult::error(vec![ContentBlock::text("This tool always fails.")])
        }
        "test_tool_with_logging" => {
            for text in ["begins", "is in its midst", "is done"] {
                log(context, LoggingLevel::Info, text).await;
                pause().await;
            }
            said("Logged three messages.")
        }
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                log(context, level, "this was asked for").await;
            }
            said("Logged what was asked for.")
        }
        "test_tool_with_progress" => {
            for part in [0, 50, 100] {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress = ProgressNotificationParam::new(token, f64::from(part));
                    let told = context.peer.notify_progress(progress.with_total(100.0));
                    told.await.ok();
                }
                pause().await;
            }
            said("All hundred parts are done.")
        }
        "test_reconnection" => {
            close_streams(&server.sessions, context).await;
            pause().await;
            said("Came back for this.")
        }
        "test_trigger_tool_change" => {
            for listener in server.listeners() {
                listener.notify_tool_list_changed().await.ok();
            }
            said("All listeners know.")
        }
        "test_trigger_prompt_change" => {
            for listener in server.listeners() {
                listener.notify_prompt_list_changed().await.ok();
            }
            said("All listeners know.")
        }
        "test_missing_capability" => {
            let capabilities = context.meta.client_capabilities().unwrap_or_default();
            if capabilities.sampling.is_none() {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            said("It can sample.")
        }
        "test_custom_header" | "json_schema_2020_12_tool" => {
            said(json!(request.arguments).to_string())
        }
        name => {
            let error = format!("there is no tool {name:?}");
            return Err(ErrorData::invalid_params(error, None));
        }
    })
}

fn image() -> ContentBlock {
    ContentBlock::image(documents::IMAGE, "image/png")
}

/// Long enough for what was said before to be on its way.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn log(context: &Context, level: LoggingLevel, text: &str) {
    let message = LoggingMessageNotificationParam::new(level, json!(text));
    let message = message.with_logger("conformance-server");
    context.peer.notify_logging_message(message).await.ok();
}

/// Closes the event streams of a session on which answers are awaited. Which of them is that of
/// this call, rmcp does not tell; nobody calls this tool beside others.
async fn close_streams(sessions: &LocalSessionManager, context: &Context) {
    let parts = context.extensions.get::<hyper::http::request::Parts>();
    let id = parts.and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok());
    let Some(id) = id else {
        return;
    };
    let sessions = sessions.sessions.read().await;
    if let Some(session) = sessions.get(id) {
        for stream in 0..8 {
            session.close_sse_stream(stream, None).await.ok();
        }
    }
}
