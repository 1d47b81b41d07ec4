//! SIGKILL of any of our processes leaves nothing: no process, no mount, no file.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{directory, eventually, processes, script};

const ROUNDS: usize = 20;
const AT_ONCE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    Command,
    First,
    Parent,
}

#[test]
fn killing_the_command_leaves_nothing() {
    rounds(Victim::Command);
}

#[test]
fn killing_the_sandboxs_first_process_leaves_nothing() {
    rounds(Victim::First);
}

#[test]
fn killing_who_started_the_command_leaves_nothing_if_that_was_asked_for() {
    rounds(Victim::Parent);
}

/// Two hundred sandboxes, ten at a time, in one writable directory.
fn rounds(victim: Victim) {
    let own = directory();
    let w = own.path().join("w");
    std::fs::create_dir(&w).expect("a directory");
    let word = format!("8{}{}", std::process::id(), victim as u8);
    for _ in 0..ROUNDS {
        let mut all: Vec<Child> = (0..AT_ONCE).map(|_| start(victim, &w, &word)).collect();
        assert_eq!(entries(&w), 0, "nothing is put on the host");
        for child in &mut all {
            kill(child, victim);
        }
        for mut child in all {
            let status = child.wait().expect("it ends");
            assert!(!status.success(), "{status:?}");
        }
        assert!(eventually(|| processes(&word).is_empty()), "left: {:?}", processes(&word));
        assert!(eventually(|| entries(&w) == 0), "{} names left in the directory", entries(&w));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(&*own.path().to_string_lossy()), "{mounts}");
}

fn start(victim: Victim, w: &Path, word: &str) -> Child {
    let text = format!("sleep {word} & echo x; sleep {word}");
    let grant = format!("fs:read,write:{}", w.display());
    let mut command = script(&[&grant, "exec:spawn:sleep"], &["--pids", "64", "--die-with-parent"], &text);
    if victim == Victim::Parent {
        let mut parent = Command::new("/bin/sh");
        parent.args(["-c", "\"$@\"; exit 1", "sh"]).arg(command.get_program()).args(command.get_args());
        command = parent;
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 2]).expect("it runs");
    child
}

fn kill(child: &mut Child, victim: Victim) {
    if victim != Victim::First {
        return child.kill().expect("it is there");
    }
    let pid = child.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its children");
    // The first process of a namespace is number 1 there.
    let first = children.split_whitespace().find(|pid| is_first(pid)).expect("a sandbox");
    let first = first.parse().ok().and_then(rustix::process::Pid::from_raw).expect("a number");
    rustix::process::kill_process(first, rustix::process::Signal::KILL).expect("it is there");
}

fn is_first(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    numbers.split_whitespace().count() > 1 && numbers.split_whitespace().last() == Some("1")
}

fn entries(directory: &Path) -> usize {
    directory.read_dir().expect("a directory").count()
}

/// As many sandboxes at once as a busy agent could want: a thousand when everything is required.
#[test]
fn many_run_at_once() {
    let everything = std::env::var_os("BAILIWICK_REQUIRE").is_some_and(|value| value == "all");
    let count = if everything { 1000 } else { 50 };
    let word = format!("9{}", std::process::id());
    let start = |_| {
        let text = format!("echo x; exec sleep {word}");
        let mut command = script(&["exec:spawn:sleep"], &[], &text);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        child.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 2]).expect("it runs");
        child
    };
    let mut all: Vec<Child> = (0..count).map(start).collect();
    let sleeping = || processes(&word).into_iter().filter(|line| line.starts_with("sleep")).count();
    let together = eventually(|| sleeping() == count);
    for child in &mut all {
        child.kill().expect("it is there");
    }
    for mut child in all {
        child.wait().expect("it ends");
    }
    assert!(together, "not all of them ran at once");
    assert!(eventually(|| processes(&word).is_empty()), "left: {:?}", processes(&word).len());
}
