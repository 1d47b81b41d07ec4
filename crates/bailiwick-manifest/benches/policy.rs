//! How long checking takes. `scripts/bench policy` prints the peers beside it.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

use bailiwick_manifest::Manifest;
use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::{Capability, Program};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

fn authority(lines: &[&str]) -> Authority {
    let lines: Vec<Capability> = lines.iter().map(|line| line.parse().expect("a capability")).collect();
    Authority::from_capabilities(&lines).expect("resolved")
}

/// A grant on six axes, as a session would hold it.
fn session() -> Authority {
    authority(&[
        "fs:read:/usr/share",
        "fs:read,write:/workspace/**",
        "fs:read:/etc/ssl",
        "net:connect:api.github.com:443",
        "net:connect:*.githubusercontent.com:443",
        "exec:spawn:git",
        "exec:spawn:cargo",
        "env:inject:GITHUB_TOKEN",
        "env:read:HOME",
        "ipc:connect:dbus:session",
        "clock:system",
    ])
}

/// What `allows` is asked.
fn request(kind: &str) -> Request {
    match kind {
        "file, allowed" => Request::Write(AbsPath::new("/workspace/project/src/main.rs").unwrap()),
        "file, denied" => Request::Read(AbsPath::new("/home/me/.ssh/id_ed25519").unwrap()),
        "host, allowed" => {
            Request::Net(NetRequest::new(Host::new("api.github.com").unwrap(), 443, Speak::Tls))
        }
        "host, denied" => Request::Net(NetRequest::new(Host::new("evil.example").unwrap(), 443, Speak::Tls)),
        "program, allowed" => Request::Spawn(Spawn::plain(Program::Name("git".into()))),
        _ => Request::ReadEnv("HOME".into()),
    }
}

#[divan::bench(args = ["file, allowed", "file, denied", "host, allowed", "host, denied", "program, allowed", "variable"])]
fn allows(bencher: Bencher<'_, '_>, kind: &str) {
    let (authority, request) = (session(), request(kind));
    bencher.bench_local(|| black_box(&authority).allows(black_box(&request)));
}

/// Two scopes of a hundred entries: literal trees, or hosts.
#[divan::bench(args = ["paths", "paths/**", "hosts"])]
fn within_100(bencher: Bencher<'_, '_>, kind: &str) {
    let line = |index: usize| match kind {
        "paths" => format!("fs:read:/srv/data/{index}/files"),
        "paths/**" => format!("fs:read:/srv/data/{index}/files/**"),
        _ => format!("net:connect:host{index}.example.com:443"),
    };
    let lines: Vec<String> = (0..100).map(line).collect();
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let small = authority(&texts);
    let mut wider = texts.clone();
    wider.push("fs:read:/srv/other");
    wider.push("net:connect:other.example.com");
    let large = authority(&wider);
    assert!(small.within(&large).holds(), "the benchmark asks what it should");
    bencher.bench_local(|| black_box(&small).within(black_box(&large)).holds());
}

#[divan::bench]
fn meet_session(bencher: Bencher<'_, '_>) {
    let (granted, required) = (session(), authority(&["fs:read:/workspace/project", "exec:spawn:git"]));
    bencher.bench_local(|| black_box(&granted).meet(black_box(&required)));
}

/// The text of a manifest with this many capabilities.
fn manifest(count: usize) -> String {
    let mut text = String::from("name = \"bench\"\nversion = \"1\"\n");
    for (index, chunk) in (0..count).collect::<Vec<_>>().chunks(50).enumerate() {
        text.push_str(&format!("[[tools]]\nname = \"tool{index}\"\ncapabilities = [\n"));
        for number in chunk {
            text.push_str(&match number % 4 {
                0 => format!("  \"fs:read:/srv/data/{number}/**\",\n"),
                1 => format!("  \"fs:read,write:/jobs/{number}\",\n"),
                2 => format!("  \"net:connect:host{number}.example.com:443\",\n"),
                _ => format!("  \"env:inject:TOKEN_{number}\",\n"),
            });
        }
        text.push_str("]\n");
    }
    text
}

#[divan::bench(args = [100, 1_000, 10_000, 100_000], sample_count = 10)]
fn parse_and_check(bencher: Bencher<'_, '_>, count: usize) {
    let text = manifest(count);
    bencher.bench_local(|| {
        Manifest::parse(black_box(&text)).expect("valid").check(&HostFacts::unknown()).expect("resolved")
    });
}
