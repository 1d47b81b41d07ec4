//! Limits hold.

use std::os::unix::fs::PermissionsExt as _;

use bailiwick_testkit::skip;

use super::{directory, err, out, sh};
use crate::escape::{User, as_user};

#[test]
fn a_file_does_not_grow_beyond_its_limit() {
    let own = directory();
    let w = own.path().display().to_string();
    let grant = format!("fs:read,write:{w}");
    let text = format!("head -c 3000000 /dev/zero > {w}/big");
    let ended = sh(&[&grant, "exec:spawn:head"], &["--file-size", "1M"], &text);
    assert!(!ended.status.success());
    assert_eq!(own.path().join("big").metadata().expect("it was begun").len(), 1 << 20);
    assert!(sh(&[&grant, "exec:spawn:head"], &[], &text).status.success(), "without a limit it grows");
}

#[test]
fn memory_is_not_to_be_had_beyond_its_limit() {
    let python = |options: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bailiwick"));
        command.args(["run", "--no-journal"]).args(options).args([
            "--",
            "/usr/bin/python3",
            "-c",
            "print(len(b'x' * 400_000_000))",
        ]);
        command.output().expect("it starts")
    };
    let ended = python(&["--memory", "128M"]);
    assert!(!ended.status.success() && out(&ended).is_empty(), "{}", out(&ended));
    assert_eq!(out(&python(&[])), "400000000\n");
}

#[test]
fn processes_are_not_to_be_had_beyond_their_limit() {
    let text = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 2 & done; echo all; wait";
    let ended = sh(&["exec:spawn:sleep"], &["--pids", "8"], text);
    let refused = ended.status.code() == Some(125);
    assert!(refused || !out(&ended).contains("all"), "{}{}", out(&ended), err(&ended));
    assert!(out(&sh(&["exec:spawn:sleep"], &[], &text.replace("sleep 2", "sleep 0"))).contains("all"));
}

#[test]
fn a_limit_that_nothing_holds_is_said_or_refused() {
    let user = if rustix::process::getuid().is_root() { User::Plain } else { User::Caller };
    let dir = directory();
    let bailiwick = dir.path().join("bailiwick");
    std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), &bailiwick).expect("copied");
    for path in [dir.path(), &bailiwick] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("the owner may");
    }
    let run = |options: &[&str]| {
        let mut command = as_user(user, &bailiwick);
        command.args(["run", "--no-journal", "--cpu", "0.5"]).args(options).args(["--", "/bin/true"]);
        command.env_clear().env("HOME", "/nonexistent").current_dir("/").output().expect("it starts")
    };
    let (plain, strict) = (run(&[]), run(&["--require", "limits=kernel"]));
    if strict.status.success() {
        assert_eq!(err(&plain), "");
        return skip("control groups are delegated to a plain user here");
    }
    assert_eq!(strict.status.code(), Some(125), "{}", err(&strict));
    assert!(plain.status.success());
    assert!(err(&plain).starts_with("warning: the limit of `cpu` is not held: "), "{}", err(&plain));
}
