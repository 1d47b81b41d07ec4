//! `bailiwick run`: one command, held to a plan.

mod dry_run;
mod hint;
mod jobs;
mod journal;
mod leash;
mod lost;
mod other_way;
mod plan;
mod relay;
mod retries;
mod secrets;
mod supervise;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::run::{Backend, Run};
use bailiwick_command::fleet_rules::ServerInFleet;
use bailiwick_command::render::{escape, style};
use bailiwick_command::written_trees::without_layer;
use bailiwick_command::{facts, input, terminal};
use bailiwick_compile::Target;
use bailiwick_launch::{
    BrokerProcess, BrokeredInside, Command, Launch, LaunchError, Launcher, NameSources, NetworkEvent,
    Options, Recorder, Search, Stdio, System, ToldRefusals, Watch,
};
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::plan::{Environment, Plan};
use bailiwick_replica::ServerIdentity;

pub(super) use self::leash::Governing;
use self::leash::Leash;
pub(super) use self::lost::told_of_server;
pub(super) use self::plan::PlannedRun;
pub(super) use self::secrets::started as started_secrets;

/// What this host has for every sandbox, looked at on a thread of its own while the command line is read and the plan is made.
pub(crate) type LookedAhead = Option<JoinHandle<System>>;

/// Begins to look if the words of the command line are those of a run: it takes as long as all else before the sandbox is made.
pub(crate) fn look_ahead(words: &[OsString]) -> LookedAhead {
    words.get(1).is_some_and(|word| word == "run").then(|| std::thread::spawn(System::look_ahead))
}

pub(super) fn run(args: &Run, looked_ahead: LookedAhead) -> anyhow::Result<Answer> {
    if args.tell && args.backend != Backend::Native {
        return Ok(refused("`--tell` needs the native sandbox; leave `--backend` out"));
    }
    let is_confined = args.backend == Backend::Native && !args.unconfined_i_accept_the_risk;
    let looked_ahead = looked_ahead.filter(|_| is_confined);
    let program = args.command.first().map_or(OsStr::new("server"), OsString::as_os_str);
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let governed = Governing::from_args(args).and_then(|governing| under_fleet(args, &name, governing));
    let (governing, fleet) = match governed {
        Ok(governed) => governed,
        Err(error) => return Ok(refused(&format!("{error:#}"))),
    };
    let asked = match PlannedRun::new(args, &name, &governing) {
        Ok(asked) => asked,
        Err(refusal) => return Ok(refusal),
    };
    let plan = &asked.plan;
    let Some(chosen) = Chosen::from_args(args, plan) else {
        return Ok(refused("no command was given, and the manifest has none"));
    };
    if args.unconfined_i_accept_the_risk {
        if let Some(secret) = plan.environment().brokered.first() {
            return Ok(refused(&format!("`{}` needs the sandbox; nothing was started", secret.value)));
        }
        return match journal::recorder(args, governing.journal(), plan) {
            Ok(recorder) => supervise::unconfined(&chosen, plan, recorder),
            Err(fault) => Ok(refused(&format!("{fault:#}; nothing was started"))),
        };
    }
    if args.die_with_parent {
        supervise::die_with_parent().context("cannot watch the process that started this one")?;
    }
    let leash = match Leash::open(args, &governing, plan) {
        Ok(leash) => leash,
        Err(fault) => return Ok(refused(&format!("{fault:#}; nothing was started"))),
    };
    // Other sandboxes mount by what the host was seen to have, and the journal and the report were made since.
    let by_name = matches!(args.backend, Backend::Bwrap | Backend::Oci | Backend::Firejail);
    let asked = if by_name && Governing::is_made(args) {
        match PlannedRun::new(args, &name, &governing) {
            Ok(asked) => asked,
            Err(refusal) => return Ok(refusal),
        }
    } else {
        asked
    };
    confined(args, &asked, &chosen, (leash, fleet), looked_ahead)
}

