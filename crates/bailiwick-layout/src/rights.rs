//! Rights on files as Landlock has them, and what a rule says of a path. Nothing here is in force yet.

use std::os::fd::OwnedFd;

/// Rights on files, in the kernel's numbering.
pub type Access = u64;

/// Start it as a program. The loader needs it too.
pub const EXECUTE: Access = 1;
/// Open a file for writing.
pub const WRITE_FILE: Access = 1 << 1;
/// Open a file for reading.
pub const READ_FILE: Access = 1 << 2;
/// List a directory.
pub const READ_DIR: Access = 1 << 3;
/// Remove files and directories.
pub const REMOVE: Access = 1 << 4 | 1 << 5;
/// Make directories, files, pipes and links. Not sockets, whose names reach out to the host, nor devices.
pub const MAKE: Access = 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12;
/// Move and link between directories.
pub const REFER: Access = 1 << 13;
/// Shorten a file.
pub const TRUNCATE: Access = 1 << 14;
/// Control a terminal or another device.
pub const IOCTL_DEV: Access = 1 << 15;

/// Read files, list directories.
pub const READ: Access = READ_FILE | READ_DIR;
/// Change what is there.
pub const MODIFY: Access = WRITE_FILE | TRUNCATE;
/// Make and fill what was not there. A file that was there can be opened for writing as well: Landlock cannot tell
/// those apart.
pub const CREATE: Access = WRITE_FILE | MAKE;
/// Remove what is there.
pub const DELETE: Access = REMOVE;
/// All changes, and moving between directories.
pub const WRITE: Access = MODIFY | CREATE | DELETE | REFER;
/// A device such as `/dev/null`.
pub const DEVICE: Access = READ_FILE | WRITE_FILE | TRUNCATE;
/// A terminal of one's own.
pub const TERMINAL: Access = DEVICE | IOCTL_DEV;

/// Make sockets: only where nothing of the host is.
pub const MAKE_SOCKET: Access = 1 << 9;

/// What a rule on a file, not a directory, may hold; the kernel refuses more with `EINVAL`.
pub const FILE_RIGHTS: Access = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// What may be done to a path and below it.
#[derive(Debug)]
pub struct Rule {
    /// The path, opened with `O_PATH` or more.
    pub fd: OwnedFd,
    /// What may be done.
    pub access: Access,
}
