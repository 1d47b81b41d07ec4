//! The log: two hubs append to one, what is signed leads to its entries, and a database that goes back is never signed.

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::{Checkpoint, Trust};
use bailiwick_fleet::entry::{Bundle, Entry, EntryBody, Role, Scope};
use bailiwick_fleet::merkle;
use bailiwick_fleet::tile::{LogFile, entry_bundles, tiles};
use bailiwick_hub::database::Database;
use bailiwick_hub::publish::{PublishError, Publisher};
use bailiwick_hub::{recover, sequence};
use std::sync::Arc;

use crate::world::{Caller, Fleet, RunningHub, new_id, run, until};
use bailiwick_testkit::postgres::Postgres;

fn bundle(name: &str) -> EntryBody {
    EntryBody::Bundle(Bundle { name: name.to_owned(), scope: Scope::Every, rules: Vec::new() })
}

/// The verified checkpoint that a hub serves.
pub(crate) async fn checkpoint(fleet: &Fleet, caller: &Caller) -> Option<Checkpoint> {
    let (status, note) = caller.send("GET", "/checkpoint", &[], Vec::new()).await.ok()?;
    let trust = Trust::hub(crate::world::NAME, vec![fleet.keys.log_public()]);
    (status == 200).then(|| trust.open(&note).unwrap().checkpoint)
}

/// All entries, as a machine reads them: over HTTP, every tile compared with what its entries lead to.
pub(crate) async fn read_log(fleet: &Fleet, hub: &RunningHub, least: u64) -> (Checkpoint, Vec<Vec<u8>>) {
    let caller = fleet.stranger(hub.address);
    let head = until("the log has grown", async || {
        checkpoint(fleet, &caller).await.filter(|head| head.size >= least)
    })
    .await;
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for bundle in entry_bundles(0, head.size) {
        let (status, bytes) =
            caller.send("GET", &format!("/{}", bundle.path()), &[], Vec::new()).await.unwrap();
        assert_eq!(status, 200, "{}", bundle.path());
        entries.extend(bundle.decode(&bytes).unwrap().into_iter().map(<[u8]>::to_vec));
    }
    let leaves: Vec<Hash> = entries.iter().map(|entry| merkle::leaf_hash(entry)).collect();
    assert_eq!(merkle::root(&leaves), head.root);
    for tile in tiles(head.size) {
        let (status, bytes) =
            caller.send("GET", &format!("/{}", tile.path()), &[], Vec::new()).await.unwrap();
        assert_eq!(status, 200, "{}", tile.path());
        assert_eq!(tile.decode(&bytes).unwrap(), tile.hashes_in(&leaves).unwrap(), "{}", tile.path());
    }
    (head, entries)
}

#[test]
fn two_hubs_append_to_one_log_and_repeated_requests_append_once() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("two");
        let (one, other) = (fleet.hub(&url, "log-1").await, fleet.hub(&url, "log-2").await);
        let admin = fleet.member(&one, Role::Admin).await;
        let mut tasks = Vec::new();
        for number in 0..280 {
            let caller = admin.at(if number % 2 == 0 { one.address } else { other.address });
            let again = admin.at(if number % 2 == 0 { other.address } else { one.address });
            let body = bundle(&format!("rules-{number}"));
            tasks.push(async move {
                let key = new_id();
                let first = caller.append(&key, &body).await.unwrap();
                let second =
                    if number % 10 == 0 { again.append(&key, &body).await.unwrap() } else { first.clone() };
                assert_eq!((first.0, &first.1), (200, &second.1), "{number}");
                first.1["index"].as_u64().unwrap()
            });
        }
        let mut indexes = Vec::new();
        let mut running = tokio::task::JoinSet::new();
        for task in tasks {
            running.spawn(task);
            if running.len() >= 8 {
                indexes.push(running.join_next().await.unwrap().unwrap());
            }
        }
        while let Some(index) = running.join_next().await {
            indexes.push(index.unwrap());
        }
        indexes.sort_unstable();
        assert_eq!(indexes, (1..=280).collect::<Vec<u64>>(), "the admin's own key is entry 0");
        let (_, entries) = read_log(&fleet, &one, 281).await;
        let (_, same) = read_log(&fleet, &other, 281).await;
        assert_eq!(entries, same);
        assert!(
            matches!(Entry::parse(&entries[0]).unwrap().body, EntryBody::MemberKey(key) if key.member == admin.member)
        );
        // A narrow tile that was replaced by the full one is cut from it.
        let narrow =
            fleet.stranger(one.address).send("GET", "/tile/0/000.p/3", &[], Vec::new()).await.unwrap();
        assert_eq!((narrow.0, narrow.1.len()), (200, 96));
    });
}

