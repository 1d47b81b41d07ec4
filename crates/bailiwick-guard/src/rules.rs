//! What a manifest or an author says about one tool, beyond what the tool says itself.

use std::collections::BTreeMap;

use bailiwick_policy::authority::Authority;
use bailiwick_policy::manifest::{Checked, Constraints};

use crate::arguments::{ArgumentRules, Treatment};

/// The rules for one tool.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub(crate) ceiling: Option<Authority>,
    pub(crate) arguments: Option<ArgumentRules>,
    pub(crate) constraints: Constraints,
}

impl Rules {
    /// No rules: whatever the tool needs and the grant allows.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The tool never runs.
    #[must_use]
    pub fn forbidden() -> Self {
        Self::none().with_constraints(Constraints { forbidden: true, ..Constraints::default() })
    }

    /// The rules of a tool in a checked manifest; `None` if it does not declare the tool.
    #[must_use]
    pub fn of(checked: &Checked, tool: &str) -> Option<Self> {
        let authority = checked.tool(tool)?.authority().clone();
        let declared = checked.manifest().tools().iter().find(|declared| declared.name() == tool)?;
        let arguments = declared.has_file_stance().then(|| {
            let files = ArgumentRules::within(authority.read().clone(), authority.write().clone());
            let marks =
                declared.arguments().iter().map(|(name, access)| (name.clone(), Treatment::from(*access)));
            files.with_marks(marks.collect::<BTreeMap<_, _>>())
        });
        Some(Self { ceiling: Some(authority), arguments, constraints: declared.constraints().clone() })
    }

    /// The same rules, with these constraints.
    #[must_use]
    pub fn with_constraints(mut self, constraints: Constraints) -> Self {
        self.constraints = constraints;
        self
    }

    /// The same rules, with paths in arguments held to these.
    #[must_use]
    pub fn with_arguments(mut self, arguments: ArgumentRules) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// The same rules, with authority never beyond this.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Authority) -> Self {
        self.ceiling = Some(ceiling);
        self
    }
}
