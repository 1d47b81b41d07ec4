//! Read what an author wrote: manifests of servers and agents, grants of other tools, reviewed snapshots, settings.
//!
//! Pure: no files, sockets, clocks, environment or threads. Text comes in, values and findings go out. What a line
//! means is [`bailiwick_policy`]'s; nothing there reads TOML or JSON, so what confines a process brings no parser along.
//!
//! # First steps
//!
//! ```
//! use bailiwick_manifest::Manifest;
//! use bailiwick_policy::facts::HostFacts;
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
//! | from | to | where |
//! |---|---|---|
//! | text | [`Manifest`], [`Caveats`](caveats::Caveats), [`Snapshot`](snapshot::Snapshot) | here, [`caveats`], [`snapshot`] |
//! | a manifest and a host | [`Checked`], and from it [plans](Checked::server_plan) | here |
//! | two reviewed manifests | a [`Diff`](diff::Diff): what widened | [`diff`] |
//! | a configuration file | its settings | [`settings`] |
//! | a place that a draft or an argument names | whether it is one that is never granted for that | [`sensitive`] |
//! | any other TOML or JSON of ours | a [`Node`](document::Node) in which every value knows its place | [`document`] |
#![forbid(unsafe_code)]

pub mod caveats;
pub mod diff;
pub mod document;
mod manifest;
pub mod sensitive;
pub mod settings;
pub mod snapshot;
pub mod units;

pub use manifest::{
    ArgumentAccess, ArgumentRule, ArgumentTest, BoundValues, Checked, CheckedTool, ClientFeatures, Condition,
    Constraints, Declared, ExplainedRequest, FeatureStance, FleetBudget, MAX_CAPABILITIES,
    MAX_LINES_OF_TOOLS, MAX_TOOLS, Manifest, NumberRange, Package, Pins, Risk, RuleEffect, SCHEMA, SpendUnit,
    Stance, Tool, ToolPolicy, ToolPolicyBuilder, ToolState, Variable, VariableSource, Verified,
};
