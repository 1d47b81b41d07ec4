//! Every run is recorded in the session of the day, unless a person says otherwise; as root and as a plain user.

use std::path::PathBuf;
use std::process::Stdio;

use super::leash::{World, by_everyone};
use super::{err, eventually, out};
use crate::escape::as_user;

const GRANT: [&str; 2] = ["--cap", "fs:read,write:{}/w"];

fn journal(world: &World) -> PathBuf {
    world.at("home/.local/state/bailiwick/journal")
}

/// What `bailiwick log` prints; it must end well.
fn log(world: &World, words: &[&str]) -> String {
    let mut command = as_user(world.user, world.at("bailiwick"));
    let output = command.arg("log").args(words).env("HOME", world.at("home")).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}{}", out(&output), err(&output));
    out(&output)
}

fn count(text: &str, word: &str) -> usize {
    text.matches(word).count()
}

#[test]
fn runs_share_the_session_of_the_day() {
    by_everyone(|world| {
        for code in [0, 3] {
            let ran = world.sh(&GRANT, &format!("exit {code}"));
            assert_eq!(ran.status.code(), Some(code), "{}", err(&ran));
        }
        let shown = log(world, &["tail"]);
        assert_eq!((count(&shown, "sandbox-started"), count(&shown, "sandbox-ended")), (2, 2), "{shown}");
        assert!(shown.contains("exit code 3") && shown.contains("  day-20"), "{shown}");
        let last = shown.lines().last().and_then(|line| line.split("  ").nth(1)).expect("a name").to_owned();
        assert!(log(world, &["show", &last]).contains("sandbox-started"), "what began it is shown");
        assert!(log(world, &["verify"]).starts_with("intact: 1 session"));
        let files = journal(world).read_dir().expect("a journal").count();
        assert_eq!(files, 4, "a segment, its head, the index and the key");
    });
}

#[test]
fn no_journal_leaves_no_record() {
    by_everyone(|world| {
        let ran = world.sh(&[&GRANT[..], &["--no-journal"]].concat(), "echo ran");
        assert_eq!(out(&ran), "ran\n", "{}", err(&ran));
        assert!(!journal(world).exists());
        assert_eq!(out(&world.sh(&GRANT, "echo ran")), "ran\n");
        assert!(journal(world).exists(), "(control)");
    });
}

#[test]
fn nothing_runs_where_the_usual_journal_cannot_be_opened_and_it_says_what_to_type() {
    by_everyone(|world| {
        std::fs::write(world.at("home"), "in its place").expect("a file");
        world.give("home");
        let refused = world.sh(&GRANT, "echo ran >{}/w/marker");
        let said = err(&refused);
        assert_eq!(refused.status.code(), Some(125), "{said}");
        assert!(said.contains("--no-journal") && said.contains("nothing was started"), "{said}");
        assert!(!world.at("w/marker").exists(), "it ran");
        let ran = world.sh(&[&GRANT[..], &["--no-journal"]].concat(), "echo ran >{}/w/marker");
        assert!(ran.status.success() && world.at("w/marker").exists(), "(control) {}", err(&ran));
    });
}

#[test]
fn many_runs_at_once_lose_no_line() {
    by_everyone(|world| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let ran = world.sh(&GRANT, "exit 0");
                        assert!(ran.status.success(), "{}", err(&ran));
                    }
                });
            }
        });
        let shown = log(world, &["tail", "-n", "1000"]);
        assert_eq!((count(&shown, "sandbox-started"), count(&shown, "sandbox-ended")), (40, 40));
        assert!(log(world, &["verify"]).starts_with("intact: 1 session"));
    });
}

#[test]
fn killed_runs_leave_an_intact_journal() {
    by_everyone(|world| {
        for round in 0..4 {
            let mut all: Vec<_> = (0..5)
                .map(|number| {
                    let mut command = as_user(world.user, world.at("bailiwick"));
                    let marker = world.at(&format!("w/{round}-{number}"));
                    command.args(["run", "--cap", &format!("fs:read,write:{}", world.at("w").display())]);
                    command.args(["--", "/bin/sh", "-c", &format!("echo >{}; read line", marker.display())]);
                    command.env("HOME", world.at("home")).stdin(Stdio::piped());
                    command.spawn().expect("it starts")
                })
                .collect();
            // Half of them are killed while they start.
            if round % 2 == 0 {
                let made = |number: usize| world.at(&format!("w/{round}-{number}")).exists();
                assert!(eventually(|| (0..5).all(made)));
            }
            for run in &mut all {
                run.kill().expect("it runs");
                run.wait().expect("it ends");
            }
        }
        assert!(world.sh(&GRANT, "exit 0").status.success());
        assert!(log(world, &["verify"]).starts_with("intact: 1 session"));
        let shown = log(world, &["tail", "-n", "1000", "--kind", "sandbox-started"]);
        assert!(count(&shown, "sandbox-started") >= 11, "{shown}");
    });
}
