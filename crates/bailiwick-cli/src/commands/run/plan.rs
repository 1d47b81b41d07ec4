//! From the command line to a plan: a manifest, capabilities, and what this host has at their paths.

use std::path::Path;

use bailiwick_confine::host;
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
use crate::render::{escape, style};

/// What the command line asks for, on this host.
pub(super) fn asked(args: &Run, name: &str, governing: &Governing) -> Result<Plan, Answer> {
    let caps = input::capabilities("--cap", &args.caps)?;
    let plan = match &args.manifest {
        None => of_capabilities(name, args, governing, &caps)?,
        Some(path) => of_manifest(path, args, governing, caps)?,
    };
    let limits = limits(args, *plan.limits());
    Ok(plan.with_limits(limits))
}

fn of_capabilities(
    name: &str,
    args: &Run,
    governing: &Governing,
    caps: &[Capability],
) -> Result<Plan, Answer> {
    let authority = input::authority("--cap", caps)?;
    let make = |facts: &HostFacts| Plan::of(name, &authority, facts);
    on_host(args.backend, governing, HostFacts::unknown(), make).map_err(|why| match why {
        Unplanned::Wrong(finding) => input::wrong_capability("--cap", "", &finding),
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
    let checked = match manifest.clone().with_capabilities(caps).check(&facts) {
        Ok(checked) => checked,
        Err(findings) => {
            return Err(match manifest.check(&facts) {
                Ok(_) => wrong_addition(Findings::into_vec(findings)),
                Err(findings) => wrong(source, Findings::into_vec(findings)),
            });
        }
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

/// The refusal of capabilities that do not fit a manifest that is right by itself.
fn wrong_addition(findings: Vec<Finding>) -> Answer {
    // A place would be one of the manifest, where these lines are not.
    let placeless = findings.into_iter().map(|finding| finding.map_span(|_| None));
    let texts = placeless.map(|finding| input::wrong_capability("--cap", "", &finding).complaint);
    Answer::refusal(Exit::Usage, texts.collect())
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