#[test]
fn a_database_that_goes_back_is_not_signed_and_recover_puts_the_log_back() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("present");
        let hub = fleet.hub(&url, "log").await;
        let admin = fleet.member(&hub, Role::Admin).await;
        let caller = admin.at(hub.address);
        for number in 0..3 {
            assert_eq!(caller.append(&new_id(), &bundle(&format!("a-{number}"))).await.unwrap().0, 200);
        }
        read_log(&fleet, &hub, 4).await;
        // The backup is taken while nothing writes.
        drop(hub);
        let backup = postgres.create("backup");
        copy_log(&postgres, "present", "backup", &backup, &fleet).await;
        let hub = fleet.hub(&url, "log").await;
        let caller = admin.at(hub.address);
        let revocation = EntryBody::Revocation(bailiwick_fleet::entry::Revocation {
            id: new_id(),
            target: bailiwick_fleet::entry::Target::Machine { machine: "0".repeat(32) },
            reason: "lost".to_owned(),
        });
        assert_eq!(caller.append(&new_id(), &revocation).await.unwrap().0, 200);
        let (published, entries) = read_log(&fleet, &hub, 5).await;
        drop((hub, caller));

        let restored = Database::new(&backup, 2, None).unwrap();
        let served = Arc::default();
        let mut publisher =
            Publisher::open(&fleet.path("log"), Arc::clone(&fleet.keys), Arc::clone(&served)).unwrap();
        let refused = publisher.publish(&restored).await;
        assert!(matches!(refused, Err(PublishError::Diverged { size: 5, .. })), "{refused:?}");
        assert!(served.read().unwrap().is_none(), "nothing was signed");

        // Another past of the same length is refused too.
        postgres.sql("backup", "UPDATE log_entry SET entry = 'x' WHERE idx = 1");
        let fork = recover::recover(&restored, &fleet.keys, &fleet.path("log")).await;
        assert!(fork.unwrap_err().to_string().contains("another entry at place 1"));
        copy_log(&postgres, "present", "backup", &backup, &fleet).await;
        postgres.sql("backup", "DELETE FROM log_entry WHERE idx >= 4");
        set_head(&postgres, "backup", &entries[..4]);

        let done = recover::recover(&restored, &fleet.keys, &fleet.path("log")).await.unwrap();
        assert_eq!((done.before, done.after), (4, 5));
        assert_eq!(publisher.publish(&restored).await.unwrap(), 5);
        let head = restored.with(async |client| sequence::read_head(client).await).await.unwrap();
        assert_eq!(head.root, published.root);
        assert_eq!(
            postgres.sql("backup", "SELECT taken = total FROM budget"),
            "t",
            "what was left of budgets is gone"
        );
        assert_eq!(postgres.sql("backup", "SELECT state FROM approval"), "denied");
        assert_eq!(postgres.sql("backup", "SELECT COUNT(*) FROM member WHERE revoked_at IS NOT NULL"), "1");
    });
}

#[test]
fn heads_of_journals_that_were_published_come_back_with_the_log() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("headed");
        let hub = fleet.hub(&url, "log").await;
        let machine = fleet.member(&hub, Role::Machine).await;
        let backup = postgres.create("backup");
        copy_log(&postgres, "headed", "backup", &backup, &fleet).await;
        let hash = Hash::sha256(b"h");
        let head = serde_json::json!({"machine": machine.member, "session": "s", "seq": 1, "hash": hash, "key": hash, "time_ms": 1});
        let report = serde_json::json!({ "heads": [head] });
        assert_eq!(machine.at(hub.address).post("/v1/heads", &report).await.unwrap().0, 204);
        read_log(&fleet, &hub, 2).await;
        drop(hub);
        let restored = Database::new(&backup, 1, None).unwrap();
        let done = recover::recover(&restored, &fleet.keys, &fleet.path("log")).await.unwrap();
        assert_eq!((done.before, done.after), (1, 2));
        let kept = "SELECT encode(sha256(body), 'hex') = hash FROM head_batch WHERE idx = 1";
        assert_eq!(postgres.sql("backup", kept), "t");
        // A hub whose directory is empty publishes all of it.
        let mut publisher =
            Publisher::open(&fleet.path("log-2"), Arc::clone(&fleet.keys), Arc::default()).unwrap();
        assert_eq!(publisher.publish(&restored).await.unwrap(), 2);
        let files = |log: &str| {
            let files = crate::world::files_below(&fleet.path(log));
            let names = files.iter().map(|file| file.strip_prefix(fleet.path(log)).unwrap().to_owned());
            names.filter(|name| name.starts_with("heads")).collect::<Vec<_>>()
        };
        assert_eq!((files("log"), files("log").len()), (files("log-2"), 1));
    });
}

