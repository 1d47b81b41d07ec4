//! The child's steps, from the clone to pid 1. No step allocates, locks or goes on after a failure.
//!
//! Order matters: sources are opened while the old root is there, Landlock comes after the last mount because it
//! forbids mounting, and the filter comes last because it forbids most of what the steps before it do. The network is
//! made by a process beside, which has ended before capabilities are dropped.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bailiwick_layout::entries::{Attributes, Identity, LayerPlace, LayoutEntry, Mount};
use bailiwick_layout::fault::Step;
use bailiwick_layout::weakened;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};
use rustix::process::DumpableBehavior;
use rustix::thread::CapabilitySet;

use super::image::{Image, Maps};
use super::{init, layer, network};
use crate::control::{Message, recv, send};
use crate::landlock::{Access, Ruleset};
use crate::limits;
use crate::stdio::Handed;
use crate::sys::mount::{copy, restrict_alone};
use crate::sys::{clone, descriptors, privileges, seccomp};

/// A step that failed, and at which entry.
struct Failure {
    step: Step,
    errno: Errno,
    entry: i32,
}

type Done<T = ()> = Result<T, Failure>;

fn at(step: Step) -> impl Fn(Errno) -> Failure {
    move |errno| Failure { step, errno, entry: -1 }
}

/// Becomes the sandbox: takes every step, starts the program, stays as pid 1.
pub(crate) fn run(image: &Image) -> ! {
    descriptors::close(image.supervisors..image.supervisors + 1);
    let Err(Failure { step, errno, entry }) = become_sandbox(image);
    let message = Message::Failed { step: step.code(), errno: errno.raw_os_error(), entry };
    let _ = send(image.control.as_fd(), message, &[]); // without a supervisor it cannot be reported
    clone::exit(125)
}

fn become_sandbox(image: &Image) -> Done<Infallible> {
    let network = network::Making::new(&image.network);
    let rooted = || enter_root(image);
    let terminal =
        clone::run_in_parallel(&image.stack, network::make, &network, rooted).map_err(at(Step::Clone))??;
    network.enter(image.control.as_fd()).map_err(|(step, errno)| at(step)(errno))?;
    limit(image).map_err(at(Step::Limits))?;
    drop_privileges(image).map_err(at(Step::Privileges))?;
    let rules = image.rules.as_ref().filter(|_| !weakened::LANDLOCK);
    rules.map_or(Ok(()), |rules| rules.restrict_self()).map_err(at(Step::Landlock))?;
    filter(image).map_err(at(Step::Seccomp))?;
    await_go(image).map_err(at(Step::Handshake))?;
    init::run(image, terminal.as_ref()).map_err(|(step, errno)| Failure { step, errno, entry: -1 })
}

/// Makes the root, with all that it holds, and leaves the old one. The program's end of a terminal, if it has one.
fn enter_root(image: &Image) -> Done<Option<OwnedFd>> {
    identity(&image.maps).map_err(at(Step::Identity))?;
    let root = new_root(&image.scratch).map_err(at(Step::Root))?;
    fill(root.as_fd(), image)?;
    let terminal = terminal(root.as_fd(), image).map_err(at(Step::Terminal))?;
    pass_private_out(root.as_fd(), image).map_err(at(Step::Handshake))?;
    all_inner_rules(root.as_fd(), image).map_err(at(Step::Landlock))?;
    leave_old_root(root.as_fd()).map_err(at(Step::Pivot))?;
    Ok(terminal)
}

