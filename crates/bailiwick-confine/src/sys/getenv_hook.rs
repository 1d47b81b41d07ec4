//! Which environment variables a program asks its C library for. `build.rs` makes a library of its own of this file, which `learn` has
//! the loader put before the C library; no other code of this crate is in it, and nothing is decided by it.
//!
//! Each name is told once a process, by asking the kernel for a path that names it: nothing is there, and the sandbox's first
//! process tells of the look. The value itself is answered as the C library answers it.
//!
//! Residual: what a program reads of `environ` itself, or is linked statically to read, is not seen.
#![no_std]
#![allow(unsafe_code, reason = "it is the C library's function, called by programs in C")]

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU32, Ordering};

/// What is asked for, before the name of a variable.
const PLACE: &[u8] = b"/run/.bailiwick-names/native/";
/// The longest name that is told.
const LONGEST: usize = 100;
/// How many names are told; a table with room for all is never searched for long.
const MOST: usize = 256;

/// The names that were told, by their hash; zero is none.
static TOLD: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

unsafe extern "C" {
    /// The variables, of the C library: changed by it when the program sets one.
    static environ: *const *const c_char;
}

/// The value of a variable, as the C library gives it.
///
/// # Safety
/// `name` ends with a zero, as for the function that it stands for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getenv(name: *const c_char) -> *const c_char {
    // SAFETY: the caller's name ends with a zero.
    let length = unsafe { length_of(name) };
    // SAFETY: so many bytes lie there.
    let wanted = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), length) };
    tell(wanted);
    // SAFETY: the C library keeps the list and its entries as they are but where the program itself changes them meanwhile, which
    // its own function does not allow either.
    unsafe { value_of(wanted) }
}

/// The same: nothing is set-user-ID where this library is loaded.
///
/// # Safety
/// As [`getenv`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn secure_getenv(name: *const c_char) -> *const c_char {
    // SAFETY: the caller promises the same.
    unsafe { getenv(name) }
}

/// # Safety
/// `text` ends with a zero.
unsafe fn length_of(text: *const c_char) -> usize {
    let mut length = 0;
    // SAFETY: no byte behind the first zero is read.
    while unsafe { text.add(length).read_volatile() } != 0 {
        length += 1;
    }
    length
}

/// # Safety
/// The list of variables ends with null, and each of them with a zero.
unsafe fn value_of(wanted: &[u8]) -> *const c_char {
    // SAFETY: the C library has one such pointer for each process.
    let mut entry = unsafe { environ };
    if entry.is_null() || wanted.is_empty() {
        return core::ptr::null();
    }
    loop {
        // SAFETY: nothing behind the null at the end is read.
        let text = unsafe { *entry };
        if text.is_null() {
            return text;
        }
        // SAFETY: a byte that differs, a zero too, ends the comparison.
        let is_wanted = wanted.iter().enumerate().all(|(at, byte)| unsafe { *text.add(at).cast::<u8>() } == *byte);
        // SAFETY: all bytes before it are those of the name, which has no zero, so this one lies in the text too.
        if is_wanted && unsafe { *text.add(wanted.len()).cast::<u8>() } == b'=' {
            // SAFETY: the zero at the end lies behind it.
            return unsafe { text.add(wanted.len() + 1) };
        }
        // SAFETY: the null was not reached.
        entry = unsafe { entry.add(1) };
    }
}

/// Asks the kernel for a path that names the variable, once.
fn tell(name: &[u8]) {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if name.is_empty() || name.len() > LONGEST || !name.iter().all(is_name) || !is_new(name) {
        return;
    }
    let mut path = [0; PLACE.len() + LONGEST + 1];
    for (to, from) in path.iter_mut().zip(PLACE.iter().chain(name)) {
        *to = *from;
    }
    look(&path);
}

fn is_new(name: &[u8]) -> bool {
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let sum = name.iter().fold(0x811c_9dc5, mix).max(1);
    for at in 0..MOST {
        let Some(told) = TOLD.get((sum as usize).wrapping_add(at) % MOST) else { continue };
        match told.compare_exchange(0, sum, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(known) if known == sum => return false,
            Err(_) => {}
        }
    }
    false
}

/// `faccessat`, without the C library: its error number stays as it was.
#[cfg(target_arch = "x86_64")]
fn look(path: &[u8]) {
    const FACCESSAT: usize = 269;
    const HERE: c_int = -100;
    // SAFETY: the path ends with a zero; the kernel reads it and changes nothing but these registers.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") FACCESSAT => _,
            in("rdi") HERE,
            in("rsi") path.as_ptr(),
            in("rdx") 0,
            out("rcx") _,
            out("r11") _,
            options(nostack, readonly)
        );
    }
}

/// The same.
#[cfg(target_arch = "aarch64")]
fn look(path: &[u8]) {
    const FACCESSAT: usize = 48;
    const HERE: c_int = -100;
    // SAFETY: the path ends with a zero; the kernel reads it and changes nothing but this register.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") FACCESSAT,
            inlateout("x0") HERE as isize => _,
            in("x1") path.as_ptr(),
            in("x2") 0,
            options(nostack, readonly)
        );
    }
}

/// Nothing here panics; a library without the standard one has to say what would happen.
#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
