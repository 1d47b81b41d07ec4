//! From the command line to a plan: a manifest, capabilities, and what this host has at their paths.

use std::path::Path;

use bailiwick_confine::host;
use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Findings, Source};
use bailiwick_policy::manifest::{Checked, Limits};
use bailiwick_policy::plan::{FileGrant, Plan};

use super::leash::Governing;
use crate::answer::{Answer, Exit};
use crate::args::run::{Backend, Run};
use crate::facts;
use crate::input::{self, Useless};
use crate::render::{escape, snippet, style};

/// What the command line asks for, on this host.
pub(super) fn asked(args: &Run, name: &str, governing: &Governing) -> Result<Plan, Answer> {
    let caps = capabilities(&args.caps)?;
    let plan = match &args.manifest {
        None => of_capabilities(name, args, governing, &caps)?,
        Some(path) => of_manifest(path, args, governing, caps)?,
    };
    let limits = limits(args, *plan.limits());
    Ok(plan.with_limits(limits))
}

fn capabilities(texts: &[String]) -> Result<Vec<Capability>, Answer> {
    let read = |text: &String| {
        text.parse::<Capability>().map_err(|finding| {
            let source = Source::new("--cap", &**text);
            Answer::refusal(Exit::Usage, snippet::finding(&source, &finding) + "\n")
        })
    };
    texts.iter().map(read).collect()
}

fn of_capabilities(
    name: &str,
    args: &Run,
    governing: &Governing,
    caps: &[Capability],
) -> Result<Plan, Answer> {
    let wrong = |finding: Finding| Answer::refusal(Exit::Usage, input::unreadable(finding.message()));
    let authority = Authority::of(caps).map_err(wrong)?;
    let make = |facts: &HostFacts| Plan::of(name, &authority, facts);
    on_host(args.backend, governing, HostFacts::unknown(), make).map_err(|why| match why {
        Unplanned::Wrong(finding) => wrong(finding),
        Unplanned::Unreachable(why) => super::refused(&why),
    })
}

fn of_manifest(
    path: &Path,
    args: &Run,
    governing: &Governing,
    caps: Vec<Capability>,
) -> Result<Plan, Answer> {
    let (source, manifest) = input::manifest(path).map_err(|useless| useless.refusal())?;
    let wrong = |source: Source, findings: Vec<Finding>| Useless::Wrong(source, findings).refusal();
    let facts = match facts::for_manifest(&manifest, &args.settings) {
        Ok(facts) => facts,
        Err(findings) => return Err(wrong(source, findings)),
    };
    let checked = match manifest.with_capabilities(caps).check(&facts) {
        Ok(checked) => checked,
        Err(findings) => return Err(wrong(source, Findings::into_vec(findings))),
    };
    let tool = match &args.tool {
        None => None,
        Some(name) => Some(checked.tool(name).ok_or_else(|| no_such_tool(&checked, name))?),
    };
    let planned = on_host(args.backend, governing, facts.clone(), |facts| match tool {
        None => Plan::server(&checked, facts),
        Some(tool) => Plan::tool(&checked, tool, facts),
    });
    planned.map_err(|why| match why {
        Unplanned::Wrong(finding) => wrong(source, vec![finding]),
        Unplanned::Unreachable(why) => super::refused(&why),
    })
}

fn no_such_tool(checked: &Checked, name: &str) -> Answer {
    let known: Vec<String> = checked.tools().iter().take(20).map(|tool| escape::line(tool.name())).collect();
    let text = format!(
        "{}: the manifest has no tool `{}`; it has {}\n",
        style::error("error"),
        escape::line(name),
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    Answer::refusal(Exit::Usage, text)
}

/// Plans once to learn which paths matter, asks the host about them, and plans again. Our own sandboxes look at the
/// base and at files that run code later themselves.
fn on_host(
    backend: Backend,
    governing: &Governing,
    facts: HostFacts,
    make: impl Fn(&HostFacts) -> Result<Plan, Finding>,
) -> Result<Plan, Unplanned> {
    let first = make(&facts).map_err(Unplanned::Wrong)?;
    let facts = governing.on(facts::with_own_paths(facts));
    let known = match backend {
        Backend::Native | Backend::Landlock => {
            host::located(facts, first.files().iter().map(FileGrant::path))
        }
        Backend::Bwrap | Backend::Oci | Backend::Firejail => host::located_to_mount(facts, &first),
    };
    let known =
        known.map_err(|unseen| Unplanned::Unreachable(format!("{:#}", anyhow::Error::new(unseen))))?;
    make(&known).map_err(Unplanned::Wrong)
}

/// Why there is no plan.
enum Unplanned {
    /// The grants themselves are wrong.
    Wrong(Finding),
    /// The host does not say what a granted path is.
    Unreachable(String),
}

/// The manifest's limits, each replaced by what the command line says.
fn limits(args: &Run, declared: Limits) -> Limits {
    let timeout = args.timeout.and_then(|time| u64::try_from(time.0.as_millis()).ok());
    Limits {
        timeout_ms: timeout.or(declared.timeout_ms),
        memory: args.memory.map(|size| size.0).or(declared.memory),
        pids: args.pids.or(declared.pids),
        cpu_milli: args.cpu.map(|count| count.0).or(declared.cpu_milli),
        file_size: args.file_size.map(|size| size.0).or(declared.file_size),
    }
}
