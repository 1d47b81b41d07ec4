//! Names that run code later, inside a writable tree.

use std::path::Path;

use bailiwick_confine::{Command, Options};
use bailiwick_policy::run_later::fixed_names;

use crate::support::{directory, run_with, script, sh, start};

fn repository() -> (tempfile::TempDir, std::path::PathBuf) {
    let (own, w) = directory();
    fill_repository(&w);
    (own, w)
}

/// Attempts on a repository's own files.
pub(crate) const ON_EXISTING: &[&str] = &[
    "echo x > .git/hooks/pre-commit",
    "echo x >> .git/config",
    ": > .git/config",
    "mv .git x",
    "mv .git/hooks x",
    "rm -r .git/hooks",
    "rm .git/config",
    "ln .git/config x",
    "ln -s x .git/commondir",
    "echo x > new && mv new .git/config",
    "echo x > new && ln new .git/commondir",
    "mkdir new && mv new .git/hooks",
    "cd .git && echo x > config",
    "cd .git/hooks && echo x > ../config",
    "echo x > /proc/self/cwd/.git/config",
    "exec 3<.git/config; echo x > /proc/self/fd/3",
    "chmod 777 .git/hooks",
    "chmod 777 .git/config",
    "ln -s .git g && echo x > g/config",
    "ln -s .git/config c && echo x > c",
];

