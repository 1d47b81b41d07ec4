//! Hold a process to a plan.
//!
//! [`Prepared::new`] checks a plan and a command against this host and allocates all that is needed;
//! [`Prepared::spawn`] starts the program held to the plan, and [`Confined`] is the running sandbox, whose
//! [`Status`] says what is really held. The only crate with `unsafe`, all of it under `sys/`. No async runtime, no
//! policy text.

mod cgroup;
mod command;
mod confined;
mod control;
mod coverage;
pub mod external;
pub mod fallback;
mod fault;
pub mod host;
mod ipc;
mod landlock;
mod launcher;
mod limits;
mod native;
mod prepared;
mod refusal;
mod seccomp;
mod status;
mod stdio;
mod sys;
#[cfg(test)]
mod testing;
mod weakened;

pub use command::{Command, Options, Stdio};
pub use confined::{Confined, EgressSockets, Exit};
pub use coverage::native_coverage;
pub use fault::{Fault, Step};
pub use launcher::{Launcher, Ready, Running};
pub use native::base::System;
pub use prepared::Prepared;
pub use refusal::Refusal;
pub use status::Status;
pub use stdio::Relays;
pub use sys::memory::return_large_blocks;
