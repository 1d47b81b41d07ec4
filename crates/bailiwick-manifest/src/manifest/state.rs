//! What calls of a tool leave behind in the process of its server, for those who run tools in processes of their own.

use bailiwick_policy::finding::{Code, Finding};

use crate::document::Node;

/// Whether a tool sees what other calls left in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolState {
    /// It keeps nothing there: each call could have a process of its own.
    None,
    /// It shares what is there with the other tools that say so.
    Shared,
}

impl ToolState {
    /// The word that a manifest has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shared => "shared",
        }
    }
}

pub(super) fn read_state(node: &Node<'_>) -> Result<ToolState, Finding> {
    let text = node.text(Code::ManifestShape)?;
    [ToolState::None, ToolState::Shared].into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
        Finding::new(Code::ManifestShape, format!("`{}` is not a state", text.escape_debug()))
            .at(node.span)
            .help("write `none` or `shared`")
    })
}
