//! Resources, prompts and completions.

use rmcp::ErrorData;
use rmcp::model::*;
use serde_json::json;

/// How long a client may keep a list, in milliseconds.
pub(crate) const FRESH_MS: u64 = 60_000;

/// A picture of one dot.
pub(crate) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

const TEXT_URI: &str = "test://static-text";
const IMAGE_URI: &str = "test://static-binary";
const TEMPLATE: &str = "test://template/{id}/data";

pub(crate) fn resources() -> ListResourcesResult {
    let resources = vec![
        Resource::new(TEXT_URI, "A text")
            .with_description("Always the same text")
            .with_mime_type("text/plain"),
        Resource::new(IMAGE_URI, "A picture")
            .with_description("Always the same picture, of one dot")
            .with_mime_type("image/png"),
    ];
    ListResourcesResult::with_all_items(resources)
        .with_ttl_ms(FRESH_MS)
        .with_cache_scope(CacheScope::Public)
}

pub(crate) fn templates() -> ListResourceTemplatesResult {
    let resource_templates = vec![
        ResourceTemplate::new(TEMPLATE, "Data of an id")
            .with_description("Holds the id in its address")
            .with_mime_type("application/json"),
    ];
    ListResourceTemplatesResult::with_all_items(resource_templates)
        .with_ttl_ms(FRESH_MS)
        .with_cache_scope(CacheScope::Public)
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = if uri == TEXT_URI {
        ResourceContents::text("A text that stays as it is.", uri)
    } else if uri == IMAGE_URI {
        ResourceContents::blob(IMAGE, uri).with_mime_type("image/png")
    } else if let Some(id) = id_in(uri) {
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
    } else {
        let data = json!({ "uri": uri });
        return Err(ErrorData::resource_not_found(
            "there is no such resource",
            Some(data),
        ));
    };
    let result = ReadResourceResult::new(vec![contents]);
    Ok(result
        .with_ttl_ms(FRESH_MS)
        .with_cache_scope(CacheScope::Public))
}

fn id_in(uri: &str) -> Option<&str> {
    let (before, after) = TEMPLATE.split_once("{id}")?;
    uri.strip_prefix(before)?.strip_suffix(after)
}

pub(crate) fn prompts() -> ListPromptsResult {
    let argument = |name, text, required| {
        let argument = PromptArgument::new(name).with_description(text);
        argument.with_required(required)
    };
    let arguments = vec![
        argument("arg1", "What comes first", true),
        argument("arg2", "What comes second", false),
    ];
    let prompt = |name, text, arguments| Prompt::new(name, Some(text), arguments);
    let prompts = vec![
        prompt("test_simple_prompt", "One sentence", None),
        prompt(
            "test_prompt_with_arguments",
            "Two arguments",
            Some(arguments),
        ),
        prompt("test_prompt_with_embedded_resource", "A resource", None),
        prompt("test_prompt_with_image", "A picture", None),
        prompt(
            "test_input_required_result_prompt",
            "Asks what it is about",
            None,
        ),
    ];
    ListPromptsResult::with_all_items(prompts)
        .with_ttl_ms(FRESH_MS)
        .with_cache_scope(CacheScope::Public)
}

pub(crate) fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let user = |text: &str| PromptMessage::new_text(Role::User, text);
    let block = |content| PromptMessage::new(Role::User, content);
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        let value = arguments.and_then(|arguments| arguments.get(name)?.as_str());
        value.unwrap_or_default().to_owned()
    };
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![user("Say one sentence.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![user(&format!("First '{first}', second '{second}'."))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument("resourceUri");
            let contents = ResourceContents::text("What the resource holds.", uri);
            vec![block(ContentBlock::resource(contents)), user("Read it.")]
        }
        "test_prompt_with_image" => {
            vec![
                block(ContentBlock::image(IMAGE, "image/png")),
                user("Look at it."),
            ]
        }
        name => {
            let error = format!("there is no prompt {name:?}");
            return Err(ErrorData::invalid_params(error, None));
        }
    };
    Ok(GetPromptResult::new(messages).with_description("A prompt for a test"))
}

pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let known = match request.argument.name.as_str() {
        "arg1" => &["paris", "park", "party"][..],
        "id" => &["1", "2", "3"],
        _ => &[],
    };
    let begun = request.argument.value.to_lowercase();
    let fitting = known.iter().filter(|word| word.starts_with(&begun));
    let values = fitting.map(|word| (*word).to_owned()).collect();
    let completion = CompletionInfo::new(values);
    let completion = completion.map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(completion))
}
