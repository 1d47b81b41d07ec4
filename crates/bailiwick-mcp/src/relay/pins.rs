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

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
}

impl ListKind {
    pub(super) fn of_method(method: &str) -> Option<Self> {
        match method {
            "tools/list" => Some(Self::Tools),
            "prompts/list" => Some(Self::Prompts),
            "resources/list" => Some(Self::Resources),
            "resources/templates/list" => Some(Self::Templates),
            _ => None,
        }
    }

    /// The field of a result that has the list.
    pub(super) const fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The field of an entry that it is known by.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Keeps the pins of one server.
pub trait PinKeeper: Send + Sync {
    /// Asked about every entry of every list; of tools about those that are declared.
    fn listed(&self, kind: ListKind, name: &str, entry: &Value) -> ListedTool;

    /// Told that the last page of a list has come.
    fn list_ended(&self, kind: ListKind);

    /// Whether the server must tell its tools before one is called.
    fn needs_list(&self) -> bool;

    /// Told that the server does not tell its tools.
    fn list_failed(&self);

    /// The instructions that are sent in place of these.
    fn instructions(&self, text: Option<&str>) -> Option<String>;
}

/// Keeps none: everything is sent as it was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPins;

impl PinKeeper for NoPins {
    fn listed(&self, _: ListKind, _: &str, _: &Value) -> ListedTool {
        ListedTool::AsWritten
    }

    fn list_ended(&self, _: ListKind) {}

    fn needs_list(&self) -> bool {
        false
    }

    fn list_failed(&self) {}

    fn instructions(&self, text: Option<&str>) -> Option<String> {
        text.map(str::to_owned)
    }
}
