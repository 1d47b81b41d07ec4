//! The calls that are asked about: which they are, and their arguments, copied once.

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::text::Text;
use crate::sys::notify::{self, TrappedCall};

/// A path of a caller: a directory descriptor of the caller's, and the text.
pub(super) struct Named {
    /// A descriptor's number, or `AT_FDCWD`.
    pub(super) at: i32,
    pub(super) path: Text,
}

/// What a caller wants done.
pub(super) enum Call {
    Open {
        what: Named,
        flags: OFlags,
        mode: u32,
    },
    MakeDirectory {
        what: Named,
        mode: u32,
    },
    MakeNode {
        what: Named,
        mode: u32,
        device: u64,
    },
    MakeLink {
        what: Named,
        text: Text,
    },
    Link {
        from: Named,
        to: Named,
        flags: AtFlags,
    },
    Rename {
        from: Named,
        to: Named,
        flags: u32,
    },
    Remove {
        what: Named,
        flags: AtFlags,
    },
    Truncate {
        what: Named,
        length: u64,
    },
    ChangeMode {
        what: Named,
        mode: u32,
        flags: AtFlags,
    },
    ChangeModeOf {
        descriptor: i32,
        mode: u32,
    },
    Umask,
    /// Makes a Unix socket where there may be none.
    Socket,
    /// Makes a namespace, or a root of its own, where there may be none.
    Namespace,
    /// Connects a socket.
    Connect(Addressed),
    /// Gives a socket a name.
    Bind(Addressed),
    /// Starts a program; where the list of its arguments is.
    Execute {
        what: Named,
        arguments: u64,
    },
    /// Lets a socket be reached.
    Listen {
        descriptor: i32,
    },
    /// Asks what is there.
    Look {
        what: Named,
    },
}

/// A socket of a caller, and where the address is that it is given.
#[derive(Clone, Copy)]
pub(super) struct Addressed {
    /// Its number.
    pub(super) descriptor: i32,
    pub(super) address: u64,
    /// How long the address is.
    pub(super) length: u64,
}

const CWD: u64 = libc::AT_FDCWD.cast_unsigned() as u64;
const CREATE: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC).cast_unsigned() as u64;
const REMOVE_DIRECTORY: u64 = libc::AT_REMOVEDIR.cast_unsigned() as u64;

/// What makes an open more than a look.
const CHANGES: OFlags =
    OFlags::WRONLY.union(OFlags::RDWR).union(OFlags::CREATE).union(OFlags::TRUNC).union(OFlags::TMPFILE);

impl Call {
    /// Whether it is only looked at here: the kernel goes on with it.
    pub(super) fn changes_nothing(&self) -> bool {
        match self {
            Self::Execute { .. } | Self::Listen { .. } | Self::Look { .. } => true,
            // A directory is no change, though it is a bit of the flag for unnamed files.
            Self::Open { flags, .. } => !(*flags - OFlags::DIRECTORY).intersects(CHANGES - OFlags::DIRECTORY),
            Self::MakeDirectory { .. }
            | Self::MakeNode { .. }
            | Self::MakeLink { .. }
            | Self::Link { .. }
            | Self::Rename { .. }
            | Self::Remove { .. }
            | Self::Truncate { .. }
            | Self::ChangeMode { .. }
            | Self::ChangeModeOf { .. }
            | Self::Umask
            | Self::Socket
            | Self::Namespace
            | Self::Connect(_)
            | Self::Bind(_) => false,
        }
    }

    /// Reads a call. `None` for one that is not known here.
    pub(super) fn read(asked: &TrappedCall) -> Result<Option<Self>, Errno> {
        let [a, b, c, d, e, _] = asked.arguments;
        let named = |at: u64, path: u64| read_named(asked, at, path);
        let number = libc::c_long::from(asked.number);
        Ok(Some(match number {
            libc::SYS_openat => Self::Open { what: named(a, b)?, flags: open_flags(c), mode: low(d) },
            libc::SYS_mkdirat => Self::MakeDirectory { what: named(a, b)?, mode: low(c) },
            libc::SYS_mknodat => Self::MakeNode { what: named(a, b)?, mode: low(c), device: d & 0xffff_ffff },
            libc::SYS_symlinkat => Self::MakeLink { text: read_text(asked, a)?, what: named(b, c)? },
            libc::SYS_linkat => Self::Link { from: named(a, b)?, to: named(c, d)?, flags: at_flags(e) },
            libc::SYS_renameat2 => Self::rename(asked, [a, b], [c, d], low(e))?,
            libc::SYS_unlinkat => Self::Remove { what: named(a, b)?, flags: at_flags(c) },
            libc::SYS_truncate => Self::Truncate { what: named(CWD, a)?, length: b },
            libc::SYS_fchmodat => Self::ChangeMode { what: named(a, b)?, mode: low(c), flags: at_flags(0) },
            libc::SYS_fchmodat2 => Self::ChangeMode { what: named(a, b)?, mode: low(c), flags: at_flags(d) },
            libc::SYS_fchmod => Self::ChangeModeOf { descriptor: low(a).cast_signed(), mode: low(b) },
            libc::SYS_umask => Self::Umask,
            libc::SYS_socket => Self::Socket,
            libc::SYS_unshare | libc::SYS_clone | libc::SYS_chroot => Self::Namespace,
            libc::SYS_connect => Self::Connect(addressed(a, b, c)),
            libc::SYS_bind => Self::Bind(addressed(a, b, c)),
            libc::SYS_execve => Self::Execute { what: named(CWD, a)?, arguments: b },
            libc::SYS_execveat => Self::Execute { what: named(a, b)?, arguments: c },
            libc::SYS_listen => Self::Listen { descriptor: low(a).cast_signed() },
            libc::SYS_newfstatat
            | libc::SYS_statx
            | libc::SYS_faccessat
            | libc::SYS_faccessat2
            | libc::SYS_readlinkat => Self::Look { what: named(a, b)? },
            _ => return Self::read_older(asked),
        }))
    }

