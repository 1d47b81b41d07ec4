//! The reader of configuration against git itself, and what is found of repositories.

use std::path::Path;
use std::process::Command;

use super::config::entries;
use super::paths_named_by_git;

fn git(directory: &Path, args: &[&str]) -> Option<std::process::Output> {
    let mut command = Command::new("git");
    command.args(["-C"]).arg(directory).args(args).env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1");
    command.output().ok()
}

fn has_git() -> bool {
    let found = git(Path::new("/"), &["--version"]).is_some();
    if !found {
        bailiwick_testkit::skip("git is not installed");
    }
    found
}

/// Variables as git lists them: section without subsection, name, value.
fn by_git(file: &Path) -> Option<Vec<(String, String, String)>> {
    let args = ["config", "--no-includes", "-z", "--list", "--file", file.to_str()?];
    let output = git(Path::new("/"), &args)?;
    let text = String::from_utf8(output.stdout).ok()?;
    let entry = |entry: &str| {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        let (section, rest) = key.split_once('.')?;
        let name = rest.rsplit('.').next()?;
        Some((section.to_owned(), name.to_owned(), value.to_owned()))
    };
    let all = text.split('\0').filter(|part| !part.is_empty()).map(entry).collect();
    output.status.success().then_some(all)?
}

#[test]
fn configuration_is_read_as_git_reads_it() {
    if !has_git() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    let pieces = [
        "[core]\n",
        "[core] hooksPath = a/b\n",
        "[CORE]\n\tHooksPath=x\n",
        "[filter \"a b\"]\n",
        "[filter \"q\\\"]\\\\x\"]\n",
        "[a.b]\n",
        "[include]\npath = ../x\n",
        "clean = ./c %f\n",
        "clean = \"a ; b\" # note\n",
        "smudge = a \\\n  b\n",
        "process\n",
        "key = a\\tb\\\\ \n",
        "key =   spaced   out   ; no\n",
        "key = \"  kept  \"  x\n",
        "# all\n",
        "; all\n",
        "\r\n",
        "  [x]  y = 1\n",
        "key = \r\n",
        "pager=less\r\n",
        "1bad = x\n",
        "key : x\n",
        "key = \"open\n",
        "key = \\q\n",
        "[bad\n",
        "[bad section]\n",
        "k-1 = v",
        "é = 1\n",
        "key = é\"#;\"\n",
        "\u{feff}[core]\n",
    ];
    let mut state = 7_u64;
    let mut next = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..300 {
        let text: String = (0..=next(7)).map(|_| pieces[next(pieces.len())]).collect();
        std::fs::write(&file, &text).unwrap();
        let Some(expected) = by_git(&file) else {
            refused += 1;
            continue;
        };
        read += 1;
        let found: Vec<_> =
            entries(&text).into_iter().map(|entry| (entry.section, entry.name, entry.value)).collect();
        assert_eq!(found, expected, "{text:?}");
    }
    assert!(read > 40 && refused > 40, "{read} read, {refused} refused");
}

#[test]
fn what_the_configuration_names_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let repository = top.join("work");
    for name in ["work/.git/objects", "work/.git/refs", "work/tools", "work/.git/modules/m", "work/sub"] {
        std::fs::create_dir_all(top.join(name)).unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(top.join(name), text).unwrap();
    write("work/.git/HEAD", "ref: refs/heads/main\n");
    write(
        "work/.git/config",
        "[core]\nhooksPath = tools/hooks\nfsmonitor = true\n[include]\npath = ../team.gitconfig\n\
         [filter \"f\"]\nclean = sh ./tools/clean.sh %f\nsmudge = cat\n[alias]\nx = !tools/alias.sh\n",
    );
    write(
        "work/team.gitconfig",
        "[core]\nfsmonitor = tools/watch\n[includeIf \"gitdir:x\"]\npath = tools/more\n",
    );
    write("work/.git/modules/m/config", "[core]\nworktree = ../../../sub\nhooksPath = .hooks\n");
    for name in ["work/tools/clean.sh", "work/tools/alias.sh"] {
        write(name, "");
    }
    let expected: Vec<_> =
        ["sub/.hooks", "team.gitconfig", "tools/clean.sh", "tools/hooks", "tools/more", "tools/watch"]
            .iter()
            .map(|name| repository.join(name))
            .collect();
    let found = |from: &Path| paths_named_by_git(from, None).into_iter().collect::<Vec<_>>();
    assert_eq!(found(&repository), expected);
    assert_eq!(found(&repository.join("tools")), expected, "from a directory in the work tree");
    assert_eq!(found(&top), expected, "from the directory that holds it");
    assert_eq!(found(&repository.join("none")), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_users_configuration_holds_in_every_repository() {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join("home")).unwrap();
    std::fs::create_dir_all(top.join("work/.git")).unwrap();
    std::fs::write(top.join("home/.gitconfig"), "[core]\nhooksPath = .githooks\n[core]\neditor = ~/bin/e\n")
        .unwrap();
    let found = paths_named_by_git(&top.join("work"), Some(&top.join("home")));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [top.join("work/.githooks")]);
    assert!(paths_named_by_git(&top.join("work"), None).is_empty());
}
