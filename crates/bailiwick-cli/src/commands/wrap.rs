//! `bailiwick wrap`: one prefix before the command of an MCP server.
//!
//! The server runs in the sandbox of its manifest, every call passes the gate, and everything is recorded. stdout carries
//! messages of the protocol and nothing else.
//!
//! Fails closed when: there is no manifest, it is broken, or this host cannot hold it. Nothing is started then; a server
//! without tools takes its place and says why, because clients hide exit codes.

mod approver;
mod authority;
mod choose;
mod explain;
mod fleet;
mod gate;
mod isolate;
mod listen;
mod pins;
mod refusals;
mod remote;
mod restart;
mod run_state;
mod secret;
mod server_log;
mod supervise;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, plain};
use bailiwick_command::args::run::Run;
use bailiwick_command::args::wrap::{GateMode, Isolate, Restart, Wrap};
use bailiwick_command::fleet_rules::ServerInFleet;
use bailiwick_command::render::{escape, style};
use bailiwick_command::{facts, terminal};
use bailiwick_journal::format::{Event, RecordKind};
use bailiwick_journal::{Journal, Options, new_session};
use bailiwick_launch::{BrokerProcess, CallsInFlight, LaunchError, Launched, Pipes, Recorder};
use bailiwick_manifest::settings::allows_audit;
use bailiwick_manifest::{Checked, Manifest};
use bailiwick_mcp::relay::StandIn;
use bailiwick_policy::denial::DenialCode;
use bailiwick_policy::plan::Plan;
use bailiwick_replica::Leash;
use bailiwick_store::ProjectCode;

use self::choose::ChosenServer;
use self::fleet::FleetPart;
use self::isolate::ToolGroup;
use super::run::{Governing, PlannedRun, server_launch, started_secrets};
use super::serve::speak;

/// Said at every start that only records what the gate says.
const AUDIT: &str = "AUDIT MODE: calls that the manifest refuses or asks about are LET THROUGH and recorded as `would-deny`; the \
                     sandbox, pins, secrets and guardrails hold";

/// Said where every tool runs in the base.
const UNSPLIT: &str = "`--isolate tool` keeps nothing apart here: the manifest says of no tool what it keeps in the server's \
                       process; write `state = \"none\"` or `state = \"shared\"` there, or `stateless = true` in `[package]`";

pub(super) fn run(args: &Wrap) -> anyhow::Result<Answer> {
    bailiwick_confine::return_large_blocks();
    let server = match WrappedServer::new(args) {
        Ok(server) => Arc::new(server),
        Err(why) if args.explain || args.listen.is_some() => {
            return Ok(Answer::refusal(Exit::Program(125), complaint(&format!("{why:#}"))));
        }
        Err(why) => return stand_in(args, &format!("{why:#}")),
    };
    if args.explain {
        let is_elsewhere = args.url.is_some();
        return Ok(if is_elsewhere { explain::answer_elsewhere(&server) } else { explain::answer(&server) });
    }
    let answer = match args.listen {
        Some(address) => listen_on(args, Arc::clone(&server), address),
        None => serve_client(args, &server),
    };
    if let Some(fleet) = &server.fleet {
        fleet.end();
    }
    answer
}

/// Serves the client on stdin and stdout.
fn serve_client(args: &Wrap, server: &Arc<WrappedServer>) -> anyhow::Result<Answer> {
    let journal = match open_journal(args) {
        Ok(journal) => journal,
        Err(fault) => return stand_in(args, &format!("{fault:#}; nothing was started")),
    };
    let gate = match gate::Gate::new(args, server, &journal) {
        Ok(gate) => gate,
        Err(why) => return stand_in(args, &format!("{why:#}")),
    };
    let began = server.began(args);
    journal.append(Event::new(RecordKind::SessionStarted).with_reason(began))?;
    if args.url.is_some() {
        let answer = remote::relay(args, server, gate, &journal);
        let answer = answer.or_else(|why| stand_in(args, &format!("{why:#}")))?;
        journal.close()?;
        return Ok(answer);
    }
    if args.restart == Restart::OnFailure {
        let answer = restart::relay(server, gate, &journal)?;
        journal.close()?;
        return Ok(answer);
    }
    let answer = match start(server, &server.asked, &gate.serving(), &journal) {
        Ok((launched, pipes)) => supervise::relay(server, gate, launched, pipes, &journal)?,
        Err(error) => {
            journal.append(Event::new(RecordKind::SessionEnded).with_reason("the server did not start"))?;
            let code = error.downcast_ref::<LaunchError>().map_or(125, LaunchError::exit_code);
            drop(stand_in(args, &format!("{error:#}"))?);
            Answer::refusal(Exit::Program(code), String::new())
        }
    };
    journal.close()?;
    Ok(answer)
}

