//! What changed between two manifests, decided by containment of authority and never by comparing strings.
//!
//! Compared are what each tool may touch, what the server as a whole may touch, the stances of policies, and
//! constraints, arguments, limits and pins. Nothing is reported as wider only if nothing is, on any host: path
//! variables are symbols here, and lines and policies are also compared by themselves.

mod accept;
mod compare;
mod stances;
#[cfg(test)]
mod tests;
mod verdict;

pub use accept::Accepted;
pub use toml_datetime::Date;
pub use verdict::{Question, Verdict};

pub(crate) use verdict::is_run_later;

use bailiwick_policy::finding::{Code, Findings, Severity};

use crate::snapshot::Snapshot;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) tool: Option<String>,
    pub(crate) message: String,
    pub(crate) example: Option<String>,
    pub(crate) widens: bool,
    pub(crate) accepted: Option<String>,
}

impl Difference {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// How much it matters.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// The tool it is about; `None` is the manifest as a whole.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// One line, lower case, no full stop.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// One thing that the new side allows and the old one does not.
    #[must_use]
    pub fn example(&self) -> Option<&str> {
        self.example.as_deref()
    }

    /// Whether more is allowed, or less is checked, than before.
    #[must_use]
    pub const fn widens(&self) -> bool {
        self.widens
    }

    /// Why it was accepted, if it was.
    #[must_use]
    pub fn accepted(&self) -> Option<&str> {
        self.accepted.as_deref()
    }

    /// The same for programs.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.code.as_str(),
            "severity": self.severity.as_str(),
            "tool": self.tool,
            "message": self.message,
            "example": self.example,
            "widens": self.widens,
            "accepted": self.accepted,
        })
    }
}

/// Everything that changed.
///
/// # Examples
/// ```
/// use bailiwick_manifest::diff::Diff;
/// use bailiwick_manifest::Manifest;
/// use bailiwick_manifest::snapshot::Snapshot;
///
/// let with = |path: &str| {
///     let text = format!("name = 'n'\nversion = '1'\n[[tools]]\nname = 't'\ncapabilities = ['fs:read:{path}']\n");
///     Ok::<_, bailiwick_policy::finding::Findings>(Snapshot::from_manifest(Manifest::parse(&text)?)?)
/// };
/// assert!(Diff::between(&with("/a")?, &with("/")?)?.widens());
/// assert!(!Diff::between(&with("/a")?, &with("/a/b")?)?.widens());
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    differences: Vec<Difference>,
    verdicts: Vec<Verdict>,
}

impl Diff {
    /// Compares two manifests or snapshots.
    ///
    /// # Errors
    /// A finding if a side cannot be given a meaning.
    pub fn between(base: &Snapshot, new: &Snapshot) -> Result<Self, Findings> {
        let differences = compare::compare(base.manifest(), new.manifest())?;
        let verdicts = verdict::verdicts(base.manifest(), new.manifest())?;
        Ok(Self { differences, verdicts })
    }

    /// Marks what was accepted. What has expired or matches nothing becomes a difference of its own.
    #[must_use]
    pub fn accepting(mut self, accepted: &[Accepted], today: Date, new: &Snapshot) -> Self {
        accept::apply(&mut self.differences, accepted, today, new.hash());
        self
    }

    /// The differences, the gravest first.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// The answers to what a reviewer asks first.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// Whether a person must look: something of medium or higher severity was not accepted.
    #[must_use]
    pub fn needs_review(&self) -> bool {
        self.differences.iter().any(|found| found.severity >= Severity::Medium && found.accepted.is_none())
    }

    /// Whether anything at all became wider, accepted or not.
    #[must_use]
    pub fn widens(&self) -> bool {
        self.differences.iter().any(Difference::widens)
    }
}
