//! Package managers inside, from the registries that this machine is set up for and reaches. Elsewhere skipped.
//!
//! A registry may be a mirror at an inner address, so the grants say `blockPrivate=false`: which hosts are reached is
//! what is tested here, and that another name does not do.

use std::collections::BTreeSet;
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::process::{Command, Output};

use super::world::{Stage, users};
use bailiwick_testkit::skip;

/// Variables that say whom to trust, where the machine has authorities of its own.
const TRUST: [&str; 4] = ["NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"];

#[test]
fn npm_installs_from_the_granted_registry_only() {
    let npm = Path::new("/usr/bin/npm");
    let Some(registry) = said(Command::new(npm).args(["config", "get", "registry"])) else {
        return skip("no npm here");
    };
    let archive =
        said(Command::new(npm).args(["view", "is-number@7.0.0", "dist.tarball", "--fetch-retries=0"]));
    let Some(archive) = archive.filter(|url| url.starts_with("https://")) else {
        return skip("npm's registry is not reached from here");
    };
    let hosts: BTreeSet<String> = [&registry, &archive].into_iter().filter_map(|url| host(url)).collect();
    for user in users() {
        let stage = Stage::new(*user);
        let directory = stage.directory("project");
        let to = directory.to_str().unwrap();
        let words = ["/usr/bin/npm", "install", "--prefix", to, "--registry", &registry, "--ignore-scripts"];
        let words =
            [&words[..], &["--no-audit", "--no-fund", "--fetch-retries=0", "is-number@7.0.0"]].concat();
        let installed = directory.join("node_modules/is-number/package.json");
        only_granted(&stage, &hosts, &directory, &words, &installed);
    }
}

#[test]
fn pip_installs_from_the_granted_registry_only() {
    let python = || Command::new("/usr/bin/python3");
    if said(python().args(["-m", "pip", "--version"])).is_none() {
        return skip("no pip here");
    }
    let index = std::env::var_os("PIP_INDEX_URL").and_then(|url| url.into_string().ok());
    let index = index.or_else(|| said(python().args(["-m", "pip", "config", "get", "global.index-url"])));
    let index = index.unwrap_or_else(|| "https://pypi.org/simple".to_owned());
    let page = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).read().decode())";
    let page = said(python().args(["-c", page, &format!("{}/six/", index.trim_end_matches('/'))]));
    let Some(page) = page else { return skip("pip's registry is not reached from here") };
    let links = page.split("href=\"").skip(1).filter_map(host);
    let hosts: BTreeSet<String> = links.chain(host(&index)).collect();
    for user in users() {
        let stage = Stage::new(*user);
        let directory = stage.directory("packages");
        let to = directory.to_str().unwrap();
        let words = ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir"];
        let words =
            [&words[..], &["--retries=0", "--index-url", &index, "--target", to, "six==1.16.0"]].concat();
        only_granted(&stage, &hosts, &directory, &words, &directory.join("six.py"));
    }
}

/// The command does its work with these hosts granted, and not with another name of the same address.
fn only_granted(stage: &Stage, hosts: &BTreeSet<String>, directory: &Path, words: &[&str], made: &Path) {
    let first = hosts.first().unwrap();
    let address = (first.as_str(), 443).to_socket_addrs().unwrap().next().unwrap().ip();
    let other =
        run(stage, directory, &["other.test".to_owned()].into(), &format!("other.test={address}"), words);
    assert!(!other.status.success() && !made.exists(), "{}", told(&other));
    let refused = |line: &str| line.starts_with("refused ") && line.ends_with(": not granted");
    assert!(told(&other).lines().any(refused), "{}", told(&other));
    let granted = run(stage, directory, hosts, &format!("other.test={address}"), words);
    assert!(granted.status.success() && made.exists(), "{}", told(&granted));
    let allowed = |line: &str| Some(line.strip_prefix("allowed ")?.strip_suffix(":443")?.to_owned());
    let reached: BTreeSet<String> = told(&granted).lines().filter_map(allowed).collect();
    assert!(!reached.is_empty() && reached.is_subset(hosts), "{reached:?}");
}

fn run(stage: &Stage, directory: &Path, hosts: &BTreeSet<String>, known: &str, words: &[&str]) -> Output {
    let mut caps = vec![format!("fs:read,write:{}/**", directory.display())];
    caps.extend(hosts.iter().map(|host| format!("net:connect:{host}:443?blockPrivate=false")));
    let trusted = TRUST.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let trusted: Vec<_> = trusted.collect();
    for (name, file) in &trusted {
        caps.push(format!("env:read:{name}"));
        caps.push(format!("fs:read:{}", file.to_string_lossy()));
    }
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    let mut command = stage.run(&caps, &["--net-log", "--hosts", known]);
    command.envs(trusted).arg("--").args(words).output().unwrap()
}

/// What a program prints, if it ends well.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The host of a URL over TLS.
fn host(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?;
    rest.split(['/', ':', '"']).next().map(str::to_owned)
}
