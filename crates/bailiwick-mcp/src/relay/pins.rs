//! Who remembers what a server said of itself. The relay asks, and sends what it is told to.

use serde_json::Value;

/// What becomes of one tool of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedTool {
    /// It is sent as the server wrote it.
    AsWritten,
    /// This text is sent in its place: what was pinned.
    Pinned(String),
    /// It is not sent.
    Withheld,
}

/// Keeps the pins of one server.
pub trait PinKeeper: Send + Sync {
    /// Asked about every declared tool of every list.
    fn listed(&self, name: &str, tool: &Value) -> ListedTool;

    /// Told that the last page of a list has come.
    fn list_ended(&self);

    /// The instructions that are sent in place of these.
    fn instructions(&self, text: Option<&str>) -> Option<String>;
}

/// Keeps none: everything is sent as it was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPins;

impl PinKeeper for NoPins {
    fn listed(&self, _: &str, _: &Value) -> ListedTool {
        ListedTool::AsWritten
    }

    fn list_ended(&self) {}

    fn instructions(&self, text: Option<&str>) -> Option<String> {
        text.map(str::to_owned)
    }
}
