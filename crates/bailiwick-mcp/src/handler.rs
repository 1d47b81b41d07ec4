//! What the server answers, in both eras of the protocol.
//!
//! The legacy era opens with `initialize`; in the modern one every request says by itself which version it speaks.
//! Which of them a request is of is decided for each request alone, and tools can be called without an opening.
#![expect(deprecated, reason = "logging is deprecated in the modern era and still there for the legacy one")]

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use bailiwick_guard::{
    AdmittedCall, Answered, Definition, Effect, Grant, Guarded, Listener, Outcome, PendingCall, Registry,
    ToolError, ToolFault,
};
use bailiwick_policy::denial::Denial;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ConstString as _, CustomRequest, CustomResult, ErrorCode, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SetLevelRequestParams, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::answer;
use crate::progress::Heard;
use crate::room::{Keeper, Room, Taken};

/// How many calls may run at the same time; one more is told to come back later.
pub const MAX_CALLS: usize = 64;

/// How long a client may keep the list of tools: it never changes while the server runs.
const LIST_TTL_MS: u64 = 300_000;

/// An error of this server, not of the protocol: too many calls at the same time, or a call that was cut off.
pub(crate) const OWN_ERROR: ErrorCode = ErrorCode(-32000);

/// The tools, and how calls reach them.
pub enum Tools {
    /// Through the gate.
    Plain(Registry),
    /// Through a project's guardrails, and the gate.
    Guarded(Box<Guarded>),
}

/// What the server says of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What the session may do, for the model that uses it.
    pub instructions: String,
    /// What to do where nothing was granted at all; ends every denial.
    pub guidance: Option<String>,
}

/// A server over tools and a session's grant. Clones are the same server.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    tools: Tools,
    grant: Grant,
    about: About,
    calls: Semaphore,
    room: Room,
    /// The least that the client wants to be told.
    level: Mutex<Option<LoggingLevel>>,
}

impl Tools {
    /// The registry behind it.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        match self {
            Self::Plain(registry) => registry,
            Self::Guarded(guarded) => guarded.registry(),
        }
    }

    /// Judges a call that runs elsewhere.
    pub(crate) async fn admit(&self, pending: PendingCall) -> Result<AdmittedCall, ToolError> {
        match self {
            Self::Plain(registry) => registry.admit(pending).await,
            Self::Guarded(guarded) => guarded.admit(pending).await,
        }
    }

    async fn run(&self, pending: PendingCall) -> Answered {
        match self {
            Self::Plain(registry) => registry.run(pending).await.into(),
            Self::Guarded(guarded) => guarded.run(pending).await,
        }
    }
}

impl Server {
    /// A server whose every call runs under `grant`.
    #[must_use]
    pub fn new(tools: Tools, grant: Grant, about: About) -> Self {
        let (calls, level) = (Semaphore::new(MAX_CALLS), Mutex::new(None));
        Self(Arc::new(Shared { tools, grant, about, calls, room: Room::new(), level }))
    }

    /// Runs a call in the room that it has taken; `None` if the client cut it off.
    async fn call(
        &self,
        name: &str,
        args: Value,
        taken: Taken,
        context: &RequestContext<RoleServer>,
    ) -> Option<Answered> {
        let Shared { tools, grant, .. } = &*self.0;
        let heard = Heard::default();
        let token = context.meta.get_progress_token();
        let told = token.is_some().then(|| heard.listener());
        // The listener goes when the thread that runs the call has let go of it, and the room with it.
        let listener: Listener = Arc::new(move |news| {
            let _room: &Taken = &taken;
            if let Some(told) = &told {
                told(news);
            }
        });
        let report = async {
            match token {
                Some(token) => heard.report(&context.peer, token).await,
                None => std::future::pending().await,
            }
        };
        // Dropping the call is what ends its programs.
        tokio::select! {
            biased;
            () = context.ct.cancelled() => None,
            answered = tools.run(PendingCall::new(name, args, grant).heard_by(listener)) => Some(answered),
            never = report => match never {},
        }
    }

