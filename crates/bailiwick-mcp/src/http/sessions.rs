//! The sessions of clients that initialize: `rmcp`'s own, but never more than a fixed number of them.
//!
//! A session ends when its client deletes it, when nothing was said in it for a while, or with the server. When there
//! is no room, a new one is refused; an old one is never thrown out for it, since a call may be running there.

use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::WorkerTransport;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::Mutex;

/// Why a session cannot be had or used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionFault {
    #[error("there are {0} sessions already")]
    Full(usize),
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

/// At most `most` sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    most: usize,
    /// Held while a session is made, so that two cannot take the last place.
    making: Mutex<()>,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        Self { local, most, making: Mutex::new(()) }
    }

    pub(super) async fn is_full(&self) -> bool {
        self.local.sessions.read().await.len() >= self.most
    }

    /// Ends every session, and with each whatever runs in it.
    pub(super) async fn close_all(&self) {
        let open: Vec<_> = self.local.sessions.read().await.keys().cloned().collect();
        for id in open {
            let _gone_already = self.local.close_session(&id).await;
        }
    }
}

impl SessionManager for Sessions {
    type Error = SessionFault;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _alone = self.making.lock().await;
        if self.is_full().await {
            return Err(SessionFault::Full(self.most));
        }
        Ok(self.local.create_session().await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl futures_core::Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.resume(id, last_event_id).await?)
    }
}