/// What the fleet says of this run, and leaves of what is granted.
fn under_fleet(
    args: &Run,
    program: &str,
    governing: Governing,
) -> anyhow::Result<(Governing, Option<ServerInFleet>)> {
    let manifest = args.manifest.as_deref().filter(|path| *path != Path::new("-"));
    // A manifest that cannot be read is refused where it is used.
    let named = manifest.and_then(|path| Some(input::manifest(path).ok()?.1.name().to_owned()));
    let identity = ServerIdentity::named(named.into_iter().chain([program.to_owned()]));
    let Some(fleet) = ServerInFleet::find(identity)? else { return Ok((governing, None)) };
    anyhow::ensure!(
        !args.unconfined_i_accept_the_risk,
        "this machine is in a fleet, whose rules need the sandbox; nothing was started"
    );
    let fleet = fleet.without_grant();
    fleet.rules.notes().into_iter().for_each(|text| note(Some(text)));
    Ok((governing.under(fleet.ceilings()?), Some(fleet)))
}

/// The command that is run, who chose it, and where it starts.
struct Chosen {
    command: Vec<OsString>,
    by: Choice,
    cwd: Option<PathBuf>,
}

/// Who chose a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Caller,
    Manifest,
}

impl Chosen {
    fn from_args(args: &Run, plan: &Plan) -> Option<Self> {
        let here = facts::here().ok();
        let own =
            args.cwd.as_ref().map(|own| here.as_ref().map_or_else(|| own.clone(), |here| here.join(own)));
        let cwd = own.and_then(|own| own.canonicalize().ok()).or(here);
        if !args.command.is_empty() {
            return Some(Self { command: args.command.clone(), by: Choice::Caller, cwd });
        }
        let (program, arguments) = plan.command()?;
        let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
        Some(Self { command: words.map(OsString::from).collect(), by: Choice::Manifest, cwd })
    }
}

/// Where programs are looked for by name. A command that a manifest names is found as every name in it is.
fn search(by: Choice) -> Result<Search, Answer> {
    let named = input::program_directories().map_err(|useless| useless.refusal())?;
    let callers = if by == Choice::Caller { facts::search_path() } else { named.clone() };
    Ok(Search { callers, named, variables: facts::tool_variables() })
}

/// Runs the command held to the plan. Recorded before it starts; not recorded is not started.
fn confined(
    args: &Run,
    asked: &PlannedRun,
    chosen: &Chosen,
    (mut leash, fleet): (Leash, Option<ServerInFleet>),
    looked_ahead: LookedAhead,
) -> anyhow::Result<Answer> {
    let plan = &asked.plan;
    // First: what is set up below, and copied of the environment, is in the memory that the sandbox starts with.
    let secrets = match started_secrets(&[plan], &args.secrets, &args.names) {
        Ok(secrets) => secrets,
        Err(why) => {
            leash.withdraw();
            return Ok(refused(&why));
        }
    };
    let launcher = match launcher(args.backend, plan) {
        Ok(launcher) => launcher,
        Err(refusal) => {
            leash.withdraw();
            return Ok(refused(&refusal.to_string()));
        }
    };
    let home = facts::home();
    let floor = floor(args, plan);
    let signals = supervise::signals().context("cannot watch for signals")?;
    let stdio = if relay::on_a_terminal() { Stdio::Terminal } else { Stdio::Inherit };
    let launch = match launch(args, asked, chosen, (stdio, leash.recorder()), secrets.as_ref()) {
        Ok(launch) => match looked_ahead.and_then(|looking| looking.join().ok()) {
            Some(system) => launch.on_own_system(system),
            None => launch.held_by(launcher, &facts::scratch_dir()),
        }
        .waiting_for_names(),
        Err(refusal) => {
            leash.withdraw();
            return Ok(refusal);
        }
    };
    let launch = if args.net_log { launch.watched_by(show) } else { launch };
    let ready = match launch.prepare() {
        Ok(ready) => ready,
        Err(refusal) => {
            leash.withdraw();
            return Ok(not_started(&refusal.into()));
        }
    };
    if let Err(fault) = leash.report(ready.status()) {
        leash.withdraw();
        return Ok(refused(&format!("{fault:#}; nothing was started")));
    }
    ready.status().unheld_limits.iter().for_each(|unheld| warn_of_limit(unheld));
    note(lost::foretold(&chosen.command, home.as_deref(), plan).filter(|_| args.backend == Backend::Native));
    match ready.start() {
        Ok(launched) => {
            // Only now: what starts it must be alone in this process.
            let fleet = fleet.map(ServerInFleet::short_leash).transpose()?;
            let (answer, mut seen) = supervise::watch(plan, launched, signals, fleet.as_ref())?;
            let answer = match seen.layer.take() {
                Some(layer) if args.dry_run => dry_run::ended(answer, layer, args.commit, plan)?,
                _ => answer,
            };
            note(lost::told(&seen.lost, home.as_deref()));
            Ok(with_hints(answer, args, chosen, plan, &seen))
        }
        Err(error) => {
            leash.withdraw();
            let mut answer = not_started(&error);
            answer.complaint += &other_way::without_namespaces(&error, plan, &floor);
            answer.complaint += without_layer(&error);
            Ok(answer)
        }
    }
}

