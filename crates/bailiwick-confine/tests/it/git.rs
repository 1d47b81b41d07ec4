//! What the host's git runs after a sandbox has had a repository for writing: nothing of the sandbox's making.
//!
//! Each attack is tried on a new repository with a submodule, a linked worktree and a subdirectory. Then the host uses
//! git as a person would. An attack that works without the sandbox is marked so, and is tried there too.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{directory, script, sh, start};

/// An attack: its name, whether it succeeds without a sandbox, and a shell script in the repository. `$E` is the
/// hostile program, `$C` a configuration that names it.
const ATTACKS: &[(&str, bool, &str)] = &[
    ("config", true, "cat $C >> .git/config"),
    ("config-rename", true, "cat .git/config $C > n; mv -f n .git/config"),
    ("config-remove", true, "cat .git/config $C > n; rm -f .git/config; cp n .git/config"),
    ("config-link", true, "cat .git/config $C > n; ln -sf ../n .git/config"),
    ("config-hard-link", true, "ln .git/config n; cat $C >> n"),
    ("config-case", false, "mkdir .GIT; cat $C > .GIT/config"),
    ("config-by-proc", true, "cat $C >> /proc/self/cwd/.git/config"),
    ("config-by-root", true, "cat $C >> /proc/self/root$PWD/.git/config"),
    ("config-by-descriptor", true, "exec 3<.git/config; cat .git/config $C > /proc/self/fd/3"),
    ("config-by-directory", true, "cd .git/objects; cat $C >> ../config"),
    ("config-lock", false, "cat .git/config $C > .git/config.lock"),
    ("git-moved", true, "mv .git x; cat $C >> x/config; mv x .git"),
    ("git-copied", true, "cp -r .git x; cat $C >> x/config; mv .git y; mv x .git"),
    ("git-file", true, "cp -r .git x; cat $C >> x/config; mv .git y; echo gitdir: x > .git"),
    ("git-link", true, "cp -r .git x; cat $C >> x/config; mv .git y; ln -s x .git"),
    ("git-removed", true, "cp -r .git x; cat $C >> x/config; rm -rf .git; mv x .git"),
    ("hook", true, "cp $E .git/hooks/pre-commit"),
    ("hook-link", true, "ln -s $E .git/hooks/pre-commit"),
    ("hooks-moved", true, "mkdir h; cp $E h/pre-commit; mv .git/hooks x; mv h .git/hooks"),
    ("hook-mode", true, "chmod 755 .git/hooks/post-commit"),
    ("commondir", true, "cp -r .git x; cat $C >> x/config; echo ../x > .git/commondir"),
    ("commondir-link", true, "cp -r .git x; cat $C >> x/config; echo ../x > n; ln -s ../n .git/commondir"),
    ("config-worktree", true, "cat $C > .git/config.worktree"),
    ("submodule-config", true, "cat $C >> .git/modules/sub/config"),
    (
        "submodule-commondir",
        true,
        "cp -r .git/modules/sub x; cat $C >> x/config; echo $PWD/x > .git/modules/sub/commondir",
    ),
    ("submodule-hook", false, "cp $E .git/modules/sub/hooks/pre-commit"),
    ("submodule-file", true, "cp -r .git/modules/sub x; cat $C >> x/config; echo gitdir: ../x > sub/.git"),
    ("submodule-directory", true, "cp -r .git/modules/sub x; cat $C >> x/config; rm sub/.git; mv x sub/.git"),
    (
        "submodule-filled",
        true,
        "mv .git/modules/sub y; mkdir .git/modules/sub; cat y/config $C > .git/modules/sub/config; \
         cp -r y/HEAD y/objects y/refs y/index .git/modules/sub/",
    ),
    (
        "submodule-swapped",
        true,
        "cp -r .git/modules/sub x; cat $C >> x/config; mv .git/modules/sub y; mv x .git/modules/sub",
    ),
    (
        "submodules-swapped",
        true,
        "cp -r .git/modules x; cat $C >> x/sub/config; mv .git/modules y; mv x .git/modules",
    ),
    (
        "submodule-link",
        true,
        "cp -r .git/modules/sub x; cat $C >> x/config; mv .git/modules/sub y; ln -s ../../x .git/modules/sub",
    ),
    (
        "worktree-commondir",
        true,
        "cp -r .git x; cat $C >> x/config; echo $PWD/x > .git/worktrees/wt/commondir",
    ),
    ("worktree-config", true, "cat $C > .git/worktrees/wt/config.worktree"),
    ("worktree-file", true, "cp -r .git x; cat $C >> x/config; echo gitdir: $PWD/x > ../wt/.git"),
    ("bare-below", true, "cp -r .git/objects .git/refs .git/HEAD src/; $B > src/config"),
    (
        "bare-below-moved",
        true,
        "mkdir b; cp -r .git/objects .git/refs .git/HEAD b/; $B > b/config; rm -r src; mv b src",
    ),
    (
        "bare-below-head-last",
        true,
        "mkdir src/refs src/objects; $B > src/config; cp .git/HEAD h; mv h src/HEAD",
    ),
    (
        "nested",
        false,
        "mkdir src/.git && cp -r .git/objects .git/refs .git/HEAD src/.git/ && cat $C > src/.git/config",
    ),
    ("alternates", false, "echo /nowhere > .git/objects/info/alternates"),
    ("attributes", false, "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes"),
    ("remotes", false, "mkdir -p .git/remotes; echo 'URL: ext::sh -c $E' > .git/remotes/origin"),
    ("branches", false, "mkdir -p .git/branches; echo 'ext::sh -c $E' > .git/branches/origin"),
];

