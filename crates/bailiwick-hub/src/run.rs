//! The command: reads files and flags, and runs what was asked for.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bailiwick_fleet::entry::{EntryBody, MemberKey, Role};
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{
    Cli, Command, ExportArgs, InitArgs, RecoverArgs, RenewServerArgs, RotateLogArgs, ServeArgs, StoreArgs,
    TokenArgs,
};
use crate::database::Database;
use crate::hub::{Hub, Rhythm};
use crate::keys::{FleetSettings, Keys};
use crate::listen::{Listening, TlsFront, hub_limits};
use crate::members::{TokenWish, role_of};
use crate::publish::Publisher;
use crate::sequence::Append;
use crate::{recover, schema, sequence, service};

/// Why the command ended, and with which exit code.
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line is wrong.
    fn usage(message: impl std::fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// A file or key is wrong.
    fn input(message: impl std::fmt::Display) -> Self {
        Self { code: 3, message: message.to_string() }
    }

    /// The system or the database failed.
    fn fault(message: impl std::fmt::Display) -> Self {
        Self { code: 5, message: message.to_string() }
    }
}

/// Runs the command of this process.
#[must_use]
pub fn run_command() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = match (runtime, cli.command) {
        (Err(fault), _) => Err(Failure::fault(format!("no runtime: {fault}"))),
        (Ok(_), Some(Command::Init(args))) => init(&args),
        (Ok(runtime), Some(Command::Token(args))) => runtime.block_on(token(&args)),
        (Ok(runtime), Some(Command::Export(args))) => runtime.block_on(export(&args)),
        (Ok(runtime), Some(Command::Recover(args))) => runtime.block_on(put_back(&args)),
        (Ok(runtime), Some(Command::RotateLog(args))) => runtime.block_on(rotate_log(&args)),
        (Ok(_), Some(Command::RenewServer(args))) => renew_server(&args),
        (Ok(runtime), None) => runtime.block_on(serve(&cli.serve)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&format!("error: {}", failure.message));
            ExitCode::from(failure.code)
        }
    }
}

/// A line for the operator, on standard error.
pub(crate) fn report(line: &str) {
    let plain: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    // There is no other place to say that this failed.
    let _ = writeln!(std::io::stderr(), "bailiwick-hub: {plain}");
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::fault)
}

fn init(args: &InitArgs) -> Result<(), Failure> {
    let host = host_of(&args.url)?;
    for witness in &args.witness {
        bailiwick_fleet::note::NoteKey::parse(witness).map_err(Failure::usage)?;
    }
    if args.quorum > args.witness.len() {
        return Err(Failure::usage("`--quorum` is more than there are witnesses"));
    }
    let settings = FleetSettings {
        name: args.name.clone(),
        hub: args.url.clone(),
        log: args.log_url.clone().unwrap_or_else(|| args.url.clone()),
        witnesses: args.witness.clone(),
        quorum: args.quorum,
    };
    let keys = Keys::create(&args.keys, settings, &host).map_err(Failure::input)?;
    let key = keys.log_public();
    print(&format!(
        "The keys of the fleet are in `{}`: keep a copy where nothing else is.\nlog key: {key}\n",
        args.keys.display()
    ))
}

/// The host of `https://HOST[:PORT]`, with nothing behind it.
fn host_of(url: &str) -> Result<String, Failure> {
    let wrong = || Failure::usage(format!("`{url}` is not an address of the form https://HOST[:PORT]"));
    let uri: http::Uri = url.parse().map_err(|_| wrong())?;
    let is_bare = uri.scheme_str() == Some("https")
        && uri.path() == "/"
        && uri.query().is_none()
        && !url.ends_with('/');
    let host = uri.host().filter(|_| is_bare).ok_or_else(wrong)?;
    Ok(host.trim_matches(['[', ']']).to_owned())
}

async fn token(args: &TokenArgs) -> Result<(), Failure> {
    let (database, keys) = open_store(&args.store, 1)?;
    schema::migrate(&database).await.map_err(Failure::fault)?;
    let hub = Hub::new(database, keys, PathBuf::new());
    let role = role_of(&args.role).ok_or_else(|| Failure::usage("no such role"))?;
    let labels: BTreeSet<String> = args.label.iter().cloned().collect();
    let wish = TokenWish { role, labels, ttl_s: args.ttl };
    let text = service::token_text(&hub, "operator", &wish).await;
    let text = text.map_err(|error| Failure::fault(format!("{}: {error:?}", error.code())))?;
    print(&format!("{text}\n"))
}

async fn export(args: &ExportArgs) -> Result<(), Failure> {
    let (database, keys) = open_store(&args.store, 1)?;
    let served = Arc::default();
    let mut publisher = Publisher::open(&args.directory, keys, served).map_err(Failure::input)?;
    let size = publisher.publish(&database).await.map_err(Failure::fault)?;
    print(&format!("{size} entries are in `{}`\n", args.directory.display()))
}

async fn put_back(args: &RecoverArgs) -> Result<(), Failure> {
    let (database, keys) = open_store(&args.store, 1)?;
    schema::migrate(&database).await.map_err(Failure::fault)?;
    sequence::found_log(&database).await.map_err(Failure::fault)?;
    let done = recover::recover(&database, &keys, &args.from).await.map_err(Failure::fault)?;
    print(&format!(
        "the log had {} entries and has {}; approvals that were not used, enrolment tokens and what was left of budgets are gone: \
         set each budget again with `bailiwick fleet budget`\n",
        done.before, done.after
    ))
}

