//! Guard and record: no tool runs without a permit, and nothing runs unrecorded.
//!
//! A [`Registry`] holds tools. A [`Grant`] says what a session may touch and how often. Every call goes through
//! the [`Gate`], the only maker of a [`Permit`]; a tool sees the world through the [`ToolContext`] that the
//! permit opens, and that context holds only the meet of what was granted and what the tool needs. Every check,
//! granted or denied, is an event in the [journal](bailiwick_journal).
//!
//! # First steps
//!
//! ```
//! use bailiwick_guard::{Outcome, PendingCall, Registry, Session, tools};
//! use bailiwick_policy::capability::CapabilitySet;
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use bailiwick_journal::{Journal, Options, new_session};
//! # let state = tempfile::tempdir()?;
//! # let journal = Journal::open(&state.path().join("journal"), new_session()?, Options::default())?;
//! let registry = tools::files(Registry::builder(journal, Session::new("/"))).build()?;
//! let granted = CapabilitySet::new(["fs:read:/usr"])?;
//! let grant = registry.mint(granted.authority().clone());
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let listed = registry.run(PendingCall::new("fs_list", json!({ "path": "/usr" }), &grant)).await?;
//! assert!(listed.is_success());
//!
//! let refused = registry.run(PendingCall::new("fs_read", json!({ "path": "/etc/hostname" }), &grant)).await?;
//! let Outcome::Refused(denial) = refused else { panic!("not granted") };
//! assert!(denial.to_string().contains("/etc/hostname"), "{denial}");
//! # Ok::<(), bailiwick_guard::ToolFault>(()) })?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Tool`] has an example that writes a tool, [`Guarded`] one with a project's guardrails. Authors of agents depend on the
//! facade `bailiwick`, whose examples are programs.
//!
//! # What a call goes through
//!
//! [`PendingCall`] → [`Gate`] → [`Permit`] → [`Tool::invoke`] with a [`ToolContext`] → [`Outcome`]: it ran, and this is its
//! [`Output`]; or policy refused it, and this is the [`Denial`](bailiwick_policy::denial::Denial). A [`ToolFault`] is neither,
//! and an error.
#![forbid(unsafe_code)]

mod gate;
mod grant;
mod guarded;
mod interceptor;
mod offload;
mod open;
mod outcome;
mod pending;
mod registry;
mod session;
mod tool;
pub mod tools;

pub use bailiwick_guardrails::{Call, Consent, Rules, Verdict, arguments};
pub use bailiwick_launch::{BrokerProcess, FixedHosts};
pub use gate::{Approval, Gate, Permit, Refusal, ToolContext};
pub use grant::Grant;
pub use guarded::{AdmittedCall, Answered, Guarded, GuardedFault};
pub use interceptor::{Approver, Interceptor, InterceptorError, Meter};
pub use offload::CancelFlag;
pub use open::WriteMode;
pub use outcome::{Content, Outcome, Output, Part, ResourceBody};
pub use pending::{GrantSource, PendingCall};
pub use registry::{BuildError, Registry, RegistryBuilder};
pub use session::Session;
pub use tool::{Definition, Effect, Hints, Listener, News, Required, Stream, Tool, ToolError, ToolFault};
