//! From a file to a plan, for the commands that compile.

use std::path::Path;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::input::InputError;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, input};
use bailiwick_manifest::Checked;
use bailiwick_manifest::snapshot::Snapshot;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Code, Finding, Findings, Source};
use bailiwick_policy::plan::Plan;

use crate::args::compile::Host;

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum Unplanned {
    /// The manifest is of no use.
    InputError(InputError),
    /// The command line names a tool that the manifest does not have.
    Answered(Answer),
}

impl Unplanned {
    /// As an answer of a command that says no more than why.
    pub(crate) fn refusal(self) -> Answer {
        match self {
            Self::InputError(useless) => useless.refusal(),
            Self::Answered(answer) => answer,
        }
    }
}

/// A plan, the text it comes from, and the hash of its manifest.
pub(crate) struct Planned {
    pub(crate) source: Source,
    pub(crate) plan: Plan,
    pub(crate) hash: String,
}

/// Reads a manifest and plans for the server, or for one tool. A manifest that declares nothing is a finding: it says
/// nothing that a sandbox could hold, so it is rather a mistake than a wish.
pub(crate) fn plan(
    manifest: &Path,
    tool: Option<&str>,
    host: &Host,
) -> anyhow::Result<Result<Planned, Unplanned>> {
    let (source, manifest) = match input::manifest(manifest) {
        Ok(read) => read,
        Err(useless) => return Ok(Err(Unplanned::InputError(useless))),
    };
    let wrong = |source: Source, findings: Vec<Finding>| {
        Ok(Err(Unplanned::InputError(InputError::Wrong(source, findings))))
    };
    if manifest.tools().is_empty() && manifest.lines().next().is_none() {
        return wrong(source, vec![declares_nothing()]);
    }
    let facts = if host.here {
        facts::for_manifest(&manifest, &host.settings)
    } else {
        facts::of_settings(&host.settings)
    };
    let facts = match facts {
        Ok(facts) => facts,
        Err(findings) => return wrong(source, findings),
    };
    let hash = match Snapshot::from_manifest(manifest.clone()) {
        Ok(snapshot) => snapshot.hash().to_owned(),
        Err(finding) => return wrong(source, vec![finding]),
    };
    let checked = match manifest.check(&facts) {
        Ok(checked) => checked,
        Err(findings) => return wrong(source, Findings::into_vec(findings)),
    };
    if let Some(name) = tool.filter(|name| checked.tool(name).is_none()) {
        return Ok(Err(Unplanned::Answered(no_such_tool(&source, &checked, name))));
    }
    let plan = if host.here { plan_here(&checked, tool, facts)? } else { plan_for(&checked, tool, &facts) };
    match plan {
        Ok(plan) => Ok(Ok(Planned { source, plan, hash })),
        Err(finding) => wrong(source, vec![finding]),
    }
}

/// With what lies on this host.
#[cfg(target_os = "linux")]
fn plan_here(
    checked: &Checked,
    tool: Option<&str>,
    facts: HostFacts,
) -> anyhow::Result<Result<Plan, Finding>> {
    use bailiwick_launch::{HostPlanner, PlanError};
    let planner =
        HostPlanner::new(facts::with_own_paths(facts)).with_home(facts::home().as_deref()).for_mounts();
    match planner.plan(|facts| plan_for(checked, tool, facts)) {
        Ok(plan) => Ok(Ok(plan)),
        Err(PlanError::Wrong(finding)) => Ok(Err(finding)),
        Err(error @ (PlanError::Unseen { .. } | PlanError::NotText { .. })) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn plan_here(_: &Checked, _: Option<&str>, _: HostFacts) -> anyhow::Result<Result<Plan, Finding>> {
    anyhow::bail!("`--here` needs Linux: without it the plan is the same on every host")
}

fn declares_nothing() -> Finding {
    Finding::new(Code::ManifestShape, "the manifest has no tools and no server capabilities")
        .help("declare each tool in `[[tools]]`, with `capabilities = []` if it needs nothing, or list what the server needs in `server_capabilities`")
}

fn plan_for(checked: &Checked, tool: Option<&str>, facts: &HostFacts) -> Result<Plan, Finding> {
    match tool.and_then(|name| checked.tool(name)) {
        Some(tool) => checked.tool_plan(tool, facts),
        None => checked.server_plan(facts),
    }
}

/// A refusal that names the tools there are.
pub(crate) fn no_such_tool(source: &Source, checked: &Checked, name: &str) -> Answer {
    let names: Vec<String> = checked.tools().iter().take(20).map(|tool| escape::line(tool.name())).collect();
    let known =
        if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    let (file, name) = (escape::line(source.name()), escape::line(name));
    let text = format!("{}: {file} has no tool `{name}`\n  {known}\n", style::error("error"));
    Answer::refusal(Exit::Usage, text)
}
