//! `[client]`: what a server may ask the client for, in the middle of a session.
//!
//! Without the table a server may ask for the client's roots, and is told of those that it is granted; sampling and
//! elicitation need a person's consent; tasks are closed.

use bailiwick_policy::finding::{Code, Collector, Finding};

use crate::document::{Fields, Node};

/// What a server may ask its client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFeatures {
    /// The directories that the client works in; those that are not granted are never told.
    pub roots: FeatureStance,
    /// Words of the client's model.
    pub sampling: FeatureStance,
    /// Answers of the person at the client.
    pub elicitation: FeatureStance,
    /// Tasks that the client runs for the server.
    pub tasks: FeatureStance,
}

/// Whether a feature is open. Ordered: the last is the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeatureStance {
    /// Never.
    Deny,
    /// Once a person has consented.
    Ask,
    /// Always.
    Allow,
}

impl Default for ClientFeatures {
    fn default() -> Self {
        Self {
            roots: FeatureStance::Allow,
            sampling: FeatureStance::Ask,
            elicitation: FeatureStance::Ask,
            tasks: FeatureStance::Deny,
        }
    }
}

impl ClientFeatures {
    /// Every feature by its name.
    #[must_use]
    pub const fn all(&self) -> [(&'static str, FeatureStance); 4] {
        [
            ("roots", self.roots),
            ("sampling", self.sampling),
            ("elicitation", self.elicitation),
            ("tasks", self.tasks),
        ]
    }
}

impl FeatureStance {
    const ALL: [(&'static str, Self); 3] = [("deny", Self::Deny), ("ask", Self::Ask), ("allow", Self::Allow)];

    /// The word that a manifest has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

pub(super) fn read_client(node: &Node<'_>, found: &mut Collector) -> ClientFeatures {
    let usual = ClientFeatures::default();
    let Some(mut fields) = found.keep(Fields::from_node(node, "client", Code::ManifestShape)) else {
        return usual;
    };
    let mut stance = |key, usual| match fields.optional(key) {
        None => usual,
        Some(node) => found.keep(read_stance(node)).unwrap_or(FeatureStance::Deny),
    };
    let features = ClientFeatures {
        roots: stance("roots", usual.roots),
        sampling: stance("sampling", usual.sampling),
        elicitation: stance("elicitation", usual.elicitation),
        tasks: stance("tasks", usual.tasks),
    };
    fields.finish(Code::ManifestUnknownField, found);
    features
}

fn read_stance(node: &Node<'_>) -> Result<FeatureStance, Finding> {
    let text = node.text(Code::ManifestShape)?;
    FeatureStance::ALL.iter().find(|(name, _)| *name == text).map(|(_, stance)| *stance).ok_or_else(|| {
        Finding::new(Code::ManifestShape, format!("`{}` is not a stance", text.escape_debug()))
            .at(node.span)
            .help("write `deny`, `ask` or `allow`")
    })
}
