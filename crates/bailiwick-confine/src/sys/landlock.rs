//! Landlock's three system calls. All but [`create`] are allocation-free and may run between clone and exec.
#![expect(unsafe_code, reason = "the kernel's interface")]

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use rustix::io::Errno;

use super::errno::check;

const CREATE_VERSION: u32 = 1;
const RULE_PATH_BENEATH: libc::c_int = 1;

/// `struct landlock_ruleset_attr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RulesetAttr {
    handled_fs: u64,
    handled_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`: packed by the kernel's definition.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed: u64,
    parent: libc::c_int,
}

/// The version of the kernel's Landlock; an error if it has none or it is switched off.
pub(crate) fn version() -> Result<i32, Errno> {
    // SAFETY: with this flag and no attribute the kernel reads no memory.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttr>(),
            0_usize,
            CREATE_VERSION,
        )
    };
    check(version)
}

/// A new ruleset that refuses the `handled_fs` rights and the `scoped` reaches.
pub(crate) fn create(handled_fs: u64, scoped: u64) -> Result<OwnedFd, Errno> {
    let attr = RulesetAttr { handled_fs, handled_net: 0, scoped };
    // Kernels that know fewer fields take the longer structure as long as the fields they do not know are zero.
    // SAFETY: the kernel reads `size_of` bytes of `attr`, which lives through the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size_of::<RulesetAttr>(), 0_u32)
    };
    let fd = check(fd)?;
    // SAFETY: the kernel has just made this descriptor (close-on-exec) and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Allows `access` on `path` and below.
pub(crate) fn add_path(ruleset: BorrowedFd<'_>, path: BorrowedFd<'_>, access: u64) -> Result<(), Errno> {
    let attr = PathBeneathAttr { allowed: access, parent: path.as_raw_fd() };
    // SAFETY: the kernel reads one packed `attr` of this rule type, which lives through the call; both descriptors
    // are open while they are borrowed.
    let done = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const attr,
            0_u32,
        )
    };
    check(done).map(|_| ())
}

/// Holds the calling thread and all it starts to the ruleset, for ever. Needs `no_new_privs`.
pub(crate) fn restrict_self(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes a descriptor, which is open while it is borrowed, and flags; no memory.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) };
    check(done).map(|_| ())
}
