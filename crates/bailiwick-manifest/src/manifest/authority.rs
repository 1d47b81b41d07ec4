//! What a tool and a server may touch: the one definition behind `check`, `diff`, `allows`, plans and gates.
//!
//! - A tool's lines are its capabilities, or what its policy names if it has none.
//! - A tool may touch *(its lines ∪ the server's lines) ⊓ its policy*.
//! - The server as a whole may touch *the server's lines ∪ ⋃ (a tool's lines ⊓ its policy)*.
//!
//! A subject that a policy leaves out neither grants nor narrows. What a policy hides is granted nowhere.

use bailiwick_policy::authority::{Authority, Parts};
use bailiwick_policy::capability::{Capability, EnvActions, FsActions};
use bailiwick_policy::finding::Finding;
use bailiwick_policy::path::AbsPath;

use super::{Declared, Manifest, Tool, ToolPolicy};
use crate::diff::is_run_later;

/// How a line gets its meaning: on a host, or symbolically.
pub(crate) type Resolve<'a> = &'a dyn Fn(&Capability) -> Result<Capability, Finding>;

/// Path variables as symbols, for a review that does not depend on a host.
pub(crate) fn symbolic(line: &Capability) -> Result<Capability, Finding> {
    line.resolve(|name| Some(AbsPath::symbolic(name)))
}

impl Manifest {
    /// Every line that declares something, those of policies included.
    pub fn lines(&self) -> impl Iterator<Item = &Declared<Capability>> {
        let of_tools = self.tools.iter().flat_map(|tool| {
            let policy = tool.policy.iter().flat_map(ToolPolicy::lines);
            tool.capabilities.iter().flatten().chain(policy)
        });
        self.server.iter().chain(of_tools)
    }

    /// What the server as a whole may touch: a kernel cannot tell its tools apart.
    pub(crate) fn server_authority(&self, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        let mut parts = self.server_parts(resolve)?;
        for tool in &self.tools {
            match &tool.policy {
                Some(policy) if tool.capabilities.is_some() => {
                    parts.add_authority(&tool.declared(resolve)?.meet(&policy.bound(resolve)?.as_bound()))?;
                }
                // What a policy names is within the policy.
                Some(_) | None => tool.add_to(&mut parts, resolve)?,
            }
        }
        Ok(parts.authority())
    }

    /// What the server's own lines allow.
    pub(crate) fn server_lines(&self, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        Ok(self.server_parts(resolve)?.authority())
    }

    /// What one tool may touch, where the server's lines are those of this manifest.
    pub(crate) fn tool_authority(&self, tool: &Tool, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        let mut parts = self.server_parts(resolve)?;
        tool.add_to(&mut parts, resolve)?;
        let all = parts.authority();
        tool.policy
            .as_ref()
            .map_or_else(|| Ok(all.clone()), |policy| Ok(all.meet(&policy.bound(resolve)?.as_bound())))
    }

    fn server_parts(&self, resolve: Resolve<'_>) -> Result<Parts, Finding> {
        let mut parts = Parts::default();
        self.env.keys().try_for_each(|name| parts.add(&injected(name)))?;
        self.server.iter().try_for_each(|line| parts.add(&resolve(&line.value)?))?;
        Ok(parts)
    }
}

/// The file that runs later which a line names for writing: it is open only because it is named.
pub(crate) fn named_for_writing(line: &Capability) -> Option<AbsPath> {
    let Ok(Capability::Fs { actions, path }) = symbolic(line) else { return None };
    let changes = actions.contains(FsActions::CREATE) || actions.contains(FsActions::DELETE);
    Some(path.base()).filter(|base| changes && is_run_later(base))
}

impl Tool {
    /// The tool's lines: its capabilities, or those that its policy names if it has none.
    pub fn lines(&self) -> impl Iterator<Item = &Declared<Capability>> {
        let policy = self.policy.iter().filter(|_| self.capabilities.is_none()).flat_map(ToolPolicy::lines);
        self.capabilities.iter().flatten().chain(policy)
    }

    /// What the tool's lines say, whatever its policy narrows.
    pub(crate) fn declared(&self, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        let mut parts = Parts::default();
        self.add_to(&mut parts, resolve)?;
        Ok(parts.authority())
    }

    fn add_to(&self, parts: &mut Parts, resolve: Resolve<'_>) -> Result<(), Finding> {
        match (&self.capabilities, &self.policy) {
            (Some(lines), _) => lines.iter().try_for_each(|line| parts.add(&resolve(&line.value)?)),
            // `allow` is no line of its own, and part of what the policy names.
            (None, Some(policy)) => policy.add_named(parts, resolve),
            (None, None) => Ok(()),
        }
    }
}

fn injected(name: &str) -> Capability {
    Capability::Env { actions: EnvActions::INJECT, name: Some(name.into()) }
}
