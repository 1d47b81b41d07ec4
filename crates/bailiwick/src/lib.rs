//! Bailiwick for authors of Rust agents: tools that run only with leave, and only within it.
//!
//! # A tour
//!
//! Say what a session may touch, and mint a [`Grant`]. Then every call goes through the gate:
//!
//! ```
//! use bailiwick::{Caveats, CountBound, Scope, Session};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let state = tempfile::tempdir()?;
//! let registry = bailiwick::registry_in(state.path(), Session::new("/"))?.build()?;
//!
//! // May start `echo`, at most twice, and nothing else.
//! let caveats = Caveats {
//!     exec: Scope::only(["echo".to_owned()]),
//!     max_calls: CountBound::AtMost(2),
//!     ..Caveats::bottom()
//! };
//! let caveats = Caveats { valid_for_generation: Scope::All, ..caveats };
//! let grant = registry.mint_grant(&caveats)?;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let out = registry.dispatch("shell", serde_json::json!({"program": "echo", "args": ["hi"]}), &grant).await?;
//! assert_eq!(out["stdout"], "hi\n");
//!
//! let denied = registry.dispatch("shell", serde_json::json!({"program": "rm", "args": ["-rf", "/"]}), &grant).await;
//! assert_eq!(denied.unwrap_err().code(), "exec-not-granted");
//! assert_eq!(grant.calls_left(), Some(1), "a denial costs nothing");
//! # Ok::<(), bailiwick::ToolError>(()) })?;
//! # Ok(())
//! # }
//! ```
//!
//! - **Write a tool**: implement [`Tool`]. It gets a [`ToolContext`], which holds only the meet of what was granted
//!   and what the tool [needs](Required), and opens files so that what was checked is what is opened.
//! - **Hold tools to a manifest**: [`Manifest::parse`], then `check`, then [`RegistryBuilder::manifest`].
//! - **Judge calls yourself**: an [`Interceptor`] may refuse, ask or rewrite, and never grant.
//! - **Ask a person**: an [`Approver`]; without one, whatever needs consent is denied.
//! - **Take it all back**: [`Registry::revoke`].
//! - **See what happened**: every check is in the [`journal`]; `bailiwick log` reads and verifies it.
//!
//! The [tools] for files read, write, edit, list and search; with the feature `fetch`, `web_fetch` reads the web. The
//! `shell` tool starts programs in the native sandbox, held to the call's own authority; its result says by whom
//! each axis was held.
#![forbid(unsafe_code)]

mod edge;

pub use bailiwick_guard::{
    Approver, Call, Consent, Definition, Effect, Gate, Grant, Hints, Interceptor, Listener, News, Permit,
    Registry, RegistryBuilder, Required, Rules, Session, Stream, Tool, ToolContext, ToolError, Verdict,
    WriteMode, arguments, tools,
};
pub use bailiwick_journal as journal;
pub use bailiwick_policy::authority::Authority;
pub use bailiwick_policy::capability::{Capability, CapabilitySet};
pub use bailiwick_policy::caveats::{Caveats, Scope};
pub use bailiwick_policy::denial::{Denial, DenialCode};
pub use bailiwick_policy::facts::HostFacts;
pub use bailiwick_policy::finding::{Finding, Findings};
pub use bailiwick_policy::lattice::CountBound;
pub use bailiwick_policy::manifest::{Checked, Manifest};
pub use edge::{EdgeFault, registry, registry_in};
