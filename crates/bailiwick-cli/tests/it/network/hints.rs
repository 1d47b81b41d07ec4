//! What a refused network is told: at once, and with the grant that lifts just that.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use super::servers;
use super::world::{Stage, in_world, test_name, users};
use super::{GOOD, WORLD};
use bailiwick_testkit::skip;

const CURL: &str = "/usr/bin/curl";
const PYTHON: &str = "/usr/bin/python3";
const ASK: &str = "import socket, sys
try: socket.getaddrinfo(sys.argv[1], 443); print('found')
except socket.gaierror as fault: print('none' if fault.errno == socket.EAI_NONAME else fault); sys.exit(1)";

/// Commands that fail for want of the network, and the grants that one round of hints after the other names.
const COMMANDS: &[(&[&str], &[&str])] = &[
    (&[CURL, "-sS", "http://good.test/page"], &["net:connect:good.test:80"]),
    (&[CURL, "-sS", "http://good.test:8080/page"], &["net:connect:good.test:8080"]),
    (&[CURL, "-sS", "good.test/page"], &["net:connect:good.test:80"]),
    (&[PYTHON, "-c", ASK, "good.test"], &["net:connect:good.test:443"]),
    (&[CURL, "-sS", "http://93.184.216.34:8080/page"], &["net:connect:93.184.216.34:8080"]),
    (&[CURL, "-sS", "http://127.0.0.1:8080/page"], &["net:connect:127.0.0.1:8080"]),
    (&[CURL, "-sS", "-6", "http://[::1]:8080/page"], &["net:connect:[::1]:8080"]),
    // curl ends with the code of its last transfer.
    (
        &[CURL, "-sS", "http://127.0.0.1:8080/page", "http://good.test/page"],
        &["net:connect:127.0.0.1:8080", "net:connect:good.test:80"],
    ),
    // The port is not in the command: the first hint is a small guess, the second one knows.
    (
        &[PYTHON, "-c", "import urllib.request as r; print(r.urlopen('http://good' + '.test/page').read())"],
        &["net:connect:good.test:443", "net:connect:good.test:80"],
    ),
];

#[test]
fn each_hint_is_the_grant_that_lifts_its_refusal() {
    if !in_world(test_name!()) {
        return;
    }
    let files: servers::Files = Arc::new([("/page".to_owned(), b"the page".to_vec())].into());
    let places = ["127.0.0.1:8080", "[::1]:8080"].map(str::to_owned);
    let places = [80, 8080].map(|port| format!("{GOOD}:{port}")).into_iter().chain(places);
    let _seen: Vec<_> = places.map(|place| servers::http(&place, &files)).collect();
    for user in users() {
        let stage = Stage::new(*user);
        for (command, hints) in COMMANDS {
            if !Path::new(command[0]).exists() {
                skip(&format!("no {} here", command[0]));
                continue;
            }
            let mut caps: Vec<String> =
                vec![format!("fs:read:{}", stage.path("client").parent().unwrap().display())];
            let mut lifted: Vec<String> = Vec::new();
            for hint in *hints {
                let output = run(&stage, &caps, command);
                let told = told(&output);
                assert!(!output.status.success(), "{command:?} {caps:?}\n{told}");
                assert!(lifted.iter().all(|line| !told.contains(line)), "{command:?} {lifted:?}\n{told}");
                let named = told.lines().find_map(|line| line.split_once("; add --cap '"));
                let (refusal, grant) = named.unwrap_or_else(|| panic!("{command:?} {caps:?}\n{told}"));
                assert_eq!(grant.trim_end_matches('\''), *hint, "{command:?}\n{told}");
                lifted.push(refusal.to_owned());
                caps.push((*hint).to_owned());
            }
            let output = run(&stage, &caps, command);
            assert!(output.status.success(), "{command:?} {caps:?}\n{}", told(&output));
        }
    }
}

#[test]
fn without_a_network_a_name_does_not_exist_which_is_final() {
    if !in_world(test_name!()) {
        return;
    }
    if !Path::new(PYTHON).exists() {
        return skip("no python3 here");
    }
    for user in users() {
        let stage = Stage::new(*user);
        for caps in [&[][..], &["net:connect:good.test:443".to_owned()][..]] {
            let output = run(&stage, caps, &[PYTHON, "-c", ASK, "evil.test"]);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "none\n", "{caps:?}\n{}", told(&output));
            assert!(told(&output).contains("refused evil.test: not granted"), "{}", told(&output));
        }
    }
}

#[test]
fn npm_without_a_network_tries_once_and_is_told_its_registry() {
    if !in_world(test_name!()) {
        return;
    }
    let npm = "/usr/bin/npm";
    if !Path::new(npm).exists() {
        return skip("no npm here");
    }
    let words = [npm, "install", "left-pad", "--registry", "https://registry.test/", "--loglevel", "http"];
    for user in users() {
        let stage = Stage::new(*user);
        let project = stage.directory("project");
        let caps = [format!("fs:read,write:{}/**", project.display())];
        let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
        let mut command = stage.run(&caps, &WORLD);
        let output = command.arg("--").args(words).current_dir(&project).output().unwrap();
        let told = told(&output);
        assert!(!output.status.success(), "{told}");
        assert!(told.contains("attempt 1 failed with ENOTFOUND"), "{told}");
        assert!(!told.contains("attempt 2"), "{told}");
        assert!(told.contains("add --cap 'net:connect:registry.test:443'"), "{told}");
    }
}

fn run(stage: &Stage, caps: &[String], command: &[&str]) -> Output {
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    stage.run(&caps, &WORLD).arg("--").args(command).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
