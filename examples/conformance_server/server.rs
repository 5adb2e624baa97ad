//! Which request goes where.

use crate::{asking, documents, rounds, tasks, tools};
use agent_trace_mcp_tools::{Router, Scope};
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What all sessions and all requests share.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) sessions: Arc<LocalSessionManager>,
    pub(crate) tasks: TaskManager,
    listeners: Arc<Mutex<Listeners>>,
}

#[derive(Default)]
struct Listeners {
    last: u64,
    open: HashMap<u64, SubscriptionSink>,
}

pub(crate) type Context = RequestContext<RoleServer>;

impl Server {
    pub(crate) fn new(sessions: Arc<LocalSessionManager>) -> Self {
        Self {
            sessions,
            tasks: TaskManager::new(),
            listeners: Arc::default(),
        }
    }

    /// All who listen for changes.
    pub(crate) fn listeners(&self) -> Vec<SubscriptionSink> {
        let listeners = self.listeners.lock().expect("no panic holds this");
        listeners.open.values().cloned().collect()
    }

    fn add_listener(&self, sink: SubscriptionSink) -> u64 {
        let mut listeners = self.listeners.lock().expect("no panic holds this");
        listeners.last += 1;
        let number = listeners.last;
        listeners.open.insert(number, sink);
        number
    }
}

/// What our own server's keys open.
impl Router for Server {
    fn scope(&self, tool: &str) -> Option<Scope> {
        self.get_tool(tool).map(|_| Scope::RunsRead)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerInfo {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_completions()
            .enable_tasks()
            .build();
        ServerInfo::new(capabilities)
            .with_server_info(Implementation::new("conformance-server", "1.0.0"))
            .with_instructions("Made for the conformance suite: call what it calls.")
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        _: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let info = self.get_info();
        Ok(InitializeResult::new(info.capabilities)
            .with_protocol_version(request.protocol_version)
            .with_server_info(info.server_info)
            .with_instructions(info.instructions.unwrap_or_default()))
    }

    async fn ping(&self, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    /// Every level will do: what a tool logs is logged.
    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let number = self.add_listener(context.sink().clone());
        context.cancelled().await;
        let mut listeners = self.listeners.lock().expect("no panic holds this");
        listeners.open.remove(&number);
        Ok(())
    }

    // For the check of `Mcp-Param-*` headers, which is rmcp's.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list())
            .with_ttl_ms(documents::FRESH_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answer) = rounds::call(&request, &context) {
            return answer;
        }
        if let Some(answer) = tasks::call(self, &request, &context).await {
            return answer;
        }
        if let Some(answer) = asking::call(&request, &context).await {
            return answer.map(Into::into);
        }
        tools::call(self, &request, &context).await.map(Into::into)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        let (id, responses) = (&request.task_id, request.input_responses);
        self.tasks.update_task(id, responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(documents::resources())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(documents::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        documents::read(&request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(documents::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        match rounds::prompt(&request) {
            Some(answer) => answer,
            None => documents::prompt(&request).map(Into::into),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        documents::complete(&request)
    }
}
