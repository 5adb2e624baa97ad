//! What stands before a server: each request has a caller who is known, is counted, and is
//! written down with what came of it. A tool that its key does not open is not there.
//!
//! Behind it is any MCP server that tells what its tools need: ours ([`crate::server`]), and in
//! the tests one of which the conformance suite knows what it should answer.

#![allow(deprecated, reason = "what older revisions have is let in, too")]

use crate::answer::ToolError;
use crate::gate::{Caller, Gate, Pass, Refusal};
use crate::scope::Scope;
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) type Context = RequestContext<RoleServer>;

/// A server that can stand behind a guard. It finds the [`Caller`] in the extensions of the
/// context of a request; the context's token is cancelled when nobody waits any more.
pub trait Router: ServerHandler + Clone {
    /// What opens this tool; none where there is no such tool.
    fn scope(&self, tool: &str) -> Option<Scope>;

    /// The call of a tool that reading this resource is, if it is one.
    fn reads(&self, uri: &str) -> Option<(&'static str, JsonObject)> {
        let _ = uri;
        None
    }
}

/// How callers of a server are known.
#[derive(Clone, Debug)]
pub enum Callers {
    /// By this key, whoever calls: looked up for each request, so that it can be revoked.
    Key(Arc<str>),
    /// Whoever calls is this one.
    Local(Arc<Caller>),
    /// By what the HTTP layer found out ([`crate::http`]).
    Http,
}

/// A server with what stands before it.
#[derive(Clone, Debug)]
pub struct Guard<R> {
    gate: Arc<Gate>,
    callers: Callers,
    router: R,
}

impl<R: Router> Guard<R> {
    /// Puts a guard before a server.
    #[must_use]
    pub fn new(gate: Arc<Gate>, callers: Callers, router: R) -> Self {
        Self {
            gate,
            callers,
            router,
        }
    }

    /// Who asks. Whoever answers finds it in the context, too.
    fn caller(&self, context: &mut Context) -> Result<Caller, ErrorData> {
        let caller = match &self.callers {
            Callers::Key(key) => self.gate.identify(key),
            Callers::Local(caller) => Some(Caller::clone(caller)),
            Callers::Http => {
                let parts = context.extensions.get::<http::request::Parts>();
                parts.and_then(|parts| parts.extensions.get::<Caller>().cloned())
            }
        };
        let what = "the key is unknown, revoked or no longer valid";
        let caller = caller.ok_or_else(|| ErrorData::invalid_request(what, None))?;
        context.extensions.insert(caller.clone());
        Ok(caller)
    }

    /// Lets a request in that calls no tool: it counts like any other.
    fn enter(&self, what: &str, asked: &[u8], context: &mut Context) -> Result<Pass, ErrorData> {
        let caller = self.caller(context)?;
        let entered = self.gate.enter(&caller, what, asked, true);
        entered.map_err(|refusal| not_now(&limited(refusal)))
    }

    /// Lets a call of a tool in, and has it answered.
    async fn call<T, F>(
        &self,
        tool: &str,
        arguments: &JsonObject,
        mut context: Context,
        answer: impl FnOnce(R, Context) -> F,
    ) -> Result<T, Stopped>
    where
        T: Answer,
        F: Future<Output = Result<T, ErrorData>> + Send + 'static,
    {
        let caller = self.caller(&mut context)?;
        let scope = self.router.scope(tool);
        let may = scope.is_some_and(|scope| caller.may(scope));
        let told = scope.map_or("unknown", |_| tool);
        let digested = serde_json::to_vec(arguments).unwrap_or_default();
        let pass = match self.gate.enter(&caller, told, &digested, may) {
            Ok(pass) => pass,
            Err(Refusal::Unknown) => return Err(no_such_tool().into()),
            Err(refusal) => return Err(Stopped::Limited(limited(refusal))),
        };
        let given_up = context.ct.clone();
        let cancelled = CancellationToken::new();
        context.ct = cancelled.clone();
        // Whoever does not wait any more ends the work, which keeps its place until it has ended.
        let _waits = cancelled.clone().drop_guard();
        let work = answer(self.router.clone(), context);
        // On a thread of its own: what is thought between two questions may take long, too, and
        // others are answered meanwhile.
        let here = tokio::runtime::Handle::current();
        let work = tokio::task::spawn_blocking(move || {
            let answered = here.block_on(work);
            pass.done(match &answered {
                _ if cancelled.is_cancelled() => "cancelled",
                Ok(answer) if !answer.is_error() => "ok",
                _ => "error",
            });
            answered
        });
        tokio::select! {
            answered = work => match answered {
                Ok(answered) => answered.map_err(Stopped::Error),
                Err(_) => Err(failed("answering failed: this is a fault of agent-trace").into()),
            },
            () = given_up.cancelled() => Err(failed("cancelled").into()),
        }
    }
}

