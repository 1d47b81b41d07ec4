//! Programs that screen addresses themselves: what names resolve to inside passes their checks.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::servers::{self, Files};
use super::world::{Stage, in_world, test_name, users};
use super::{GOOD, INNER, WORLD};
use bailiwick_testkit::{skip, world_mark};

const PYTHON: &str = "/usr/bin/python3";
const PAGE: &[u8] = b"<html><body><p>the page itself</p></body></html>";

#[test]
fn addresses_of_names_are_public_to_programs() {
    if !in_world(test_name!()) {
        return;
    }
    let checks = "import ipaddress, socket, sys
for found in socket.getaddrinfo(sys.argv[1], 443, type=socket.SOCK_STREAM):
    ip = ipaddress.ip_address(found[4][0])
    special = ip.is_private or ip.is_reserved or ip.is_loopback or ip.is_link_local or ip.is_multicast
    print(ip.version, ip.is_global and not special)";
    let node = "require('dns').lookup(process.argv[1], { all: true }, (fault, all) => {
  const list = new (require('net').BlockList)();
  for (const [net, bits] of [['10.0.0.0', 8], ['100.64.0.0', 10], ['127.0.0.0', 8], ['169.254.0.0', 16],
    ['172.16.0.0', 12], ['192.168.0.0', 16], ['198.18.0.0', 15], ['224.0.0.0', 3]]) list.addSubnet(net, bits);
  list.addSubnet('fc00::', 7, 'ipv6'); list.addSubnet('fe80::', 10, 'ipv6'); list.addSubnet('2001:db8::', 32, 'ipv6');
  for (const { address, family } of all)
    console.log(family, list.check(address, 'ipv' + family) ? 'False' : 'True');
})";
    for (program, option, text) in [(PYTHON, "-c", checks), ("/usr/bin/node", "-e", node)] {
        if !Path::new(program).exists() {
            skip(&format!("no {program} here"));
            continue;
        }
        for user in users() {
            let stage = Stage::new(*user);
            let mut command = stage.run(&["net:connect:good.test:443"], &WORLD);
            let output = command.args(["--", program, option, text, "good.test"]).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut lines: Vec<&str> = told.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["4 True", "6 True"], "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn a_server_that_refuses_private_addresses_fetches_what_is_granted() {
    let Some(packages) = fetch_server() else { return };
    if !in_world(test_name!()) {
        return;
    }
    let files: Files = std::sync::Arc::new([("/page".to_owned(), PAGE.to_vec())].into());
    let seen = servers::http(&format!("{GOOD}:80"), &files);
    let inner = servers::http(&format!("{INNER}:80"), &files);
    let template = include_str!("../../../../bailiwick-admin/templates/fetch.toml");
    for user in users() {
        let stage = Stage::new(*user);
        let venv = stage.path("venv");
        assert!(Command::new("cp").arg("-r").args([&packages, &venv]).status().unwrap().success());
        assert!(Command::new("chmod").args(["-R", "a+rX"]).arg(&venv).status().unwrap().success());
        let manifest = stage.path("fetch.toml");
        std::fs::write(&manifest, template).unwrap();
        let inner_host = format!("inner.test={INNER}");
        let options =
            [&WORLD[..], &["--hosts", &inner_host, "--manifest", manifest.to_str().unwrap()]].concat();
        let mut command = stage.run(&[], &options);
        command.arg("--").arg(venv.join("bin/python")).args(["-m", "mcp_server_fetch"]);
        let before = seen.count();
        let confined = fetched(command, "good.test", "inner.test");
        assert!(seen.count() > before);
        // Bare it has no node either, with which it would try to install packages.
        let mut bare = Command::new(venv.join("bin/python"));
        bare.args(["-m", "mcp_server_fetch", "--allow-private-ips"]).env_clear().env("PATH", "/nonexistent");
        let bare = fetched(bare, GOOD, INNER);
        for page in &bare {
            assert!(page.contains("the page itself"), "{page}");
        }
        let [simple, raw, private] = &confined;
        assert_eq!([simple, raw], [&bare[0].replace(GOOD, "good.test"), &bare[1].replace(GOOD, "good.test")]);
        assert!(!private.contains("the page itself") && private.contains("rror"), "{private}");
    }
    assert_eq!(inner.count(), users().len() * 2, "the page and robots.txt, bare alone");
}

/// What the server answers for a page of one host, simplified and raw, and for the one of another.
fn fetched(mut command: Command, host: &str, other: &str) -> [String; 3] {
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").unwrap();
        let id = message.get("id").cloned()?;
        lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| serde_json::from_str::<Value>(line).is_ok_and(|reply| reply.get("id") == Some(&id)))
    };
    let client = json!({ "name": "test", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let mut fetch = |raw: bool, host: &str| {
        let call =
            json!({ "name": "fetch", "arguments": { "url": format!("http://{host}/page"), "raw": raw } });
        ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call })).unwrap_or_default()
    };
    let answers = [fetch(false, host), fetch(true, host), fetch(true, other)];
    drop(input);
    server.wait().unwrap();
    answers
}

/// A virtual environment with `mcp-server-fetch`, kept in the cache of the tests.
pub(super) fn fetch_server() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let venv = cache.join("bailiwick/fetch-server");
    let installed = || venv.join("bin/mcp-server-fetch").exists();
    if !installed() && world_mark().is_none() {
        let made = Command::new(PYTHON).args(["-m", "venv"]).arg(&venv).output();
        if made.is_ok_and(|made| made.status.success()) {
            // What it says is of no use where there is no network.
            drop(Command::new(venv.join("bin/pip")).args(["install", "-q", "mcp-server-fetch"]).output());
        }
    }
    if !installed() {
        skip("mcp-server-fetch cannot be installed from PyPI here");
        return None;
    }
    Some(venv)
}
