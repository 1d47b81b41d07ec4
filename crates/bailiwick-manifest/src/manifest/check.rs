//! From a manifest to what it allows on a host. What it allows is defined in `authority`, once.

use bailiwick_policy::authority::{Authority, Explanation};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Collector, Finding, Findings, Span};
use bailiwick_policy::plan::Origin;

use super::hidden::hidden_lines;
use super::{ArgumentRule, Declared, Manifest, Tool};

/// A manifest whose every line has a meaning on this host.
///
/// # Examples
/// ```
/// use bailiwick_policy::facts::HostFacts;
/// use bailiwick_manifest::Manifest;
///
/// let manifest = Manifest::parse("name = 'n'\nversion = '1'\nserver_capabilities = ['fs:read:$WORKSPACE/**']\n")?;
/// assert!(manifest.clone().check(&HostFacts::unknown()).is_err(), "the variable has no value");
/// let checked = manifest.check(&HostFacts::unknown().with_variable("WORKSPACE", "/project")?)?;
/// assert_eq!(checked.authority().capabilities().unwrap()[0].to_string(), "fs:read:/project/**");
/// # Ok::<(), bailiwick_policy::finding::Findings>(())
/// ```
#[derive(Debug, Clone)]
pub struct Checked {
    pub(super) manifest: Manifest,
    pub(super) authority: Authority,
    pub(super) tools: Vec<CheckedTool>,
    hidden: Vec<Finding>,
    /// What the server as a whole may touch at most, if other manifests narrow it.
    pub(super) bound: Option<Authority>,
}

/// What one tool may touch on this host.
#[derive(Debug, Clone)]
pub struct CheckedTool {
    pub(super) name: String,
    pub(super) authority: Authority,
    /// What its policy and other manifests let through, if they say something.
    pub(super) bound: Option<Authority>,
    pub(super) rules: Vec<ArgumentRule>,
}

/// Why a request is allowed or not, and the lines that bear on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedRequest {
    /// The answer.
    pub explanation: Explanation,
    /// Lines that allow it.
    pub origins: Vec<Origin>,
    /// Lines that would allow it, but for the policy of their tool or of the tool that asks.
    pub outvoted: Vec<Origin>,
    /// Lines of the same kind that do not cover it.
    pub near: Vec<Origin>,
}

/// A line that counts for a tool or for the server, unless a policy hides it.
struct Candidate<'a> {
    owner: Option<&'a str>,
    line: &'a Declared<Capability>,
    bound: Option<&'a Authority>,
}

impl Manifest {
    /// Gives every line its meaning on a host.
    ///
    /// # Errors
    /// A finding for every path variable that the host gives no value.
    pub fn check(self, facts: &HostFacts) -> Result<Checked, Findings> {
        let resolve = |line: &Capability| line.resolve(|name| facts.variable(name).cloned());
        let mut found = Collector::default();
        let of_rules = self.tools.iter().flat_map(|tool| &tool.rules).flat_map(ArgumentRule::lines);
        for line in self.lines().chain(of_rules) {
            found.keep(resolve(&line.value).map_err(|finding| finding.at(line.span)));
        }
        found.finish(())?;
        let authority = self.server_authority(&resolve)?;
        let mut tools = Vec::with_capacity(self.tools.len());
        let mut hidden = Vec::new();
        for tool in &self.tools {
            let authority = self.tool_authority(tool, &resolve)?;
            let bound = tool.policy.as_ref().map(|policy| policy.bound(&resolve)).transpose()?;
            if let Some(bound) = &bound {
                hidden.extend(hidden_lines(tool, bound, &resolve)?);
            }
            let resolved = |lines: &[Declared<Capability>]| {
                let each =
                    lines.iter().map(|line| Ok(Declared { value: resolve(&line.value)?, span: line.span }));
                each.collect::<Result<Vec<_>, Finding>>()
            };
            let rules = tool.rules.iter().map(|rule| rule.with_lines(resolved)).collect::<Result<_, _>>()?;
            tools.push(CheckedTool { name: tool.name.clone(), authority, bound, rules });
        }
        Ok(Checked { manifest: self, authority, tools, hidden, bound: None })
    }
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

