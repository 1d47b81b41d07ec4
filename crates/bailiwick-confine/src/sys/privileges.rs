//! Giving up what a process must not keep, where no safe wrapper does.
#![expect(unsafe_code, reason = "keyctl has no safe wrapper")]

use bailiwick_layout::weakened;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
};

/// What the first process keeps where it decides calls: to read their arguments, also of programs that cannot be dumped
/// or have a user namespace of their own. It reaches no process outside.
pub(crate) const TO_READ_CALLS: CapabilitySet = CapabilitySet::SYS_PTRACE;

/// Gives up what is left of the capabilities.
///
/// # Errors
/// What the kernel says.
pub(crate) fn drop_rest() -> Result<(), Errno> {
    if weakened::CAPABILITIES { Ok(()) } else { keep(CapabilitySet::empty()) }
}

fn keep(kept: CapabilitySet) -> Result<(), Errno> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })
}

/// Empties every capability set, `kept` excepted, for the rest of the process' life: bounding and ambient too, and uid 0 no longer brings them back.
///
/// # Errors
/// What the kernel says.
pub(crate) fn drop_all_but(kept: CapabilitySet) -> Result<(), Errno> {
    if weakened::CAPABILITIES {
        return set_no_new_privs(true);
    }
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            Err(Errno::INVAL) => break, // the kernel knows no more of them
            done => done?,
        }
    }
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    clear_ambient_capability_set()?;
    keep(kept)?;
    set_no_new_privs(true)
}

/// The same for a process that may not change its bounding set: what it holds is given up, and `no_new_privs` keeps exec
/// from bringing it back.
///
/// # Errors
/// What the kernel says.
pub(crate) fn drop_held() -> Result<(), Errno> {
    match drop_all_but(CapabilitySet::empty()) {
        Err(Errno::PERM) => {}
        done => return done,
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)
}

/// Leaves the caller's session keyring for an empty one.
///
/// # Errors
/// What the kernel says; a kernel without keyrings has none to leave.
pub(crate) fn leave_keyring() -> Result<(), Errno> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: a null name asks for a new anonymous keyring; nothing is written.
    let id = unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>())
    };
    if id >= 0 {
        return Ok(());
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        Some(Errno::NOSYS) => Ok(()),
        other => Err(other.unwrap_or(Errno::INVAL)),
    }
}
