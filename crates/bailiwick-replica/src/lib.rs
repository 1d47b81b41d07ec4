//! A machine's copy of the fleet's log: fetched from static files, verified, kept, and what it narrows here.
//!
//! A [`CopyStore`] is the directory of the copy, a [`Replica`] the copy in a process. [`refresh`] looks at the log once. A [`ServerRules`]
//! is what the log says of one server; a [`Leash`] ends it when the log says something else.
//!
//! Fails closed when: there is no copy, or it cannot be verified; nothing starts then. A web server that is away, lies or hangs changes
//! nothing in the copy, which grows older: grants of the log end with it.
//!
//! Residual: without witnesses the hub can show this machine another log than others. A user who may write the directory of the copy may
//! remove it, and is then behind the log that a web server offers.
#![forbid(unsafe_code)]

mod copy;
mod fetch;
mod finding;
mod leash;
mod refresh;
mod replica;
mod rules;
mod store;

pub use copy::{DamagedCopy, LogCopy};
pub use fetch::FetchError;
pub use finding::LogFinding;
pub use leash::Leash;
pub use refresh::RefreshError;
pub use replica::{ClientMaker, Refreshed, Replica, ReplicaError, refresh};
pub use rules::{RulesError, ServerIdentity, ServerRules};
pub use store::{CopyStore, StoreError};