/// Makes what the attempts need.
pub(crate) fn fill_repository(w: &Path) {
    std::fs::create_dir_all(w.join(".git/hooks")).unwrap();
    std::fs::create_dir_all(w.join(".git/objects")).unwrap();
    std::fs::create_dir_all(w.join(".git/refs")).unwrap();
    std::fs::write(w.join(".git/config"), "[core]\n").unwrap();
    std::fs::write(w.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
}

fn writable(w: &Path) -> String {
    format!("fs:read,write:{}", w.display())
}

#[test]
fn existing_ones_are_read_only_and_cannot_be_replaced() {
    let (_own, w) = repository();
    let cap = writable(&w);
    for attempt in ON_EXISTING {
        sh(&[&cap], attempt, &w).refused();
    }
    sh(&[&cap], "echo x > .git/index && echo y >> .git/index && cat .git/config && chmod 600 .git/index", &w)
        .ok();
    assert_eq!(std::fs::read_to_string(w.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(std::fs::read_to_string(w.join(".git/index")).unwrap(), "x\ny\n");
    assert_eq!(std::fs::read_dir(w.join(".git/hooks")).unwrap().count(), 0);
}

#[test]
fn missing_ones_cannot_be_made_and_nothing_appears_for_them() {
    let (_own, w) = directory();
    let cap = writable(&w);
    let mut lines = String::new();
    for name in fixed_names(["/w", "/w"]).map(Path::new) {
        let (name, parent) = (name.display(), name.parent().unwrap().display());
        lines += &format!("mkdir -p ./{parent} 2>/dev/null\n");
        for attempt in [
            format!("echo x > {name}"),
            format!("mkdir {name}"),
            format!("ln -s /etc {name}"),
            format!("touch own && mv own {name}"),
            format!("touch own && ln own {name}"),
            format!("mkdir -p dir && mv dir {name}"),
            format!("echo x > {name}/x"),
            format!("echo x > /proc/self/cwd/{name}"),
        ] {
            lines += &format!("({attempt}) 2>/dev/null && echo '{attempt}'\n");
        }
    }
    assert_eq!(sh(&[&cap], &format!("{lines}true"), &w).ok(), "");
    for entry in std::fs::read_dir(&w).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let on_the_way = [".aws", ".cargo", ".config", ".docker", ".kube", ".local", ".vscode"];
        assert!(["own", "dir"].contains(&&*name) || on_the_way.contains(&&*name), "{name}");
    }
}

#[test]
fn nothing_is_on_the_host_while_a_sandbox_runs() {
    let (_own, w) = directory();
    let (running, _reader) = start(&[&writable(&w), "exec:spawn:sleep"], script("sleep 1000", &w));
    assert_eq!(std::fs::read_dir(&w).unwrap().count(), 0);
    drop(running);
}

#[test]
fn a_directory_that_brings_protected_names_along_is_not_moved_there() {
    let (_own, w) = directory();
    let cap = writable(&w);
    sh(&[&cap], "mkdir x && echo x > x/tasks.json && mv x .vscode", &w).refused();
    sh(&[&cap], "ln -s x .vscode", &w).refused();
    sh(&[&cap], "mkdir .vscode y && echo x > .vscode/extensions.json && mv .vscode z && mv y .vscode", &w)
        .ok();
    sh(&[&cap], "mkdir -p n/.git", &w).ok();
    assert!(!w.join(".vscode/tasks.json").exists());
}

#[test]
fn a_repository_within_a_work_tree_is_not_made() {
    let (_own, w) = repository();
    let cap = writable(&w);
    for attempt in [
        "mkdir -p sub && mkdir sub/.git",
        "mkdir -p sub && echo 'gitdir: ../x' > sub/.git",
        "mkdir -p a/b && mkdir a/b/objects a/b/refs && echo x > a/b/config && echo ref: refs/heads/x > a/b/HEAD",
        "mkdir -p c && echo ref: refs/heads/x > c/HEAD && mkdir c/refs && mkdir c/objects",
        "mkdir -p d/objects d/refs && echo x > d/h && mv d/h d/HEAD",
        "mkdir -p .git/modules/a/b/objects .git/modules/a/b/refs && echo ref: refs/heads/x > .git/modules/a/b/HEAD",
    ] {
        sh(&[&cap], attempt, &w).refused();
    }
    // A submodule's may be made, without anything in it that is read as configuration or run.
    let module =
        "mkdir -p .git/modules/m/objects .git/modules/m/refs && echo ref: refs/heads/x > .git/modules/m/HEAD";
    sh(&[&cap], module, &w).ok();
    for attempt in
        ["echo x > .git/modules/m/config", "mkdir .git/modules/m/hooks", "echo x > .git/modules/m/commondir"]
    {
        sh(&[&cap], attempt, &w).refused();
    }
    sh(&[&cap], "echo ref: refs/heads/x > .git/HEAD", &w).ok();
}

#[test]
fn a_repository_of_its_own_can_be_made_elsewhere_but_not_moved_into_a_work_tree() {
    let (_own, w) = directory();
    let cap = writable(&w);
    let make =
        "mkdir new new/.git && echo x > new/.git/config && mkdir new/.git/hooks && echo x > new/.git/hooks/a";
    sh(&[&cap], make, &w).ok();
    assert!(w.join("new/.git/hooks/a").exists());
    sh(&[&cap], "echo y > new/.git/config", &w).refused();
    std::fs::create_dir_all(w.join("repo/.git")).unwrap();
    // `mv` copies instead, and cannot.
    sh(&[&cap], "mv new repo/new", &w).refused();
    assert!(!w.join("repo/new/.git/config").exists());
}

/// One thread makes and removes a directory, others make, remove or link something in it: that is there, or it is not.
const BUSY: &str = "
import errno, os, threading
wrong = []
def parent():
    for _ in range(4000):
        for act in (os.mkdir, os.rmdir):
            try: act('d')
            except OSError: pass
def within(name, make, remove):
    for _ in range(4000):
        try:
            make('d/' + name)
            remove('d/' + name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EEXIST): wrong.append(error)
threads = [threading.Thread(target=parent)] + [threading.Thread(target=within, args=args) for args in [
    ('a', os.mkdir, os.rmdir), ('b', lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)), os.unlink),
    ('c', lambda path: os.symlink('x', path), os.unlink), ('no', os.unlink, os.rmdir), ('no', os.rmdir, os.unlink),
    ('b', lambda path: os.link(path, 'linked'), lambda path: os.unlink('linked')),
    ('.', lambda path: os.close(os.open(path, os.O_TMPFILE | os.O_WRONLY)), os.stat)]]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, (len(wrong), wrong[0])
";

#[test]
fn a_directory_that_is_made_meanwhile_is_there_or_not() {
    let (_own, w) = directory();
    let mut command = Command::new("python3");
    command.args = vec!["-c".into(), BUSY.into()];
    command.cwd = Some(w.clone());
    run_with(&[&writable(&w)], command, Options::default()).ok();
}

