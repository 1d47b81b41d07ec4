//! `bailiwick serve`: the built-in tools over the Model Context Protocol, each call held to the session's authority.
//!
//! stdout carries messages of the protocol and nothing else. Nothing is served without a journal.
//!
//! Fails closed when: a grant is there and cannot be read. Nothing is served then; without any grant, all is denied.

mod authority;
mod explain;
pub(crate) mod fixture;
mod http;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit, refused};
use bailiwick_command::args::serve::Serve;
use bailiwick_command::fleet_rules::ServerInFleet;
use bailiwick_command::input::InputError;
use bailiwick_command::listening::PARTING;
use bailiwick_command::output::real_path;
use bailiwick_command::render::{escape, style};
use bailiwick_command::running::{RunningFile, RunningServer};
use bailiwick_command::user_state::state;
use bailiwick_command::{companion, facts, terminal};
use bailiwick_guard::Guarded;
use bailiwick_guard::tools::{self, ConfinedReader, WebFetch};
use bailiwick_guard::{BrokerProcess, Registry, RegistryBuilder, Session};
use bailiwick_guardrails::{GUARDRAILS, Policy, SessionRails, State, Trust};
use bailiwick_journal::format::{Event, RecordKind};
use bailiwick_journal::{Journal, Options, new_session};
use bailiwick_launch::HostPlanner;
use bailiwick_manifest::Checked;
use bailiwick_mcp::{About, CancellationToken, Server, ServerHandler, Tools, instructions, stdio};
use bailiwick_policy::denial::DenialCode;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;
use bailiwick_replica::Leash;
use tokio::signal::unix::{SignalKind, signal};

use self::authority::Granted;
pub(super) use self::http::{announce, fresh_token};
use super::run::started_secrets;

pub(super) fn run(args: &Serve) -> anyhow::Result<Answer> {
    bailiwick_confine::return_large_blocks();
    if args.fixture.is_some() {
        match companion::become_one(companion::FIXTURE, companion::own_words())? {}
    }
    let granted = match authority::granted(args) {
        Ok(granted) => granted,
        Err(refusal) => return Ok(refusal),
    };
    let (granted, fleet) = match granted.under_fleet(args) {
        Ok(narrowed) => narrowed,
        Err(why) => return Ok(refused(Exit::Invalid, &format!("{why:#}"))),
    };
    let cwd = match directory(args) {
        Ok(cwd) => cwd,
        Err(error) => return Ok(refused(Exit::Usage, &format!("{error:#}"))),
    };
    // First: the session has a copy of the environment.
    let secrets = match secrets_of(args, &granted) {
        Ok(secrets) => secrets,
        Err(why) => return Ok(refused(Exit::Invalid, &why)),
    };
    if args.explain {
        return explain::answer(args, &granted, &cwd, secrets);
    }
    let journal = open_journal(args)?;
    let guardrails = fleet.iter().flat_map(|fleet| fleet.rules.guardrails());
    let guardrails: Vec<_> = guardrails.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    let builder = Registry::builder(journal.clone(), session(args, &granted, &cwd, secrets)?);
    let builder = with_tools(args, builder);
    let builder =
        granted.manifests.iter().fold(builder, |builder, manifest| held_to(builder, manifest, args));
    let leash = fleet.map(ServerInFleet::leash).transpose()?;
    let builder = leash.iter().cloned().fold(builder, RegistryBuilder::interceptor);
    let tools = match (&args.guardrails, guardrails.is_empty()) {
        (None, true) => Tools::Plain(builder.build()?),
        (file, _) => match guarded(file.as_deref(), &guardrails, builder)? {
            Ok(guarded) => Tools::Guarded(Box::new(guarded)),
            Err(refusal) => return Ok(refusal),
        },
    };
    let server = server(args, &granted, tools);
    let _shown = shown(args, &granted, &cwd, &journal);
    greet(&granted, args.http.is_some());
    let began = format!("serves `{}`, granted by {}", escape::line(&args.name), granted.origin);
    journal.append(Event::new(RecordKind::SessionStarted).with_reason(began))?;
    let over = leash.as_ref().map(Leash::over).unwrap_or_default();
    let how = match args.http {
        Some(address) => http::speak(address, server, over)?,
        None => speak_until(server, over)?,
    };
    let ended = Event::new(RecordKind::SessionEnded);
    journal.append(match leash.as_ref().and_then(Leash::ended) {
        Some(why) => ended.with_code(DenialCode::Revoked.as_str()).with_reason(why.to_owned()),
        None => ended.with_reason(how),
    })?;
    journal.close()?;
    Ok(Answer::result(Exit::Fine, String::new()))
}

