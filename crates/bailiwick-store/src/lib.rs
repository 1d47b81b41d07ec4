//! Which MCP server a command starts, and a private, sealed copy of its package.
//!
//! A launcher such as `npx` or `uvx` fetches code and runs it in one step. Here these are two: a package manager fetches
//! it, in a sandbox that reaches the registry and nothing else, into a directory of its own; then the server is run from
//! there, read-only and without the registry. The next start needs no network.
//!
//! | step | function |
//! |---|---|
//! | what does this command start? | [`split_command`], [`InstalledServer::find`] |
//! | would a launcher take it from elsewhere? | [`foreign_source`] |
//! | which manifest is shipped for it? | [`shipped_manifest`] |
//! | what do its own arguments grant? | [`with_host_values`] |
//! | where does the code of a user's own project lie? | [`code_of_command`] |
//! | fetch it, or take what was fetched before | [`Store::resolve`] |
//!
//! This is the only crate that runs package managers. It decides nothing about what a server may touch.
//!
//! Fails closed when: a package is not what it was when it was fetched, an entry point is ambiguous, or the package
//! manager failed. Nothing is started then.
//!
//! Residual: that the registry and its packages are honest is not known here. Programs of the same user that are not in
//! a sandbox can change a package and its record.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod code;
mod command;
mod confirmed;
mod host;
mod installed;
mod manager;
mod npm;
mod pypi;
mod seal;
mod shipped;
mod store;
mod surroundings;
mod values;

pub use code::{ProjectCode, code_of_command};
pub use command::{PackageCall, Registry, ServerCommand, UnknownCommand, split_command};
pub use confirmed::{confirm, is_confirmed};
pub use host::StoreHost;
pub use installed::{Claim, InstalledServer};
pub use manager::ManagerError;
pub use shipped::{SHIPPED, shipped_manifest};
pub use store::{ResolveOptions, Store, StoreError, StoredPackage, StoredServer};
pub use surroundings::foreign_source;
pub use values::{ValueError, with_host_values};
