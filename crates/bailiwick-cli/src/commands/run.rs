//! `bailiwick run`: one command, held to a plan.

mod hint;
mod leash;
mod network;
mod plan;
mod record;
mod relay;
mod supervise;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;
use bailiwick_compile::Target;
use bailiwick_confine::{Command, Launcher, Options, Refusal, Stdio};
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::plan::{Environment, Plan};

use self::leash::{Governing, Leash};
use self::network::Refusals;
use crate::answer::{Answer, Exit};
use crate::args::run::{Backend, Run};
use crate::facts;
use crate::render::{escape, style};

pub(super) fn run(args: &Run) -> anyhow::Result<Answer> {
    let Some(program) = args.command.first() else {
        return Ok(refused("no command was given"));
    };
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let governing = match Governing::of(args) {
        Ok(governing) => governing,
        Err(why) => return Ok(refused(&why)),
    };
    let plan = match plan::asked(args, &name, &governing) {
        Ok(asked) => asked,
        Err(refusal) => return Ok(refusal),
    };
    if args.unconfined_i_accept_the_risk {
        return supervise::unconfined(args, &plan);
    }
    if args.die_with_parent {
        supervise::die_with_parent().context("cannot watch the process that started this one")?;
    }
    let leash = match Leash::open(args, &governing, &plan) {
        Ok(leash) => leash,
        Err(fault) => return Ok(refused(&format!("{fault:#}; nothing was started"))),
    };
    // Other sandboxes mount by what the host was seen to have, and the journal and the report were made since.
    let by_name = matches!(args.backend, Backend::Bwrap | Backend::Oci | Backend::Firejail);
    let plan = if by_name && Governing::is_made(args) {
        match plan::asked(args, &name, &governing) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(refusal),
        }
    } else {
        plan
    };
    confined(args, &plan, leash)
}

/// Runs the command held to the plan. Recorded before it starts; not recorded is not started.
fn confined(args: &Run, plan: &Plan, mut leash: Leash) -> anyhow::Result<Answer> {
    let Some((program, arguments)) = args.command.split_first() else {
        return Ok(refused("no command was given"));
    };
    let command = Command {
        program: program.clone(),
        args: arguments.to_vec(),
        cwd: facts::here().ok(),
        env: environment(plan.environment()),
        stdio: if relay::on_a_terminal() { Stdio::Terminal } else { Stdio::Inherit },
    };
    let floor = args.requirements.iter().fold(plan.floor(), |floor, own| floor.with(*own));
    let launcher = match launcher(args.backend, plan) {
        Ok(launcher) => launcher,
        Err(refusal) => {
            leash.unused(false);
            return Ok(refused(&refusal.to_string()));
        }
    };
    let options = Options { floor: Some(floor), home: facts::home(), services: facts::services() };
    let signals = supervise::signals().context("cannot watch for signals")?;
    let ready = match launcher.prepare(plan, command, options, &facts::scratch_dir()) {
        Ok(ready) => ready,
        Err(refusal) => {
            leash.unused(false);
            return Ok(not_started(&refusal));
        }
    };
    if let Err(fault) = leash.started(plan, ready.status()) {
        leash.unused(false);
        return Ok(refused(&format!("{fault:#}; nothing was started")));
    }
    match ready.start() {
        Ok(running) => {
            let refusals = Refusals::default();
            let answer = supervise::watch(args, plan, leash.record, &refusals, (running, signals))?;
            Ok(if failed_itself(answer.exit) { with_hints(answer, args, plan, &refusals) } else { answer })
        }
        Err(refusal) => {
            leash.unused(true);
            Ok(not_started(&refusal))
        }
    }
}

/// Whether the command ran and said that something went wrong.
fn failed_itself(exit: Exit) -> bool {
    matches!(exit, Exit::Program(1..=123 | 126 | 127))
}

fn with_hints(mut answer: Answer, args: &Run, plan: &Plan, refusals: &Refusals) -> Answer {
    let here = facts::here().unwrap_or_else(|_| Path::new("/").to_owned());
    let unstarted = matches!(answer.exit, Exit::Program(126 | 127));
    let mut notes = hint::notes(&args.command, &here, plan);
    notes.extend(hint::unstarted(plan).filter(|_| unstarted));
    notes.extend(hint::refused(&refusals.all()));
    for note in notes {
        answer.complaint += &format!("{}: {}\n", style::warning("note"), escape::line(&note));
    }
    answer
}

/// Who holds the command. The floor is compared with what that backend really holds when it starts.
fn launcher(backend: Backend, plan: &Plan) -> Result<Launcher, bailiwick_compile::Refusal> {
    let target = match backend {
        Backend::Native => return Ok(Launcher::Native),
        Backend::Landlock => return Ok(Launcher::Landlock),
        Backend::Bwrap => Target::Bwrap,
        Backend::Oci => Target::Oci,
        Backend::Firejail => Target::Firejail,
    };
    let provenance = Provenance { manifest: None, compiler: super::compile::COMPILER.to_owned() };
    let artifact = bailiwick_compile::compile(target, plan, &Floor::none(), provenance)?;
    Ok(Launcher::External(Box::new(artifact)))
}

/// The values of the variables that the plan names. What the caller does not have stays unset.
fn environment(wanted: &Environment) -> BTreeMap<OsString, OsString> {
    if wanted.read_all {
        return facts::environment_of_caller().collect();
    }
    let names = wanted.injected.iter().chain(&wanted.read).map(|name| &*name.value);
    names.filter_map(|name| Some((name.into(), facts::variable_of_caller(name)?))).collect()
}

/// Nothing was started, and why.
fn refused(why: &str) -> Answer {
    Answer::refusal(Exit::Program(125), complaint(why))
}

fn not_started(refusal: &Refusal) -> Answer {
    Answer::refusal(Exit::Program(refusal.exit_code()), complaint(&refusal.to_string()))
}

fn complaint(why: &str) -> String {
    format!("{}: {}\n", style::error("error"), escape::line(why))
}

/// The plan's name for people: the manifest's, or the command's.
fn subject(plan: &Plan) -> &str {
    &plan.subject().name
}
