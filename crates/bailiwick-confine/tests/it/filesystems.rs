//! Protected names on other file systems as granted directories: in memory, overlaid, served by a process, with
//! subvolumes, folding case, without links. In a
//! mount namespace of the test's own; as root only, nobody else can mount.

use std::path::Path;
use std::process::Command;

use crate::protected::{ON_EXISTING, fill_repository};
use crate::support::{directory, sh};

const ROLE: &str = "BAILIWICK_TEST_FILE_SYSTEM";

/// How each is mounted at `$W`, with `$T` for what it needs beside. A host that cannot skips it.
const KINDS: [(&str, &str); 6] = [
    ("tmpfs", "mount -t tmpfs tmpfs $W"),
    (
        "overlay",
        "mount -t tmpfs tmpfs $T && mkdir $T/l $T/u $T/k && mount -t overlay overlay -o lowerdir=$T/l,upperdir=$T/u,workdir=$T/k $W",
    ),
    (
        "ext4-casefold",
        "truncate -s 32M $T/i && mkfs.ext4 -q -O casefold $T/i && mount -o loop $T/i $W && rmdir $W/lost+found && chattr +F $W",
    ),
    ("fuse", "mkdir $T/s && bindfs $T/s $W"),
    ("btrfs", "truncate -s 128M $T/i && mkfs.btrfs -q $T/i >/dev/null && mount -o loop $T/i $W"),
    ("vfat", "truncate -s 32M $T/i && mkfs.vfat $T/i >/dev/null && mount -o loop $T/i $W"),
];

/// Names that do not exist, in spellings that some file system takes for them.
const NEW_NAMES: &[&str] = &[
    ".mcp.json",
    ".MCP.JSON",
    ".Mcp.Json",
    ".mcp.json.",
    ".claude",
    ".CLAUDE",
    ".claude/settings.json",
    ".Claude/Settings.json",
    ".bashrc",
    ".BASHRC",
    ".vscode/tasks.json",
    ".VSCODE/TASKS.JSON",
    ".envrc",
    ".ENVRC",
    ".npmrc",
    ".gitmodules",
    ".GITMODULES",
    ".husky/pre-commit",
    ".idea",
    ".codex",
    ".cursor",
    ".gemini",
    ".agents",
    ".AGENTS/guardrails.toml",
    "sub/.git",
    "sub/.GIT",
    ".git/commondir",
    ".GIT/COMMONDIR",
    ".git/Config",
    ".Git/config",
    ".git/HOOKS/pre-commit",
    "GIT~1/config",
    ".git/config.worktree",
    ".git/info/attributes",
    ".git/objects/info/alternates",
];

#[test]
fn protected_names_are_closed_on_every_file_system() {
    if let Some(w) = std::env::var_os(ROLE) {
        return inside(Path::new(&w));
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (kind, mount) in KINDS {
        let (_own, top) = directory();
        let (w, t) = (top.join("w"), top.join("t"));
        for path in [&w, &t] {
            std::fs::create_dir(path).unwrap();
        }
        let script = format!(
            "{mount} || exit 77; \"$0\" --exact filesystems::protected_names_are_closed_on_every_file_system --nocapture; \
             ended=$?; umount $W; exit $ended"
        );
        let ran = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(ROLE, &w)
            .env("W", &w)
            .env("T", &t)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        if ran.status.code() == Some(77) {
            assert!(!["tmpfs", "overlay"].contains(&kind), "{kind}: {said}");
            continue; // this host has no such file system
        }
        assert!(ran.status.success() && said.contains("1 passed"), "{kind}: {said}");
    }
}

fn is_btrfs(w: &Path) -> bool {
    rustix::fs::statfs(w).is_ok_and(|about| about.f_type == 0x9123_683e)
}

fn inside(w: &Path) {
    fill_repository(w);
    for directory in ["sub", ".git/info", ".git/objects/info"] {
        std::fs::create_dir_all(w.join(directory)).unwrap();
    }
    let cap = format!("fs:read,write:{}", w.display());
    let config = || std::fs::read_to_string(w.join(".git/config")).unwrap();
    let mut script = String::new();
    for attempt in ON_EXISTING {
        script += &format!("({attempt}) >/dev/null 2>&1\n");
    }
    for name in NEW_NAMES {
        let parent = Path::new(name).parent().unwrap().display();
        for attempt in ["echo x >", "mkdir", "ln -s x", "touch y; mv y", "touch y; ln y"] {
            script += &format!(
                "mkdir -p ./{parent} 2>/dev/null; ({attempt} {name}) 2>/dev/null && echo '{attempt} {name}'\n"
            );
        }
    }
    assert_eq!(sh(&[&cap], &format!("{script}true"), w).ok(), "");
    assert_eq!(config(), "[core]\n");
    if is_btrfs(w) {
        // The same as directories with what lies in them, made by no call that names a path to the kernel.
        let own = w.join("own");
        let made = Command::new("btrfs").args(["subvolume", "create"]).arg(&own).output().unwrap();
        assert!(made.status.success(), "outside it works");
        std::fs::write(own.join("tasks.json"), "{}").unwrap();
        for attempt in ["create .claude", "snapshot own .vscode", "create sub/.git", "delete own"] {
            sh(&[&cap, "exec:spawn:btrfs"], &format!("btrfs subvolume {attempt}"), w).refused();
        }
    }
    // Ordinary work goes on.
    let work = "mkdir a && echo one > a/f && mv a/f a/g && cat a/g && rm -r a && echo x > .git/index && cat .git/index";
    assert_eq!(sh(&[&cap], work, w).ok(), "one\nx\n");
}