/// What `ps` and the console show of this session while it is served; nothing if that cannot be kept.
fn shown(args: &Serve, granted: &Granted, cwd: &Path, journal: &Journal) -> Option<RunningFile> {
    let authority = granted.authority.capabilities();
    let pid = std::process::id();
    let server = RunningServer {
        name: args.name.clone(),
        identity: "bailiwick serve".to_owned(),
        package: None,
        command: vec!["bailiwick".to_owned(), "serve".to_owned()],
        pid,
        server_pid: pid,
        since: facts::now_us(),
        authority: authority.map(|lines| lines.iter().map(ToString::to_string).collect()),
        session: Some(journal.session().to_string()),
        era: None,
        manifest: None,
        project: Some(cwd.display().to_string()),
        calls: 0,
        denials: 0,
        manifest_hash: None,
        enforcement: BTreeMap::new(),
        is_served: true,
    };
    RunningFile::begin(&server).ok()
}

/// Every tool that is served. Without the program that reads pages, they are given as their source.
fn with_tools(args: &Serve, builder: RegistryBuilder) -> RegistryBuilder {
    let fetch = match companion::find(companion::PAGE) {
        Some(program) => WebFetch::reading_confined(ConfinedReader::at(program)),
        None => WebFetch::without_reader(),
    };
    let fetch = fetch.with_resolver(args.names.resolver());
    let fetch = args.names.hosts().into_iter().fold(fetch, |fetch, (name, all)| fetch.with_host(&name, all));
    tools::local(builder).tool(fetch)
}

/// The tools, held to a manifest. One that is named like this server must declare every tool; another holds the tools
/// that it declares.
fn held_to(builder: RegistryBuilder, manifest: &Checked, args: &Serve) -> RegistryBuilder {
    if manifest.manifest().name() == args.name {
        builder.manifest(manifest)
    } else {
        builder.declared_by(manifest)
    }
}

fn server(args: &Serve, granted: &Granted, tools: Tools) -> Server {
    let grant = tools.registry().mint(granted.authority.clone());
    let about = About {
        name: args.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: instructions(&grant, granted.guidance()),
        guidance: granted.guidance().map(str::to_owned),
    };
    Server::new(tools, grant, about)
}

/// Serves until the client closes its input or a signal ends the server; the reason of the end.
pub(super) fn speak(server: impl ServerHandler) -> anyhow::Result<&'static str> {
    speak_until(server, CancellationToken::new())
}

/// The same, and until it is over for another reason.
fn speak_until(server: impl ServerHandler, over: CancellationToken) -> anyhow::Result<&'static str> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (reader, writer) = stdio::standard();
        let served = stdio::serve(server, reader, writer, stop.clone());
        tokio::pin!(served);
        let signalled = tokio::select! {
            ended = &mut served => return ended.map(|()| "the client has gone"),
            _ = term.recv() => "terminated",
            _ = int.recv() => "interrupted",
            () = over.cancelled() => "revoked",
        };
        stop.cancel();
        served.await.map(|()| signalled)
    });
    // A read of stdin that will never end must not keep us.
    runtime.shutdown_timeout(PARTING);
    ended.context("the service broke")
}

/// What people should know before the first message.
fn greet(granted: &Granted, over_http: bool) {
    if companion::find(companion::PAGE).is_none() {
        let without = "`bailiwick-page` is not beside this program: `web_fetch` gives pages as their source";
        terminal::remark(&format!("{}: {without}\n", style::warning("warning")));
    }
    if let Some(guidance) = granted.guidance() {
        terminal::remark(&format!("{}: {guidance}\n", style::warning("warning")));
    } else if !over_http && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        terminal::remark(
            "serving MCP on stdin and stdout, one message a line; the end of the input ends it\n",
        );
    }
}

/// The process that holds the secrets that the session may use. No tool may read one at its source.
fn secrets_of(args: &Serve, granted: &Granted) -> Result<Option<Arc<BrokerProcess>>, String> {
    let located = HostPlanner::default().authority_plan(&args.name, &granted.authority);
    // What cannot be looked at now may be there later.
    let plan =
        located.or_else(|_| Plan::for_authority(&args.name, &granted.authority, &HostFacts::unknown()));
    let plan = plan.map_err(|finding| finding.message().to_owned())?;
    let process = started_secrets(&[&plan], &args.secrets, &args.names)?;
    if let Some(process) = &process {
        process.agreed(&plan).map_err(|why| format!("{why}; nothing is served"))?;
    }
    Ok(process)
}