/// As a backup would: the tables of the log, and some rows that the log does not have.
async fn copy_log(postgres: &Postgres, from: &str, to: &str, url: &str, _fleet: &Fleet) {
    let database = Database::new(url, 1, None).unwrap();
    bailiwick_hub::schema::migrate(&database).await.unwrap();
    for table in ["log_head", "log_entry", "log_node"] {
        postgres.sql(to, &format!("DELETE FROM {table}"));
        let rows = postgres.sql(from, &format!("SELECT COALESCE(json_agg(t), '[]') FROM {table} t"));
        let rows = rows.replace('\'', "''");
        postgres.sql(
            to,
            &format!("INSERT INTO {table} SELECT * FROM json_populate_recordset(NULL::{table}, '{rows}')"),
        );
    }
    postgres.sql(
        to,
        "DELETE FROM budget; INSERT INTO budget (id, unit, total, slice, lease_ms) VALUES ('b', 'calls', 10, 1, 10000); \
         DELETE FROM approval; INSERT INTO approval (id, machine, request_hash, arguments_sha256, state, expires_at) \
         VALUES ('x', 'm', '', '', 'allowed', now() + INTERVAL '1 hour'); \
         DELETE FROM member; INSERT INTO member (id, role, name, subject, labels) VALUES (repeat('0', 32), 'machine', 'm', 's', '[]')",
    );
}

/// Sets the head to what these entries lead to.
fn set_head(postgres: &Postgres, database: &str, entries: &[Vec<u8>]) {
    let mut tree = merkle::Frontier::default();
    entries.iter().for_each(|entry| tree.push(merkle::leaf_hash(entry)));
    let packed: String = tree.roots().iter().map(ToString::to_string).collect();
    let (size, root) = (tree.size(), tree.root());
    postgres.sql(
        database,
        &format!("UPDATE log_head SET size = {size}, root = '\\x{root}', frontier = '\\x{packed}'"),
    );
    postgres.sql(database, &format!("DELETE FROM log_node WHERE level = 0 AND idx >= {size}"));
}

/// Runs a command of the hub's program on this fleet.
fn hub_says(fleet: &Fleet, url: &str, args: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick-hub"))
        .args(args)
        .args(["--database", url, "--keys"])
        .arg(fleet.path("keys"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_key_of_the_log_is_replaced_and_machines_follow() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("rotated");
        let first = fleet.keys.log_public();
        {
            let hub = fleet.hub(&url, "log").await;
            fleet.member(&hub, Role::Machine).await;
            hub_says(&fleet, &url, &["rotate-log"]);
            hub_says(&fleet, &url, &["rotate-log"]);
            read_log(&fleet, &hub, 2).await;
        }
        let state_of = |entries: &[Vec<u8>]| {
            let mut state = bailiwick_fleet::state::FleetState::default();
            entries.iter().for_each(|entry| state.apply(&Entry::parse(entry).unwrap()));
            state
        };
        let database = Database::new(&url, 1, None).unwrap();
        let entries = |size: u64| {
            let database = database.clone();
            async move {
                database
                    .with(async |client| bailiwick_hub::publish::read_entries(client, 0, size).await)
                    .await
                    .unwrap()
            }
        };
        // A machine that has read of the next key, and one that was away.
        let (held, away) = (state_of(&entries(2).await), state_of(&entries(1).await));
        let said = hub_says(&fleet, &url, &["rotate-log", "--finish"]);
        let keys = Arc::new(bailiwick_hub::keys::Keys::open(&fleet.path("keys")).unwrap());
        assert!(said.contains(&keys.log_public().to_string()) && keys.log_public() != first, "{said}");
        // In the directory lies what the key before has signed.
        let mut publisher = Publisher::open(&fleet.path("log"), keys, Arc::default()).unwrap();
        assert_eq!(publisher.publish(&database).await.unwrap(), 3);
        let signed = std::fs::read(fleet.path("log").join("checkpoint")).unwrap();
        let opens = |state: &bailiwick_fleet::state::FleetState, signed: &[u8]| {
            Trust::hub(crate::world::NAME, state.hub_keys(&first)).open(signed).is_ok()
        };
        assert!(opens(&held, &signed) && !opens(&away, &signed));
        let before = Checkpoint { time_ms: u64::MAX / 2, ..trust_of(&signed) }.sign(&fleet.keys.log).unwrap();
        assert!(opens(&held, &before), "as long as the removal was not read");
        assert!(!opens(&state_of(&entries(3).await), &before), "a stolen key signs nothing any more");
        // What lies there is put back after a restore, whichever key signed it.
        let restored = recover::recover(
            &database,
            &bailiwick_hub::keys::Keys::open(&fleet.path("keys")).unwrap(),
            &fleet.path("log"),
        )
        .await;
        assert_eq!(restored.unwrap().after, 3);
    });
}

/// What a checkpoint says, without a look at who signed it.
fn trust_of(signed: &[u8]) -> Checkpoint {
    Checkpoint::parse(bailiwick_fleet::note::Note::parse(signed).unwrap().text()).unwrap()
}

#[test]
fn paths_that_the_log_does_not_write_name_no_file() {
    for path in [
        "../keys/log.key",
        "tile/0/../../keys",
        "checkpoint/",
        "/checkpoint",
        "tile/0/0",
        "heads/..",
        "tile/0/%2e%2e",
    ] {
        assert!(LogFile::parse(path).is_none(), "{path}");
    }
}