/// Serves over HTTP. Who starts that looks at stderr, so nothing stands in for a server that cannot be started.
fn listen_on(args: &Wrap, server: Arc<WrappedServer>, address: SocketAddr) -> anyhow::Result<Answer> {
    let journal = open_journal(args)?;
    let began = server.began(args);
    journal.append(Event::new(RecordKind::SessionStarted).with_reason(began))?;
    let answer = listen::serve(args, server, &journal, address)
        .unwrap_or_else(|why| Answer::refusal(Exit::Program(125), complaint(&format!("{why:#}"))));
    journal.close()?;
    Ok(answer)
}

/// A server whose manifest was found and planned for.
struct WrappedServer {
    name: String,
    /// What it is known by.
    identity: String,
    /// Its package and version, if it is one.
    package: Option<String>,
    run: Run,
    /// What the server as a whole is held to; with instances for tools, the base alone.
    asked: PlannedRun,
    /// The manifest, checked on this host.
    checked: Checked,
    /// The file that its manifest is in, if that is one file.
    manifest_file: Option<PathBuf>,
    /// Tools that run in processes apart from the base.
    groups: Vec<ToolGroup>,
    /// Code of it that lies in the user's own project.
    code: ProjectCode,
    /// The process that holds the secrets of all its sandboxes.
    secrets: Option<Arc<BrokerProcess>>,
    /// What the fleet has to do with it, on a machine that is enrolled.
    fleet: Option<Arc<FleetPart>>,
    /// What is worth knowing of it.
    notes: Vec<String>,
    /// Whether what it does and says is kept.
    is_recorded: bool,
    /// The fleet's guardrails, by name and text.
    guardrails: Vec<(String, String)>,
    /// What ends it when the fleet says so.
    leash: Option<Leash>,
}

impl WrappedServer {
    /// Finds out what the command starts and which manifest is for it, and plans.
    ///
    /// # Errors
    /// Why nothing can be started, in words for people and models.
    fn new(args: &Wrap) -> anyhow::Result<Self> {
        let is_audit = allowed_audit(args)?;
        let ChosenServer {
            identity,
            package,
            source,
            manifest,
            files,
            command,
            code,
            mut notes,
            fleet: rules,
        } = ChosenServer::new(args)?;
        let ceilings = rules.as_ref().map(ServerInFleet::ceilings).transpose()?;
        if args.url.is_some() {
            notes.push("the server runs elsewhere: no sandbox holds it".to_owned());
        }
        if is_audit {
            notes.insert(0, AUDIT.to_owned());
        }
        let name = args.name.clone().unwrap_or_else(|| manifest.name().to_owned());
        if !args.explain {
            authority::remember(&name, &identity, &manifest)?;
        }
        let run = Run { tell: args.tell, ..run_of(args, command) };
        let governing = Governing::from_args(&run);
        let governing = files.iter().try_fold(governing.map_err(anyhow::Error::msg)?, |all, file| {
            all.and(file).map_err(anyhow::Error::msg)
        })?;
        let governing = governing.under(ceilings.unwrap_or_default());
        let plan = |manifest: Manifest, tool: Option<String>| {
            let run = Run { tool, ..run_of(args, Vec::new()) };
            PlannedRun::of_server(&run, &program(args), &governing, (source.clone(), manifest)).map_err(plain)
        };
        let whole = plan(manifest, None)?;
        let checked = whole.checked.clone().context("there is no manifest")?;
        if args.restart == Restart::OnFailure {
            restart::refuse_stateful(args, &checked)?;
        }
        let (asked, groups) = match args.isolate {
            Isolate::Server => (whole, Vec::new()),
            Isolate::Tool => isolate::groups(&checked, plan)?,
        };
        if args.isolate == Isolate::Tool && groups.is_empty() {
            notes.push(UNSPLIT.to_owned());
        }
        let manifest_file = match &*files {
            [only] => only.canonicalize().ok(),
            _ => None,
        };
        let plans = std::iter::once(&asked).chain(groups.iter().map(|group| &group.asked));
        let plans: Vec<&Plan> = plans.map(|asked| &asked.plan).collect();
        let secrets = match args.url {
            // Its credential is no secret of a sandbox.
            Some(_) => None,
            None => started_secrets(&plans, &args.secrets, &args.names).map_err(anyhow::Error::msg)?,
        };
        let is_recorded = !args.no_journal;
        let guardrails = rules.iter().flat_map(|rules| rules.rules.guardrails());
        let guardrails = guardrails.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let leash = rules.filter(|_| !args.explain).map(ServerInFleet::leash).transpose()?;
        let fleet = if args.explain { None } else { FleetPart::open()? };
        Ok(Self {
            name,
            identity,
            package,
            run,
            asked,
            checked,
            manifest_file,
            groups,
            code,
            secrets,
            fleet,
            notes,
            is_recorded,
            guardrails,
            leash,
        })
    }

