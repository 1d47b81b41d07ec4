//! Histories: members do what they do while connections, processes and the database fail, and a judge looks at what they saw.
//!
//! A history is made from its seed, which is printed when one fails: `BAILIWICK_SEED=N` runs that one again. Which request meets which
//! fault also depends on the scheduler, so a seed makes a failure likely again, not certain.

mod actors;
mod checker;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bailiwick_fleet::entry::Role;
use bailiwick_hub::database::Database;
use tokio::sync::Semaphore;

use crate::proxy::Proxy;
use crate::random::Random;
use crate::world::{Fleet, Identity, run};
use actors::Stage;
use bailiwick_testkit::postgres::Postgres;
use checker::findings;

/// Who takes part: enrolled once, in the database that all histories start from.
pub(crate) struct Cast {
    machines: Vec<Identity>,
    approver: Identity,
    admin: Identity,
}

/// What the judge says.
type Found = Vec<(&'static str, String)>;

/// How many: `(fast ones, with kills)`.
fn counts() -> (u64, u64) {
    let is_full = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    if is_full { (1000, 20) } else { (60, 3) }
}

/// One seed that was asked for, or a range.
fn seeds(first: u64, count: u64) -> Vec<u64> {
    let asked = std::env::var("BAILIWICK_SEED").ok().and_then(|text| text.parse().ok());
    asked.map_or_else(|| (first..first + count).collect(), |seed| vec![seed])
}

async fn prepare(postgres: &Postgres, fleet: &Fleet) -> Cast {
    let hub = fleet.hub(&postgres.create("start"), "log-start").await;
    let mut machines = Vec::new();
    for _ in 0..3 {
        machines.push(fleet.member(&hub, Role::Machine).await);
    }
    let (approver, admin) = (fleet.member(&hub, Role::Approver).await, fleet.member(&hub, Role::Admin).await);
    Cast { machines, approver, admin }
}

#[test]
fn nothing_forbidden_happens_while_connections_fail() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let (fleet, postgres) = (Arc::new(Fleet::new()), Arc::new(postgres));
        let cast = Arc::new(prepare(&postgres, &fleet).await);
        // Ended connections of the hub that enrolled them: a template may have none.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let places = Arc::new(Semaphore::new(6));
        let mut running = tokio::task::JoinSet::new();
        for seed in seeds(1, counts().0) {
            let place = Arc::clone(&places).acquire_owned().await.unwrap();
            let (fleet, postgres, cast) = (Arc::clone(&fleet), Arc::clone(&postgres), Arc::clone(&cast));
            running.spawn(async move {
                let done = one_with_faults(seed, &fleet, &postgres, &cast, None).await;
                drop(place);
                (seed, done)
            });
        }
        let mut events = 0;
        while let Some(done) = running.join_next().await {
            let (seed, (count, found)) = done.unwrap();
            assert!(found.is_empty(), "seed {seed}: {found:?}");
            events += count;
        }
        eprintln!("{events} events");
        assert!(events > 100, "the actors did next to nothing");
    });
}

/// Two hubs of this process; connections to the database and to the hubs are cut. With a planted bug nothing is cut.
async fn one_with_faults(
    seed: u64,
    fleet: &Fleet,
    postgres: &Arc<Postgres>,
    cast: &Cast,
    planted: Option<&str>,
) -> (usize, Found) {
    let mut random = Random::new(seed);
    let name = format!("history_{seed}");
    postgres.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE start"));
    if let Some(statements) = planted {
        postgres.sql(&name, statements);
    }
    let chances = if planted.is_some() { (0, 0) } else { (40, 20) };
    let (mut hubs, mut proxies) = (Vec::new(), Vec::new());
    for number in 0..2 {
        let before_database = Proxy::before(postgres.address(), chances.0, 30_000, random.split()).await;
        let url = postgres
            .url(&name)
            .replace(&postgres.address().to_string(), &before_database.address.to_string());
        let database = Database::new(&url, 6, None).unwrap();
        let hub = fleet.hub_as_it_is(database, &format!("log-{seed}-{number}")).await;
        let before_hub = Proxy::before(hub.address, chances.1, 4_000, random.split()).await;
        proxies.push(before_database);
        hubs.push((hub, before_hub));
    }
    let addresses = [hubs[0].1.address, hubs[1].1.address];
    let stage = Stage::new(fleet, cast, addresses, &mut random);
    stage.play(&mut random).await;
    drop((hubs, proxies));
    finish(stage, postgres, &name, fleet).await
}

