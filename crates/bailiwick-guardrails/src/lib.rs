//! Guardrails: rules on the calls of any agent. They can only refuse or ask: nothing here grants.
//!
//! Two sources of rules: a project's file, compiled to [`Rails`], and what a manifest declares of a tool, [`Rules`].
//! Both are judged over the session's past: [`Rails::judge`] over a [`History`], [`Rules`] over a [`Timeline`].
//! [`Watch`] keeps that past in a log across processes, for agents that call us from their hooks; [`SessionRails`] in
//! memory, for a registry.
#![forbid(unsafe_code)]

pub mod approvals;
mod argument_rules;
pub mod arguments;
mod call;
mod digest;
mod earlier;
mod engine;
mod file;
mod history;
mod injected;
mod judge;
mod levels;
mod lint;
mod log;
mod memory;
mod names;
mod pattern;
mod protect;
mod rails;
mod react;
pub mod resolve;
mod rules;
pub mod rules_file;
mod script;
mod searched;
mod state;
mod surroundings;
mod tool_name;
mod tools;
mod trust;
mod verdict;
mod waiting;
mod watch;

/// A commented file of sensible rules to start from.
pub const STARTER: &str = include_str!("starter/guardrails.toml");

/// The script that the starter's validator runs, and where it belongs.
pub const STARTER_SCRIPT: (&str, &str) =
    (".agents/validators/tests-ran.sh", include_str!("starter/tests-ran.sh"));

pub use call::ToolCall;
pub use digest::digest;
pub use file::{Broken, GUARDRAILS, Good, Policy, compile_text, trustable};
pub use history::{Ending, History};
pub use injected::{InjectedMessage, SourceKind};
pub use judge::{Found, Judgement, Look};
pub use levels::Level;
pub use lint::{fresh, lint, test_examples};
pub use memory::{Reload, Scripts, SessionRails};
pub use names::Names;
pub use protect::Protected;
pub use rails::Rails;
pub use rules::{Rules, Timeline, too_often};
pub use state::{State, StateFault};
pub use surroundings::Surroundings;
pub use trust::Trust;
pub use verdict::{Call, Consent, Verdict};
pub use watch::{Asking, Decision, Said, Watch};
