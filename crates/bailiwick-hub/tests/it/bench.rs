//! Ten thousand machines on one computer, for `scripts/bench fleet`: how soon they see a revocation, what a static web server answers, and
//! what the hub takes for their writes. It asserts nothing of times.
//!
//! Machines are tasks of this process that poll over real HTTP, a connection each time, as processes on machines do. The log's files are
//! served by nginx, the hub is a program of its own. Writes are those of 10,000 machines, made by a few dozen identities.

#![expect(clippy::print_stderr, reason = "it is a benchmark: what it measures is printed")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bailiwick_fleet::checkpoint::Trust;
use bailiwick_fleet::entry::{Entry, EntryBody, Revocation, Role, Target};
use bailiwick_fleet::tile::entry_bundles;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::hostile::{memory, program, raise_descriptor_limit};
use crate::random::Random;
use crate::world::{Fleet, Identity, NAME, new_id, run, until};
use bailiwick_testkit::postgres::Postgres;

const MACHINES: u64 = 10_000;
const REFRESH: Duration = Duration::from_secs(5);
/// Reports of heads each minute and inventories each five minutes, of all machines together.
const WRITES_A_SECOND: u64 = MACHINES / 60 + MACHINES / 300;
const WRITING: Duration = Duration::from_secs(20);

/// nginx, with a directory for what it writes.
struct Web {
    child: Child,
    port: u16,
}

impl Drop for Web {
    fn drop(&mut self) {
        let _may_be_gone = self.child.kill();
        let _may_be_gone = self.child.wait();
    }
}

impl Web {
    fn start(own: &Path, root: &Path) -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (at, root) = (own.display(), root.display());
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        let text = format!(
            "{user} worker_processes 1; pid {at}/pid; error_log {at}/error; daemon off; master_process off;\n\
             events {{ worker_connections 16384; }}\n\
             http {{ access_log off; keepalive_requests 1000000; client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; \
             fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;\n\
             server {{ listen 127.0.0.1:{port} backlog=8192; root {root}; }} }}\n"
        );
        std::fs::create_dir_all(own).unwrap();
        std::fs::write(own.join("conf"), text).unwrap();
        let mut command = Command::new("nginx");
        let child = command
            .arg("-c")
            .arg(own.join("conf"))
            .arg("-e")
            .arg(own.join("error"))
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(|child| Self { child, port })
    }
}

/// One request; status, entity tag and body.
async fn request(
    stream: &mut TcpStream,
    path: &str,
    tag: &str,
    is_last: bool,
) -> Option<(u16, String, Vec<u8>)> {
    let close = if is_last { "Connection: close\r\n" } else { "" };
    let known = if tag.is_empty() { String::new() } else { format!("If-None-Match: {tag}\r\n") };
    let text = format!("GET {path} HTTP/1.1\r\nHost: log.example\r\n{known}{close}\r\n");
    stream.write_all(text.as_bytes()).await.ok()?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let value = |name: &str| {
                let mut fields = head.lines().filter_map(|line| line.split_once(": "));
                let found = fields.find(|(own, _)| own.eq_ignore_ascii_case(name));
                found.map_or("", |(_, value)| value).to_owned()
            };
            let length: usize = value("content-length").parse().unwrap_or(0);
            let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
            if status == 304 || bytes.len() >= end + length {
                return Some((status, value("etag"), bytes.split_off(end)));
            }
        }
        match stream.read(&mut buffer).await.ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

async fn fetch(port: u16, path: &str, tag: &str) -> Option<(u16, String, Vec<u8>)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    request(&mut stream, path, tag, true).await
}

/// What all machines count together.
#[derive(Default)]
struct Tally {
    polls: AtomicU64,
    failed: AtomicU64,
}

