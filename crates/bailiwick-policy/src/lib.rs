//! Declare and check: what a tool or server may touch, and whether that is within what was granted.
//!
//! Pure: no files, sockets, clocks, environment or threads. Text comes in, values and findings go out.
//!
//! # First steps
//!
//! ```
//! use bailiwick_policy::facts::HostFacts;
//! use bailiwick_policy::manifest::Manifest;
//!
//! let manifest = Manifest::parse(
//!     "name = 'notes'\nversion = '1'\n[[tools]]\nname = 'read'\ncapabilities = ['fs:read:/notes/**']\n",
//! )?;
//! let checked = manifest.check(&HostFacts::unknown())?;
//! let asked = "fs:write:/notes/a.md".parse()?;
//! let answer = checked.explain(&asked, checked.tool("read"), &HostFacts::unknown())?.explanation;
//! assert!(!answer.is_allowed());
//! assert_eq!(answer.to_string(), "denied on fs_write: write /notes/a.md; the smallest grant is fs:write:/notes/a.md");
//! # Ok::<(), bailiwick_policy::finding::Findings>(())
//! ```
//!
//! # The way through
//!
//! | from | to | module |
//! |---|---|---|
//! | text | [`Capability`](capability::Capability), [`CapabilitySet`](capability::CapabilitySet), [`Caveats`](caveats::Caveats), [`Manifest`](manifest::Manifest) | [`capability`], [`caveats`], [`manifest`] |
//! | a manifest and a host | [`Checked`](manifest::Checked) | [`manifest`], [`facts`] |
//! | any of these | [`Authority`](authority::Authority), the one meaning: `meet`, `within`, `allows`, `explain` | [`authority`] |
//! | an authority and a request | allowed, or a [`Denial`](denial::Denial) with the smallest grant | [`denial`] |
//! | two reviewed manifests | a [`Diff`](diff::Diff): what widened | [`snapshot`], [`diff`] |
//! | what was checked | a [`Plan`](plan::Plan) that a sandbox holds, and its [`Coverage`](enforcement::Coverage) | [`plan`], [`enforcement`] |
#![forbid(unsafe_code)]

pub mod artifact;
pub mod authority;
pub mod capability;
pub mod caveats;
mod code_table;
pub mod denial;
pub mod diff;
pub mod digest;
pub mod document;
pub mod enforcement;
pub mod facts;
pub mod finding;
pub mod lattice;
pub mod manifest;
pub mod net;
pub mod path;
pub mod plan;
pub mod run_later;
pub mod sensitive;
pub mod settings;
pub mod snapshot;
pub mod units;
