//! From a file to a plan, for the commands that compile.

use std::path::Path;

use bailiwick_confine::host::located_to_mount;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Findings, Source};
use bailiwick_policy::manifest::Checked;
use bailiwick_policy::plan::Plan;
use bailiwick_policy::snapshot::Snapshot;

use crate::answer::{Answer, Exit};
use crate::args::compile::Host;
use crate::facts;
use crate::input::{self, Useless};
use crate::render::{escape, style};

/// A plan, the text it comes from, and the hash of its manifest.
pub(crate) struct Planned {
    pub(crate) source: Source,
    pub(crate) plan: Plan,
    pub(crate) hash: String,
}

/// Reads a manifest and plans for the server, or for one tool.
pub(crate) fn plan(
    manifest: &Path,
    tool: Option<&str>,
    host: &Host,
) -> anyhow::Result<Result<Planned, Answer>> {
    let (source, manifest) = match input::manifest(manifest) {
        Ok(read) => read,
        Err(useless) => return Ok(Err(useless.refusal())),
    };
    let wrong = |source: Source, findings: Vec<Finding>| Ok(Err(Useless::Wrong(source, findings).refusal()));
    let facts = if host.here {
        facts::for_manifest(&manifest, &host.settings)
    } else {
        facts::of_settings(&host.settings)
    };
    let facts = match facts {
        Ok(facts) => facts,
        Err(findings) => return wrong(source, findings),
    };
    let hash = match Snapshot::of(manifest.clone()) {
        Ok(snapshot) => snapshot.hash().to_owned(),
        Err(finding) => return wrong(source, vec![finding]),
    };
    let checked = match manifest.check(&facts) {
        Ok(checked) => checked,
        Err(findings) => return wrong(source, Findings::into_vec(findings)),
    };
    if let Some(name) = tool.filter(|name| checked.tool(name).is_none()) {
        return Ok(Err(no_such_tool(&source, &checked, name)));
    }
    let mut plan = of(&checked, tool, &facts);
    if host.here
        && let Ok(first) = &plan
    {
        let located = located_to_mount(facts::with_own_paths(facts), first)?;
        plan = of(&checked, tool, &located);
    }
    match plan {
        Ok(plan) => Ok(Ok(Planned { source, plan, hash })),
        Err(finding) => wrong(source, vec![finding]),
    }
}

fn of(checked: &Checked, tool: Option<&str>, facts: &HostFacts) -> Result<Plan, Finding> {
    match tool.and_then(|name| checked.tool(name)) {
        Some(tool) => Plan::tool(checked, tool, facts),
        None => Plan::server(checked, facts),
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