fn warn_of_limit(unheld: &str) {
    let (warning, unheld) = (style::warning("warning"), escape::line(unheld));
    terminal::remark(&format!("{warning}: {unheld}; `--require limits=kernel` refuses such a run\n"));
}

/// Says what is worth knowing, at once.
fn note(text: Option<String>) {
    if let Some(text) = text {
        terminal::remark(&format!("{}: {}\n", style::warning("note"), escape::line(&text)));
    }
}

/// What must be held at least: the manifest's, raised by the command line.
fn floor(args: &Run, plan: &Plan) -> Floor {
    args.requirements.iter().fold(plan.floor(), |floor, own| floor.with(*own))
}

/// The launch of a server's command, by our own sandbox.
pub(super) fn server_launch<'a>(
    args: &Run,
    asked: &'a PlannedRun,
    stdio: Stdio,
    recorder: Recorder,
    secrets: Option<&Arc<BrokerProcess>>,
) -> Result<Launch<'a>, Answer> {
    let chosen = Chosen::from_args(args, &asked.plan);
    let chosen = chosen.ok_or_else(|| refused("no command was given, and the manifest has none"))?;
    launch(args, asked, &chosen, (stdio, recorder), secrets)
}

/// The launch that a command line asks for, by our own sandbox.
fn launch<'a>(
    args: &Run,
    asked: &'a PlannedRun,
    chosen: &Chosen,
    (stdio, recorder): (Stdio, Recorder),
    secrets: Option<&Arc<BrokerProcess>>,
) -> Result<Launch<'a>, Answer> {
    let plan = &asked.plan;
    let (program, arguments) = chosen.command.split_first().ok_or_else(|| refused("no command was given"))?;
    if let Some(missing) = args.cwd.as_ref().filter(|own| !own.is_dir()) {
        return Err(refused(&format!("`--cwd {}` is no directory; nothing was started", missing.display())));
    }
    let command = Command {
        program: program.clone(),
        args: arguments.to_vec(),
        cwd: chosen.cwd.clone(),
        env: environment(plan.environment()),
        stdio,
    };
    let options = Options {
        floor: Some(floor(args, plan)),
        home: facts::home(),
        services: facts::services(),
        watch: if args.tell { Watch::Files } else { Watch::Programs },
        told_refusals: if args.tell { ToldRefusals::SocketsAndNamespaces } else { ToldRefusals::None },
        search: search(chosen.by)?,
        counts_lost: true,
        layered: args.dry_run,
        brokered: BrokeredInside::default(),
        code: Vec::new(),
        data: Vec::new(),
    };
    let names = NameSources { resolver: args.names.resolver(), hosts: args.names.hosts() };
    let launch = Launch::new(plan, command, recorder)
        .with_options(options)
        .with_names(names)
        .opening_ports()
        .naming_lines(|origin| asked.line(origin));
    let brokering = secrets.map(|process| process.session(plan)).transpose();
    let brokering = brokering.map_err(|why| refused(&format!("{why}; nothing was started")))?;
    Ok(match brokering.flatten() {
        Some(brokering) => launch.brokering(brokering),
        None => launch,
    })
}

