//! From the command line to a plan: a manifest, capabilities, and what this host has at their paths.

use std::path::Path;

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::run::{Backend, Run};
use bailiwick_command::input::InputError;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, fleet_rules, input, pinned_files};
use bailiwick_launch::{Brokering, HostPlanner, PlanError};
use bailiwick_manifest::{Checked, Manifest};
use bailiwick_policy::capability::Capability;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::finding::{Finding, Findings, Source};
use bailiwick_policy::limits::Limits;
use bailiwick_policy::plan::{Origin, Plan};

use super::leash::Governing;
use super::retries;

/// What the command line asks for, on this host.
pub(in crate::commands) struct PlannedRun {
    pub(in crate::commands) plan: Plan,
    /// The manifest, if there is one.
    manifest: Option<Source>,
    /// The same, checked on this host.
    pub(in crate::commands) checked: Option<Checked>,
}

impl PlannedRun {
    pub(in crate::commands) fn new(args: &Run, name: &str, governing: &Governing) -> Result<Self, Answer> {
        let caps = input::capabilities("--cap", &args.caps)?;
        let asked = match &args.manifest {
            None => {
                Self { plan: of_capabilities(name, args, governing, &caps)?, manifest: None, checked: None }
            }
            Some(path) => of_file(path, args, governing, caps)?,
        };
        Ok(asked.limited(args, name))
    }

    /// What a manifest asks for that was read before.
    pub(in crate::commands) fn of_server(
        args: &Run,
        name: &str,
        governing: &Governing,
        (source, manifest): (Source, Manifest),
    ) -> Result<Self, Answer> {
        Ok(of_manifest(source, manifest, args, governing, Vec::new())?.limited(args, name))
    }

    fn limited(self, args: &Run, name: &str) -> Self {
        let limits = limits(args, *self.plan.limits());
        let retries = retries::variables(&self.plan, name);
        let plan = self.plan.with_limits(limits).with_variables(retries);
        let plan = if plan.environment().brokered.is_empty() {
            plan
        } else {
            plan.with_variables(Brokering::variables())
        };
        Self { plan, ..self }
    }

    /// Where a granted line stands: in the manifest, else on the command line.
    pub(super) fn line(&self, origin: Option<&Origin>) -> String {
        // What `--cap` adds to a manifest has no place in it.
        let placed = origin.filter(|origin| origin.span.end > 0).zip(self.manifest.as_ref());
        placed.map_or_else(
            || "--cap".to_owned(),
            |(origin, source)| format!("{}:{}", source.name(), source.place(origin.span.start).line),
        )
    }
}

fn of_capabilities(
    name: &str,
    args: &Run,
    governing: &Governing,
    caps: &[Capability],
) -> Result<Plan, Answer> {
    let mut authority = input::authority("--cap", caps)?;
    for ceiling in &governing.ceilings {
        let ceiling = fleet_rules::checked(ceiling, &args.settings).map_err(|found| of_fleet(&found))?;
        authority = authority.meet(&ceiling.authority().clone().as_bound());
    }
    let planned = planner(args.backend, governing, HostFacts::unknown())
        .and_then(|planner| planner.authority_plan(name, &authority));
    planned.map_err(|why| match why {
        PlanError::Wrong(finding) => input::wrong_capability("--cap", "", &finding),
        why @ (PlanError::Unseen { .. } | PlanError::NotText { .. }) => super::refused(&why.to_string()),
    })
}

fn of_file(
    path: &Path,
    args: &Run,
    governing: &Governing,
    caps: Vec<Capability>,
) -> Result<PlannedRun, Answer> {
    let (source, manifest) = input::manifest(path).map_err(|useless| useless.refusal())?;
    of_manifest(source, manifest, args, governing, caps)
}

fn of_manifest(
    source: Source,
    manifest: Manifest,
    args: &Run,
    governing: &Governing,
    caps: Vec<Capability>,
) -> Result<PlannedRun, Answer> {
    let wrong = |source: Source, findings: Vec<Finding>| InputError::Wrong(source, findings).refusal();
    pinned_files::ensure_unchanged(&manifest).map_err(|why| super::refused(&format!("{why:#}")))?;
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
    let checked = fleet_rules::narrowed(checked, &governing.ceilings, &args.settings);
    let checked = checked.map_err(|found| of_fleet(&found))?;
    let tool = match &args.tool {
        None => None,
        Some(name) => Some(checked.tool(name).ok_or_else(|| no_such_tool(&checked, name))?),
    };
    let planned = planner(args.backend, governing, facts).and_then(|planner| {
        planner.plan(|facts| match tool {
            None => checked.server_plan(facts),
            Some(tool) => checked.tool_plan(tool, facts),
        })
    });
    match planned {
        Ok(plan) => Ok(PlannedRun { plan, manifest: Some(source), checked: Some(checked) }),
        Err(PlanError::Wrong(finding)) => Err(wrong(source, vec![finding])),
        Err(why @ (PlanError::Unseen { .. } | PlanError::NotText { .. })) => {
            Err(super::refused(&why.to_string()))
        }
    }
}

/// The refusal of a fleet's manifest that means nothing here.
fn of_fleet(findings: &[Finding]) -> Answer {
    let why = findings.first().map(Finding::message).unwrap_or_default();
    super::refused(&format!(
        "the fleet's manifest for this program cannot be used: {why}; nothing was started"
    ))
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

/// Plans for a sandbox on this host. Our own sandboxes look at the base and at files that run code later themselves.
fn planner(backend: Backend, governing: &Governing, facts: HostFacts) -> Result<HostPlanner, PlanError> {
    let planner = HostPlanner::new(facts::with_own_paths(facts)).with_home(facts::home().as_deref());
    governing.on(match backend {
        Backend::Native | Backend::Landlock => planner,
        Backend::Bwrap | Backend::Oci | Backend::Firejail => planner.for_mounts(),
    })
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