    /// Ends when we are asked to end, or the fleet ends the server.
    async fn until_asked(&self, asked: impl Future<Output = ()>) {
        match &self.leash {
            None => asked.await,
            Some(leash) => tokio::select! {
                () = asked => {}
                () = leash.over().cancelled_owned() => {}
            },
        }
    }

    /// The end of the session for the journal, with why the fleet ended it if it did.
    fn ended(&self, how: &str) -> Event {
        let event = Event::new(RecordKind::SessionEnded).with_reason(self.ended_in_words(how));
        let is_revoked = self.leash.as_ref().is_some_and(|leash| leash.ended().is_some());
        if is_revoked { event.with_code(DenialCode::Revoked.as_str()) } else { event }
    }

    /// How it ended, after why the fleet ended it if it did.
    fn ended_in_words(&self, how: &str) -> String {
        supervise::with_reason(self.leash.as_ref(), how.to_owned())
    }

    /// What the journal says of its start. Notes are said aloud too.
    fn began(&self, args: &Wrap) -> String {
        for note in &self.notes {
            terminal::remark(&format!("{}: {}\n", style::warning("note"), escape::line(note)));
        }
        let notes: String = self.notes.iter().map(|note| format!("; {}", escape::line(note))).collect();
        format!("wraps `{}`: {}{notes}", escape::line(&self.name), escape::line(&args.shown_command()))
    }
}

/// The run of a command, as `wrap` is told it.
fn run_of(args: &Wrap, command: Vec<OsString>) -> Run {
    Run::for_server(None, args.settings.clone(), args.names.clone(), args.secrets.clone(), command)
}

/// Whether verdicts of the gate are only recorded.
///
/// # Errors
/// If that was asked for, and the user's settings do not allow it.
fn allowed_audit(args: &Wrap) -> anyhow::Result<bool> {
    if args.mode == GateMode::Enforce {
        return Ok(false);
    }
    let file =
        facts::settings_file().context("neither XDG_CONFIG_HOME nor HOME says where your settings are")?;
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let allowed =
        allows_audit(&text).map_err(|findings| anyhow::anyhow!("{}: {findings}", file.display()))?;
    anyhow::ensure!(
        allowed,
        "`--mode audit` lets calls through that the manifest refuses, so your own settings must allow it: write `[wrap]` and \
         below it `audit = true` into `{}`",
        file.display()
    );
    Ok(true)
}

/// Starts the server, or one instance of it, in its sandbox.
fn start(
    server: &WrappedServer,
    asked: &PlannedRun,
    serving: &CallsInFlight,
    journal: &Journal,
) -> anyhow::Result<(Launched, Pipes)> {
    let recorder = Recorder::session(&server.name, journal.clone()).serving(Arc::clone(serving));
    let (stdio, pipes) = Pipes::open()?;
    let launch =
        server_launch(&server.run, asked, stdio, recorder, server.secrets.as_ref()).map_err(plain)?;
    let ready =
        launch.with_code(server.code.code.clone(), server.code.data.clone()).telling_sockets().prepare()?;
    Ok((ready.start()?, pipes))
}

fn program(args: &Wrap) -> String {
    let program = args.command.first().map(Path::new).or(args.url.as_deref().map(Path::new));
    program.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Speaks the protocol without any tool, until the client has gone: its instructions say why.
fn stand_in(args: &Wrap, why: &str) -> anyhow::Result<Answer> {
    let name = args.name.clone().unwrap_or_else(|| program(args));
    terminal::remark(&complaint(why));
    let instructions =
        format!("This server has no tools, because Bailiwick did not start `{name}`. {}", why.trim());
    speak(StandIn::new(&name, env!("CARGO_PKG_VERSION"), instructions))?;
    Ok(Answer::refusal(Exit::Program(125), String::new()))
}

fn complaint(why: &str) -> String {
    let lines: String = why.trim_end().lines().map(|line| format!("{}\n", escape::line(line))).collect();
    format!("{}: {lines}", style::error("error"))
}

fn open_journal(args: &Wrap) -> anyhow::Result<Journal> {
    if args.no_journal {
        return Ok(Journal::discarding());
    }
    let dir = facts::journal_dir().context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    let journal = Journal::open(&dir, new_session()?, Options::default());
    journal.with_context(|| format!("cannot open the journal in `{}`", dir.display()))
}
