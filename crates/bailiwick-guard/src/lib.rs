//! Guard and record: no tool runs without a permit, and nothing runs unrecorded.
//!
//! A [`Registry`] holds tools. A [`Grant`] says what a session may touch and how often. Every call goes through
//! the [`Gate`], the only maker of a [`Permit`]; a tool sees the world through the [`ToolContext`] that the
//! permit opens, and that context holds only the meet of what was granted and what the tool needs. Every check,
//! granted or denied, is an event in the [journal](bailiwick_journal).
#![forbid(unsafe_code)]

mod gate;
mod grant;
mod guarded;
mod interceptor;
mod network_events;
mod offload;
mod open;
mod registry;
mod session;
mod tool;
pub mod tools;

pub use bailiwick_guardrails::{Call, Consent, Rules, Verdict, arguments};
pub use gate::{Approval, Gate, Permit, Refusal, ToolContext};
pub use grant::Grant;
pub use guarded::{Answered, Guarded, GuardedFault};
pub use interceptor::{Approver, Interceptor};
pub use network_events::network_event;
pub use offload::CancelFlag;
pub use open::WriteMode;
pub use registry::{Registry, RegistryBuilder};
pub use session::{FixedHosts, Session};
pub use tool::{Definition, Effect, Hints, Listener, News, Required, Stream, Tool, ToolError};