fn session(
    args: &Serve,
    granted: &Granted,
    cwd: &Path,
    secrets: Option<Arc<BrokerProcess>>,
) -> anyhow::Result<Session> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let session = Session::new(cwd).with_own(facts::kept_dirs()).with_locked(governing(args)?);
    let session = session.with_names(args.names.resolver(), args.names.hosts());
    let session = session.with_env(facts::environment_of_caller().filter_map(text));
    let session = secrets.into_iter().fold(session, Session::with_secrets);
    let session = session.with_secret_uses(granted.secret_uses());
    Ok(match facts::home() {
        Some(home) => session.with_home(home),
        None => session,
    })
}

/// Where the session works, links followed.
fn directory(args: &Serve) -> anyhow::Result<PathBuf> {
    let asked = match &args.cwd {
        Some(dir) => dir.clone(),
        None => facts::here().context("there is no current directory")?,
    };
    let real = asked.canonicalize().with_context(|| format!("cannot use `{}`", asked.display()))?;
    anyhow::ensure!(real.is_dir(), "`{}` is not a directory", asked.display());
    Ok(real)
}

/// The files that say what the session may do, by where they really lie. With guardrails, all that lies beside them.
fn governing(args: &Serve) -> anyhow::Result<Vec<PathBuf>> {
    let directory = args.guardrails.as_deref().and_then(Path::parent);
    let files =
        args.grants.iter().map(PathBuf::as_path).filter(|path| *path != Path::new("-")).chain(directory);
    let real =
        |path: &Path| real_path(path, &[]).with_context(|| format!("cannot look at `{}`", path.display()));
    files.map(real).collect()
}

/// Where the journal of the session is kept.
fn journal_dir(args: &Serve) -> anyhow::Result<PathBuf> {
    let dir = args.journal.clone().or_else(facts::journal_dir);
    let dir = dir.context("neither XDG_STATE_HOME nor HOME says where the journal is")?;
    real_path(&dir, &[]).with_context(|| format!("cannot look at `{}`", dir.display()))
}

fn open_journal(args: &Serve) -> anyhow::Result<Journal> {
    let dir = journal_dir(args)?;
    let journal = Journal::open(&dir, new_session()?, Options::default());
    journal.with_context(|| format!("cannot open the journal in `{}`", dir.display()))
}

/// The tools behind the guardrails that a file names, and those of the fleet. A file that is not there or broken serves nothing.
pub(super) fn guarded(
    file: Option<&Path>,
    of_fleet: &[(String, String)],
    builder: RegistryBuilder,
) -> anyhow::Result<Result<Guarded, Answer>> {
    let (state, home) = (state()?, facts::home());
    let here = facts::here().context("there is no current directory")?;
    let of_text = |(name, text): &(String, String)| {
        let name = format!("the fleet's {name}");
        SessionRails::of_text((&*name, text.as_str()), &here, &state, home.as_deref())
    };
    let mut rails: Vec<SessionRails> = of_fleet.iter().map(of_text).collect();
    if let Some(file) = file {
        match of_project(file, &state)? {
            Ok(own) => rails.insert(0, own),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(Guarded::around_all(builder, rails)?))
}

/// The guardrails that a file names.
fn of_project(file: &Path, state: &State) -> anyhow::Result<Result<SessionRails, Answer>> {
    let Some(dir) = file.to_str().and_then(|path| path.strip_suffix(GUARDRAILS)) else {
        let why = format!("guardrails are read from `DIR/{GUARDRAILS}`, not from `{}`", file.display());
        return Ok(Err(refused(Exit::Usage, &why)));
    };
    let dir = Path::new(if dir.is_empty() { "." } else { dir }).canonicalize();
    let Ok(dir) = dir else {
        return Ok(Err(refused(Exit::Invalid, &format!("cannot use `{}`", file.display()))));
    };
    Ok(match Policy::load(&dir, &Trust::load(state)?) {
        Policy::Good(_) => Ok(SessionRails::new(&dir, state, facts::home().as_deref())?),
        Policy::Broken(broken) => Err(InputError::Wrong(broken.source, broken.findings).refusal()),
        Policy::Absent => Err(refused(Exit::Invalid, &format!("there is no `{}`", file.display()))),
        Policy::Changed(why) => Err(refused(Exit::Invalid, &why)),
    })
}