async fn finish(stage: Stage, postgres: &Postgres, name: &str, _fleet: &Fleet) -> (usize, Found) {
    let database = Database::new(&postgres.url(name), 1, None).unwrap();
    let head = database.with(async |client| bailiwick_hub::sequence::read_head(client).await).await.unwrap();
    let size = head.frontier.size();
    let log = database
        .with(async |client| bailiwick_hub::publish::read_entries(client, 0, size).await)
        .await
        .unwrap();
    drop(database);
    let history = stage.into_history(log);
    let found = findings(&history);
    if found.is_empty() {
        postgres.sql("postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
    (history.events.len(), found)
}

/// A hub as a program of its own.
struct HubProcess {
    child: Child,
    url: String,
    address: SocketAddr,
    keys: PathBuf,
    log_files: PathBuf,
}

impl HubProcess {
    fn start(url: &str, address: SocketAddr, keys: PathBuf, log_files: PathBuf) -> Self {
        let child = Self::spawn(url, address, &keys, &log_files);
        Self { child, url: url.to_owned(), address, keys, log_files }
    }

    fn spawn(url: &str, address: SocketAddr, keys: &std::path::Path, log_files: &std::path::Path) -> Child {
        Command::new(env!("CARGO_BIN_EXE_bailiwick-hub"))
            .args([
                "--sign-every",
                "100",
                "--anchor-every",
                "1",
                "--database",
                url,
                "--listen",
                &address.to_string(),
            ])
            .arg("--keys")
            .arg(keys)
            .arg("--log-files")
            .arg(log_files)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Kills it, as `kill -9` does, and starts it again.
    fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.url, self.address, &self.keys, &self.log_files);
    }
}

impl Drop for HubProcess {
    fn drop(&mut self) {
        let _may_be_gone = self.child.kill();
        let _may_be_gone = self.child.wait();
    }
}

#[test]
fn nothing_forbidden_happens_while_hubs_and_the_database_are_killed() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let (fleet, postgres) = (Fleet::new(), Arc::new(postgres));
        let cast = prepare(&postgres, &fleet).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        for seed in seeds(10_001, counts().1) {
            let (count, found) = one_with_kills(seed, &fleet, &postgres, &cast).await;
            eprintln!("seed {seed}: {count} events");
            assert!(found.is_empty(), "seed {seed}: {found:?}");
            assert!(count > 10, "seed {seed}: the actors did next to nothing");
        }
    });
}

async fn one_with_kills(seed: u64, fleet: &Fleet, postgres: &Arc<Postgres>, cast: &Cast) -> (usize, Found) {
    let mut random = Random::new(seed);
    let name = format!("kills_{seed}");
    postgres.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE start"));
    let mut hubs = Vec::new();
    for number in 0..2 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let log_files = fleet.path(&format!("log-{seed}-{number}"));
        hubs.push(HubProcess::start(&postgres.url(&name), free, fleet.path("keys"), log_files));
    }
    let addresses = [hubs[0].address, hubs[1].address];
    for address in addresses {
        let caller = fleet.stranger(address);
        crate::world::until("the hub listens", async || {
            caller.send("GET", "/checkpoint", &[], Vec::new()).await.ok().filter(|(status, _)| *status == 200)
        })
        .await;
    }
    let stage = Stage::new(fleet, cast, addresses, &mut random);
    let mut own = random.split();
    let killing = {
        let postgres = Arc::clone(postgres);
        tokio::task::spawn_blocking(move || {
            for _ in 0..4 {
                std::thread::sleep(Duration::from_millis(100 + own.below(300)));
                if own.percent(30) {
                    postgres.stop_at_once();
                    std::thread::sleep(Duration::from_millis(own.below(200)));
                    postgres.start_again();
                } else {
                    hubs[own.below(2) as usize].kill_and_restart();
                }
            }
            hubs
        })
    };
    stage.play(&mut random).await;
    let hubs = killing.await.unwrap();
    drop(hubs);
    finish(stage, postgres, &name, fleet).await
}

/// Bugs that are planted in a real database, under real hubs, and the rule that each breaks.
const PLANTED: [(&str, &str, &str); 5] = [
    ("overspent", "AFTER INSERT ON lease", "UPDATE budget SET taken = 0;"),
    ("used-twice", "BEFORE UPDATE ON approval", "NEW.used_nonce := NULL;"),
    ("answered-twice", "BEFORE UPDATE ON approval", "NEW.state := 'waiting';"),
    ("hub-honoured-revoked", "BEFORE UPDATE ON member", "NEW.revoked_at := NULL;"),
    ("appended-twice", "BEFORE INSERT ON log_entry", "NEW.request := md5(random()::text);"),
];

#[test]
fn each_bug_that_is_planted_under_real_hubs_is_found() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let (fleet, postgres) = (Arc::new(Fleet::new()), Arc::new(postgres));
        let cast = Arc::new(prepare(&postgres, &fleet).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut running = tokio::task::JoinSet::new();
        for (bug, first) in PLANTED.into_iter().zip((20_000..).step_by(100)) {
            let (fleet, postgres, cast) = (Arc::clone(&fleet), Arc::clone(&postgres), Arc::clone(&cast));
            running.spawn(async move { find_planted(bug, first, &fleet, &postgres, &cast).await });
        }
        running.join_all().await;
    });
}

/// Plays histories on top of a bug until one comes to what it breaks.
async fn find_planted(
    bug: (&str, &str, &str),
    first: u64,
    fleet: &Fleet,
    postgres: &Arc<Postgres>,
    cast: &Cast,
) {
    let (rule, when, what) = bug;
    let planted = format!(
        "CREATE FUNCTION planted() RETURNS trigger AS $$ BEGIN {what} RETURN NEW; END $$ LANGUAGE plpgsql; \
         CREATE TRIGGER planted {when} FOR EACH ROW EXECUTE FUNCTION planted();"
    );
    let mut rules = Vec::new();
    for seed in first..first + 20 {
        let (_, found) = one_with_faults(seed, fleet, postgres, cast, Some(&planted)).await;
        rules.extend(found.into_iter().map(|(rule, _)| rule));
        if rules.contains(&rule) {
            return;
        }
    }
    panic!("{rule} was not found: {rules:?}");
}
