//! Tools that go on after their answer (extension `io.modelcontextprotocol/tasks`), where the
//! client knows tasks.

use crate::rounds::{answer_to, ask, question};
use crate::server::{Context, Server};
use crate::tools::said;
use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};
use std::time::Duration;

/// Name, description and input schema of the tools.
pub(crate) fn list() -> impl Iterator<Item = (&'static str, &'static str, Value)> {
    let tools = [
        (
            "greet",
            "Greets; never a task",
            json!({ "name": { "type": "string" } }),
        ),
        (
            "slow_compute",
            "Takes so many seconds",
            json!({ "seconds": { "type": "number" }, "label": { "type": "string" } }),
        ),
        ("failing_job", "A task whose tool fails", json!({})),
        (
            "protocol_error_job",
            "A task that ends in an error",
            json!({}),
        ),
        (
            "confirm_delete",
            "A task that asks first",
            json!({ "filename": { "type": "string" } }),
        ),
        (
            "multi_input",
            "A task that asks two things at once",
            json!({}),
        ),
        (
            "test_tool_with_task",
            "Asks, and becomes a task with the answer",
            json!({}),
        ),
    ];
    let schema = |properties| json!({ "type": "object", "properties": properties });
    tools
        .into_iter()
        .map(move |(name, text, properties)| (name, text, schema(properties)))
}

/// What a task does.
#[derive(Clone)]
enum Work {
    Sleep(f64),
    Fail,
    Break,
    Confirm(String),
    AskTwice,
    Greet(String),
}

/// None: it is no tool of these.
pub(crate) async fn call(
    server: &Server,
    request: &CallToolRequestParams,
    context: &Context,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let argument = |name: &str| request.arguments.as_ref()?.get(name);
    let text = |name: &str| {
        argument(name)
            .and_then(Value::as_str)
            .unwrap_or("nobody")
            .to_owned()
    };
    // Some cannot do without a task: they ask in the midst of it, or are there to be refused.
    let (work, needs_task) = match request.name.as_ref() {
        "greet" => return Some(Ok(said(format!("Hello, {}!", text("name"))).into())),
        "slow_compute" => {
            let seconds = argument("seconds").and_then(Value::as_f64);
            (Work::Sleep(seconds.unwrap_or(1.0).clamp(0.0, 60.0)), false)
        }
        "failing_job" => (Work::Fail, true),
        "protocol_error_job" => (Work::Break, false),
        "confirm_delete" => (Work::Confirm(text("filename")), true),
        "multi_input" => (Work::AskTwice, true),
        "test_tool_with_task" => (Work::Greet(String::new()), true),
        _ => return None,
    };
    let knows_tasks = context
        .client_capabilities()
        .is_some_and(|can| can.supports_tasks());
    if needs_task && !knows_tasks {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Some(Err(ErrorData::missing_required_client_capability(needed)));
    }
    let work = match work {
        Work::Greet(_) => match answer_to(request.input_responses.as_ref(), "user_name") {
            Some(answer) => Work::Greet(answer["content"]["name"].to_string()),
            None => return Some(Ok(question([ask("user_name", "Your name?")], None).into())),
        },
        work => work,
    };
    if knows_tasks {
        let begin = move |task| -> rmcp::task_manager::TaskFuture {
            Box::pin(async move { run(work, Some(task)).await })
        };
        let task = server.tasks.spawn(TaskOptions::default(), begin);
        return Some(Ok(CreateTaskResult::new(task).into()));
    }
    Some(match run(work, None).await {
        Ok(result) => Ok(result.into()),
        Err(TaskExit::Error(error)) => Err(error),
        Err(TaskExit::Cancelled) => Err(ErrorData::internal_error("cancelled", None)),
    })
}

async fn run(work: Work, task: Option<TaskContext>) -> Result<CallToolResult, TaskExit> {
    let sleep = |seconds| tokio::time::sleep(Duration::from_secs_f64(seconds));
    let cancelled = async {
        match &task {
            Some(task) => task.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let asked = async |key: &str, message: &str| match &task {
        Some(task) => {
            let (key, request) = ask(key, message);
            task.request_input(key, request).await
        }
        None => Err(TaskExit::Cancelled),
    };
    match work {
        Work::Sleep(seconds) => tokio::select! {
            () = cancelled => Err(TaskExit::Cancelled),
            () = sleep(seconds) => Ok(said(format!("That took {seconds} s."))),
        },
        Work::Fail => {
            sleep(1.0).await;
            Ok(CallToolResult::error(vec![ContentBlock::text(
                "This job always fails.",
            )]))
        }
        Work::Break => {
            sleep(0.2).await;
            Err(ErrorData::internal_error("this job always breaks", None).into())
        }
        Work::Confirm(file) => {
            let answer = asked("confirm", &format!("Delete {file}?")).await?;
            Ok(said(format!("About {file} you say: {}", answer["content"])))
        }
        Work::AskTwice => {
            let (first, second) = tokio::join!(asked("first", "One?"), asked("second", "Two?"));
            let (first, second) = (first?, second?);
            Ok(said(format!(
                "{} and {}",
                first["content"], second["content"]
            )))
        }
        Work::Greet(name) => {
            sleep(0.2).await;
            Ok(said(format!("Hello, {name}, after a while!")))
        }
    }
}