/// A machine: polls, verifies, reads what is new, until it has seen the revocation. When that was.
async fn machine(
    port: u16,
    trust: Arc<Trust>,
    tally: Arc<Tally>,
    mut random: Random,
    wanted: Arc<str>,
) -> Instant {
    let (mut tag, mut size) = (String::new(), 0);
    let millis = |random: &mut Random, most: u64| Duration::from_millis(random.below(most));
    tokio::time::sleep(millis(&mut random, 5_000)).await;
    loop {
        tally.polls.fetch_add(1, Ordering::Relaxed);
        match fetch(port, "/checkpoint", &tag).await {
            Some((200, new_tag, note)) => {
                let head = trust.open(&note).unwrap().checkpoint;
                tag = new_tag;
                if head.size > size && sees(port, size, head.size, &wanted).await {
                    return Instant::now();
                }
                size = head.size;
            }
            Some((304, ..)) => {}
            _ => {
                tally.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        // A tenth of jitter to either side.
        tokio::time::sleep(REFRESH - REFRESH / 10 + millis(&mut random, 1_000)).await;
    }
}

async fn sees(port: u16, from: u64, to: u64, wanted: &str) -> bool {
    for bundle in entry_bundles(from, to) {
        let Some((200, _, bytes)) = fetch(port, &format!("/{}", bundle.path()), "").await else {
            return false;
        };
        for entry in bundle.decode(&bytes).unwrap() {
            if let EntryBody::Revocation(revocation) = Entry::parse(entry).unwrap().body
                && revocation.id == wanted
            {
                return true;
            }
        }
    }
    false
}

#[test]
fn ten_thousand_machines() {
    if std::env::var_os("BAILIWICK_BENCH").is_none() {
        return;
    }
    let Some(postgres) = Postgres::start() else { return };
    raise_descriptor_limit();
    run(async {
        let fleet = Fleet::new();
        let url = postgres.create("bench");
        let (admin, writers) = {
            let hub = fleet.hub(&url, "log-first").await;
            let mut writers = Vec::new();
            for _ in 0..40 {
                writers.push(fleet.member(&hub, Role::Machine).await);
            }
            (fleet.member(&hub, Role::Admin).await, writers)
        };
        let (mut hub, address) = program(&fleet, &url);
        let root = fleet.path("log");
        until("the log is published", async || root.join("checkpoint").is_file().then_some(())).await;
        let Some(web) = Web::start(&fleet.path("nginx"), &root) else {
            eprintln!("nginx is not installed: `apt-get install nginx-light`");
            hub.kill().unwrap();
            hub.wait().unwrap();
            return;
        };
        until("nginx answers", async || fetch(web.port, "/checkpoint", "").await).await;
        polls_a_second(web.port).await;
        writes(&hub, address, writers).await;
        revocation(&fleet, web.port, &admin.at(address)).await;
        let (now, most) = memory(&hub);
        eprintln!("the hub at the end: {now} kB, at most {most} kB");
        hub.kill().unwrap();
        hub.wait().unwrap();
    });
}

/// How many conditional polls a second one nginx process answers that has nothing new.
async fn polls_a_second(port: u16) {
    let mut tasks = tokio::task::JoinSet::new();
    let since = Instant::now();
    for _ in 0..64 {
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let (mut tag, mut known, mut new) = (String::new(), 0_u64, 0_u64);
            while since.elapsed() < Duration::from_secs(5) {
                match request(&mut stream, "/checkpoint", &tag, false).await {
                    Some((304, ..)) => known += 1,
                    Some((200, now, _)) => (tag, new) = (now, new + 1),
                    _ => break,
                }
            }
            (known, new)
        });
    }
    let (mut known, mut new) = (0, 0);
    while let Some(done) = tasks.join_next().await {
        let (own_known, own_new) = done.unwrap();
        (known, new) = (known + own_known, new + own_new);
    }
    let seconds = since.elapsed().as_secs().max(1);
    eprintln!(
        "static files: {} conditional polls a second, {known} not modified, {new} new",
        (known + new) / seconds
    );
}

/// Processor time of a process, in clock ticks.
fn ticks(child: &Child) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// The writes of all machines for a while: what the hub takes.
async fn writes(hub: &Child, address: std::net::SocketAddr, writers: Vec<Identity>) {
    let (before, since) = (ticks(hub), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    let count = writers.len() as u64;
    for writer in writers {
        tasks.spawn(async move {
            let caller = writer.at(address);
            let (mut done, digest) = (0_u64, "0".repeat(64));
            while since.elapsed() < WRITING {
                let head = json!({"machine": writer.member, "session": format!("s{}", done % 250), "seq": done, "hash": digest,
                    "key": digest, "time_ms": 1});
                let report = json!({"heads": [head]});
                if caller.post("/v1/heads", &report).await.is_ok_and(|(status, _)| status == 204) {
                    done += 1;
                }
                let due = Duration::from_millis(done * 1000 * count / WRITES_A_SECOND);
                tokio::time::sleep(due.saturating_sub(since.elapsed())).await;
            }
            done
        });
    }
    let mut done = 0;
    while let Some(own) = tasks.join_next().await {
        done += own.unwrap();
    }
    let millis = u64::try_from(since.elapsed().as_millis()).unwrap();
    let used = (ticks(hub) - before) * 10 * 100 / millis;
    let (now, most) = memory(hub);
    eprintln!(
        "writes: {} a second ({WRITES_A_SECOND} are those of {MACHINES} machines), each on a connection of its own: {used} % of a core, \
         {now} kB, at most {most} kB",
        done * 1000 / millis
    );
}

/// How long it takes until machines see a revocation, from the moment it was confirmed.
async fn revocation(fleet: &Fleet, port: u16, admin: &crate::world::Caller) {
    let trust = Arc::new(Trust::hub(NAME, vec![fleet.keys.log_public()]));
    let (tally, wanted): (Arc<Tally>, Arc<str>) = (Arc::default(), new_id().into());
    let mut random = Random::new(22);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..MACHINES {
        tasks.spawn(machine(
            port,
            Arc::clone(&trust),
            Arc::clone(&tally),
            random.split(),
            Arc::clone(&wanted),
        ));
    }
    tokio::time::sleep(3 * REFRESH).await;
    let polls = tally.polls.swap(0, Ordering::Relaxed) / (3 * REFRESH).as_secs();
    let revocation = Revocation {
        id: wanted.to_string(),
        target: Target::Machine { machine: "0".repeat(32) },
        reason: "bench".to_owned(),
    };
    let (status, said) = admin.append(&new_id(), &EntryBody::Revocation(revocation)).await.unwrap();
    assert_eq!(status, 200, "{said}");
    let confirmed = Instant::now();
    let mut seen = Vec::new();
    while let Some(at) = tasks.join_next().await {
        seen.push(at.unwrap().saturating_duration_since(confirmed));
    }
    seen.sort_unstable();
    let rank = |part: usize| seen[(seen.len() * part / 1000).min(seen.len() - 1)].as_millis();
    let within = seen.iter().filter(|took| **took <= Duration::from_secs(10)).count();
    eprintln!(
        "revocation: {within} of {} machines saw it within 10 s; median {} ms, 99.9 % {} ms, last {} ms; {polls} polls a second, {} failed",
        seen.len(),
        rank(500),
        rank(999),
        rank(1000),
        tally.failed.load(Ordering::Relaxed)
    );
}