/// What a call of a tool comes to.
trait Answer: Send + 'static {
    /// Whether it says that the tool failed.
    fn is_error(&self) -> bool;
}

impl Answer for CallToolResponse {
    fn is_error(&self) -> bool {
        matches!(self, Self::Complete(result) if result.is_error == Some(true))
    }
}

impl Answer for ReadResourceResponse {
    fn is_error(&self) -> bool {
        false
    }
}

/// Why there is no answer.
enum Stopped {
    Limited(ToolError),
    Error(ErrorData),
}

impl From<ErrorData> for Stopped {
    fn from(error: ErrorData) -> Self {
        Self::Error(error)
    }
}

pub(crate) fn no_such_tool() -> ErrorData {
    let what = "there is no such tool, or the key does not open it";
    ErrorData::invalid_params(what, None)
}

fn failed(what: &'static str) -> ErrorData {
    ErrorData::internal_error(what, None)
}

/// Why, and when to try again.
fn not_now(error: &ToolError) -> ErrorData {
    let told = serde_json::to_value(error).ok();
    ErrorData::internal_error("it cannot be answered now", told)
}

fn limited(refusal: Refusal) -> ToolError {
    let (what, retry_after) = match refusal {
        Refusal::Limited { retry_after } => ("the key's limit is used up", retry_after),
        _ => ("too many calls at once", 1),
    };
    let error = ToolError::new("rate_limited", what);
    ToolError {
        retry_after: Some(retry_after),
        ..error.hint(format!("try again in {retry_after} s"))
    }
}

/// Requests that are let in under the name of their method, and answered by what is behind.
macro_rules! let_in {
    ($($name:ident($what:ty) -> $answer:ty, $method:literal;)*) => { $(
        async fn $name(&self, what: $what, mut context: Context) -> Result<$answer, ErrorData> {
            let asked = serde_json::to_vec(&what).unwrap_or_default();
            let pass = self.enter($method, &asked, &mut context)?;
            let answered = self.router.$name(what, context).await;
            pass.done(if answered.is_ok() { "ok" } else { "error" });
            answered
        }
    )* };
}

impl<R: Router> ServerHandler for Guard<R> {
    let_in! {
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult, "tools/list";
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult, "prompts/list";
        get_prompt(GetPromptRequestParams) -> GetPromptResponse, "prompts/get";
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult, "resources/list";
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult,
            "resources/templates/list";
        complete(CompleteRequestParams) -> CompleteResult, "completion/complete";
        set_level(SetLevelRequestParams) -> (), "logging/setLevel";
        subscribe(SubscribeRequestParams) -> (), "resources/subscribe";
        unsubscribe(UnsubscribeRequestParams) -> (), "resources/unsubscribe";
        get_task(GetTaskParams) -> GetTaskResult, "tasks/get";
        update_task(UpdateTaskParams) -> (), "tasks/update";
        cancel_task(CancelTaskParams) -> (), "tasks/cancel";
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let tool = request.name.clone();
        let answer = |router: R, context| async move { router.call_tool(request, context).await };
        match self.call(&tool, &arguments, context, answer).await {
            Ok(answer) => Ok(answer),
            // A model reads that, and can wait.
            Err(Stopped::Limited(error)) => Ok(error.result().into()),
            Err(Stopped::Error(error)) => Err(error),
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        mut context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some((tool, arguments)) = self.router.reads(&request.uri) else {
            let pass = self.enter("resources/read", request.uri.as_bytes(), &mut context)?;
            let answered = self.router.read_resource(request, context).await;
            pass.done(if answered.is_ok() { "ok" } else { "error" });
            return answered;
        };
        let answer =
            |router: R, context| async move { router.read_resource(request, context).await };
        let answered = self.call(tool, &arguments, context, answer).await;
        answered.map_err(|stopped| match stopped {
            Stopped::Limited(error) => not_now(&error),
            Stopped::Error(error) => error,
        })
    }

    // What says who the server is, and is for rmcp itself.

    fn get_info(&self) -> ServerConfig {
        self.router.get_info()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.router.get_tool(name)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.router.supported_protocol_versions()
    }

    fn accepted_subscription_filter(&self, of: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.router.accepted_subscription_filter(of)
    }

    async fn ping(&self, context: Context) -> Result<(), ErrorData> {
        self.router.ping(context).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        self.router.initialize(request, context).await
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        self.router.discover(context).await
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.router.listen(context).await
    }
}
