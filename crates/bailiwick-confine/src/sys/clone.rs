//! New processes: the sandbox's first one, its program, and the one that makes its network.
#![expect(unsafe_code, reason = "clone, execve and _exit have no safe wrapper")]

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use bailiwick_layout::weakened;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};
use rustix::thread::UnshareFlags;

/// Which namespaces a sandbox begins with: all but time, and but the network's, which takes as long to make as all
/// others together and is made beside the root. See [`run_in_parallel`].
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | unless(weakened::PID_NAMESPACE, libc::CLONE_NEWPID)
    | unless(weakened::IPC_NAMESPACE, libc::CLONE_NEWIPC)
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

const fn unless(weakened: bool, namespace: libc::c_int) -> libc::c_int {
    if weakened { 0 } else { namespace }
}

/// A process that was started, for its parent.
pub(crate) struct Started {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Starts a process in namespaces of its own that runs `body` on a copy of this one's memory, with every signal at its
/// default.
///
/// `body` must not allocate, lock or return.
///
/// # Errors
/// What the kernel says.
pub(crate) fn start<T>(body: fn(&T) -> !, with: &T) -> Result<Started, Errno> {
    let mut pidfd: libc::c_int = -1;
    let args = CloneArgs {
        flags: u64::from(NAMESPACES.cast_unsigned() | libc::CLONE_PIDFD.cast_unsigned())
            | CLONE_CLEAR_SIGHAND,
        pidfd: ptr::from_mut(&mut pidfd) as u64,
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a valid `clone_args` of the size given; `pidfd` outlives the call. Without CLONE_VM the
    // child goes on with a copy of this stack, so returning twice is sound.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, ptr::from_ref(&args), size_of::<CloneArgs>()) };
    match i32::try_from(pid) {
        Ok(0) => body(with),
        Ok(pid @ 1..) => {
            let pid = Pid::from_raw(pid).ok_or_else(last_errno)?;
            // SAFETY: the kernel has put a new descriptor here, which nothing else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Started { pid, pidfd })
        }
        Ok(_) | Err(_) => Err(last_errno()),
    }
}

/// Resets all handlers in the child (Linux 5.5).
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Ends this process at once: no handler, no destructor.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Strings as execve takes them: pointers and a null, made before the clone.
pub(crate) struct Strings {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl Strings {
    pub(crate) fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _texts: texts }
    }
}

// SAFETY: the pointers are into `_texts`, which is owned, never changed and moves with them.
unsafe impl Send for Strings {}
// SAFETY: as above; a shared `Strings` is only read.
unsafe impl Sync for Strings {}

/// A program, ready for execve.
pub(crate) struct Program {
    pub(crate) path: CString,
    pub(crate) argv: Strings,
    pub(crate) envp: Strings,
}

/// What stands for the directory of the program's path, which is absolute: the filter does not ask about this call, as
/// the process that would answer waits for it. See `seccomp.toml`.
const UNASKED: libc::c_long = 0x6261_6c69;

/// Becomes the program; returns only if that fails.
pub(crate) fn execute(program: &Program) -> Errno {
    let (argv, envp) = (program.argv.pointers.as_ptr(), program.envp.pointers.as_ptr());
    let (path, flags) = (program.path.as_ptr(), 0 as libc::c_long);
    // SAFETY: a NUL-terminated path and two null-terminated arrays of NUL-terminated strings, all alive.
    unsafe { libc::syscall(libc::SYS_execveat, UNASKED, path, argv, envp, flags) };
    last_errno()
}

/// Memory for the few calls of a process that shares this one's.
pub(crate) struct Stack(Box<[MaybeUninit<u128>]>);

impl Stack {
    /// 64 KiB, aligned as the ABI wants it. Its content is never read: only the pages that are used cost anything.
    pub(crate) fn new() -> Self {
        Self(Box::new_uninit_slice(4096))
    }
}

/// Starts a process that shares this one's memory and suspends it until exec or exit: no page table is copied.
///
/// `body` must do nothing but system calls, and end in exec or exit.
///
/// # Errors
/// What the kernel says.
pub(crate) fn start_sharing<T>(stack: &Stack, body: fn(&T) -> !, with: &T) -> Result<Pid, Errno> {
    // The call lives until the child has exec'd or exited, as CLONE_VFORK suspends this process until then.
    clone_sharing(stack, &Call { body, with }, libc::CLONE_VFORK)
}

/// Starts a process that shares this one's memory and descriptors, does something else meanwhile, and waits for it.
///
/// `body` must end in exit. It and `meanwhile` must not touch the same memory, nor go on after a failure of the C
/// library's that the other could have overwritten: they share `errno`.
///
/// # Errors
/// What the kernel says; then `meanwhile` was not called.
pub(crate) fn run_in_parallel<T, R>(
    stack: &Stack,
    body: fn(&T) -> !,
    with: &T,
    meanwhile: impl FnOnce() -> R,
) -> Result<R, Errno> {
    let call = Call { body, with };
    let pid = clone_sharing(stack, &call, libc::CLONE_FILES)?;
    move_away(pid);
    let done = meanwhile();
    // From here on the child alone uses the stack and the call.
    rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), WaitOptions::empty()))?;
    Ok(done)
}

/// Has a new process run on any processor but this one. The kernel often leaves it here, behind its parent, when the
/// others have just become idle.
fn move_away(pid: Pid) {
    let Ok(mut allowed) = rustix::thread::sched_getaffinity(None) else { return };
    // SAFETY: it takes nothing and reads only this thread's own memory.
    let here = unsafe { libc::sched_getcpu() };
    let Ok(here) = usize::try_from(here) else { return };
    allowed.unset(here);
    if allowed.count() > 0 {
        let _ = rustix::thread::sched_setaffinity(Some(pid), &allowed); // it runs anyway, only later
    }
}

fn clone_sharing<T>(stack: &Stack, call: &Call<'_, T>, flags: libc::c_int) -> Result<Pid, Errno> {
    let top = stack.0.as_ptr_range().end.cast_mut().cast::<c_void>();
    let flags = libc::CLONE_VM | libc::SIGCHLD | flags;
    // SAFETY: `top` is the aligned end of a buffer that only this child uses; the callers keep it and `call` until
    // the child has exec'd or exited.
    let pid = unsafe { libc::clone(enter::<T>, top, flags, ptr::from_ref(call).cast_mut().cast()) };
    Pid::from_raw(pid.max(0)).ok_or_else(last_errno)
}

/// Moves this process into a new network namespace; a descriptor of that, for others to follow.
///
/// # Errors
/// What the kernel says.
pub(crate) fn leave_network() -> Result<OwnedFd, Errno> {
    // SAFETY: a network namespace concerns no memory and no descriptor that is open.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    rustix::fs::open(c"/proc/self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

struct Call<'a, T> {
    body: fn(&T) -> !,
    with: &'a T,
}

extern "C" fn enter<T>(call: *mut c_void) -> libc::c_int {
    // SAFETY: `clone_sharing` passes a live `Call` of the same type.
    let call: &Call<'_, T> = unsafe { &*call.cast() };
    (call.body)(call.with)
}