    fn rename(asked: &TrappedCall, from: [u64; 2], to: [u64; 2], flags: u32) -> Result<Self, Errno> {
        let [from, to] = read_both(asked, from, to)?;
        Ok(Self::Rename { from, to, flags })
    }

    /// The calls that only older architectures have.
    #[cfg(target_arch = "x86_64")]
    fn read_older(asked: &TrappedCall) -> Result<Option<Self>, Errno> {
        let [a, b, c, d, ..] = asked.arguments;
        let here = |path: u64| read_named(asked, CWD, path);
        Ok(Some(match libc::c_long::from(asked.number) {
            libc::SYS_open => Self::Open { what: here(a)?, flags: open_flags(b), mode: low(c) },
            libc::SYS_creat => Self::Open { what: here(a)?, flags: open_flags(CREATE), mode: low(b) },
            libc::SYS_mkdir => Self::MakeDirectory { what: here(a)?, mode: low(b) },
            libc::SYS_mknod => Self::MakeNode { what: here(a)?, mode: low(b), device: c & 0xffff_ffff },
            libc::SYS_symlink => Self::MakeLink { text: read_text(asked, a)?, what: here(b)? },
            libc::SYS_link => Self::Link { from: here(a)?, to: here(b)?, flags: AtFlags::empty() },
            libc::SYS_rename => Self::rename(asked, [CWD, a], [CWD, b], 0)?,
            libc::SYS_renameat => Self::rename(asked, [a, b], [c, d], 0)?,
            libc::SYS_unlink => Self::Remove { what: here(a)?, flags: AtFlags::empty() },
            libc::SYS_rmdir => Self::Remove { what: here(a)?, flags: at_flags(REMOVE_DIRECTORY) },
            libc::SYS_stat | libc::SYS_lstat | libc::SYS_access | libc::SYS_readlink => {
                Self::Look { what: here(a)? }
            }
            libc::SYS_chmod => Self::ChangeMode { what: here(a)?, mode: low(b), flags: AtFlags::empty() },
            _ => return Ok(None),
        }))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn read_older(asked: &TrappedCall) -> Result<Option<Self>, Errno> {
        let [a, b, c, d, ..] = asked.arguments;
        Ok(match libc::c_long::from(asked.number) {
            libc::SYS_renameat => Some(Self::rename(asked, [a, b], [c, d], 0)?),
            _ => None,
        })
    }
}

/// Two paths, in one call of the kernel where both are short.
fn read_both(asked: &TrappedCall, from: [u64; 2], to: [u64; 2]) -> Result<[Named; 2], Errno> {
    let ([from_at, from], [to_at, to]) = (from, to);
    let (mut first, mut second) = (Text::new(), Text::new());
    let mut ends = [None, None];
    first.fill(|first_room| {
        second.fill(|second_room| {
            ends = notify::read_two_strings(asked.thread, [from, to], [first_room, second_room]);
            Ok(ends[1].unwrap_or_default())
        })?;
        Ok(ends[0].unwrap_or_default())
    })?;
    let [first_end, second_end] = ends;
    let from = if first_end.is_some() { first } else { read_text(asked, from)? };
    let to = if second_end.is_some() { second } else { read_text(asked, to)? };
    let named = |at: u64, path: Text| Named { at: low(at).cast_signed(), path };
    Ok([named(from_at, from), named(to_at, to)])
}

fn read_named(asked: &TrappedCall, at: u64, path: u64) -> Result<Named, Errno> {
    Ok(Named { at: low(at).cast_signed(), path: read_text(asked, path)? })
}

pub(super) fn read_text(asked: &TrappedCall, address: u64) -> Result<Text, Errno> {
    let mut text = Text::new();
    text.fill(|room| notify::read_string(asked.thread, address, room))?;
    Ok(text)
}

fn addressed(descriptor: u64, address: u64, length: u64) -> Addressed {
    Addressed { descriptor: low(descriptor).cast_signed(), address, length: u64::from(low(length)) }
}

/// The kernel takes these arguments as `int` or `unsigned int`.
fn low(argument: u64) -> u32 {
    u32::try_from(argument & 0xffff_ffff).unwrap_or_default()
}

fn open_flags(argument: u64) -> OFlags {
    OFlags::from_bits_retain(low(argument))
}

fn at_flags(argument: u64) -> AtFlags {
    AtFlags::from_bits_retain(low(argument))
}