    /// Room for a call, once there is some; `None` if the client cut it off before.
    async fn room(&self, name: &str, args: &Value, context: &RequestContext<RoleServer>) -> Option<Taken> {
        let bytes = self.0.tools.registry().footprint(name, args);
        tokio::select! {
            biased;
            () = context.ct.cancelled() => None,
            taken = self.0.room.take(bytes) => taken,
        }
    }

    /// Tells a client that wants to know of a denial.
    async fn log(&self, tool: &str, denial: &Denial, context: &RequestContext<RoleServer>) {
        let level = *self.0.level.lock().unwrap_or_else(PoisonError::into_inner);
        let level = if is_modern(context) { context.meta.log_level() } else { level };
        if level.is_some_and(|least| rank(least) <= rank(LoggingLevel::Warning)) {
            let data = json!({ "tool": tool, "code": denial.code().as_str(), "message": denial.message() });
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, data);
            // A client that has gone hears nothing.
            drop(context.peer.notify_logging_message(message.with_logger("bailiwick")).await);
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let About { name, version, instructions, .. } = &self.0.about;
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new(name, version).with_title("Bailiwick"))
            .with_instructions(instructions)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let info = self.negotiate_initialize(&request)?;
        // What was agreed on, not what was wished for: the era of later requests depends on it.
        context.peer.set_peer_info(request.with_protocol_version(info.protocol_version.clone()));
        Ok(info)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.0.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is one page of tools, and no cursor", None));
        }
        let tools = self.0.tools.registry().definitions().map(listed).collect();
        let list = ListToolsResult::with_all_items(tools);
        Ok(if is_modern(&context) {
            list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            list
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_running) = self.0.calls.try_acquire() else {
            let message = format!("busy: {MAX_CALLS} calls are running; call again when one has ended");
            return Err(ErrorData::new(OWN_ERROR, message, None));
        };
        let args = Value::Object(request.arguments.unwrap_or_default());
        let cut_off = || ErrorData::new(OWN_ERROR, "the call was cut off", None);
        let taken = self.room(&request.name, &args, &context).await.ok_or_else(cut_off)?;
        if let Some(keeper) = keeper(&context) {
            keeper.keep(Arc::clone(&taken));
        }
        let answered = self.call(&request.name, args, taken, &context).await.ok_or_else(cut_off)?;
        match &answered.result {
            Err(ToolFault::NotFound(name)) => {
                let message = format!("Unknown tool: {}", answer::shown(name));
                return Err(ErrorData::invalid_params(message, None));
            }
            Ok(Outcome::Refused(denial)) => self.log(&request.name, denial, &context).await,
            Ok(Outcome::Ran(_)) | Err(_) => {}
        }
        let result = answer::result(answered.result, self.0.about.guidance.as_deref());
        Ok(answer::with_injected(result, answered.injected).into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(unknown_method(CompleteRequestMethod::VALUE))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(unknown_method(ListPromptsRequestMethod::VALUE))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(unknown_method(ListResourcesRequestMethod::VALUE))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(unknown_method(ListResourceTemplatesRequestMethod::VALUE))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_method(&request.method))
    }
}

/// Who keeps the room of the answer until it is sent: over stdio it came with the message, over HTTP with the request.
fn keeper(context: &RequestContext<RoleServer>) -> Option<&Keeper> {
    let of_request = || context.extensions.get::<http::request::Parts>()?.extensions.get::<Keeper>();
    context.extensions.get::<Keeper>().or_else(of_request)
}

fn unknown_method(method: &str) -> ErrorData {
    let message = format!("Method not found: {}", answer::shown(method));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

/// Whether a request is of the modern era.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// A tool as clients see it.
fn listed(tool: Definition<'_>) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(tool.hints.effect == Effect::Reads)
        .destructive(tool.hints.effect == Effect::Changes)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.hints.open_world);
    let description = (!tool.description.is_empty()).then(|| Cow::Owned(tool.description.to_owned()));
    let listed = Tool::new_with_raw(tool.name.to_owned(), description, Arc::new(object(tool.schema)))
        .annotate(annotations);
    match tool.output {
        Some(output) => listed.with_raw_output_schema(Arc::new(object(output))),
        None => listed,
    }
}

/// A schema; one that is no object says nothing of its values.
fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::from_iter([("type".to_owned(), "object".into())])
        }
    }
}

/// How grave a level is.
const fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
