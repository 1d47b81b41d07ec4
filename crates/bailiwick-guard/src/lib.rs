//! Guard and record: no tool runs without a permit, and nothing runs unrecorded.
//!
//! A [`Registry`] holds tools. A [`Grant`] says what a session may touch and how often. Every call goes through
//! the [`Gate`], the only maker of a [`Permit`]; a tool sees the world through the [`ToolContext`] that the
//! permit opens, and that context holds only the meet of what was granted and what the tool needs. Every check,
//! granted or denied, is an event in the [`journal`].
#![forbid(unsafe_code)]

pub mod arguments;
mod digest;
mod gate;
mod grant;
pub mod guardrails;
pub mod journal;
mod offload;
mod open;
mod registry;
mod resolve;
mod rules;
mod session;
mod tool;
pub mod tools;
mod verdict;

pub use gate::{Approval, Gate, Permit, Refusal, ToolContext};
pub use grant::Grant;
pub use offload::CancelFlag;
pub use open::WriteMode;
pub use registry::{Registry, RegistryBuilder};
pub use rules::Rules;
pub use session::Session;
pub use tool::{Definition, Effect, Hints, Listener, News, Required, Stream, Tool, ToolError};
pub use verdict::{Approver, Call, Consent, Interceptor, Verdict};
