//! `learn` of a server that reaches hosts: those that were let become lines, the others questions; generated calls reach none.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};

use super::screening::fetch_server;
use super::servers::{self, Files};
use super::world::{Stage, in_world, test_name, users};
use super::{EVIL, GOOD};
use crate::escape::as_user;

const PAGE: &[u8] = b"<html><body><p>the page itself</p></body></html>";
const OTHER: &[u8] = b"<html><body><p>another page</p></body></html>";
const NAMES: [&str; 4] = ["--hosts", "good.test=93.184.216.34", "--hosts", "evil.test=93.184.216.66"];

/// A command of one user with the server behind it.
fn command(stage: &Stage, words: &[&str], server: &Path) -> Command {
    let mut command = as_user(stage.user, stage.path("bailiwick"));
    let (first, rest) = words.split_first().unwrap();
    command.arg(first).arg("--no-journal").args(NAMES).args(rest);
    command.arg("--").arg(server).args(["-m", "mcp_server_fetch"]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", stage.path("home"));
    command.current_dir(stage.path("w")).stdin(Stdio::null());
    command
}

/// What the server answers to these calls.
fn answers(mut command: Command, urls: &[&str]) -> Vec<String> {
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").unwrap();
        let id = message.get("id").cloned()?;
        let is_answer =
            |line: &String| serde_json::from_str::<Value>(line).is_ok_and(|own| own.get("id") == Some(&id));
        lines.by_ref().map_while(Result::ok).find(is_answer)
    };
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" }
    });
    ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let calls = urls.iter().map(|url| json!({ "name": "fetch", "arguments": { "url": url, "raw": true } }));
    let call = |call: Value| json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call });
    let answers = calls.map(|one| ask(call(one)).unwrap_or_default()).collect();
    drop(input);
    server.wait().unwrap();
    answers
}

#[test]
fn the_fetch_server_is_granted_the_host_that_was_let_and_asks_about_the_other() {
    let Some(packages) = fetch_server() else { return };
    if !in_world(test_name!()) {
        return;
    }
    let files: Files =
        Arc::new([("/page".to_owned(), PAGE.to_vec()), ("/other".to_owned(), OTHER.to_vec())].into());
    let good = servers::http(&format!("{GOOD}:80"), &files);
    let evil = servers::http(&format!("{EVIL}:80"), &files);
    for user in users() {
        let stage = Stage::new(*user);
        for name in ["w", "home"] {
            stage.directory(name);
        }
        let venv = stage.path("venv");
        assert!(Command::new("cp").arg("-r").args([&packages, &venv]).status().unwrap().success());
        assert!(Command::new("chmod").args(["-R", "a+rX"]).arg(&venv).status().unwrap().success());
        let python = venv.join("bin/python");
        let calls = stage.path("calls.jsonl");
        let url =
            |url: &str| format!("{{\"tool\":\"fetch\",\"arguments\":{{\"url\":\"{url}\",\"raw\":true}}}}\n");
        std::fs::write(&calls, url("http://good.test/page") + &url("http://evil.test/page")).unwrap();
        let manifest = stage.path("w/fetch.toml").display().to_string();
        let options =
            ["learn", "--calls", calls.to_str().unwrap(), "--net", "good.test:80", "--out", &manifest];
        let learned = command(&stage, &options, &python).output().unwrap();
        let said = String::from_utf8_lossy(&learned.stderr).into_owned();
        assert_eq!(learned.status.code(), Some(0), "{said}");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.ends_with("\",")).collect();
        let granted: Vec<&&str> = lines.iter().filter(|line| line.starts_with('"')).collect();
        assert!(granted.len() <= 20 && granted.contains(&&"\"net:http:GET@http://good.test/**\","), "{text}");
        assert!(!granted.iter().any(|line| line.contains("evil") || line.contains(":*")), "{text}");
        assert!(text.lines().any(|line| line.starts_with("#   ") && line.contains("evil.test")), "{text}");
        assert_eq!(evil.count(), 0, "only hosts that were let are reached");

        // What was held out answers as bare, and the host that stayed a question is refused.
        let wrap = ["wrap", "--manifest", &manifest];
        let held =
            answers(command(&stage, &wrap, &python), &["http://good.test/other", "http://evil.test/page"]);
        let mut bare = Command::new(&python);
        bare.args(["-m", "mcp_server_fetch"])
            .env_clear()
            .env("PATH", "/nonexistent")
            .args(["--allow-private-ips"]);
        let bare = answers(bare, &[&format!("http://{GOOD}/other")]);
        assert!(bare[0].contains("another page"), "{bare:?}");
        assert_eq!(held[0], bare[0].replace(GOOD, "good.test"));
        assert!(!held[1].contains("the page itself"), "{}", held[1]);
        assert_eq!(evil.count(), 0);

        // Without calls of a person's, no host is reached, whatever is let.
        let before = good.count();
        let learned =
            command(&stage, &["learn", "--server", "--net", "good.test:80"], &python).output().unwrap();
        assert_eq!(learned.status.code(), Some(0), "{}", String::from_utf8_lossy(&learned.stderr));
        assert_eq!(good.count(), before, "generated calls reach no host");
    }
}

