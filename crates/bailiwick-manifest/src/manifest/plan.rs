//! From a checked manifest to plans.

use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::Finding;
use bailiwick_policy::plan::{Plan, PlanLine, PlanSource, Subject};

use super::{Checked, CheckedTool};

impl Checked {
    /// The plan for the whole server: the kernel cannot tell its tools apart.
    ///
    /// # Errors
    /// A finding if no list of rules says what the manifest allows.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_manifest::Manifest;
    /// use bailiwick_policy::facts::HostFacts;
    ///
    /// let facts = HostFacts::unknown();
    /// let text = "name = 'n'\nversion = '1'\nserver_capabilities = ['fs:read:/notes']\n";
    /// let plan = Manifest::parse(text)?.check(&facts)?.server_plan(&facts)?;
    /// assert_eq!(plan.explain()[0].rule, "fs:read:/notes");
    /// # Ok::<(), bailiwick_policy::finding::Findings>(())
    /// ```
    pub fn server_plan(&self, facts: &HostFacts) -> Result<Plan, Finding> {
        self.plan(self.authority(), None, facts)
    }

    /// The plan for one tool alone.
    ///
    /// # Errors
    /// A finding if no list of rules says what the tool is allowed.
    pub fn tool_plan(&self, tool: &CheckedTool, facts: &HostFacts) -> Result<Plan, Finding> {
        self.plan(tool.authority(), Some(tool), facts)
    }

    fn plan(
        &self,
        authority: &Authority,
        tool: Option<&CheckedTool>,
        facts: &HostFacts,
    ) -> Result<Plan, Finding> {
        let manifest = self.manifest();
        let granted = self.granted_lines(tool, facts);
        let lines = granted
            .map(|(owner, span, capability)| PlanLine { tool: owner.map(str::to_owned), capability, span })
            .collect();
        let subject = Subject {
            name: manifest.name().to_owned(),
            version: Some(manifest.version().to_owned()),
            tool: tool.map(|tool| tool.name().to_owned()),
        };
        let source = PlanSource {
            subject,
            authority,
            lines,
            command: manifest.command().map(|(command, args)| (command.to_owned(), args.to_vec())),
            limits: *manifest.limits(),
            variables: manifest.env(),
            secrets: manifest.secrets(),
        };
        Plan::for_source(source, facts)
    }
}