struct World {
    _own: tempfile::TempDir,
    top: PathBuf,
    repository: PathBuf,
    mark: PathBuf,
}

fn git() -> Option<&'static str> {
    ["/usr/bin/git", "/usr/local/bin/git"].into_iter().find(|path| Path::new(path).exists())
}

impl World {
    fn new(git: &str) -> Self {
        let (own, top) = directory();
        let (repository, mark) = (top.join("repo"), top.join("mark"));
        let world = Self { _own: own, top, repository, mark };
        std::fs::create_dir(&world.repository).unwrap();
        let evil = world.repository.join("evil");
        std::fs::write(&evil, format!("#!/bin/sh\n: > {}\nexit 1\n", world.mark.display())).unwrap();
        std::process::Command::new("chmod").arg("755").arg(&evil).status().unwrap();
        let config = format!("[core]\n\tfsmonitor = {0}\n[diff]\n\texternal = {0}\n", evil.display());
        std::fs::write(world.repository.join("bad-config"), config).unwrap();
        let script = format!(
            "set -e; G={git}; mkdir ../lib; cd ../lib; $G init -q; echo x > f; $G add f; $G commit -qm x; cd ../repo; $G init -q; \
             $G config extensions.worktreeConfig true; mkdir -p src .git/hooks; echo x > src/f; echo y > tracked; $G add src tracked; \
             $G -c protocol.file.allow=always submodule --quiet add ../lib sub; $G commit -qm x; $G worktree add -q ../wt; \
             printf '#!/bin/sh\\n: > {}\\n' > .git/hooks/post-commit; chmod 644 .git/hooks/post-commit; echo z >> tracked",
            world.mark.display()
        );
        let made = world.plain("sh", &["-c", &script], &world.repository);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        assert!(!world.mark.exists());
        world
    }

