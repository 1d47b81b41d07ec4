//! What a sandbox shows: from a plan and this host to the layout of a new root, to the programs that can be started in it, and to its
//! variables.
//!
//! The host is read and nothing is changed: no process is started, nothing is mounted, and there is no `unsafe`. Files are
//! opened as paths alone, for the rules of `bailiwick-confine`, which makes the root and holds a process to it.
//!
//! Fails closed when: what is granted cannot be shown as it is granted. That is a [`Refusal`](refusal::Refusal), and nothing starts.

pub mod account;
pub mod base;
pub mod closures;
pub mod entries;
pub mod environment;
pub mod fault;
pub mod grants;
pub mod ground;
pub mod layout;
pub mod places;
pub mod programs;
pub mod protected;
pub mod refusal;
pub mod rights;
pub mod runtimes;
pub mod shims;
pub mod submounts;
pub mod weakened;
