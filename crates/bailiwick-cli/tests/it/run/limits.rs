//! Limits hold.

use super::{err, folder, out, sh};

#[test]
fn a_file_does_not_grow_beyond_its_limit() {
    let own = folder();
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
        command.arg("run").args(options).args([
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
