//! The conformance fixture: the tools, prompts and resources that the protocol's official test suite asks for by name.
//!
//! Everything is in `fixture/catalogue.json`; this reads it and plays it. The fixture has no registry and no
//! authority, opens nothing and runs nothing: what it says was written down beforehand, or was just said to it.
//! It shows that what carries the real server, `rmcp` and [`crate::http`], follows the protocol in both eras.

mod ask;
mod catalogue;
mod fill;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, ResultType, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
#[expect(deprecated, reason = "clients of the legacy era set a level for messages")]
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, SetLevelRequestMethod, SetLevelRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::sleep;

use ask::{AskState, Seal};
use catalogue::{Behaviour, Catalogue, List};

const PAUSE: Duration = Duration::from_millis(50);

/// Why there is no fixture.
#[derive(Debug, thiserror::Error)]
pub enum FixtureFault {
    /// The catalogue that was built in cannot be read.
    #[error("cannot read the fixture's catalogue: {0}")]
    Catalogue(#[from] serde_json::Error),
    /// There is no key to seal states with.
    #[error("cannot draw a key: {0}")]
    Key(String),
}

/// The fixture. Clones share the lists and the key; each has a log level of its own.
#[derive(Debug)]
pub struct Fixture {
    stage: Arc<Stage>,
    quiet: AtomicBool,
}

#[derive(Debug)]
struct Stage {
    catalogue: Catalogue,
    seal: Seal,
    tool_changes: AtomicU64,
    prompt_changes: AtomicU64,
    changes: broadcast::Sender<List>,
}

impl Clone for Fixture {
    fn clone(&self) -> Self {
        Self { stage: Arc::clone(&self.stage), quiet: AtomicBool::new(false) }
    }
}

impl Fixture {
    /// Reads the catalogue and draws a key.
    pub fn new() -> Result<Self, FixtureFault> {
        let stage = Stage {
            catalogue: Catalogue::read()?,
            seal: Seal::random().map_err(FixtureFault::Key)?,
            tool_changes: AtomicU64::new(0),
            prompt_changes: AtomicU64::new(0),
            changes: broadcast::channel(16).0,
        };
        Ok(Self { stage: Arc::new(stage), quiet: AtomicBool::new(false) })
    }

    fn changes(&self, list: List) -> &AtomicU64 {
        match list {
            List::Tools => &self.stage.tool_changes,
            List::Prompts => &self.stage.prompt_changes,
        }
    }

    /// Whether the entry that comes and goes is in a list now.
    fn is_extended(&self, list: List) -> bool {
        !self.changes(list).load(Ordering::Relaxed).is_multiple_of(2)
    }

    async fn change(&self, list: List, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.changes(list).fetch_add(1, Ordering::Relaxed);
        let _no_listener = self.stage.changes.send(list);
        if !is_modern(context) {
            let _gone = match list {
                List::Tools => context.peer.notify_tool_list_changed().await,
                List::Prompts => context.peer.notify_prompt_list_changed().await,
            };
        }
        text("Changed.")
    }

    /// Messages at level `info`: a modern client has to ask for them with the request itself.
    #[expect(deprecated, reason = "messages are tested in the era that has them")]
    async fn log(&self, messages: &[String], context: &RequestContext<RoleServer>) -> CallToolResult {
        let wanted = match context.meta.log_level() {
            Some(level) => is_chatty(level),
            None => !is_modern(context) && !self.quiet.load(Ordering::Relaxed),
        };
        for message in messages {
            if wanted {
                let note = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
                let _gone = context.peer.notify_logging_message(note.with_logger("fixture")).await;
            }
            sleep(PAUSE).await;
        }
        text("Logged.")
    }

