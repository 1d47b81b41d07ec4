//! From a manifest to what it allows on a host, or symbolically for a review.

use super::{Declared, Manifest, Tool};
use crate::authority::{Authority, Explanation, Parts};
use crate::capability::{Capability, EnvActions};
use crate::facts::HostFacts;
use crate::finding::{Collector, Finding, Findings, Span};
use crate::path::AbsPath;

/// A manifest whose every line has a meaning on this host.
#[derive(Debug, Clone)]
pub struct Checked {
    manifest: Manifest,
    authority: Authority,
    tools: Vec<CheckedTool>,
}

/// What one tool may touch on this host.
#[derive(Debug, Clone)]
pub struct CheckedTool {
    name: String,
    authority: Authority,
}

/// The line of a manifest that allows something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The tool it belongs to; `None` is the server as a whole.
    pub tool: Option<String>,
    /// The line, in canonical form.
    pub capability: String,
    /// Where it stands.
    pub span: Span,
}

/// How a line gets its meaning: on a host, or symbolically.
pub(super) type Resolve<'a> = &'a dyn Fn(&Capability) -> Result<Capability, Finding>;

impl Manifest {
    /// Gives every line its meaning on a host.
    ///
    /// # Errors
    /// A finding for every path variable that the host gives no value.
    pub fn check(self, facts: &HostFacts) -> Result<Checked, Findings> {
        let resolve = |line: &Capability| line.resolve(|name| facts.variable(name).cloned());
        let mut found = Collector::default();
        for line in self.lines() {
            found.keep(resolve(&line.value).map_err(|finding| finding.at(line.span)));
        }
        found.finish(())?;
        let authority = self.server_authority(&resolve)?;
        let mut tools = Vec::with_capacity(self.tools.len());
        for tool in &self.tools {
            let authority = self.tool_authority(tool, &resolve)?;
            tools.push(CheckedTool { name: tool.name.clone(), authority });
        }
        Ok(Checked { manifest: self, authority, tools })
    }

    /// Every line that declares something, those of policies included.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Declared<Capability>> {
        let of_tools = self.tools.iter().flat_map(|tool| {
            let policy = tool.policy.iter().flat_map(super::ToolPolicy::lines);
            tool.capabilities.iter().flatten().chain(policy)
        });
        self.server.iter().chain(of_tools)
    }

    /// What the whole process needs: its own lines and those of all its tools.
    fn server_authority(&self, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        let mut parts = self.server_parts(resolve)?;
        self.tools.iter().try_for_each(|tool| tool.add_to(&mut parts, resolve))?;
        Ok(parts.authority())
    }

    /// What one tool may touch: its lines and the server's, within its policy.
    fn tool_authority(&self, tool: &Tool, resolve: Resolve<'_>) -> Result<Authority, Finding> {
        let mut parts = self.server_parts(resolve)?;
        tool.add_to(&mut parts, resolve)?;
        match (&tool.policy, &tool.capabilities) {
            (Some(policy), Some(_)) => Ok(parts.authority().meet(&policy.widest(resolve)?)),
            (Some(_), None) | (None, _) => Ok(parts.authority()),
        }
    }

    fn server_parts(&self, resolve: Resolve<'_>) -> Result<Parts, Finding> {
        let mut parts = Parts::default();
        self.env.keys().try_for_each(|name| parts.add(&injected(name)))?;
        self.server.iter().try_for_each(|line| parts.add(&resolve(&line.value)?))?;
        Ok(parts)
    }

    /// Adds, for tools that have only a policy, what it leaves open or allows wholesale.
    pub(crate) fn add_open_stances(&self, parts: &mut Parts) -> Result<(), Finding> {
        let only_policy = self.tools.iter().filter(|tool| tool.capabilities.is_none());
        only_policy.filter_map(|tool| tool.policy.as_ref()).try_for_each(|policy| policy.add_open(parts))
    }

    /// What a tool's own declaration may be read as at most, with variables as symbols.
    pub(crate) fn reviewed_tool(&self, tool: &Tool) -> Result<Authority, Finding> {
        match (&tool.capabilities, &tool.policy) {
            (None, None) => Authority::of(&[]),
            (None, Some(policy)) => policy.widest(&symbolic),
            (Some(lines), None) => reviewed_lines(lines),
            (Some(lines), Some(policy)) => Ok(reviewed_lines(lines)?.meet(&policy.widest(&symbolic)?)),
        }
    }

    /// What the server's own lines allow, with variables as symbols.
    pub(crate) fn reviewed_server(&self) -> Result<Authority, Finding> {
        Ok(self.server_parts(&symbolic)?.authority())
    }
}

