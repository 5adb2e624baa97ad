//! Tools and a prompt that answer with a question, and are then called again with its answer
//! (2026-07-28: `input_required`).
//!
//! The server keeps nothing between the rounds: where one depends on an earlier one, that is in
//! the sealed `requestState`, which is not believed unless the seal is whole.

use crate::server::Context;
use crate::tools::said;
use rmcp::ErrorData;
use rmcp::model::*;
use serde_json::{Value, json};

/// Not secret: what it seals here is worth nothing.
const KEY: &[u8] = b"a key that everybody may read in the source";

/// Name, description and input schema of the tools.
pub(crate) fn list() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let tools = [
        ("test_input_required_result_elicitation", "Asks for a name"),
        (
            "test_input_required_result_sampling",
            "Lets the client sample",
        ),
        (
            "test_input_required_result_list_roots",
            "Asks for the roots",
        ),
        (
            "test_input_required_result_request_state",
            "Asks, with a sealed state",
        ),
        (
            "test_input_required_result_tampered_state",
            "Asks, with a sealed state",
        ),
        (
            "test_input_required_result_multiple_inputs",
            "Asks three things at once",
        ),
        (
            "test_input_required_result_multi_round",
            "Asks one thing after another",
        ),
        (
            "test_input_required_result_capabilities",
            "Asks what the client can answer",
        ),
        ("test_streaming_elicitation", "Asks again and again"),
    ];
    let schema = json!({ "type": "object", "properties": {} });
    tools
        .into_iter()
        .map(move |(name, description)| (name, description, schema.clone()))
}

type Answer<T> = Option<Result<T, ErrorData>>;

/// None: it is no tool of these.
pub(crate) fn call(request: &CallToolRequestParams, context: &Context) -> Answer<CallToolResponse> {
    let name = request.name.strip_prefix("test_").unwrap_or_default();
    if name == "streaming_elicitation" {
        return Some(Ok(question([ask("value", "Any value?")], None).into()));
    }
    let kind = name.strip_prefix("input_required_result_")?;
    Some(by_kind(kind, request, context))
}

fn by_kind(
    kind: &str,
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let answers = request.input_responses.as_ref();
    let has = |key: &str| answer_to(answers, key).is_some();
    let stage = stage(request.request_state.as_deref())?;
    Ok(match (kind, stage) {
        ("elicitation", _) => match answer_to(answers, "user_name") {
            Some(answer) => said(format!("You are {}.", answer["content"]["name"])).into(),
            None => question([ask("user_name", "Your name?")], None).into(),
        },
        ("sampling", _) => match answer_to(answers, "capital_question") {
            Some(answer) => said(format!("Sampled: {}", answer["content"])).into(),
            None => question([sample("capital_question", "A capital?")], None).into(),
        },
        ("list_roots", _) => match answer_to(answers, "client_roots") {
            Some(answer) => said(format!("Your roots: {}", answer["roots"])).into(),
            None => question([roots("client_roots")], None).into(),
        },
        ("request_state" | "tampered_state", None) => {
            question([ask("confirm", "Shall it be?")], Some(1)).into()
        }
        ("request_state" | "tampered_state", Some(_)) => said("The seal is whole: state-ok").into(),
        ("multiple_inputs", Some(_))
            if has("user_name") && has("greeting") && has("client_roots") =>
        {
            said("All three are answered.").into()
        }
        ("multiple_inputs", _) => {
            let three = [
                ask("user_name", "Your name?"),
                sample("greeting", "Greet somebody."),
                roots("client_roots"),
            ];
            question(three, Some(1)).into()
        }
        ("multi_round", None) => question([ask("step1", "First?")], Some(1)).into(),
        ("multi_round", Some(1)) => question([ask("step2", "Second?")], Some(2)).into(),
        ("multi_round", Some(_)) => said("Nothing more to ask.").into(),
        ("capabilities", _) if answers.is_some() => said("All is answered.").into(),
        ("capabilities", _) => {
            let can = context.meta.client_capabilities().unwrap_or_default();
            let questions = [
                can.elicitation.map(|_| ask("user_name", "Your name?")),
                can.sampling.map(|_| sample("greeting", "Greet somebody.")),
                can.roots.map(|_| roots("client_roots")),
            ];
            let questions: Vec<_> = questions.into_iter().flatten().collect();
            if questions.is_empty() {
                said("There is nothing that the client could answer.").into()
            } else {
                question(questions, None).into()
            }
        }
        (kind, _) => {
            let error = format!("there is no kind {kind:?}");
            return Err(ErrorData::invalid_params(error, None));
        }
    })
}

/// None: it is not this prompt.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Answer<GetPromptResponse> {
    if request.name != "test_input_required_result_prompt" {
        return None;
    }
    let answer = answer_to(request.input_responses.as_ref(), "user_context");
    Some(Ok(match answer {
        Some(answer) => {
            let text = format!("It is about {}.", answer["content"]["context"]);
            let message = PromptMessage::new_text(Role::User, text);
            GetPromptResult::new(vec![message]).into()
        }
        None => question([ask("user_context", "What is it about?")], None).into(),
    }))
}

/// The answer to a question. What is no object cannot be one: it is asked for again.
pub(crate) fn answer_to<'a>(answers: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    let answer = answers?.get(key)?;
    answer.is_object().then_some(answer)
}

/// The stage that a sealed state tells; none if there is no state.
fn stage(state: Option<&str>) -> Result<Option<u64>, ErrorData> {
    let Some(state) = state else {
        return Ok(None);
    };
    let opened: Result<u64, _> = RequestStateCodec::new_unchecked(KEY).open_json(state);
    let broken = |_| ErrorData::invalid_params("the state is not the one that was given", None);
    opened.map(Some).map_err(broken)
}

pub(crate) fn question(
    questions: impl IntoIterator<Item = (String, InputRequest)>,
    stage: Option<u64>,
) -> InputRequiredResult {
    let codec = RequestStateCodec::new_unchecked(KEY);
    let state = stage.map(|stage| codec.seal_json(&stage).expect("a number can be sealed"));
    InputRequiredResult::new(Some(questions.into_iter().collect()), state)
}

/// A question to the user, for one text.
pub(crate) fn ask(key: &str, message: &str) -> (String, InputRequest) {
    let name = key.strip_prefix("user_").unwrap_or("value");
    let schema = json!({
        "type": "object",
        "properties": { name: { "type": "string" } },
        "required": [name],
    });
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).expect("a schema for questions"),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    (key.to_owned(), request)
}

fn sample(key: &str, prompt: &str) -> (String, InputRequest) {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let request = InputRequest::CreateMessage(CreateMessageRequest::new(params));
    (key.to_owned(), request)
}

fn roots(key: &str) -> (String, InputRequest) {
    let request = InputRequest::ListRoots(ListRootsRequest::default());
    (key.to_owned(), request)
}
