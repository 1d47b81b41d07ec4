//! Files that run code later, inside a writable folder.

use bailiwick_confine::Options;
use bailiwick_policy::plan::PROTECTED;

use crate::support::{folder, run_with, script, sh, start};

fn repository() -> (tempfile::TempDir, std::path::PathBuf) {
    let (own, w) = folder();
    std::fs::create_dir_all(w.join(".git/hooks")).unwrap();
    std::fs::write(w.join(".git/config"), "[core]\n").unwrap();
    std::fs::write(w.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    (own, w)
}

#[test]
fn existing_ones_are_read_only_and_cannot_be_replaced() {
    let (_own, w) = repository();
    let cap = format!("fs:read,write:{}", w.display());
    for attempt in [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "mv .git x",
        "mv .git/hooks x",
        "rm -r .git",
        "rm .git/config",
        "echo x > new && mv new .git/config",
        "chmod 777 .git/hooks",
    ] {
        sh(&[&cap], attempt, &w).refused();
    }
    sh(&[&cap], "echo x > .git/index && cat .git/config", &w).ok();
    assert_eq!(std::fs::read_to_string(w.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(std::fs::read_dir(w.join(".git/hooks")).unwrap().count(), 0);
}

#[test]
fn missing_ones_cannot_come_into_being_and_leave_nothing_behind() {
    let (_own, w) = folder();
    let cap = format!("fs:read,write:{}", w.display());
    for name in PROTECTED.iter() {
        let name = std::path::Path::new(name);
        let first = name.iter().next().unwrap().to_str().unwrap();
        for attempt in
            [format!("echo x > {first}"), format!("echo x > {}", name.display()), format!("mkdir {first}/x")]
        {
            sh(&[&cap], &attempt, &w).refused();
        }
        sh(&[&cap], &format!("mv {first} x"), &w).refused();
        sh(&[&cap], &format!("rm -r {first}"), &w).refused();
    }
    assert_eq!(std::fs::read_dir(&w).unwrap().count(), 0, "no ghost is left");
}

#[test]
fn two_sandboxes_share_placeholders() {
    let (_own, w) = folder();
    let cap = format!("fs:read,write:{}", w.display());
    let (first, _reader) = start(&[&cap, "exec:spawn:sleep"], script("sleep 1000", &w));
    let (second, _other) = start(&[&cap, "exec:spawn:sleep"], script("sleep 1000", &w));
    drop(first);
    assert!(w.join(".claude").exists(), "the second still needs it");
    drop(second);
    assert_eq!(std::fs::read_dir(&w).unwrap().count(), 0);
}

#[test]
fn a_name_that_is_granted_is_open() {
    let (_own, w) = repository();
    let hooks = w.join(".git/hooks");
    let caps = [format!("fs:read,write:{}", w.display()), format!("fs:write:{}", hooks.display())];
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    let options = Options { named: vec![hooks.clone()], ..Options::default() };
    run_with(&caps, script("echo x > .git/hooks/pre-commit", &w), options).ok();
    assert!(hooks.join("pre-commit").exists());
    let alone = format!("fs:read,write:{}/.git", w.display());
    sh(&[&alone], "echo x > .git/hooks/other", &w).refused();
}

#[test]
fn a_worktree_keeps_its_link_file() {
    let (_own, w) = folder();
    std::fs::write(w.join(".git"), "gitdir: /elsewhere\n").unwrap();
    let cap = format!("fs:read,write:{}", w.display());
    for attempt in ["echo x > .git", "rm .git", "mv .git x"] {
        sh(&[&cap], attempt, &w).refused();
    }
    assert_eq!(std::fs::read_to_string(w.join(".git")).unwrap(), "gitdir: /elsewhere\n");
}

#[test]
fn a_link_in_their_place_is_said() {
    let (_own, w) = folder();
    std::os::unix::fs::symlink("/nowhere", w.join(".mcp.json")).unwrap();
    let cap = format!("fs:read,write:{}", w.display());
    let (mut confined, _reader) = start(&[&cap], script("true", &w));
    assert!(confined.status().details.iter().any(|line| line.contains(".mcp.json")));
    confined.wait().unwrap();
}
