//! Hold a process to a plan.
//!
//! [`Prepared::new`] checks a plan and a command against this host and allocates all that is needed;
//! [`Prepared::spawn`] starts the program held to the plan, and [`Confined`] is the running sandbox, whose
//! [`Status`] says what is really held. The only crate with `unsafe`, all of it under `sys/`. No async runtime, no
//! policy text.
//!
//! # First steps
//!
//! A plan says what a program may touch; the program is started in a sandbox that holds it to that:
//!
//! ```
//! use bailiwick_confine::{Command, Exit, Options, Prepared};
//! use bailiwick_policy::capability::CapabilitySet;
//! use bailiwick_policy::enforcement::{Aspect, Level};
//! use bailiwick_policy::facts::HostFacts;
//! use bailiwick_policy::plan::Plan;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let granted = CapabilitySet::new(["fs:read:/etc/passwd"])?;
//! let plan = Plan::for_authority("demo", granted.authority(), &HostFacts::unknown())?;
//!
//! let test = |path: &str| Command { args: vec!["-e".into(), path.into()], ..Command::new("test") };
//! let prepared = Prepared::new(&plan, test("/etc/passwd"), Options::default())?;
//! assert_eq!(prepared.predicted().held(Aspect::Network).level, Level::Kernel, "known before anything runs");
//! assert_eq!(prepared.spawn()?.wait()?, Exit::Code(0), "granted");
//!
//! let mut other = Prepared::new(&plan, test("/etc/shadow"), Options::default())?.spawn()?;
//! assert_eq!(other.wait()?, Exit::Code(1), "not granted: for the program it does not exist");
//! # Ok(())
//! # }
//! ```
//!
//! Most callers want `bailiwick-launch` instead: it follows the links of granted paths, records the start before anything
//! runs, and serves the network.
//!
//! # What holds where
//!
//! Linux, with user namespaces; from 5.13 with Landlock. Landlock and control groups are used where the host has them.
//! [`Prepared::predicted`] says per axis what will be held, [`Confined::status`] what is. A plan whose floor this host
//! cannot hold is a [`Refusal`], and nothing starts. For hosts without user namespaces there is [`fallback`], which holds
//! less and says so.

mod accesses;
mod cgroup;
mod command;
mod confined;
mod control;
mod coverage;
pub mod fallback;
pub mod host;
mod ipc;
mod landlock;
mod layer;
mod limits;
mod lost;
mod moment;
mod native;
mod prepared;
mod process;
mod seccomp;
mod status;
mod stdio;
mod sys;
#[cfg(test)]
mod testing;
mod watched;

pub use accesses::{Access, AccessKind, Accesses, Told};
pub use bailiwick_layout::base::System;
pub use bailiwick_layout::fault::{Fault, Step};
pub use bailiwick_layout::refusal::Refusal;
pub use bailiwick_layout::shims::CHOOSING_VARIABLES;
pub use bailiwick_layout::submounts::refuse_odd_mounts;
pub use command::{BrokeredInside, Command, Options, Search, Stdio, ToldRefusals, Watch};
pub use confined::{Change, Confined, EgressSockets, Exit};
pub use coverage::{native_coverage, native_mechanism};
pub use layer::{Layer, LayeredTree, Written};
pub use lost::LostFiles;
pub use moment::Moment;
pub use prepared::Prepared;
pub use process::{HostCommand, HostProcess, RunningProcess};
pub use status::Status;
pub use stdio::Relays;
pub use sys::memory::{release_unused_code, return_large_blocks};
pub use watched::{Observation, Observations};
