//! What a host says of itself, gathered once at the edge and passed in as a value.

use std::collections::BTreeMap;

use crate::finding::{Code, Finding};
use crate::path::AbsPath;

/// Facts about a host that a manifest may depend on.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    variables: BTreeMap<String, AbsPath>,
}

impl HostFacts {
    /// A host of which nothing is known: every path variable is unresolved.
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }

    /// The same host, where the path variable `name` stands for `path`.
    ///
    /// # Errors
    /// A finding if the value is not a clean absolute path.
    pub fn with_variable(mut self, name: &str, path: &str) -> Result<Self, Finding> {
        let clean = AbsPath::new(path).ok().filter(|_| !path.chars().any(char::is_control));
        let value = clean.ok_or_else(|| {
            Finding::new(
                Code::PathVariableValue,
                format!("`{name}` is `{}`, not a clean absolute path", path.escape_debug()),
            )
            .help("give an absolute path without `.`, `..` or control characters")
        })?;
        self.variables.insert(name.to_owned(), value);
        Ok(self)
    }

    /// The value of a path variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&AbsPath> {
        self.variables.get(name)
    }
}