/// The one user and group that exist inside.
fn identity(maps: &Maps) -> Result<(), Errno> {
    // A supervisor that cannot be dumped has a /proc of its own that belongs to root.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    write_once(c"/proc/self/setgroups", b"deny")?;
    write_once(c"/proc/self/uid_map", &maps.user)?;
    write_once(c"/proc/self/gid_map", &maps.group)?;
    // Instances of inotify count for the user on the host too. Where this cannot be set they are not limited further.
    let _ = write_once(c"/proc/sys/user/max_inotify_instances", b"64");
    if weakened::DUMPABLE {
        return Ok(());
    }
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

fn write_once(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(&file, bytes)?;
    if written == bytes.len() { Ok(()) } else { Err(Errno::IO) }
}

/// An empty root in memory, mounted over the old one, which absolute paths still reach.
fn new_root(scratch: &CStr) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, c"mode", c"0755")?;
    rustix::mount::fsconfig_set_string(&context, c"size", scratch)?;
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    attach(root.as_fd(), CWD, c"/")?;
    Ok(root)
}

fn attach(mount: BorrowedFd<'_>, directory: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    rustix::mount::move_mount(mount, c"", directory, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn fill(root: BorrowedFd<'_>, image: &Image) -> Done {
    let mut store =
        image.layered.then(|| layer::Store::new(&image.scratch)).transpose().map_err(at(Step::Layer))?;
    let callers = rustix::process::umask(Mode::empty());
    for (index, entry) in image.entries.iter().enumerate() {
        let step = match entry {
            LayoutEntry::Mount(_) => Step::Mount,
            LayoutEntry::Terminals { .. } => Step::Devices,
            LayoutEntry::Processes { .. } => Step::Proc,
            LayoutEntry::Directory { .. }
            | LayoutEntry::Link { .. }
            | LayoutEntry::Text { .. }
            | LayoutEntry::Writable { .. }
            | LayoutEntry::Cover { .. }
            | LayoutEntry::Forget { .. } => Step::Layout,
        };
        let failed = |(step, errno)| Failure { step, errno, entry: i32::try_from(index).unwrap_or(-1) };
        match (entry, &mut store) {
            (LayoutEntry::Mount(mount @ Mount { layer: Some(place), .. }), Some(store)) => {
                layer_over_host(root, mount, store, place)
            }
            _ => place(root, entry, image.proc_writable).map_err(|errno| (step, errno)),
        }
        .map_err(failed)?;
    }
    rustix::process::umask(callers);
    let Some(store) = store else { return Ok(()) };
    let store = store.leave(root).map_err(at(Step::Copy))?;
    send(image.control.as_fd(), Message::Layer, &[store.as_fd()]).map_err(at(Step::Layer))
}

fn place(root: BorrowedFd<'_>, entry: &LayoutEntry, proc_writable: bool) -> Result<(), Errno> {
    match entry {
        LayoutEntry::Directory { path, mode } => rustix::fs::mkdirat(root, path, Mode::from_raw_mode(*mode)),
        LayoutEntry::Link { path, target } => rustix::fs::symlinkat(target, root, path),
        LayoutEntry::Text { path, text } => write_text(root, path, text),
        LayoutEntry::Mount(mount) => mount_from_host(root, mount),
        LayoutEntry::Writable { path, attributes } => mount_again(root, path, path, *attributes),
        LayoutEntry::Cover { source, path, attributes } => cover(root, source, path, *attributes),
        LayoutEntry::Forget { path } => rustix::fs::unlinkat(root, path, rustix::fs::AtFlags::empty()),
        LayoutEntry::Terminals { path } => mount_terminals(root, path),
        LayoutEntry::Processes { path } => mount_processes(root, path, proc_writable),
    }
}

