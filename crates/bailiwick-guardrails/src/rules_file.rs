//! Guardrails: what a project's `.agents/guardrails.toml` says, with the place of everything in it.
//!
//! Text in, values and findings out. Patterns stay texts here: [`Rails`](crate::Rails) compiles them, and blames their span.
//! Strict: an unknown table or key is a finding, because a rule that is silently ignored guards nothing.

mod read;
mod target;

#[cfg(test)]
mod tests;

pub use bailiwick_shell::class::{CLASSES, Class};
pub use target::{Condition, Pattern, Subject, Target};

use bailiwick_manifest::Declared;
use bailiwick_policy::finding::{Findings, Span};

/// The server name that stands for "this call succeeded" in `when`.
pub const RESERVED_SERVER: &str = "ok";

/// The server that an agent's own tools belong to.
pub const AGENT_SERVER: &str = "agent";

/// Everything a guardrails file says.
#[derive(Debug, Clone, Default)]
pub struct Guardrails {
    /// Which tools count as which capability: `server:tool` or `server:*`.
    pub capabilities: Vec<Mapping>,
    /// Rules before a call.
    pub guards: Vec<Guard>,
    /// Scripts after a result.
    pub hooks: Vec<Hook>,
    /// Scripts at the end of a turn.
    pub validators: Vec<Validator>,
}

/// One line of `[capabilities]`.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// The server.
    pub server: String,
    /// The tool; all of the server's if absent.
    pub tool: Option<String>,
    /// What it counts as.
    pub capability: String,
    /// Where it stands.
    pub span: Span,
}

/// What a guard does when it fires. Ordered: of several, the strictest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// A person decides.
    Ask,
    /// The call does not run.
    Block,
}

/// One `[[guard]]`.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Which calls.
    pub target: Declared<Target>,
    /// Capabilities or servers that must be loaded.
    pub has: Vec<Declared<String>>,
    /// What must have happened before, or not.
    pub when: Vec<Condition>,
    /// What the model is told.
    pub message: String,
    /// What becomes of the call.
    pub action: Action,
    /// Calls that the rule must block or ask about, and calls it must let pass.
    pub examples: Examples,
    /// Where the rule starts.
    pub span: Span,
}

/// Calls written beside a rule, which test it.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// The rule fires on these.
    pub block: Vec<Declared<String>>,
    /// It does not on these.
    pub allow: Vec<Declared<String>>,
}

/// Which results a hook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The tool succeeded.
    Success,
    /// The tool failed.
    Error,
    /// Either.
    Any,
}

/// One `[[hook]]`.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Which calls; all if absent.
    pub target: Option<Declared<Target>>,
    /// A pattern on the result's text.
    pub result: Option<Declared<String>>,
    /// Which results.
    pub on: On,
    /// What runs, relative to the working directory.
    pub script: Declared<String>,
}

/// One `[[validator]]`.
#[derive(Debug, Clone)]
pub struct Validator {
    /// Its name: of its cursor and of the frame around what it says.
    pub name: Declared<String>,
    /// A pattern on the assistant's last message.
    pub text: Option<Declared<String>>,
    /// What must have happened since it last ran, or not.
    pub when: Vec<Condition>,
    /// For which roles; all if empty.
    pub roles: Vec<String>,
    /// What runs, relative to the working directory.
    pub script: Declared<String>,
}

impl Guardrails {
    /// Reads a guardrails file.
    ///
    /// # Errors
    /// Every finding. A file with one is no policy to work under.
    pub fn parse(text: &str) -> Result<Self, Findings> {
        read::read(text)
    }

    /// Every script that the file names, each with where it stands.
    pub fn scripts(&self) -> impl Iterator<Item = &Declared<String>> {
        let of_hooks = self.hooks.iter().map(|hook| &hook.script);
        of_hooks.chain(self.validators.iter().map(|validator| &validator.script))
    }

    /// Every target of the file: of rules, hooks and conditions.
    pub fn targets(&self) -> impl Iterator<Item = Declared<&Target>> {
        let of_guards = self.guards.iter().map(|guard| &guard.target);
        let of_hooks = self.hooks.iter().filter_map(|hook| hook.target.as_ref());
        let matched = of_guards.chain(of_hooks).map(|one| Declared { value: &one.value, span: one.span });
        matched.chain(self.conditions().map(|one| Declared { value: &one.target, span: one.span }))
    }

    /// Every condition of the file.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let of_guards = self.guards.iter().flat_map(|guard| &guard.when);
        of_guards.chain(self.validators.iter().flat_map(|validator| &validator.when))
    }
}

impl Validator {
    /// Whether it is for this role: the same, or within the domain it names.
    #[must_use]
    pub fn covers(&self, role: &str) -> bool {
        let within = |named: &String| {
            role == named || role.strip_prefix(named.as_str()).is_some_and(|rest| rest.starts_with(':'))
        };
        self.roles.is_empty() || self.roles.iter().any(within)
    }
}
