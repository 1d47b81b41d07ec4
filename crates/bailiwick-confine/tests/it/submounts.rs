//! Mounts of the host below a granted directory, in a mount namespace of the test's own.

use std::path::Path;
use std::process::Command;

use crate::support::{directory, sh};

const ROLE: &str = "BAILIWICK_TEST_MOUNTS";

/// What is mounted where, and whether the sandbox may see it.
const MOUNTS: [(&str, &str, bool); 6] = [
    ("proc", "proc", false),
    ("sysfs", "sys", false),
    ("devpts", "pts", false),
    ("mqueue", "mqueue", false),
    ("tmpfs", "memory", true),
    ("tmpfs", "deep/er/memory", true),
];

/// As root only: nobody else can mount below a directory of the host's.
#[test]
fn only_ordinary_file_systems_come_along() {
    if let Some(w) = std::env::var_os(ROLE) {
        return inside(Path::new(&w));
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_own, w) = directory();
    let mut script = String::from("set -e\n");
    for (kind, name, _) in MOUNTS {
        let at = w.join(name);
        script += &format!("mkdir -p {0}; mount -t {kind} {kind} {0}\n", at.display());
    }
    script += &format!("echo seen > {0}/memory/f; echo seen > {0}/deep/er/memory/f\n", w.display());
    script += "exec \"$0\" --exact submounts::only_ordinary_file_systems_come_along --nocapture";
    let own = std::env::current_exe().unwrap();
    let ran =
        Command::new("unshare").args(["-m", "sh", "-c", &script]).arg(own).env(ROLE, &w).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

fn inside(w: &Path) {
    let cap = format!("fs:read,write:{}", w.display());
    for (kind, name, shown) in MOUNTS {
        let said = sh(&[&cap], &format!("ls -a {name} | grep -v '^[.]*$'"), w).text;
        assert_eq!(said.trim().is_empty(), !shown, "{kind}: {said}");
    }
    assert_eq!(sh(&[&cap], "cat memory/f deep/er/memory/f", w).ok(), "seen\nseen\n");
    sh(&[&cap], "echo x > memory/g && cat memory/g", w).ok();
    for attempt in [
        "echo x > proc/sys/kernel/core_pattern",
        "cat proc/1/environ",
        "cat proc/kcore",
        "mkdir proc/x",
        "echo x > sys/kernel/uevent_helper",
        "mv proc x",
        "rmdir proc",
    ] {
        sh(&[&cap], attempt, w).refused();
    }
    // A grant of such a mount itself, or of something in it, shows nothing.
    for path in ["proc", "proc/sys/kernel", "sys"] {
        let cap = format!("fs:read,write:{}/{path}", w.display());
        sh(&[&cap], &format!("ls {}/{path}", w.display()), w).refused();
    }
}
