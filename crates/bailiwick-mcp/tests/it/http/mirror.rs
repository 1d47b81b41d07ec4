//! A handler that shows what reaches a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

/// `headers` answers with the headers it was sent; `wait` runs until it is cut off; anything else answers nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Mirror {
    pub(super) calls: Arc<AtomicUsize>,
    pub(super) cut_off: Arc<AtomicUsize>,
}

struct CutOff(Arc<AtomicUsize>);

impl Drop for CutOff {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl ServerHandler for Mirror {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if request.name == "wait" {
            let _noticed = CutOff(Arc::clone(&self.cut_off));
            context.ct.cancelled().await;
        }
        let seen = match (request.name.as_ref(), context.extensions.get::<Parts>()) {
            ("headers", Some(parts)) => format!("{:?}", parts.headers),
            _ => String::new(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(seen)]).into())
    }
}