/// Machines read of a key in the log before it signs: what signs next is never unknown to them.
async fn rotate_log(args: &RotateLogArgs) -> Result<(), Failure> {
    let (database, keys) = open_store(&args.store, 1)?;
    schema::migrate(&database).await.map_err(Failure::fault)?;
    sequence::found_log(&database).await.map_err(Failure::fault)?;
    let before = keys.log_public();
    let (named, words) = if args.finish {
        let next = keys.take_next().map_err(Failure::input)?;
        let words = format!(
            "log key: {next}\nRestart every hub with this directory now: what the key before signs is taken no more.\n"
        );
        (before, words)
    } else {
        let next = keys.draw_next().map_err(Failure::input)?;
        let words =
            format!("announced: {next}\nWhen every machine has read it, run this again with `--finish`.\n");
        (next, words)
    };
    let key = bailiwick_fleet::Hash::from_bytes(*named.public());
    let body = EntryBody::MemberKey(MemberKey {
        member: keys.settings.name.clone(),
        role: Role::Hub,
        key,
        labels: BTreeSet::new(),
        removed: args.finish,
    });
    let request = format!("{}-{key}", if args.finish { "retire" } else { "announce" });
    let append = Append { request, by: "operator".to_owned(), body, effects: Vec::new() };
    sequence::append(&database, &append).await.map_err(Failure::fault)?;
    print(&words)
}

fn renew_server(args: &RenewServerArgs) -> Result<(), Failure> {
    let keys = Keys::open(&args.keys).map_err(Failure::input)?;
    let host = host_of(&keys.settings.hub)?;
    keys.renew_server(&host).map_err(Failure::input)?;
    print(&format!("the certificate for `{host}` is new: restart the hubs\n"))
}

async fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let missing = || {
        Failure::usage(
            "`--database`, `--keys`, `--listen` and `--log-files` are needed: see `bailiwick-hub --help`",
        )
    };
    let (Some(store), Some(listen), Some(log_files)) = (&args.store, args.listen, &args.log_files) else {
        return Err(missing());
    };
    let (database, keys) = open_store(store, usize::from(args.connections))?;
    let front = tls_front(args, &keys)?;
    raise_descriptor_limit();
    wait_for_database(&database).await?;
    let hub = Arc::new(Hub::new(database, Arc::clone(&keys), log_files.clone()));
    let publisher = Publisher::open(log_files, keys, Arc::clone(&hub.checkpoint)).map_err(Failure::input)?;
    let listening = Listening::bind(listen).await.map_err(Failure::fault)?;
    let rhythm = Rhythm {
        sign: Duration::from_millis(args.sign_every),
        anchor: Duration::from_secs(args.anchor_every),
        ..Rhythm::default()
    };
    let halt = CancellationToken::new();
    let probes = match args.probes {
        Some(address) => Some(Listening::bind(address).await.map_err(Failure::fault)?),
        None => None,
    };
    let own = Arc::clone(&hub);
    let tasks = tokio::spawn(async move {
        tokio::join!(own.keep_publishing(publisher, rhythm), own.keep_tidy(rhythm), own.keep_looking())
    });
    let probing = probes.map(|probes| {
        print_address("probes", &probes);
        tokio::spawn(probes.serve_probes(Arc::clone(&hub), halt.clone()))
    });
    print_address("listening", &listening);
    let ender = halt.clone();
    tokio::spawn(async move {
        until_told().await;
        ender.cancel();
    });
    listening.serve(front, hub_limits(), hub, halt).await;
    tasks.abort();
    if let Some(probing) = probing {
        probing.abort();
    }
    Ok(())
}

fn print_address(what: &str, listening: &Listening) {
    // A closed standard output does not end a hub.
    let _ = print(&format!("{what} {}\n", listening.address));
}

/// The database may start later than the hub.
async fn wait_for_database(database: &Database) -> Result<(), Failure> {
    let mut said = false;
    loop {
        let prepared = async {
            schema::migrate(database).await?;
            sequence::found_log(database).await
        };
        match prepared.await {
            Ok(()) => return Ok(()),
            Err(crate::database::StoreError::Down(why)) => {
                if !said {
                    report(&format!("waiting for the database: {why}"));
                    said = true;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(error) => return Err(Failure::fault(error)),
        }
    }
}

fn tls_front(args: &ServeArgs, keys: &Keys) -> Result<TlsFront, Failure> {
    let (own_chain, own_key) = keys.server_files();
    let chain = read(args.tls_cert.as_deref().unwrap_or(&own_chain))?;
    let key = zeroize::Zeroizing::new(read(args.tls_key.as_deref().unwrap_or(&own_key))?);
    let more = args.client_ca.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut authorities: Vec<&[u8]> = more.iter().map(Vec::as_slice).collect();
    authorities.push(keys.authority.pem().as_bytes());
    TlsFront::new(&chain, &key, &authorities, &args.host).map_err(Failure::input)
}

fn open_store(args: &StoreArgs, connections: usize) -> Result<(Database, Arc<Keys>), Failure> {
    let keys = Keys::open(&args.keys).map_err(Failure::input)?;
    let address = match args.database.strip_prefix('@') {
        Some(file) => String::from_utf8(read(Path::new(file))?).map_err(Failure::input)?.trim().to_owned(),
        None => args.database.clone(),
    };
    let authorities = args.database_ca.as_deref().map(read).transpose()?;
    let database = Database::new(&address, connections, authorities.as_deref()).map_err(Failure::usage)?;
    Ok((database, Arc::new(keys)))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|cause| Failure::input(format!("cannot read `{}`: {cause}", path.display())))
}

/// Connections are descriptors: as many as the system lets this process have.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, connections are closed earlier.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Ends when the process is told to.
async fn until_told() {
    let (Ok(mut term), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}
