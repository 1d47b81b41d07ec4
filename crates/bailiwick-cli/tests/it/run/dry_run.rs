//! `run --dry-run`: nothing on the host changes, whatever the program does; the list is true, and can be carried over.

use super::{directory, err, sh, tree_of};

/// The capability to write a directory, and programs to do it with.
fn caps(dir: &std::path::Path) -> Vec<String> {
    let mut all = vec![format!("fs:read,write:{}", dir.display())];
    all.extend(
        ["mkdir", "rm", "ln", "chmod", "mv", "mkfifo", "python3"].map(|name| format!("exec:spawn:{name}")),
    );
    all
}

fn run(dir: &std::path::Path, options: &[&str], text: &str) -> std::process::Output {
    let caps = caps(dir);
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    sh(&caps, &[&["--dry-run"], options].concat(), &format!("cd {} && {{ {text}; }}", dir.display()))
}

fn world() -> (tempfile::TempDir, std::path::PathBuf) {
    let held = directory();
    let dir = held.path().canonicalize().unwrap().join("w");
    std::fs::create_dir_all(dir.join("sub/deep")).unwrap();
    for (name, text) in [("a", "1\n"), ("gone", "1\n"), ("sub/b", "1\n"), ("sub/deep/c", "1\n")] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    std::os::unix::fs::symlink(held.path().join("outside"), dir.join("out")).unwrap();
    std::fs::write(held.path().join("outside"), "theirs\n").unwrap();
    // What was there before was there well before.
    std::thread::sleep(std::time::Duration::from_millis(20));
    (held, dir)
}

const ACTS: &str = "echo 2 > a; rm gone; mkdir new; echo x > new/file; ln -s /etc link; rm -r sub; mkdir sub; \
                    echo y > sub/b; chmod 700 .; echo z >> out; mv new/file moved; true";

#[test]
fn nothing_changes_and_the_list_is_true() {
    let (held, dir) = world();
    let before = tree_of(held.path());
    let ran = run(&dir, &[], ACTS);
    assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
    assert_eq!(tree_of(held.path()), before, "the host is as it was");
    let shown = dir.display().to_string();
    let listed: Vec<String> =
        err(&ran).lines().filter(|line| line.contains(&shown)).map(|line| line.replace(&shown, "")).collect();
    assert_eq!(
        listed,
        ["M /a", "D /gone", "A /link", "A /moved", "A /new/", "D /sub/deep/", "M /sub/b"].map(str::to_owned),
        "{}",
        err(&ran)
    );
    // The control: without the layer the same acts change the host.
    let caps = caps(&dir);
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    sh(&caps, &[], &format!("cd {shown} && {{ {ACTS}; }}"));
    assert_ne!(tree_of(held.path()), before);
}

#[test]
fn what_is_carried_over_is_what_the_program_would_have_done() {
    let (held, dir) = world();
    let ran = run(&dir, &["--commit"], ACTS);
    assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
    let carried = tree_of(&dir);
    assert!(err(&ran).contains("7 changes were carried over"), "{}", err(&ran));
    assert_eq!(std::fs::read_to_string(dir.join("a")).unwrap(), "2\n");
    assert_eq!(std::fs::read_to_string(held.path().join("outside")).unwrap(), "theirs\n");
    assert!(!dir.join("sub/deep").exists() && !dir.join("gone").exists(), "{carried:?}");
    // A command that fails carries nothing over.
    let before = tree_of(&dir);
    let ran = run(&dir, &["--commit"], "echo 3 > a; exit 4");
    assert_eq!(ran.status.code(), Some(4), "{}", err(&ran));
    assert_eq!(tree_of(&dir), before);
}

#[test]
fn names_that_run_code_later_stay_closed_in_a_layer_too() {
    let (_held, dir) = world();
    let ran = run(&dir, &["--commit"], "echo x > .mcp.json; mkfifo fifo");
    assert!(!dir.join(".mcp.json").exists() && !dir.join("fifo").exists(), "{}", err(&ran));
}

#[test]
fn a_single_file_has_a_layer_of_its_own() {
    let (held, dir) = world();
    let cap = format!("fs:read,write:{}", dir.join("a").display());
    let before = tree_of(held.path());
    let acts = format!(
        "cat {0}; echo 2 > {0} && cat {0}; echo x > {1}",
        dir.join("a").display(),
        dir.join("b").display()
    );
    let ran = sh(&[&cap, "exec:spawn:cat"], &["--dry-run"], &acts);
    assert_eq!(super::out(&ran), "1\n2\n", "{}", err(&ran));
    assert_eq!(tree_of(held.path()), before, "the host is as it was");
    let listed: Vec<String> =
        err(&ran).lines().filter(|line| line.starts_with("M ")).map(str::to_owned).collect();
    assert_eq!(listed, [format!("M {}", dir.join("a").display())], "{}", err(&ran));
    let ran = sh(&[&cap], &["--dry-run", "--commit"], &format!("echo 2 > {}", dir.join("a").display()));
    assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
    assert_eq!(std::fs::read_to_string(dir.join("a")).unwrap(), "2\n");
    let ran = sh(&[&cap], &["--dry-run", "--backend", "landlock"], "true");
    assert_eq!(ran.status.code(), Some(125), "other sandboxes have no layer: {}", err(&ran));
}

#[test]
fn dry_runs_change_nothing_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user(
        "run::dry_run::nothing_changes",
        &[env!("CARGO_BIN_EXE_bailiwick")],
    );
}
