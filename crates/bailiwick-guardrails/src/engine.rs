//! The one judge of a call over a session: the built-in guard, the project's rules, what a manifest declares.

use std::path::Path;

use crate::rules_file::AGENT_SERVER;
use bailiwick_manifest::Checked;
use bailiwick_policy::denial::{Denial, DenialCode};
use bailiwick_shell::classes::Setting;

use super::call::ToolCall;
use super::earlier::earlier_files;
use super::file::Policy;
use super::history::History;
use super::protect::Protected;
use super::rails::Rails;
use super::rules::{Rules, Timeline};
use super::surroundings::Surroundings;
use super::verdict::Verdict;

/// What calls of a session are judged by.
pub(crate) struct Engine<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) workdir: &'a Path,
    /// Where the agent works now.
    pub(crate) here: &'a Path,
    pub(crate) state: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) manifest: Option<&'a Checked>,
}

impl Engine<'_> {
    /// What becomes of a call; of several sources the strictest counts.
    pub(crate) fn judge(&self, call: &ToolCall<'_>, past: &History) -> Verdict {
        place(call, self.workdir, self.here, self.home);
        if self.policy.rails().is_some_and(Rails::names_classes) {
            call.follows(earlier_files(past, call));
        }
        let scripts = self.policy.rails().map(Rails::scripts).unwrap_or_default();
        let protected = Protected::new(self.workdir, scripts, self.state, self.home).working_in(self.here);
        if let Some(denial) = protected.refuse(call) {
            return Verdict::Deny(denial);
        }
        let refuse =
            |code, why: String| Verdict::Deny(Denial::new(code, format!("[guardrail] nothing runs: {why}")));
        let ruled = match self.policy {
            Policy::Absent => Verdict::Allow,
            Policy::Good(good) => good.rails.judge(call, past).verdict,
            Policy::Broken(broken) => refuse(
                DenialCode::GuardrailBroken,
                format!("the project's guardrails cannot be used: {}", broken.summary()),
            ),
            Policy::Changed(why) => {
                let dir = self.workdir.display();
                let how = format!("{why}; a person looks at it and runs `bailiwick trust {dir}`");
                refuse(DenialCode::GuardrailChanged, how)
            }
        };
        ruled.max(self.declared(call, past))
    }

    /// What a manifest says: a server that it names must declare its tools, and an agent's own tool that it declares is
    /// held to that; tools of other servers are not judged by it.
    fn declared(&self, call: &ToolCall<'_>, past: &History) -> Verdict {
        let Some(manifest) = self.manifest else { return Verdict::Allow };
        let (server, tool) = (call.server(), call.tool());
        let named = call.is_of(manifest.manifest().name(), None);
        let rules = match Rules::for_tool(manifest, tool) {
            Some(rules) if named || server == AGENT_SERVER => rules,
            None if named => {
                let message = format!("the manifest of `{server}` declares no tool `{tool}`");
                return Verdict::Deny(Denial::new(DenialCode::ToolForbidden, message));
            }
            Some(_) | None => return Verdict::Allow,
        };
        if let Err(denial) = rules.judge_past(tool, &OfServer { past, server }) {
            return Verdict::Deny(denial);
        }
        if let Some(budget) = rules.fleet_budget() {
            let message = format!(
                "each call of `{tool}` spends of the fleet's budget `{}`, which a hook cannot: call it through `bailiwick wrap`",
                budget.name
            );
            return Verdict::Deny(Denial::new(DenialCode::FleetBudgetSpent, message));
        }
        let session = Surroundings::new(self.here);
        let session = self.home.iter().fold(session, |session, home| session.with_home(home));
        rules.judge_call(tool, call.params(), &session)
    }
}

/// Says where a call stands: in the session's directory, where the agent works now, or where the call itself says.
pub(crate) fn place(call: &ToolCall<'_>, workdir: &Path, here: &Path, home: Option<&Path>) {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let home = home.map(text).unwrap_or_else(|| "/root".to_owned());
    let start = match call.directory().map(|directory| (directory, directory.strip_prefix('~'))) {
        None => text(here),
        Some((_, Some(below_home))) => format!("{home}{below_home}"),
        Some((directory, None)) => text(&here.join(directory)),
    };
    call.stands(Setting::new(&text(workdir), &start, &home));
}

/// The past of one server's tools.
struct OfServer<'a> {
    past: &'a History,
    server: &'a str,
}

impl Timeline for OfServer<'_> {
    fn runs(&self, tool: &str) -> u64 {
        self.past.runs(self.server, tool)
    }

    fn has_succeeded(&self, tool: &str) -> bool {
        self.past.has_succeeded(self.server, tool)
    }
}
