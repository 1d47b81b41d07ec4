//! The new root as the kernel is to make it: entries in their order, with paths as the kernel takes them.

use std::ffi::CString;

/// What a mount forbids. Mounts are private besides: nothing that the host mounts later shows up inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes(u64);

impl Attributes {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Changes.
    pub const READ_ONLY: Self = Self(libc::MOUNT_ATTR_RDONLY);
    /// Programs that run as their owner.
    pub const NO_SUID: Self = Self(libc::MOUNT_ATTR_NOSUID);
    /// Devices.
    pub const NO_DEVICES: Self = Self(libc::MOUNT_ATTR_NODEV);
    /// Code.
    pub const NO_EXEC: Self = Self(libc::MOUNT_ATTR_NOEXEC);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The kernel's flags.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// One thing in the new root; paths are relative to it.
#[derive(Debug)]
pub enum LayoutEntry {
    /// A directory in memory.
    Directory {
        /// Where it is.
        path: CString,
        /// Its mode.
        mode: u32,
    },
    /// A link.
    Link {
        /// Where it is.
        path: CString,
        /// What it leads to.
        target: CString,
    },
    /// A file in memory.
    Text {
        /// Where it is.
        path: CString,
        /// What is in it.
        text: Vec<u8>,
    },
    /// A tree or file of the host.
    Mount(Mount),
    /// A directory in memory that stays writable.
    Writable {
        /// Where it is.
        path: CString,
        /// What its mount forbids.
        attributes: Attributes,
    },
    /// Something in memory, put over a path of a mounted tree.
    Cover {
        /// Where it comes from.
        source: CString,
        /// Where it is.
        path: CString,
        /// What its mount forbids.
        attributes: Attributes,
    },
    /// Removes a file in memory that was only the source of a cover.
    Forget {
        /// Where it is.
        path: CString,
    },
    /// The file system of terminals.
    Terminals {
        /// Where it is.
        path: CString,
    },
    /// The file system of processes.
    Processes {
        /// Where it is.
        path: CString,
    },
}

/// A tree or file of the host.
#[derive(Debug)]
pub struct Mount {
    /// Where it lies on the host, links resolved.
    pub source: CString,
    /// Where it appears.
    pub path: CString,
    /// What it forbids.
    pub attributes: Attributes,
    /// Which inode was looked at, for sources that others than the system's owner can change.
    pub identity: Option<Identity>,
    /// Where writes to it go instead of to the host.
    pub layer: Option<LayerPlace>,
}

/// The directories of one layer, by name in the file system that holds all layers.
#[derive(Debug)]
pub struct LayerPlace {
    /// What was written.
    pub upper: CString,
    /// The kernel's own.
    pub work: CString,
    /// A copy of the host's directory, where the kernel refuses a layer over it.
    pub copy: CString,
    /// What a single file is called in `upper`, where its copy lies.
    pub file: Option<CString>,
    /// The copy, from the new root.
    pub mounted: CString,
}

/// Which inode a path led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The file system that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl Identity {
    /// Of what a descriptor leads to.
    #[expect(clippy::allow_attributes, reason = "the field types differ between architectures")]
    pub fn from_stat(stat: &rustix::fs::Stat) -> Self {
        #[allow(clippy::useless_conversion, reason = "the field types differ between architectures")]
        Self { device: stat.st_dev.into(), inode: stat.st_ino.into() }
    }

    /// Of what was looked at.
    pub fn of_metadata(found: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: found.dev(), inode: found.ino() }
    }
}

impl LayoutEntry {
    /// Where it is, to name it in a fault.
    pub fn path(&self) -> &CString {
        match self {
            Self::Directory { path, .. }
            | Self::Link { path, .. }
            | Self::Text { path, .. }
            | Self::Mount(Mount { path, .. })
            | Self::Writable { path, .. }
            | Self::Cover { path, .. }
            | Self::Forget { path }
            | Self::Terminals { path }
            | Self::Processes { path } => path,
        }
    }
}
