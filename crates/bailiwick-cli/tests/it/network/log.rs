//! What is told of the network: live on stderr, and in the journal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Command;

use super::servers::{self, Files};
use super::world::{Stage, in_world, test_name, users};
use super::{GOOD, WORLD};
use crate::escape::as_user;

#[test]
fn decisions_are_told_while_the_command_runs() {
    if !in_world(test_name!()) {
        return;
    }
    servers::http(&format!("{GOOD}:80"), &Files::default());
    let stage = Stage::new(users()[0]);
    // What is never told must not be waited for forever.
    let options = [&WORLD[..], &["--timeout", "30s"]].concat();
    let mut run = stage.client(&["net:connect:good.test:80"], &options).spawn().unwrap();
    let mut input = run.stdin.take().unwrap();
    let mut log = BufReader::new(run.stderr.take().unwrap()).lines();
    for (attempt, line) in [
        ("http good.test 80 good.test", "allowed good.test:80 GET /"),
        ("address evil.test", "refused evil.test: not granted"),
        ("http 93.184.216.66 80 good.test", "refused 93.184.216.66:80: not granted"),
    ] {
        writeln!(input, "{attempt}").unwrap();
        // The client still waits for its next attempt: what is read here was told at once.
        let mut told = log.by_ref().map(Result::unwrap);
        assert!(told.any(|told| told == line), "{line}");
        assert!(run.try_wait().unwrap().is_none(), "the command still runs");
    }
    drop(input);
    assert!(run.wait().unwrap().success());
}

#[test]
fn without_the_option_nothing_is_told() {
    if !in_world(test_name!()) {
        return;
    }
    let quiet: Vec<&str> = WORLD.into_iter().filter(|word| *word != "--net-log").collect();
    let heard =
        Stage::new(users()[0]).attempts(&["net:connect:good.test:80"], &quiet, &["address evil.test"]);
    assert!(!heard.log.contains("refused"), "{}", heard.log);
}

#[test]
fn decisions_are_in_the_journal_and_the_log_command_shows_them() {
    if !in_world(test_name!()) {
        return;
    }
    servers::http(&format!("{GOOD}:80"), &Files::default());
    for user in users() {
        let stage = Stage::new(*user);
        let journal = stage.directory("state").join("journal");
        let option = format!("--journal={}", journal.display());
        let mut options = WORLD.to_vec();
        options.push(&option);
        options.extend(["--hosts", "inner.test=10.0.0.5"]);
        let tries = [
            "http good.test 80 good.test",
            "http good.test 80 evil.test",
            "address evil.test",
            "http inner.test 80 inner.test",
        ];
        stage.attempts(&["net:connect:good.test:80", "net:connect:inner.test:80"], &options, &tries);
        let shown = |words: &[&str]| {
            let mut command: Command = as_user(*user, stage.path("bailiwick"));
            command.arg("log").args(words).arg("--dir").arg(&journal);
            let output = command.args(["--format", "text"]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let allowed = shown(&["tail", "--kind", "egress-allowed"]);
        assert!(allowed.contains("net:connect:good.test:80"), "{allowed}");
        let name = allowed.split("  ").nth(1).unwrap();
        assert!(shown(&["show", name]).contains("reached at 93.184.216.34"));
        let denied = shown(&["tail", "--kind", "egress-denied"]);
        for line in [
            "net-http-host-other: good.test:80: the HTTP request names another host",
            "net-host-not-granted: evil.test: not granted",
            "net-address-private: inner.test:80: the name leads to a private address",
        ] {
            assert!(denied.contains(line), "{denied}");
        }
        shown(&["verify"]);
        for (line, remedy) in denied.lines().zip([
            "no grant that would allow it was recorded",
            "\"net:connect:evil.test\",",
            "\"net:connect:inner.test:80?blockPrivate=false\",",
        ]) {
            let event = line.split("  ").nth(1).unwrap();
            let why = shown(&["why", event]);
            assert!(why.contains(remedy) && !why.contains("does not know"), "{line}: {why}");
        }
    }
}

#[test]
fn a_command_that_failed_is_told_what_its_network_was_refused() {
    if !in_world(test_name!()) {
        return;
    }
    let quiet: Vec<&str> = WORLD.into_iter().filter(|word| *word != "--net-log").collect();
    let stage = Stage::new(users()[0]);
    // What PostgreSQL's and Redis' clients say first; and a client that waits for the server, as MySQL's does.
    let raw = "--cap 'net:connect:good.test:5432?protocol=raw'";
    for (said, code, hint) in [
        ("printf '\\0\\0\\0\\10\\4\\322\\26\\57' >&3", 3, raw),
        ("printf '*1\\r\\n$4\\r\\nPING\\r\\n' >&3", 3, raw),
        ("printf 'PING\\r\\n' >&3", 3, raw),
        ("printf 'SSH-2.0-x\\r\\n' >&3", 3, raw),
        (":", 3, raw),
        ("printf '\\0\\0\\0\\10\\4\\322\\26\\57' >&3", 0, ""),
    ] {
        let script = format!("exec 3<>/dev/tcp/good.test/5432; {said}; read -r -t 60 -N 1 <&3; exit {code}");
        let mut command = stage.run(&["net:connect:good.test:5432"], &quiet);
        let output = command.args(["--", "/bin/bash", "-c", &script]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}: {told}");
        if hint.is_empty() {
            assert!(!told.contains("note"), "{told}");
        } else {
            let note =
                told.lines().find(|line| line.contains("good.test:5432` was refused")).unwrap_or_default();
            assert!(note.starts_with("note: ") && note.contains("`?protocol=raw`"), "{said}: {told}");
            assert!(note.ends_with(&format!("add {hint}")), "{said}: {told}");
        }
    }
    for caps in [&[][..], &["net:connect:good.test:5432"]] {
        let mut command = stage.run(caps, &quiet);
        let output = command
            .args(["--", "/bin/bash", "-c", "exec 3<>/dev/tcp/evil.test/80; exit 1"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let note = "note: `evil.test` was refused: not granted; add --cap 'net:connect:evil.test:80'";
        assert!(told.contains(note), "{told}");
    }
}
