//! What a tool may touch: capabilities, the authority they denote, and the plan that a sandbox holds.
//!
//! Pure: no files, sockets, clocks, environment or threads, and no parser of TOML or JSON documents: manifests and
//! everything else that an author writes are read by `bailiwick-manifest`. Values come in, values and findings go out.
//!
//! # First steps
//!
//! ```
//! use bailiwick_policy::capability::{Capability, CapabilitySet};
//!
//! let granted = CapabilitySet::new(["fs:read:/notes/**"])?;
//! let asked: Capability = "fs:write:/notes/a.md".parse()?;
//! let answer = granted.authority().explain_capability(&asked)?;
//! assert!(!answer.is_allowed());
//! assert_eq!(answer.to_string(), "denied on fs_write: write /notes/a.md; the smallest grant is fs:write:/notes/a.md");
//! # Ok::<(), bailiwick_policy::finding::Findings>(())
//! ```
//!
//! # The way through
//!
//! | from | to | module |
//! |---|---|---|
//! | one line | a [`Capability`](capability::Capability); several a [`CapabilitySet`](capability::CapabilitySet) | [`capability`] |
//! | capabilities | [`Authority`](authority::Authority), the one meaning: `meet`, `within`, `allows`, `explain` | [`authority`] |
//! | an authority and a request | allowed, or a [`Denial`](denial::Denial) with the smallest grant | [`denial`] |
//! | an authority and a host | a [`Plan`](plan::Plan) that a sandbox holds, and its [`Coverage`](enforcement::Coverage) | [`plan`], [`facts`], [`enforcement`] |
#![forbid(unsafe_code)]

pub mod artifact;
pub mod authority;
pub mod capability;
mod code_table;
pub mod denial;
pub mod digest;
pub mod enforcement;
pub mod facts;
pub mod finding;
pub mod lattice;
pub mod limits;
pub mod net;
pub mod path;
pub mod plan;
pub mod run_later;
pub mod secret_use;
