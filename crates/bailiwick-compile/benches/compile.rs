//! How long compiling takes, from a checked manifest to an artifact. `scripts/bench compile` adds the command.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

use bailiwick_compile::{Egress, Target};
use bailiwick_manifest::{Checked, Manifest};
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::enforcement::Floor;
use bailiwick_policy::facts::HostFacts;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const GITHUB: &str = include_str!("../tests/golden/github/manifest.toml");
const TARGETS: [&str; 9] =
    ["bwrap", "docker", "oci", "kubernetes", "systemd", "firejail", "seatbelt", "landlock", "worker"];

fn checked(text: &str) -> Checked {
    Manifest::parse(text).expect("valid").check(&HostFacts::unknown()).expect("resolved")
}

fn target(name: &str) -> Target {
    Target::ALL.into_iter().find(|target| target.as_str() == name).expect("a target")
}

fn compile(checked: &Checked, target: Target) -> usize {
    let plan = checked.server_plan(&HostFacts::unknown()).expect("a list of rules");
    let provenance = Provenance { manifest: None, compiler: String::new() };
    let artifact = bailiwick_compile::compile(target, &plan, &Floor::none(), provenance);
    artifact.map_or(0, |artifact| artifact.argv().len() + artifact.files().len())
}

/// The github manifest: plan and artifact.
#[divan::bench(args = TARGETS)]
fn github(bencher: Bencher<'_, '_>, name: &str) {
    let (checked, target) = (checked(GITHUB), target(name));
    bencher.counter(ItemsCount::new(1_u32)).bench_local(|| compile(black_box(&checked), target));
}

/// The plan alone.
#[divan::bench]
fn github_plan(bencher: Bencher<'_, '_>) {
    let checked = checked(GITHUB);
    bencher
        .counter(ItemsCount::new(1_u32))
        .bench_local(|| black_box(&checked).server_plan(&HostFacts::unknown()).unwrap());
}

/// Ten thousand roots, every tenth writable.
#[divan::bench(args = TARGETS, sample_count = 10)]
fn ten_thousand_roots(bencher: Bencher<'_, '_>, name: &str) {
    let line = |index: u32| match index % 10 {
        0 => format!("'fs:read,write:/srv/data/{index}',"),
        _ => format!("'fs:read:/srv/data/{index}',"),
    };
    let lines: String = (0..10_000).map(line).collect();
    let text = format!("name = 's'\nversion = '1'\ncommand = 'server'\nserver_capabilities = [{lines}]\n");
    let (checked, target) = (checked(&text), target(name));
    bencher.bench_local(|| compile(black_box(&checked), target));
}

/// The allowlist of the github manifest for each gateway.
#[divan::bench(args = ["json", "yaml", "squid", "nftables", "envoy"])]
fn egress(bencher: Bencher<'_, '_>, name: &str) {
    let plan = checked(GITHUB).server_plan(&HostFacts::unknown()).unwrap();
    let format = Egress::ALL.into_iter().find(|format| format.as_str() == name).expect("a format");
    bencher.bench_local(|| bailiwick_compile::egress(format, black_box(&plan)).unwrap());
}
