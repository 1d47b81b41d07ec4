//! What a manifest or an author says about one tool, beyond what the tool says itself: the one place that judges it,
//! for the gate and for hooks.

use std::collections::BTreeMap;

use bailiwick_manifest::{Checked, Constraints, FleetBudget, Risk};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::denial::{Denial, DenialCode};
use serde_json::Value;

use crate::argument_rules::CallRules;
use crate::arguments::{ArgumentRules, HostRules, Treatment};
use crate::surroundings::Surroundings;
use crate::verdict::Verdict;

/// What happened in a session before this call.
pub trait Timeline {
    /// How often a tool was started, whatever came of it.
    fn runs(&self, tool: &str) -> u64;

    /// Whether a tool has succeeded.
    fn has_succeeded(&self, tool: &str) -> bool;
}

/// The rules for one tool.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    ceiling: Option<Authority>,
    arguments: Option<ArgumentRules>,
    /// What the tool's own policy says of paths in arguments.
    own_arguments: Option<ArgumentRules>,
    /// Hosts in arguments.
    hosts: Option<HostRules>,
    /// What the manifest's rules say of arguments.
    calls: CallRules,
    constraints: Constraints,
    risk: Option<Risk>,
}

impl Rules {
    /// No rules: whatever the tool needs and the grant allows.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The tool never runs.
    #[must_use]
    pub fn forbidden() -> Self {
        Self::none().with_constraints(Constraints { forbidden: true, ..Constraints::default() })
    }

    /// The rules of a tool in a checked manifest; `None` if it does not declare the tool.
    #[must_use]
    pub fn for_tool(checked: &Checked, tool: &str) -> Option<Self> {
        let checked_tool = checked.tool(tool)?;
        let authority = checked_tool.authority().clone();
        let declared = checked.manifest().tools().iter().find(|declared| declared.name() == tool)?;
        let arguments = declared.has_file_stance().then(|| {
            let files = ArgumentRules::within(authority.read().clone(), authority.write().clone());
            let marks = declared
                .arguments()
                .iter()
                .map(|(name, access)| Some((name.clone(), Treatment::for_access(*access)?)));
            files.with_marks(marks.flatten().collect::<BTreeMap<_, _>>())
        });
        let (constraints, risk) = (declared.constraints().clone(), declared.risk());
        let (hosts, calls) =
            (HostRules::for_tool(declared, authority.net()), CallRules::for_tool(checked_tool));
        Some(Self { ceiling: Some(authority), arguments, hosts, calls, constraints, risk, ..Self::none() })
    }

    /// The same rules, with these constraints.
    #[must_use]
    pub fn with_constraints(mut self, constraints: Constraints) -> Self {
        self.constraints = constraints;
        self
    }

    /// The same rules, with paths in arguments held to these.
    #[must_use]
    pub fn with_arguments(mut self, arguments: ArgumentRules) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// The same rules, without those on hosts in arguments: for tools that hold every connection to their authority themselves.
    #[must_use]
    pub fn without_hosts(mut self) -> Self {
        self.hosts = None;
        self
    }

    /// The same rules, with authority never beyond this.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Authority) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// The same rules, with the risk that the tool declares where they say none.
    #[must_use]
    pub fn with_risk(mut self, risk: Option<Risk>) -> Self {
        self.risk = self.risk.or(risk);
        self
    }

    /// The same rules, together with what the tool's own policy says of paths in arguments and of its risk.
    #[must_use]
    pub fn with_own_policy(mut self, arguments: Option<ArgumentRules>, risk: Option<Risk>) -> Self {
        self.own_arguments = arguments;
        self.with_risk(risk)
    }

    /// How risky the tool is, as it or its manifest says.
    #[must_use]
    pub const fn risk(&self) -> Option<Risk> {
        self.risk
    }

    /// What the tool may touch at most; `None` if these rules do not say.
    #[must_use]
    pub const fn ceiling(&self) -> Option<&Authority> {
        self.ceiling.as_ref()
    }

    /// How often the tool may run.
    #[must_use]
    pub const fn max_invocations(&self) -> Option<u64> {
        self.constraints.max_invocations
    }

    /// What each call spends of a budget of the fleet.
    #[must_use]
    pub const fn fleet_budget(&self) -> Option<&FleetBudget> {
        self.constraints.fleet_budget.as_ref()
    }

    /// Whether the past of the session lets the tool run now: forbidden, too often, too early.
    ///
    /// # Errors
    /// The denial.
    pub fn judge_past(&self, tool: &str, past: &impl Timeline) -> Result<(), Denial> {
        if self.constraints.forbidden {
            return Err(Denial::new(DenialCode::ToolForbidden, format!("the tool `{tool}` is forbidden")));
        }
        if self.constraints.max_invocations.is_some_and(|most| past.runs(tool) >= most) {
            return Err(too_often(tool));
        }
        match self.constraints.only_after.iter().find(|name| !past.has_succeeded(name)) {
            None => Ok(()),
            Some(name) => {
                let message = format!("the tool `{tool}` may only run after `{name}` has succeeded");
                Err(Denial::new(DenialCode::ToolTooEarly, message))
            }
        }
    }

    /// What the rules say about the arguments of a call, and whether a person must consent.
    #[must_use]
    pub fn judge_call(&self, tool: &str, args: &Value, around: &Surroundings) -> Verdict {
        let judged = self.arguments.iter().chain(&self.own_arguments);
        if let Some(denial) = judged.map(|rules| rules.judge(tool, args, around)).find_map(Result::err) {
            return Verdict::Deny(denial);
        }
        if let Some(Err(denial)) = self.hosts.as_ref().map(|hosts| hosts.judge(tool, args)) {
            return Verdict::Deny(denial);
        }
        let ruled = self.calls.judge(tool, args, around);
        let confirm = || Verdict::Ask(format!("may `{tool}` run?"));
        if self.constraints.confirm { ruled.max(confirm()) } else { ruled }
    }
}

/// The denial of a tool that has run as often as it may.
#[must_use]
pub fn too_often(tool: &str) -> Denial {
    Denial::new(DenialCode::ToolTooOften, format!("the tool `{tool}` has run as often as it may"))
}
