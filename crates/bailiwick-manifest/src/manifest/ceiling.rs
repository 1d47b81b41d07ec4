//! A manifest under another one that narrows it: the meet of both.
//!
//! What both grant is granted. Of limits the lower counts, of stances the stricter, and rules on arguments, constraints and rules of
//! secrets of both hold; of two budgets of a fleet, that of the ceiling is spent. A ceiling that declares tools leaves no other tool;
//! one that declares none says nothing of tools by name, and one without a table for a secret says nothing of how that is used.

use bailiwick_policy::authority::Authority;
use bailiwick_policy::limits::Limits;

use super::{Checked, CheckedTool, ClientFeatures, Constraints, Manifest, Tool};

impl Checked {
    /// The same manifest, where nothing is granted that `ceiling` does not grant too.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_manifest::Manifest;
    /// use bailiwick_policy::facts::HostFacts;
    ///
    /// let check = |text: &str| Manifest::parse(text)?.check(&HostFacts::unknown());
    /// let own = check("name = 'n'\nversion = '1'\nserver_capabilities = ['fs:read,write:/notes']\n")?;
    /// let ceiling = check("name = 'n'\nversion = '1'\nserver_capabilities = ['fs:read:/**']\n")?;
    /// let both = own.under(&ceiling);
    /// assert_eq!(both.authority().capabilities().unwrap()[0].to_string(), "fs:read:/notes/**");
    /// # Ok::<(), bailiwick_policy::finding::Findings>(())
    /// ```
    #[must_use]
    pub fn under(mut self, ceiling: &Self) -> Self {
        let bound = |authority: &Authority| authority.clone().as_bound();
        let whole = bound(&ceiling.authority);
        let names_tools = !ceiling.tools.is_empty();
        if names_tools {
            self.manifest.tools.retain(|tool| ceiling.tool(&tool.name).is_some());
            self.tools.retain(|tool| ceiling.tool(&tool.name).is_some());
        }
        for (tool, written) in self.tools.iter_mut().zip(&mut self.manifest.tools) {
            let of_tool = ceiling.tool(&tool.name);
            let most = of_tool.map_or_else(|| whole.clone(), |of_tool| bound(&of_tool.authority));
            tool.narrow(&most, of_tool);
            if let Some(other) = ceiling.manifest.tools.iter().find(|other| other.name == written.name) {
                written.narrow(other);
            }
        }
        self.authority = self.authority.meet(&whole);
        self.bound = Some(self.bound.take().map_or_else(|| whole.clone(), |bound| bound.meet(&whole)));
        self.manifest.limits = lower(self.manifest.limits, ceiling.manifest.limits);
        self.manifest.client = stricter(self.manifest.client, ceiling.manifest.client);
        self.narrow_secrets(&ceiling.manifest);
        self
    }

    /// What is brokered now is used as both say. What the own manifest gives whole is used as the ceiling says.
    fn narrow_secrets(&mut self, ceiling: &Manifest) {
        let own_lines: Vec<&str> = self.manifest.lines().filter_map(|line| line.value.brokered()).collect();
        let mut narrowed = self.manifest.secrets.clone();
        for (name, _) in self.authority.brokered().iter() {
            let Some(most) = ceiling.secrets.get(name) else { continue };
            let own = narrowed.get(name).cloned().unwrap_or_default();
            let met = if own_lines.contains(&name) { own.meet(most) } else { most.clone() };
            narrowed.insert(name.to_owned(), met);
        }
        self.manifest.secrets = narrowed;
    }
}

impl CheckedTool {
    fn narrow(&mut self, most: &Authority, ceiling: Option<&Self>) {
        self.authority = self.authority.meet(most);
        self.bound = Some(self.bound.take().map_or_else(|| most.clone(), |bound| bound.meet(most)));
        self.rules.extend(ceiling.into_iter().flat_map(|ceiling| ceiling.rules.iter().cloned()));
    }
}

impl Tool {
    fn narrow(&mut self, ceiling: &Self) {
        let Constraints { max_invocations, only_after, forbidden, confirm, fleet_budget } =
            &ceiling.constraints;
        let own = &mut self.constraints;
        own.max_invocations = least(own.max_invocations, *max_invocations);
        for name in only_after.iter().filter(|name| !own.only_after.contains(name)).collect::<Vec<_>>() {
            own.only_after.push(name.clone());
            self.after.push(self.span);
        }
        own.forbidden |= *forbidden;
        own.confirm |= *confirm;
        own.fleet_budget = fleet_budget.clone().or_else(|| own.fleet_budget.take());
        self.rules.extend(ceiling.rules.iter().cloned());
        for (argument, access) in &ceiling.arguments {
            self.arguments.entry(argument.clone()).or_insert(*access);
        }
        self.risk = self.risk.max(ceiling.risk);
    }
}

fn lower(one: Limits, other: Limits) -> Limits {
    Limits {
        timeout_ms: least(one.timeout_ms, other.timeout_ms),
        memory: least(one.memory, other.memory),
        pids: least(one.pids, other.pids),
        cpu_milli: least(one.cpu_milli, other.cpu_milli),
        file_size: least(one.file_size, other.file_size),
    }
}

/// The lower of two bounds; one that is absent bounds nothing.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn stricter(one: ClientFeatures, other: ClientFeatures) -> ClientFeatures {
    ClientFeatures {
        roots: one.roots.min(other.roots),
        sampling: one.sampling.min(other.sampling),
        elicitation: one.elicitation.min(other.elicitation),
        tasks: one.tasks.min(other.tasks),
    }
}

