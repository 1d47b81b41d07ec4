//! Guardrails: a project's rules on the calls of any agent.
//!
//! [`Rails`] are what a file says, ready to judge. [`Rails::judge`] is pure; whoever runs calls keeps a [`History`].
//! [`Watch`] does that across processes, for agents that call us from their hooks; [`Guarded`] within one, around a
//! registry. Rules can only refuse or ask: nothing here grants.

pub mod approvals;
mod call;
mod file;
mod guarded;
mod history;
mod judge;
mod lint;
mod log;
mod names;
mod pattern;
mod protect;
mod rails;
mod react;
mod script;
pub mod shell;
mod state;
mod trust;
mod watch;

/// A commented file of sensible rules to start from.
pub const STARTER: &str = include_str!("starter/guardrails.toml");

/// The script that the starter's validator runs, and where it belongs.
pub const STARTER_SCRIPT: (&str, &str) =
    (".agents/validators/tests-ran.sh", include_str!("starter/tests-ran.sh"));

pub use call::ToolCall;
pub use file::{Broken, GUARDRAILS, Good, Policy, compile_text, trustable};
pub use guarded::{Answered, Guarded, GuardedFault, Reload};
pub use history::History;
pub use judge::{Found, Judgement, Look};
pub use lint::{fresh, lint, test_examples};
pub use names::Names;
pub use protect::{Protected, holds_hooks};
pub use rails::Rails;
pub use state::{State, StateFault};
pub use trust::Trust;
pub use watch::{Asking, Decision, Said, Watch};
