//! What becomes of a file that has the name of one that is written.

/// What happens to a file that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced by the new one, which gets its mode where files have one. A link is refused.
    Replace,
    /// The same, and a link is replaced too: a person insists on the name.
    ReplaceLink,
    /// Nothing is written: `AlreadyExists`.
    Keep,
}