    async fn progress(&self, steps: &[f64], context: &RequestContext<RoleServer>) -> CallToolResult {
        let token = context.meta.get_progress_token();
        for step in steps {
            if let Some(token) = &token {
                let note = ProgressNotificationParam::new(token.clone(), *step).with_total(100.0);
                let _gone = context.peer.notify_progress(note).await;
            }
            sleep(PAUSE).await;
        }
        text("Done.")
    }
}

impl ServerHandler for Fixture {
    #[expect(deprecated, reason = "messages are tested in the era that has them")]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("bailiwick-conformance-fixture", env!("CARGO_PKG_VERSION")))
            .with_instructions("For the protocol's conformance suite; nothing here does anything.")
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let entries = self.stage.catalogue.tools.iter();
        let listed = entries.filter(|entry| !entry.sometimes || self.is_extended(List::Tools));
        Ok(ListToolsResult::with_all_items(listed.map(|entry| entry.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.stage.catalogue.tool(name).map(|entry| entry.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = self.stage.catalogue.tool(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let scope = arguments(request.arguments.as_ref());
        let mut result: CallToolResult = match &entry.behaviour {
            Behaviour::Answer(answer) => fill::read(answer, &scope)?,
            Behaviour::Log(messages) => self.log(messages, &context).await,
            Behaviour::Progress(steps) => self.progress(steps, &context).await,
            Behaviour::Change(list) => self.change(*list, &context).await,
            Behaviour::Ask(ask) => {
                let seal = ask.sealed.then_some(&self.stage.seal);
                let retry = ask::Retry { answers: request.input_responses, state: request.request_state };
                match ask::ask(&request.name, &ask.rounds, seal, &scope, retry, &context).await? {
                    AskState::Open(required) => return Ok(required.into()),
                    AskState::Answered(scope) => fill::read(&ask.answer, &scope)?,
                }
            }
        };
        result.result_type = Some(ResultType::COMPLETE);
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let entries = self.stage.catalogue.prompts.iter();
        let listed = entries.filter(|entry| !entry.sometimes || self.is_extended(List::Prompts));
        Ok(ListPromptsResult::with_all_items(listed.map(|entry| entry.prompt.clone()).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(entry) = self.stage.catalogue.prompt(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None));
        };
        let scope = arguments(request.arguments.as_ref());
        let retry = ask::Retry { answers: request.input_responses, state: request.request_state };
        match ask::ask(&request.name, &entry.rounds(), None, &scope, retry, &context).await? {
            AskState::Open(required) => Ok(required.into()),
            AskState::Answered(scope) => {
                Ok(GetPromptResult::new(fill::read(&entry.messages, &scope)?).into())
            }
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let Reference::Prompt(prompt) = &request.r#ref else {
            return Ok(CompleteResult::default());
        };
        let known = self.stage.catalogue.completions(&prompt.name, &request.argument.name);
        let fitting =
            known.iter().filter(|value| value.starts_with(&request.argument.value)).cloned().collect();
        let completion =
            CompletionInfo::new(fitting).map_err(|cause| ErrorData::internal_error(cause, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = self.stage.catalogue.resources.iter().map(|entry| entry.resource.clone());
        Ok(ListResourcesResult::with_all_items(listed.collect()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let listed = self.stage.catalogue.templates.iter().map(|entry| entry.template.clone());
        Ok(ListResourceTemplatesResult::with_all_items(listed.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match self.stage.catalogue.contents(&request.uri) {
            Some((contents, scope)) => {
                Ok(ReadResourceResult::new(vec![fill::read(contents, &scope)?]).into())
            }
            None => {
                let unknown = format!("there is no resource `{}`", request.uri);
                Err(ErrorData::resource_not_found(unknown, Some(json!({ "uri": request.uri }))))
            }
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.stage.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let _not_wanted = match change {
                Ok(List::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(List::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
        }
    }

    /// No resource of the fixture changes, so there is nothing to keep.
    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    #[expect(deprecated, reason = "clients of the legacy era set a level for messages")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.quiet.store(!is_chatty(request.level), Ordering::Relaxed);
        Ok(())
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Whether a level lets messages at `info` through.
#[expect(deprecated, reason = "clients of the legacy era set a level for messages")]
fn is_chatty(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}

fn arguments(arguments: Option<&JsonObject>) -> Value {
    json!({ "arguments": arguments })
}

fn text(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests;