#[test]
fn ordinary_work_is_as_ever() {
    let (_own, w) = directory();
    let text = "umask 027; mkdir -p a/b; echo one > a/b/f; echo two >> a/b/f; cp a/b/f a/g; mv a/g a/h; ln a/h a/i; ln -s h a/j
        echo three > a/j; cat a/b/f a/h a/j; rm a/i; rm -r a/b; chmod 640 a/h; ls -l a/h; ls a; echo out > /dev/null
        echo to-out > /dev/stdout; exec 3> log; echo by-number > /dev/fd/3; cat log; set -C; echo x > log2; (echo y > log2) 2>/dev/null || echo kept; set +C
        echo tmp > /tmp/x && cat /tmp/x; : > log; ls -s log; touch -d 2001-01-01 log; cd a && echo up > ../rel && cat ../rel";
    let said = sh(&[&writable(&w)], text, &w).ok();
    for line in [
        "one\ntwo\nthree\nthree\n",
        "-rw-r-----",
        "h\nj\n",
        "to-out",
        "by-number",
        "kept",
        "tmp",
        "0 log",
        "up",
    ] {
        assert!(said.contains(line), "{line:?} is not in {said}");
    }
}

#[test]
fn fifos_in_a_writable_tree_wait_for_their_other_end() {
    let (_own, w) = directory();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        w.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let text = "(echo through > pipe; echo sent) & sleep 0.2; cat pipe; wait";
    assert_eq!(sh(&[&writable(&w)], text, &w).ok().lines().filter(|line| *line == "through").count(), 1);
    let read_only = format!("fs:read:{}", w.display());
    sh(&[&read_only], "echo x 1<>pipe", &w).refused();
}

#[test]
fn a_name_that_is_granted_is_open() {
    let (_own, w) = repository();
    let hooks = w.join(".git/hooks");
    let caps = [writable(&w), format!("fs:write:{}", hooks.display())];
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    run_with(&caps, script("echo x > .git/hooks/pre-commit", &w), Options::default()).ok();
    assert!(hooks.join("pre-commit").exists());
    run_with(&caps, script("echo x > .git/config", &w), Options::default()).refused();
    let alone = format!("fs:read,write:{}/.git", w.display());
    sh(&[&alone], "echo x > .git/hooks/other", &w).refused();
    sh(&[&alone], "echo x > .git/other", &w).ok();
}

#[test]
fn a_worktree_keeps_its_link_file() {
    let (_own, w) = directory();
    std::fs::write(w.join(".git"), "gitdir: /elsewhere\n").unwrap();
    for attempt in ["echo x > .git", "rm .git", "mv .git x", "touch y && mv y .git"] {
        sh(&[&writable(&w)], attempt, &w).refused();
    }
    assert_eq!(std::fs::read_to_string(w.join(".git")).unwrap(), "gitdir: /elsewhere\n");
}

#[test]
fn what_the_host_replaces_meanwhile_stays_closed() {
    let (_own, w) = repository();
    std::fs::write(w.join("new"), "[core]\n").unwrap();
    let text = "while [ -e new ]; do sleep 0.01; done; echo x >> .git/config";
    let (mut running, _reader) = start(&[&writable(&w), "exec:spawn:sleep"], script(text, &w));
    std::fs::rename(w.join("new"), w.join(".git/config")).unwrap();
    assert_ne!(running.wait().unwrap(), bailiwick_confine::Exit::Code(0));
    assert_eq!(std::fs::read_to_string(w.join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn globs_open_no_name_that_runs_code_later() {
    let (_own, w) = repository();
    std::fs::create_dir(w.join(".vscode")).unwrap();
    for name in [".mcp.json", ".vscode/tasks.json", "a.json"] {
        std::fs::write(w.join(name), "{}").unwrap();
    }
    let cap = format!("fs:read,write:{}/**/*.json", w.display());
    for name in [".mcp.json", ".vscode/tasks.json"] {
        sh(&[&cap], &format!("echo x > {name}"), &w).refused();
        assert_eq!(sh(&[&cap], &format!("cat {name}"), &w).ok(), "{}");
    }
    sh(&[&cap], "echo x > a.json", &w).ok();
    let all = format!("fs:read,write:{}/**/*", w.display());
    sh(&[&all], "echo x > .git/config", &w).refused();
    sh(&[&all], "echo x > a.json", &w).ok();
}