impl Tool {
    /// Adds what the tool declares: its lines, or its policy where it has no lines.
    fn add_to(&self, parts: &mut Parts, resolve: Resolve<'_>) -> Result<(), Finding> {
        match (&self.capabilities, &self.policy) {
            (Some(lines), _) => lines.iter().try_for_each(|line| parts.add(&resolve(&line.value)?)),
            (None, Some(policy)) => policy.add_to(parts, resolve),
            (None, None) => Ok(()),
        }
    }
}

pub(super) fn reviewed_lines(lines: &[Declared<Capability>]) -> Result<Authority, Finding> {
    let lines: Vec<Capability> = lines.iter().map(|line| symbolic(&line.value)).collect::<Result<_, _>>()?;
    Authority::of(&lines)
}

fn symbolic(line: &Capability) -> Result<Capability, Finding> {
    line.resolve(|name| Some(AbsPath::symbolic(name)))
}

fn injected(name: &str) -> Capability {
    Capability::Env { actions: EnvActions::INJECT, name: Some(name.into()) }
}

impl Checked {
    /// The manifest it came from.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What the server as a whole may touch: the kernel cannot tell its tools apart.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// What each tool may touch.
    #[must_use]
    pub fn tools(&self) -> &[CheckedTool] {
        &self.tools
    }

    /// What one tool may touch.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&CheckedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Why the server, or one tool, may or may not do what `request` asks, and which lines decide.
    ///
    /// # Errors
    /// A finding if the request has a path variable or is an assertion.
    pub fn explain(
        &self,
        request: &Capability,
        tool: Option<&CheckedTool>,
        facts: &HostFacts,
    ) -> Result<(Explanation, Vec<Origin>), Finding> {
        let authority = tool.map_or(&self.authority, |tool| &tool.authority);
        let explanation = authority.explain_capability(request)?;
        let mut origins = Vec::new();
        if explanation.is_allowed() {
            let asked = Authority::of(std::slice::from_ref(request))?;
            let name = tool.map(|tool| &*tool.name);
            for (owner, line) in self.lines_of(name) {
                let resolved = line.value.resolve(|name| facts.variable(name).cloned())?;
                if asked.within(&Authority::of(&[resolved])?).holds() {
                    let (tool, capability) = (owner.map(str::to_owned), line.value.to_string());
                    origins.push(Origin { tool, capability, span: line.span });
                }
            }
        }
        Ok((explanation, origins))
    }

    /// The lines that count for one tool, or for the whole server, as they mean on this host.
    #[must_use]
    pub fn capabilities(&self, tool: Option<&str>, facts: &HostFacts) -> Vec<Capability> {
        let resolve =
            |line: &Declared<Capability>| line.value.resolve(|name| facts.variable(name).cloned()).ok();
        self.lines_of(tool).filter_map(|(_, line)| resolve(line)).collect()
    }

    /// The lines that count for one tool, or for the whole server.
    pub(crate) fn lines_of<'a>(
        &'a self,
        tool: Option<&'a str>,
    ) -> impl Iterator<Item = (Option<&'a str>, &'a Declared<Capability>)> {
        let tools = self.manifest.tools.iter().filter(move |own| tool.is_none_or(|name| own.name == name));
        let of_tools = tools.flat_map(|own| {
            let policy = own.policy.iter().flat_map(super::ToolPolicy::lines);
            let lines: Box<dyn Iterator<Item = &Declared<Capability>>> = match &own.capabilities {
                Some(lines) => Box::new(lines.iter()),
                None => Box::new(policy),
            };
            lines.map(move |line| (Some(&*own.name), line))
        });
        self.manifest.server.iter().map(|line| (None, line)).chain(of_tools)
    }
}

impl CheckedTool {
    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may touch.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }
}