    fn plain(&self, program: &str, args: &[&str], at: &Path) -> std::process::Output {
        let own =
            [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")];
        let own =
            own.into_iter().chain([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")]);
        let mut command = Command::new(program);
        command.args(args).current_dir(at).env("HOME", &self.top).envs(own);
        command.env_remove("GIT_DIR").output().unwrap()
    }

    fn script(&self, attack: &str) -> String {
        let at = |name: &str| self.repository.join(name).display().to_string();
        // A bare repository that has the host's next fetch start the program.
        let bare = format!(
            "printf '[core]\\nbare=true\\nsshCommand=%s\\n[remote \"origin\"]\\nurl=ssh://h/r\\n' {}",
            at("evil")
        );
        let attack = attack.replace("$B", &bare);
        format!("E={} C={}; {attack}", at("evil"), at("bad-config"))
    }

    /// Uses git as a person would; whether anything of the attacker's ran.
    fn is_hit(&self, git: &str) -> bool {
        let there = [
            self.repository.clone(),
            self.repository.join("src"),
            self.repository.join("sub"),
            self.top.join("wt"),
        ];
        for place in there.iter().filter(|place| place.is_dir()) {
            for line in ["status", "diff", "log -1", "add -A", "commit -qm y", "fetch -q", "stash list"] {
                let words: Vec<&str> = line.split(' ').collect();
                self.plain(git, &words, place);
            }
        }
        self.mark.exists()
    }
}

#[test]
fn the_hosts_git_runs_nothing_that_a_sandbox_has_planted() {
    let Some(git) = git() else { return };
    let mut hits = Vec::new();
    for (name, _, attack) in ATTACKS {
        let world = World::new(git);
        let caps = [world.repository.as_path(), &world.top.join("wt")]
            .map(|path| format!("fs:read,write:{}", path.display()));
        sh(&[&caps[0], &caps[1]], &world.script(attack), &world.repository);
        if world.is_hit(git) {
            hits.push(*name);
        }
    }
    assert_eq!(hits, [""; 0]);
}

/// One of each kind shows here that it works where nothing holds it; all of them would take too long for every run.
#[test]
fn the_same_attacks_work_without_a_sandbox() {
    let Some(git) = git() else { return };
    let all = std::env::var_os("BAILIWICK_REQUIRE").is_some();
    let wanted = ATTACKS.iter().enumerate().filter(|(at, (_, works, _))| *works && (all || at % 4 == 0));
    for (_, (name, _, attack)) in wanted {
        let world = World::new(git);
        world.plain("sh", &["-c", &world.script(attack)], &world.repository);
        assert!(world.is_hit(git), "{name} does nothing");
    }
}

#[test]
fn names_that_lead_nowhere_harmful_today_are_closed_too() {
    let Some(git) = git() else { return };
    let world = World::new(git);
    let cap = format!("fs:read,write:{}", world.repository.display());
    for (name, works, attack) in
        ATTACKS.iter().filter(|(name, _, _)| *name != "config-case" && *name != "config-lock")
    {
        if !works {
            sh(&[&cap], &format!("set -e; {}", world.script(attack)), &world.repository).refused();
        }
        assert!(!name.is_empty());
    }
}

/// git itself at work inside: what it needs is open, what would plant something is not.
#[test]
fn git_works_inside() {
    let Some(git) = git() else { return };
    let world = World::new(git);
    let cap = format!("fs:read,write:{}", world.repository.display());
    let caps = [&*cap, "exec:spawn:git"];
    let with = "export HOME=/tmp GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e;";
    for work in [
        "git add tracked && git commit -qm inside && git log --oneline",
        "echo more > new && git add new && git stash -q && git stash pop -q",
        "git checkout -q -b topic && echo x >> tracked && git commit -qam topic && git checkout -q - && git merge -q topic",
        "git tag v1 && git branch other && git branch -D other && git reflog | head -1",
        "git rebase -q HEAD~1 && git gc -q && git fsck",
        "git clean -fdx -e evil -e bad-config && git status --short",
        "cd /tmp && git init -q r && cd r && git commit -q --allow-empty -m x",
    ] {
        sh(&caps, &format!("{with} {work}"), &world.repository).ok();
    }
    for plant in [
        "git config core.fsmonitor ./evil",
        "git init -q --separate-git-dir=x",
        "git init -q src",
        "git worktree add -q src/wt",
        "git submodule --quiet add ./sub other",
        "git remote add x ext::evil",
        "git clone -q . src/clone",
    ] {
        sh(&caps, &format!("{with} {plant}"), &world.repository).refused();
    }
    assert!(!world.is_hit(git));
}

/// What the host does to a repository while a sandbox has it, and what the sandbox tries then.
const MEANWHILE: [&str; 10] = [
    "git clean -ffdx -e go",
    "git stash -u -q; mkdir -p go",
    "git worktree remove --force ../wt",
    "git worktree add -q ../wt2",
    "git submodule --quiet deinit -f --all",
    "git checkout -q -b other; git config core.editor x",
    "rm -rf .claude .vscode .mcp.json",
    "mv .git aside; cp -r aside .git; rm -rf aside",
    "mv .claude aside; mkdir .claude",
    "cp .git/config n; mv n .git/config; rm -rf .git/hooks; mkdir .git/hooks",
];

const THEN: [&str; 10] = [
    "echo x >> .git/config",
    "echo x > .git/hooks/pre-commit",
    "echo x > .git/commondir",
    "echo x > .mcp.json",
    "mkdir -p .claude && echo x > .claude/settings.json",
    "mkdir -p .vscode && echo x > .vscode/tasks.json",
    "mkdir -p t && echo x > t/tasks.json && mv -T t .vscode",
    "mv .git away",
    "mkdir -p sub && mkdir sub/.git",
    "echo x > .git/worktrees/wt/commondir",
];

#[test]
fn what_the_host_removes_or_moves_meanwhile_opens_nothing() {
    let Some(git) = git() else { return };
    for act in MEANWHILE {
        let world = World::new(git);
        let w = &world.repository;
        for name in [".claude", ".vscode", "go"] {
            std::fs::create_dir(w.join(name)).unwrap();
        }
        for name in [".claude/settings.json", ".vscode/tasks.json", ".mcp.json"] {
            std::fs::write(w.join(name), "{}").unwrap();
        }
        let mut text = String::from("while [ -e go ]; do sleep 0.02; done; cd .\n");
        for attempt in THEN {
            text += &format!("({attempt}) 2>/dev/null && echo \"{attempt}\"\n");
        }
        let caps = [format!("fs:read,write:{}", w.display())];
        let tools = ["sleep", "mkdir", "mv"].map(|tool| format!("exec:spawn:{tool}"));
        let caps: Vec<&str> = caps.iter().chain(&tools).map(String::as_str).collect();
        let (mut running, mut reader) = start(&caps, script(&text, w));
        let did = world.plain("sh", &["-c", act], w);
        assert!(did.status.success(), "{act}: {}", String::from_utf8_lossy(&did.stderr));
        std::fs::remove_dir(w.join("go")).unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        running.wait().unwrap();
        assert_eq!(said, "", "after {act}");
        assert!(!world.is_hit(git), "{act}");
    }
}