fn write_text(root: BorrowedFd<'_>, path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(0o644);
    if text.is_empty() {
        return rustix::fs::mknodat(root, path, FileType::RegularFile, mode, 0);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, path, flags, mode)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Mounts what was looked at before: opened without following links, and compared.
fn mount_from_host(root: BorrowedFd<'_>, mount: &Mount) -> Result<(), Errno> {
    let Some(identity) = mount.identity else {
        let tree = copy(CWD, &mount.source, mount.attributes)?;
        return attach(tree.as_fd(), root, &mount.path);
    };
    let source = same_source(mount, identity)?;
    let tree = copy(source.as_fd(), c"", mount.attributes)?;
    attach_inside(tree.as_fd(), root, &mount.path)
}

/// What was looked at before, opened without following links and compared.
fn same_source(mount: &Mount, identity: Identity) -> Result<OwnedFd, Errno> {
    let (flags, resolve) = (
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    );
    let source = rustix::fs::openat2(CWD, &mount.source, flags, Mode::empty(), resolve)?;
    if Identity::from_stat(&rustix::fs::fstat(&source)?) == identity { Ok(source) } else { Err(Errno::STALE) }
}

/// The same, with a layer over it that takes what is written, or with a copy in its place.
fn layer_over_host(
    root: BorrowedFd<'_>,
    mount: &Mount,
    store: &mut layer::Store,
    place: &LayerPlace,
) -> Result<(), (Step, Errno)> {
    let opened = mount.identity.ok_or(Errno::INVAL).and_then(|identity| same_source(mount, identity));
    let source = opened.map_err(|errno| (Step::Mount, errno))?;
    let tree = store.tree(root, source.as_fd(), place, mount.attributes)?;
    attach_inside(tree.as_fd(), root, &mount.path).map_err(|errno| (Step::Mount, errno))
}

/// Attaches at a path whose links, which others may have made, are followed as the sandbox will: inside the root.
fn attach_inside(mount: BorrowedFd<'_>, root: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let target = rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, c"", &target, c"", both)
}

/// Mounts a directory or file of the new root in a second place, or over itself.
fn mount_again(
    root: BorrowedFd<'_>,
    source: &CStr,
    path: &CStr,
    attributes: Attributes,
) -> Result<(), Errno> {
    let tree = copy(root, source, attributes)?;
    attach(tree.as_fd(), root, path)
}

/// The same over a path inside a mounted tree; nothing to cover is fine.
fn cover(root: BorrowedFd<'_>, source: &CStr, path: &CStr, attributes: Attributes) -> Result<(), Errno> {
    let tree = copy(root, source, attributes)?;
    // An entry of the sandbox's own /proc lies behind no link, and the last part of a path is not followed.
    let is_entry = path.to_bytes().strip_prefix(b"proc/").is_some_and(|name| !name.contains(&b'/'));
    match if is_entry { attach(tree.as_fd(), root, path) } else { attach_inside(tree.as_fd(), root, path) } {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}

fn mount_terminals(root: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    let context = rustix::mount::fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_flag(&context, c"newinstance")?;
    rustix::mount::fsconfig_set_string(&context, c"ptmxmode", c"0666")?;
    rustix::mount::fsconfig_set_string(&context, c"mode", c"0620")?;
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    attach(mount.as_fd(), root, path)
}

/// A new proc, while the host's is still there: the kernel wants to see one before it gives another.
fn mount_processes(root: BorrowedFd<'_>, path: &CStr, writable: bool) -> Result<(), Errno> {
    let context = rustix::mount::fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Pid 1 is hidden where the kernel can; it cannot be looked into anyway.
    let _ = rustix::mount::fsconfig_set_string(&context, c"hidepid", c"ptraceable");
    rustix::mount::fsconfig_create(&context)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    if !writable && !weakened::PROC {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    let mount = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    attach(mount.as_fd(), root, path)?;
    if writable && !weakened::PROC { freeze_kernel_entries(root, path) } else { Ok(()) }
}

/// Makes everything in a writable proc read-only but the directories of processes: the kernel's settings stay as they are.
fn freeze_kernel_entries(root: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = rustix::fs::openat(root, path, flags, Mode::empty())?;
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut entries = rustix::fs::RawDir::new(&proc, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        let is_process = name.to_bytes().iter().all(u8::is_ascii_digit);
        // Links lead to the directories of processes; their own text cannot be changed.
        if is_process || matches!(name.to_bytes(), b"." | b"..") || entry.file_type() == FileType::Symlink {
            continue;
        }
        let tree = copy(proc.as_fd(), name, Attributes::READ_ONLY)?;
        attach(tree.as_fd(), proc.as_fd(), name)?;
    }
    Ok(())
}

/// The sandbox's end of a terminal in its own devpts; the other end goes to the supervisor.
fn terminal(root: BorrowedFd<'_>, image: &Image) -> Result<Option<OwnedFd>, Errno> {
    let Handed::Terminal = image.stdio else { return Ok(None) };
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = rustix::fs::openat(root, c"dev/pts/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&master)?;
    let peer =
        rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY | rustix::pty::OpenptFlags::CLOEXEC;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, peer)?;
    send(image.control.as_fd(), Message::Terminal, &[master.as_fd()])?;
    Ok(Some(slave))
}

/// Gives the supervisor the private directories, to be looked at when every process has ended.
fn pass_private_out(root: BorrowedFd<'_>, image: &Image) -> Result<(), Errno> {
    let open = |path: &CString| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(root, path.as_c_str(), flags, Mode::empty())
    };
    let control = image.control.as_fd();
    match image.private.as_slice() {
        [] => Ok(()),
        [one] => send(control, Message::Private, &[open(one)?.as_fd()]),
        [one, other, ..] => send(control, Message::Private, &[open(one)?.as_fd(), open(other)?.as_fd()]),
    }
}

/// Rules for inodes that exist only in this root: those of the sandbox, and those of the net.
fn all_inner_rules(root: BorrowedFd<'_>, image: &Image) -> Result<(), Errno> {
    if let Some(rules) = &image.rules {
        inner_rules(root, rules, &image.inner_rules)?;
    }
    let guarded = image.desk.as_ref().map(|desk| &desk.guarded);
    match guarded.and_then(|guarded| Some((guarded.net.as_ref()?, &guarded.inner_rules))) {
        Some((net, rules)) => inner_rules(root, net, rules),
        None => Ok(()),
    }
}

fn inner_rules(root: BorrowedFd<'_>, rules: &Ruleset, wanted: &[(CString, Access)]) -> Result<(), Errno> {
    for (path, access) in wanted {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let inode = rustix::fs::openat(root, path, flags, Mode::empty())?;
        rules.add_raw(inode.as_fd(), *access)?;
    }
    Ok(())
}

/// Makes the new root the only one, and read-only.
fn leave_old_root(root: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::fchdir(root)?;
    rustix::process::pivot_root(c".", c".")?;
    rustix::mount::unmount(c".", UnmountFlags::DETACH)?;
    rustix::process::chdir(c"/")?;
    if weakened::ROOT {
        return Ok(());
    }
    restrict_alone(root, Attributes::READ_ONLY)
}

fn limit(image: &Image) -> Result<(), Errno> {
    image.limits.iter().try_for_each(|(resource, value)| limits::set_resource(*resource, *value))
}

fn drop_privileges(image: &Image) -> Result<(), Errno> {
    privileges::leave_keyring()?;
    let kept = if image.desk.is_some() { privileges::TO_READ_CALLS } else { CapabilitySet::empty() };
    privileges::drop_all_but(kept)
}

/// Takes on the filter, unless this process decides calls: then the program takes it on by itself.
fn filter(image: &Image) -> Result<(), Errno> {
    if weakened::SECCOMP || image.desk.is_some() {
        return Ok(());
    }
    seccomp::install(image.filter, false).map(|_| ())
}

/// Waits for the supervisor, which records the start meanwhile: a program whose start is not recorded does not start.
fn await_go(image: &Image) -> Result<(), Errno> {
    let control = image.control.as_fd();
    if image.says_ready {
        send(control, Message::Ready, &[])?;
    }
    match rustix::io::retry_on_intr(|| recv(control))? {
        Some(Message::Go) => Ok(()),
        _ => Err(Errno::PIPE),
    }
}
