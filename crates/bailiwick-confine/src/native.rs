//! The native Linux backend: no setuid helper, no other program, the same as root and as a plain user.
//!
//! `bailiwick-layout` decides what the new root holds and what may be started in it, `guarded` which
//! names stay closed inside writable trees; all of that becomes an [`image::Image`], made whole before the clone. `child` takes the
//! steps with it, one short function each, `network` those of the network beside it, and `init` is what remains of the
//! child as pid 1, with the `desk` where it decides what the program writes.
//!
//! Fails closed when: any step fails. The child says which and ends; nothing was started.
//! Residual: running code may still map anonymous memory as code.

pub(crate) mod child;
pub(crate) mod desk;
pub(crate) mod guarded;
pub(crate) mod image;
pub(crate) mod init;
pub(crate) mod layer;
pub(crate) mod network;