/// Says what the network decided.
fn show(event: &NetworkEvent) {
    terminal::remark(&format!("{event}\n"));
}

/// Whether the command did what it was to do.
const fn succeeded(exit: Exit) -> bool {
    matches!(exit, Exit::Program(0))
}

fn with_hints(
    mut answer: Answer,
    args: &Run,
    chosen: &Chosen,
    plan: &Plan,
    seen: &supervise::Events,
) -> Answer {
    let command = &chosen.command;
    let here = chosen.cwd.clone().unwrap_or_else(|| Path::new("/").to_owned());
    let mut notes = Vec::new();
    // Where files are watched, what it was refused is known better than by its arguments.
    if !args.tell && (seen.failed || succeeded(answer.exit)) {
        notes.extend(hint::unseen_paths(command, &here, plan, &seen.observed));
    }
    if !args.tell && seen.failed {
        notes.extend(hint::unmade_paths(command, &here, plan));
    }
    if !succeeded(answer.exit) {
        notes.splice(..0, hint::unreached_ports(&seen.observed, plan));
    }
    // Programs go on without much that they look for: of one that succeeded it is told where that was asked for.
    if seen.failed || (args.tell && succeeded(answer.exit)) {
        notes.extend(hint::watched(&seen.observed, command, &here, plan));
        notes.extend(hint::refused(&seen.refused, command));
        let is_native = args.backend == Backend::Native;
        let unstarted = !is_native && matches!(answer.exit, Exit::Program(126 | 127));
        notes.extend(hint::unstarted(plan).filter(|_| unstarted));
        let is_unexplained = notes.is_empty() && is_native;
        notes.splice(
            ..0,
            hint::unseen_directory(command, &here, plan).filter(|_| !args.tell || is_unexplained),
        );
        notes.extend((is_unexplained && !args.tell).then(hint::more_to_tell));
    }
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
    let provenance = Provenance { manifest: None, compiler: bailiwick_command::COMPILER.to_owned() };
    let artifact = bailiwick_compile::compile(target, plan, &Floor::none(), provenance)?;
    Ok(Launcher::External(Box::new(artifact)))
}

/// The values of the variables that the plan names. What the caller does not have stays unset.
fn environment(wanted: &Environment) -> BTreeMap<OsString, OsString> {
    if wanted.read_all {
        let is_brokered = |name: &OsString| wanted.brokered.iter().any(|secret| *name == *secret.value.name);
        return facts::environment_of_caller().filter(|(name, _)| !is_brokered(name)).collect();
    }
    let names = wanted.injected.iter().chain(&wanted.read).map(|name| &*name.value);
    names.filter_map(|name| Some((name.into(), facts::variable_of_caller(name)?))).collect()
}

/// Nothing was started, and why.
fn refused(why: &str) -> Answer {
    Answer::refusal(Exit::Program(125), complaint(why))
}

fn not_started(error: &LaunchError) -> Answer {
    Answer::refusal(Exit::Program(error.exit_code()), complaint(&error.to_string()))
}

fn complaint(why: &str) -> String {
    format!("{}: {}\n", style::error("error"), escape::line(why))
}

/// The plan's name for people: the manifest's, or the command's.
fn subject(plan: &Plan) -> &str {
    &plan.subject().name
}
