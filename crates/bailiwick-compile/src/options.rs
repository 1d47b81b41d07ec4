//! What a caller chooses about a target beyond the plan.

/// Choices that a target leaves to the caller. What they open is in the target's coverage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetOptions {
    /// Docker: whether the container's root file system is read-only. If not, programs can change the files of the
    /// image in a layer that ends with the container.
    pub read_only_rootfs: bool,
}

impl Default for TargetOptions {
    /// The strictest.
    fn default() -> Self {
        Self { read_only_rootfs: true }
    }
}