    /// Lines that the policy of their own tool hides: each grants nothing.
    #[must_use]
    pub fn hidden_lines(&self) -> &[Finding] {
        &self.hidden
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
    ) -> Result<ExplainedRequest, Finding> {
        let authority = tool.map_or(&self.authority, |tool| &tool.authority);
        let explanation = authority.explain_capability(request)?;
        let asked = Authority::from_capabilities(std::slice::from_ref(request))?;
        let mut explained =
            ExplainedRequest { explanation, origins: Vec::new(), outvoted: Vec::new(), near: Vec::new() };
        for Candidate { owner, line, bound } in self.candidates(tool) {
            if std::mem::discriminant(&line.value) != std::mem::discriminant(request) {
                continue;
            }
            let resolved = line.value.resolve(|name| facts.variable(name).cloned())?;
            let covers = asked.within(&Authority::from_capabilities(&[resolved])?).holds();
            let passes = bound.is_none_or(|bound| asked.within(bound).holds());
            let lines = match (explained.explanation.is_allowed(), covers, passes) {
                (true, true, true) => &mut explained.origins,
                (false, true, _) => &mut explained.outvoted,
                (false, false, _) => &mut explained.near,
                (true, _, _) => continue,
            };
            let (tool, capability) = (owner.map(str::to_owned), line.value.to_string());
            lines.push(Origin { tool, capability, span: line.span });
        }
        Ok(explained)
    }

    /// The lines that are granted whole to one tool, or to the whole server, as they mean on this host.
    #[must_use]
    pub fn capabilities(&self, tool: Option<&str>, facts: &HostFacts) -> Vec<Capability> {
        let tool = tool.and_then(|name| self.tool(name));
        self.granted_lines(tool, facts).map(|(_, _, capability)| capability).collect()
    }

    /// The lines that are granted whole to one tool, or to the whole server: whose they are, where they stand, and
    /// what they mean on this host. A line that a policy narrows or hides is not among them.
    pub(crate) fn granted_lines<'a>(
        &'a self,
        tool: Option<&'a CheckedTool>,
        facts: &'a HostFacts,
    ) -> impl Iterator<Item = (Option<&'a str>, Span, Capability)> {
        self.candidates(tool).filter_map(|Candidate { owner, line, bound }| {
            let resolved = line.value.resolve(|name| facts.variable(name).cloned()).ok()?;
            let whole = |bound: &Authority| {
                let asked = Authority::from_capabilities(std::slice::from_ref(&resolved));
                asked.is_ok_and(|asked| asked.within(bound).holds())
            };
            bound.is_none_or(whole).then_some((owner, line.span, resolved))
        })
    }

    /// The lines of the server and of one tool, each with the policy that narrows it; or of all tools.
    fn candidates<'a>(&'a self, tool: Option<&'a CheckedTool>) -> impl Iterator<Item = Candidate<'a>> {
        let for_server = tool.map_or(self.bound.as_ref(), |tool| tool.bound.as_ref());
        let server = self.manifest.server.iter();
        let server = server.map(move |line| Candidate { owner: None, line, bound: for_server });
        let named = move |own: &&Tool| tool.is_none_or(|tool| own.name == tool.name);
        let tools = self.manifest.tools.iter().zip(&self.tools);
        let of_tools = tools.filter(move |(own, _)| named(own)).flat_map(|(own, checked)| {
            let bound = checked.bound.as_ref();
            own.lines().map(move |line| Candidate { owner: Some(&*own.name), line, bound })
        });
        server.chain(of_tools)
    }
}

impl CheckedTool {
    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Rules on its arguments, where every path variable has its value.
    #[must_use]
    pub fn rules(&self) -> &[ArgumentRule] {
        &self.rules
    }

    /// What it may touch.
    #[must_use]
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }
}
