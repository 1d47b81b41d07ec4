//! A server without tools, in place of one that could not be started: a client shows its instructions, where it hides an
//! exit code.

use rmcp::ServerHandler;
use rmcp::model::{Implementation, ProtocolVersion, ServerCapabilities, ServerConfig};

/// Says why there are no tools, and what to do about it.
#[derive(Debug, Clone)]
pub struct StandIn {
    name: String,
    version: String,
    instructions: String,
}

impl StandIn {
    /// Stands in for the server of this name.
    #[must_use]
    pub fn new(name: &str, version: &str, instructions: String) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), instructions }
    }
}

impl ServerHandler for StandIn {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new(&self.name, &self.version))
            .with_instructions(&self.instructions)
    }
}