#[test]
fn a_person_at_a_terminal_is_asked_about_hosts_and_it_is_started_again() {
    if !Path::new("/usr/bin/script").exists() {
        return bailiwick_testkit::skip("no `script` here to make a terminal");
    }
    if !in_world(test_name!()) {
        return;
    }
    let files: Files = Arc::new([("/page".to_owned(), PAGE.to_vec())].into());
    let good = servers::http(&format!("{GOOD}:443"), &files);
    let text = "import socket\n\
                try:\n\
                \x20   own = socket.create_connection((\"good.test\", 443), 5)\n\
                \x20   own.sendall(b\"GET /page HTTP/1.0\\r\\nHost: good.test\\r\\n\\r\\n\")\n\
                \x20   own.recv(10)\n\
                except OSError: pass\n";
    let line = "net:http:GET@http://good.test:443/page";
    let cases =
        [("", "y\n", true, true), ("--net ask", "n\n", true, false), ("--net deny", "y\n", false, false)];
    for (options, answer, asks, grants) in cases {
        let stage = Stage::new(users()[0]);
        stage.directory("w");
        std::fs::write(stage.path("w/reach.py"), text).unwrap();
        let learn = format!(
            "{} learn --no-journal {} {options} -- /usr/bin/python3 reach.py",
            stage.path("bailiwick").display(),
            NAMES.join(" ")
        );
        let before = good.count();
        let mut command = Command::new("/usr/bin/timeout");
        command.args(["100", "/usr/bin/script", "-qec", &learn, "/dev/null"]);
        command.current_dir(stage.path("w")).env("HOME", stage.path("home"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = until_asked(child.stdout.as_mut().unwrap());
        // The answer is typed when the question is there.
        child.stdin.as_mut().unwrap().write_all(answer.as_bytes()).unwrap();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{options}: {said}");
        assert_eq!(said.contains("it wants to reach good.test:443"), asks, "{options}: {said}");
        assert_eq!(said.contains("started again"), grants, "{options}: {said}");
        let is_granted = said.lines().any(|own| own.trim().trim_matches(['"', ',']) == line);
        assert_eq!((is_granted, good.count() > before), (grants, grants), "{options}: {said}");
    }
}

/// What is said up to a question, or to the end.
fn until_asked(from: &mut impl Read) -> String {
    let (mut said, mut byte) = (Vec::new(), [0]);
    while !said.ends_with(b"[y/N] ") && from.read(&mut byte).unwrap() == 1 {
        said.push(byte[0]);
    }
    String::from_utf8_lossy(&said).into_owned()
}
