//! Runs and steps as resources: `run://ID` and `step://ID/NUMBER`. They are what `get_run` and
//! `get_step` answer.

use crate::gate::Caller;
use crate::scope::Scope;
use rmcp::model::{CacheScope, JsonObject, ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

pub(crate) fn templates(caller: &Caller) -> Vec<ResourceTemplate> {
    if !caller.may(Scope::RunsRead) {
        return Vec::new();
    }
    vec![
        ResourceTemplate::new("run://{run}", "run")
            .with_title("A recorded run")
            .with_description("Its sessions and steps, without what they carried")
            .with_mime_type("application/json"),
        ResourceTemplate::new("step://{run}/{step}", "step")
            .with_title("A step of a run")
            .with_description("The step of this number with its request and its answer")
            .with_mime_type("application/json"),
    ]
}

/// The tool that answers for a resource, and what it is asked.
pub(crate) fn call(uri: &str) -> Option<(&'static str, JsonObject)> {
    let (tool, arguments) = if let Some(run) = uri.strip_prefix("run://") {
        ("get_run", json!({ "run": run }))
    } else {
        let (run, step) = uri.strip_prefix("step://")?.split_once('/')?;
        let step: usize = step.parse().ok()?;
        ("get_step", json!({ "run": run, "step": step }))
    };
    match arguments {
        Value::Object(arguments) => Some((tool, arguments)),
        _ => None,
    }
}

pub(crate) fn contents(text: String, uri: &str) -> ReadResourceResult {
    let contents = ResourceContents::text(text, uri).with_mime_type("application/json");
    // A run may go on.
    ReadResourceResult::new(vec![contents])
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private)
}
