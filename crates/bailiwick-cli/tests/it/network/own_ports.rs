//! Ports on which Bailiwick itself listens: no sandbox reaches them, whatever is granted.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use super::servers::{self, Files};
use super::world::{Stage, in_world, test_name, users};
use crate::escape::as_user;

/// A listener of ours.
struct Listener(Child, String);

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Listener {
    /// Started with these words; its port stands behind `127.0.0.1:` on stderr.
    fn new(stage: &Stage, words: &[&str]) -> Self {
        let mut command = as_user(stage.user, stage.path("bailiwick"));
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", stage.path(""));
        command.current_dir(stage.path("")).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line =
            lines.find_map(|line| line.ok().filter(|line| line.contains("http://127.0.0.1:"))).unwrap();
        let port = line.split("http://127.0.0.1:").nth(1).unwrap();
        let port = port.chars().take_while(char::is_ascii_digit).collect();
        // Read to its end, so that it may go on saying things.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child, port)
    }
}

#[test]
fn no_grant_leads_to_a_console_or_a_server_of_ours() {
    if !in_world(test_name!()) {
        return;
    }
    let files: Files = Files::new([("/".to_owned(), b"another server".to_vec())].into());
    servers::http("127.0.0.1:7999", &files);
    for user in users() {
        let stage = Stage::new(*user);
        let own = [
            Listener::new(&stage, &["console"]),
            Listener::new(
                &stage,
                &["serve", "--http", "127.0.0.1:0", "--journal", &stage.path("j").display().to_string()],
            ),
        ];
        let caps = [
            "net:connect:own.test:*?blockPrivate=false",
            "net:connect:own.test:*?blockPrivate=false&protocol=raw",
            "net:connect:127.0.0.1:*?blockPrivate=false",
            "net:connect:127.0.0.1:*?blockPrivate=false&protocol=raw",
            "exec:spawn:/usr/bin/curl",
        ];
        let ask_at = |host: &str, port: &str| {
            let mut run = stage.run(&caps, &["--net-log", "--hosts", "own.test=127.0.0.1", "--"]);
            run.args([
                "/usr/bin/bash",
                "-c",
                "/usr/bin/curl -sS -m 10 http://$1:$0/; echo \" $?\"",
                port,
                host,
            ]);
            let output = run.output().unwrap();
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let ask = |port: &str| ask_at("own.test", port);
        for Listener(_, port) in &own {
            // The address itself leads to the sandbox, or is refused: never out of it.
            let [said, log] = ask_at("127.0.0.1", port);
            assert!(!said.contains("console") && !said.contains("Authorization"), "{port}: {said} {log}");
            let [said, log] = ask(port);
            assert!(log.contains("Bailiwick itself listens there"), "{user:?} {port}: {said} {log}");
            assert!(!said.contains("console") && !said.contains("Authorization"), "{said}");
        }
        let [said, log] = ask("7999");
        assert!(said.starts_with("another server"), "the same host on another port: {said} {log}");
        let port = own[0].1.clone();
        drop(own);
        let [said, log] = ask(&port);
        assert!(!log.contains("itself listens"), "it has ended: {said} {log}");
    }
}
