//! What strangers and members try: SQL, paths and control characters in every field, connections that are never finished, and
//! how much of the machine the hub takes meanwhile.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bailiwick_fleet::entry::Role;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::world::{Caller, Fleet, new_id, run, until};
use bailiwick_testkit::postgres::Postgres;

const TEXTS: [&str; 8] = [
    "'; DROP TABLE member; --",
    "\"; DELETE FROM budget; --",
    "$1",
    "../../../etc/passwd",
    "a\u{0}b",
    "\u{1b}[2J",
    "\u{202e}gnp.exe",
    "%27%20OR%201=1",
];

/// All strings of a value, each replaced by a hostile one.
fn poisoned(body: &Value, text: &str) -> Vec<Value> {
    fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(at.to_owned()),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| paths(item, &format!("{at}/{index}"), found)),
            Value::Object(fields) => {
                fields.iter().for_each(|(name, item)| paths(item, &format!("{at}/{name}"), found))
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    paths(body, "", &mut found);
    let replace = |path: &String| {
        let mut changed = body.clone();
        *changed.pointer_mut(path).unwrap() = json!(text);
        changed
    };
    found.iter().map(replace).collect()
}

/// Requests of a machine and of a person, each with every field that there is.
fn requests(machine: &str) -> [(bool, &'static str, Value); 8] {
    let (digest, id) = ("0".repeat(64), new_id());
    [
        (
            false,
            "/v1/approvals",
            json!({"id": id, "server": "s", "tool": "t", "arguments": {}, "arguments_sha256": digest, "pins": digest,
                "policy": digest, "reason": "r", "ttl_s": 60}),
        ),
        (false, "/v1/leases", json!({"id": id, "budget": "b", "unit": "calls", "amount": 1})),
        (
            false,
            "/v1/heads",
            json!({"heads": [{"machine": machine, "session": "s", "seq": 1, "hash": digest, "key": digest, "time_ms": 1}]}),
        ),
        (
            false,
            "/v1/inventory",
            json!({"time_ms": 1, "version": "1", "log_size": 0, "log_root": digest,
                "servers": [{"server": "s", "package": {"registry": "npm", "name": "p", "version": "1"}, "surface": digest,
                    "manifest": digest, "enforcement": {"files": "kernel"}, "running": true}]}),
        ),
        (true, "/v1/tokens", json!({"role": "machine", "labels": ["l"], "ttl_s": 60})),
        (true, "/v1/budgets", json!({"id": "b", "unit": "calls", "total": 1, "slice": 1, "lease_ms": 10000})),
        (true, "/v1/members", json!({"subject": "spiffe://other/x", "role": "machine", "labels": ["l"]})),
        (true, "/v1/enrol", json!({"secret": digest, "csr": "x", "name": "n", "journal_key": digest})),
    ]
}

#[test]
fn sql_and_paths_in_every_field_change_nothing() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let fleet = Fleet::new();
        let hub = fleet.hub(&postgres.create("hostile"), "log").await;
        let machine = fleet.member(&hub, Role::Machine).await;
        let person = fleet.member(&hub, Role::Admin).await.at(hub.address);
        let caller = machine.at(hub.address);
        let tables = || {
            postgres.sql(
                "hostile",
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'public'",
            )
        };
        let before = tables();
        for (is_person, path, body) in requests(&machine.member) {
            let caller = if is_person { &person } else { &caller };
            for text in TEXTS {
                for body in poisoned(&body, text) {
                    let (status, said) = caller.post(path, &body).await.unwrap();
                    let is_refused = (400..500).contains(&status);
                    // Free text for people, shown as such; it is stored as it is.
                    let is_harmless = status == 200 && body["reason"] == text;
                    assert!(is_refused || is_harmless, "{path} {body}: {status} {said}");
                }
            }
        }
        for text in TEXTS {
            paths_are_refused(&caller, &person, text).await;
        }
        assert_eq!(tables(), before);
        assert_eq!(postgres.sql("hostile", "SELECT COUNT(*) FROM member"), "2");
        let kept = postgres.sql("hostile", "SELECT request LIKE '%DROP TABLE%' FROM approval");
        assert_eq!(kept, "t", "text stays text");
        for path in crate::world::files_below(&fleet.path("log")) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.'), "{name}");
        }
    });
}

async fn paths_are_refused(machine: &Caller, person: &Caller, text: &str) {
    let word: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let paths = [
        format!("/v1/approvals/{word}"),
        format!("/v1/leases/{word}/return"),
        format!("/{word}"),
        format!("/heads/{word}"),
        format!("/tile/0/{word}"),
        "/../keys/log.key".to_owned(),
        "/tile/../../keys/log.key".to_owned(),
    ];
    for path in paths {
        let status = machine.get(&path).await.unwrap().0;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    for list in ["members?after=", "entries?before=", "heads?after=", "audit?after="] {
        let listed = person.get(&format!("/v1/{list}{word}&limit={word}")).await.unwrap().0;
        assert_eq!(listed, 200, "{list}");
    }
}

/// A hub as a program of its own, and where it listens.
pub(crate) fn program(fleet: &Fleet, url: &str) -> (Child, std::net::SocketAddr) {
    use std::io::BufRead as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_bailiwick-hub"))
        .args(["--database", url, "--listen", "127.0.0.1:0", "--keys"])
        .arg(fleet.path("keys"))
        .arg("--log-files")
        .arg(fleet.path("log"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening ").unwrap().parse().unwrap();
    (child, address)
}

/// Kilobytes of memory of a process: now and at most.
pub(crate) fn memory(child: &Child) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap()
    };
    (value("VmRSS:"), value("VmHWM:"))
}

#[test]
fn half_open_connections_neither_keep_members_out_nor_fill_the_memory() {
    let Some(postgres) = Postgres::start() else { return };
    run(async {
        let is_full = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
        let wanted: usize = if is_full { 10_000 } else { 500 };
        raise_descriptor_limit();
        let fleet = Fleet::new();
        let url = postgres.create("half_open");
        let identity = {
            let hub = fleet.hub(&url, "log-first").await;
            fleet.member(&hub, Role::Machine).await
        };
        let (mut child, address) = program(&fleet, &url);
        let mut open = Vec::new();
        for number in 0..wanted {
            // Some send nothing, some the beginning of a handshake.
            let Ok(stream) = TcpStream::connect(address).await else { continue };
            if number % 3 == 0 {
                let _may_be_closed = stream.try_write(&[0x16, 3, 1, 2, 0, 1]);
            }
            open.push(stream);
            if number % 500 == 499 {
                let report = json!({"heads": []});
                let status = until("a member is answered", async || {
                    identity.at(address).post("/v1/heads", &report).await.ok().map(|(status, _)| status)
                });
                assert_eq!(status.await, 204, "after {number}");
            }
        }
        assert!(open.len() > wanted / 2, "{} connections", open.len());
        let (now, most) = memory(&child);
        eprintln!("{} half-open connections, {now} kB, at most {most} kB", open.len());
        assert!(most < 64 << 10, "{most} kB");
        drop(open);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(identity.at(address).post("/v1/heads", &json!({"heads": []})).await.unwrap().0, 204);
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}
