//! Exit codes, time-outs and signals.

use std::io::Read as _;
use std::process::Stdio;

use super::{directory, err, eventually, out, processes, script, sh};

#[test]
fn the_exit_code_is_the_programs() {
    for code in [0, 1, 7, 255] {
        assert_eq!(sh(&[], &[], &format!("exit {code}")).status.code(), Some(code));
    }
    assert_eq!(sh(&[], &[], "kill -SEGV $$").status.code(), Some(128 + 11));
    assert_eq!(sh(&[], &[], "kill -KILL $$").status.code(), Some(128 + 9));
}

#[test]
fn what_is_not_there_or_no_program_has_the_shells_codes() {
    let run = |program: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
        command.args(["run", "--no-journal", "--", program]).output().expect("it starts").status.code()
    };
    assert_eq!(run("/no/such/program"), Some(127));
    assert_eq!(run("no-such-program"), Some(127));
    let own = directory();
    let file = own.path().join("text");
    std::fs::write(&file, "words").expect("a file");
    assert_eq!(run(&file.display().to_string()), Some(126));
}

#[test]
fn a_refusal_is_125_and_names_the_path() {
    let refused = sh(&["fs:write:/no/such/directory"], &[], "echo ran");
    assert_eq!(refused.status.code(), Some(125));
    assert!(err(&refused).contains("/no/such/directory"), "{}", err(&refused));
    assert_eq!(out(&refused), "");
}

#[test]
fn a_failure_names_the_path_and_the_flag() {
    let own = directory();
    let file = own.path().join("text").display().to_string();
    std::fs::write(&file, "words").expect("a file");
    let cat = |caps: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
        command.args(["run", "--no-journal"]).args(caps).args(["--", "cat", &file]).current_dir("/usr/lib");
        command.output().expect("it starts")
    };
    let failed = cat(&[]);
    assert_eq!(failed.status.code(), Some(1));
    let note = format!("note: `{file}` is not visible inside; add --cap fs:read:{file}");
    assert!(err(&failed).contains(&note), "{}", err(&failed));
    let granted = cat(&["--cap", &format!("fs:read:{file}")]);
    assert_eq!((out(&granted), err(&granted)), ("words".to_owned(), String::new()));
}

#[test]
fn a_shell_that_starts_what_is_not_granted_says_how_to_grant_it() {
    let failed = sh(&[], &[], "id");
    assert_eq!(failed.status.code(), Some(127));
    assert!(err(&failed).contains("add --cap exec:spawn:id\n"), "{}", err(&failed));
    let other = sh(&[], &[], "exit 3");
    assert!(!err(&other).contains("exec:spawn"), "{}", err(&other));
}

#[test]
fn a_time_out_ends_the_whole_tree() {
    let word = format!("7{}", std::process::id());
    let text = format!("trap '' TERM; setsid sleep {word} & sleep {word}; sleep {word}");
    let over = sh(&["exec:spawn:sleep", "exec:spawn:setsid"], &["--timeout", "300ms"], &text);
    assert_eq!(over.status.code(), Some(124), "{}", err(&over));
    assert!(eventually(|| processes(&word).is_empty()), "{:?}", processes(&word));
}

#[test]
fn signals_are_passed_on() {
    let text = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child =
        script(&["exec:spawn:sleep"], &[], text).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = child.stdout.take().expect("a pipe");
    said.read_exact(&mut [0; 6]).expect("it is ready");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    assert_eq!((rest.as_str(), child.wait().expect("it ends").code()), ("got it\n", Some(3)));
}
