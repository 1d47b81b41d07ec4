//! Large blocks of memory go back to the kernel when they are freed.
#![expect(unsafe_code, reason = "mallopt has no safe wrapper")]

/// From this size on a block is a mapping of its own.
#[cfg(target_env = "gnu")]
const LARGE: std::ffi::c_int = 256 * 1024;

/// Has the allocator map every large block by itself. The GNU one otherwise keeps up to 64 MiB for each of many arenas,
/// so what a process holds is no bound of what it takes; others do it without being told.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: two integers are passed, both of them documented values; the call only sets a parameter of the allocator.
    let _taken = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}
