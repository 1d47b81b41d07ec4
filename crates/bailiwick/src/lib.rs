//! Bailiwick for authors of Rust agents: tools that run only with leave, and only within it.
//!
//! # First steps
//!
//! Say what a session may touch, and call a tool. The gate judges every call, the sandbox holds every program, and the
//! journal has what happened:
//!
//! ```
//! use bailiwick::{Caveats, CountBound, Scope, Session, ToolError};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let state = tempfile::tempdir()?;
//! // `bailiwick::registry()` keeps its journal where the user's programs keep theirs; this one keeps it elsewhere.
//! let registry = bailiwick::builder_in(state.path(), Session::new("/"))?.build()?;
//!
//! // May start `echo`, at most twice, and nothing else.
//! let granted = Caveats {
//!     exec: Scope::only(["echo".to_owned()]),
//!     max_calls: CountBound::AtMost(2),
//!     valid_for_generation: Scope::All,
//!     ..Caveats::bottom()
//! };
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let out = registry.dispatch("shell", json!({ "program": "echo", "args": ["hi"] }), &granted).await?;
//! assert_eq!(out["stdout"], "hi\n");
//!
//! let denied = registry.dispatch("shell", json!({ "program": "rm", "args": ["-rf", "/"] }), &granted).await;
//! let Err(ToolError::Denied { capability, .. }) = denied else { panic!("rm must not run") };
//! assert_eq!(capability, "exec:spawn:rm", "what a person would have to grant");
//! # Ok::<(), bailiwick::ToolError>(()) })?;
//! # Ok(())
//! # }
//! ```
//!
//! The same as a program: `cargo run -p bailiwick --example leash`.
//!
//! # Where to go from here
//!
//! | to | use | example |
//! |---|---|---|
//! | call tools under a session's authority | [`registry`], [`Caveats`], [`Registry::dispatch`] | `leash` |
//! | tell a refusal from a failure | [`Registry::run`], [`Outcome`], [`Denial`], [`ToolFault`] | `fetch` |
//! | write a tool | [`Tool`], [`ToolContext`], [`Required`] | `custom_tool` |
//! | make a tool of one program | [`process_tool`], [`ToolPolicy`], [`Sandbox`] | `process_tool` |
//! | ask what a list of capabilities allows | [`Capability`], [`CapabilitySet`] | `capabilities` |
//! | hold tools to a manifest | [`Manifest::parse`], `check`, [`RegistryBuilder::manifest`] | |
//! | judge calls yourself, or ask a person | [`Interceptor`], which never grants; [`Approver`] | |
//! | hear of refusals, take a grant back | [`RegistryBuilder::on_denied`], [`Registry::revoke`] | |
//! | see what happened | the [`journal`]; `bailiwick log` reads and verifies it | |
//!
//! # What holds, and what does not
//!
//! A tool cannot run without a [`Permit`], gets only the meet of what was granted and what it [needs](Required), and opens
//! files so that what was checked is what is opened. That is code in the tool's own process: it holds tools that go through
//! their context. Programs that `shell` and [`process_tool`] start are held by the native sandbox, and the result says by whom
//! each axis was held (`enforcement`); where the host cannot hold it, nothing starts. The sandbox needs Linux 5.13.
//!
//! The [tools] for files read, write, edit, list and search; with the feature `fetch`, `web_fetch` reads the web.
#![forbid(unsafe_code)]

mod edge;

pub use bailiwick_guard::tools::{ProcessTool, Sandbox, SandboxRun, process_tool};
pub use bailiwick_guard::{
    Approver, BuildError, Call, Consent, Content, Definition, Effect, Gate, Grant, GrantSource, Hints,
    Interceptor, InterceptorError, Listener, News, Outcome, Output, Part, PendingCall, Permit, Registry,
    RegistryBuilder, Required, ResourceBody, Rules, Session, Stream, Tool, ToolContext, ToolError, ToolFault,
    Verdict, WriteMode, arguments, tools,
};
pub use bailiwick_journal as journal;
pub use bailiwick_manifest::caveats::{Caveats, Scope};
pub use bailiwick_manifest::{Checked, Manifest, Risk, ToolPolicy};
pub use bailiwick_policy::authority::Authority;
pub use bailiwick_policy::capability::{Capability, CapabilitySet};
pub use bailiwick_policy::denial::{Denial, DenialCode};
pub use bailiwick_policy::facts::HostFacts;
pub use bailiwick_policy::finding::{Finding, Findings};
pub use bailiwick_policy::lattice::CountBound;
pub use edge::{EdgeFault, builder, builder_in, registry};
