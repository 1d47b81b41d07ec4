//! The sandboxes that a plan can be compiled for.

use std::fmt;

/// A sandbox that a plan can be compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// bubblewrap, as a command line.
    Bwrap,
    /// Docker or podman, as a command line.
    Docker,
    /// An OCI runtime's `config.json`.
    Oci,
    /// A Kubernetes Pod and its network policies.
    Kubernetes,
    /// A systemd unit.
    Systemd,
    /// firejail, as a command line.
    Firejail,
    /// A macOS sandbox profile.
    Seatbelt,
    /// A list of Landlock rules, as JSON.
    Landlock,
    /// A Node.js Worker's options.
    Worker,
}

impl Target {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 9] = [
        Self::Bwrap,
        Self::Docker,
        Self::Oci,
        Self::Kubernetes,
        Self::Systemd,
        Self::Firejail,
        Self::Seatbelt,
        Self::Landlock,
        Self::Worker,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Docker => "docker",
            Self::Oci => "oci",
            Self::Kubernetes => "kubernetes",
            Self::Systemd => "systemd",
            Self::Firejail => "firejail",
            Self::Seatbelt => "seatbelt",
            Self::Landlock => "landlock",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