#[cfg(test)]
mod tests {
    use bailiwick_policy::authority::Request;
    use bailiwick_policy::facts::HostFacts;

    use super::*;

    fn checked(text: &str) -> Checked {
        let head = "name = 'n'\nversion = '1'\n";
        Manifest::parse(&format!("{head}{text}")).unwrap().check(&HostFacts::unknown()).unwrap()
    }

    const OWN: &str = "server_capabilities = ['fs:read:/lib/**', 'net:connect:api.test:443']\n\
        [limits]\nmemory = '1G'\n\
        [[tools]]\nname = 'read'\ncapabilities = ['fs:read,write:/notes/**']\n\
        [[tools]]\nname = 'send'\ncapabilities = ['net:connect:out.test:443']\n";

    fn lines(authority: &Authority) -> Vec<String> {
        authority.capabilities().unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_both_grant_is_granted_and_no_more() {
        let ceiling = checked("server_capabilities = ['fs:read:/**']\n[limits]\nmemory = '64M'\npids = 8\n");
        let own = checked(OWN);
        let both = own.clone().under(&ceiling);
        for (narrow, wide) in [(both.authority(), own.authority()), (both.authority(), ceiling.authority())] {
            assert!(narrow.within(&wide.clone().as_bound()).holds());
        }
        assert_eq!(lines(both.authority()), ["fs:read:/lib/**", "fs:read:/notes/**"]);
        assert_eq!(lines(both.tool("send").unwrap().authority()), ["fs:read:/lib/**"]);
        assert_eq!(
            (both.manifest().limits().memory, both.manifest().limits().pids),
            (Some(64 << 20), Some(8))
        );
        let plan = both.server_plan(&HostFacts::unknown()).unwrap();
        assert!(plan.explain().iter().all(|line| line.rule.starts_with("fs:read:")), "{:?}", plan.explain());
        let tool = both.tool_plan(both.tool("send").unwrap(), &HostFacts::unknown()).unwrap();
        assert!(tool.explain().iter().all(|line| line.rule.starts_with("fs:read:")), "{:?}", tool.explain());
    }

    #[test]
    fn a_ceiling_with_tools_leaves_no_other_tool() {
        let ceiling = checked(
            "[[tools]]\nname = 'read'\ncapabilities = ['fs:read:/notes/**']\nconstraints = { confirm = true, max_invocations = 2 }\n",
        );
        let both = checked(OWN).under(&ceiling);
        let names: Vec<&str> = both.tools().iter().map(CheckedTool::name).collect();
        assert_eq!(names, ["read"]);
        let constraints = both.manifest().tools()[0].constraints();
        assert_eq!((constraints.confirm, constraints.max_invocations), (true, Some(2)));
        let note = bailiwick_policy::path::AbsPath::new("/notes/a").unwrap();
        assert!(both.tool("read").unwrap().authority().allows(&Request::Read(note.clone())));
        assert!(!both.tool("read").unwrap().authority().allows(&Request::Write(note)));
    }

    #[test]
    fn two_ceilings_narrow_as_both_do() {
        let one = checked("server_capabilities = ['fs:read,write:/**']\n");
        let other = checked("server_capabilities = ['net:connect:api.test:443', 'fs:read:/notes/**']\n");
        let both = checked(OWN).under(&one).under(&other);
        assert_eq!(lines(both.authority()), ["fs:read:/notes/**"]);
        assert_eq!(both.authority(), checked(OWN).under(&other).under(&one).authority());
    }

    #[test]
    fn a_ceilings_rules_for_a_secret_hold_too() {
        use bailiwick_policy::net::{Method, UrlPath};

        let broker = "server_capabilities = ['env:inject:TOKEN?broker=api.test']\n";
        let rule = |methods: &str, path: &str| {
            checked(&format!(
                "{broker}[secrets.TOKEN]\nforeign = 'allow'\n[[secrets.TOKEN.rules]]\nmethods = [{methods}]\npaths = ['{path}']\n"
            ))
        };
        let whole = checked("server_capabilities = ['env:inject:TOKEN', 'net:connect:api.test:443']\n");
        let reads = rule("'GET', 'HEAD'", "/**");
        let used = |both: &Checked, method: &str, path: &str| {
            let plan = both.server_plan(&HostFacts::unknown()).unwrap();
            let usage = &plan.environment().brokered.first().unwrap().value.usage;
            (usage.is_used_on(Method::new(method).unwrap(), &UrlPath::of_target(path)), usage.foreign)
        };
        for (own, foreign) in [(checked(broker), false), (whole, true), (rule("'GET', 'PUT'", "/**"), true)] {
            let both = own.under(&reads);
            assert_eq!(used(&both, "GET", "/a"), (true, foreign));
            assert_eq!(used(&both, "PUT", "/a"), (false, foreign));
        }
        let three = rule("'GET', 'PUT'", "/**").under(&rule("'GET', 'PUT'", "/a/**")).under(&reads);
        assert_eq!(used(&three, "GET", "/a/x"), (true, true));
        for (method, path) in [("PUT", "/a/x"), ("GET", "/b")] {
            assert!(!used(&three, method, path).0, "{method} {path}");
        }
        let signs = checked(&format!("{broker}[secrets.TOKEN]\nsign = 'aws-sigv4'\n"));
        assert!(
            !used(&checked(broker).under(&signs), "GET", "/").0,
            "what only one of them signs is used on nothing"
        );
        assert!(
            used(&reads.under(&checked(broker)), "GET", "/").1,
            "a ceiling without a table says nothing of it"
        );
    }
}
