//! What the built-in guard refuses, and what it leaves alone.

use super::*;
use crate::Names;
use serde_json::json;

fn refused(tool: &str, params: Value) -> bool {
    let scripts = [".agents/hooks/lint.sh".to_owned(), "tools/check.sh".to_owned()];
    let home = Path::new("/home/user");
    let protected =
        Protected::new(Path::new("/p"), &scripts, &home.join(".local/state/bailiwick"), Some(home));
    protected.refuse(&ToolCall::new(tool, &params, &Names::default())).is_some()
}

#[test]
fn attempts_to_loosen_the_leash_are_refused() {
    for command in [
        "bailiwick approve 12ab",
        "/usr/bin/bailiwick trust .",
        "sudo bailiwick --color never install --hooks",
        "sh -c 'bailiwick deny x'",
        "bailiwick guard init --force",
        "cat ~/.local/state/bailiwick/trust.json",
        "rm -rf $HOME/.local/state/bailiwick/journal",
        "echo > $XDG_STATE_HOME/bailiwick/trust.json",
        "rm .agents/guardrails.toml",
        "echo x > .agents/guardrails.toml",
        "cd .agents && sed -i s/a/b/ guardrails.toml",
        "mv .agents elsewhere",
        "rm -rf ./.agents/",
        "tee /p/.agents/hooks/lint.sh",
        "cp x .agents/hooks/lint.sh",
        "dd of=.agents/guardrails.toml",
        "chmod -x tools/check.sh",
        "git checkout HEAD -- .agents/guardrails.toml",
        "cat x >> tools/check.sh",
    ] {
        assert!(refused("Bash", json!({ "command": command })), "{command}");
    }
    assert!(refused("Write", json!({"file_path": "/p/.agents/guardrails.toml", "content": "x"})));
    assert!(refused("Edit", json!({"file_path": "/p/x/../.agents/hooks/lint.sh"})));
    assert!(refused("Read", json!({"file_path": "/home/user/.local/state/bailiwick/trust.json"})));
    assert!(refused("mcp__files__put", json!({"to": [{"path": ".agents/guardrails.toml"}]})));
    let patch = "*** Begin Patch\n*** Update File: .agents/guardrails.toml\n@@\n-a\n+b\n*** End Patch";
    assert!(refused("apply_patch", json!({ "input": patch })));
}

#[test]
fn reading_the_rules_and_everything_else_is_not() {
    for command in [
        "cat .agents/guardrails.toml",
        "git add .agents/guardrails.toml",
        "bailiwick guard test",
        "bailiwick pending",
        "bailiwick check a.toml",
        "tools/check.sh --all",
        "echo approve",
        "rm -rf target",
    ] {
        assert!(!refused("Bash", json!({ "command": command })), "{command}");
    }
    assert!(!refused("Read", json!({"file_path": "/p/.agents/guardrails.toml"})));
    assert!(!refused(
        "Write",
        json!({"file_path": "/p/notes.md", "content": "see .agents/guardrails.toml\nand more"})
    ));
    assert!(!refused("Edit", json!({"file_path": "/p/src/main.rs"})));
}

#[test]
fn the_settings_that_hold_our_hooks_are_kept() {
    for command in [
        "rm .claude/settings.json",
        "echo '{}' > .claude/settings.local.json",
        "sed -i /bailiwick/d ~/.claude/settings.json",
        "cd .claude && rm settings.json",
        "cd ~/.codex; mv hooks.json x",
        "cp x .codex/config.toml",
        "tee $HOME/.cursor/hooks.json",
        "jq 'del(.hooks)' .gemini/settings.json > .gemini/settings.json",
        "rm -rf .claude",
        "mv ~/.cursor elsewhere",
        "rm .claude/*",
        "rm .cl*/settings.json",
        "rm -r .c*",
        "truncate -s0 sub/.claude/settings.json",
        "python3 -c 'open(\".claude/settings.json\", \"w\")'",
        "node -e 'fs.rmSync(\".cursor/hooks.json\")'",
        "git checkout HEAD -- .claude/settings.json",
        "dd of=.gemini/settings.json",
        "bash -c 'rm .gemini/settings.json'",
    ] {
        assert!(refused("Bash", json!({ "command": command })), "{command}");
    }
    for path in [
        ".claude/settings.json",
        "/p/.claude/settings.local.json",
        "/home/user/.claude/settings.json",
        "/home/user/.codex/hooks.json",
        "~/.codex/config.toml",
        "/p/.cursor/hooks.json",
        "/p/x/../.gemini/settings.json",
    ] {
        assert!(refused("Write", json!({ "file_path": path, "content": "{}" })), "{path}");
        assert!(refused("Edit", json!({ "file_path": path })), "{path}");
        assert!(!refused("Read", json!({ "file_path": path })), "{path}");
    }
    let patch = "*** Begin Patch\n*** Delete File: .cursor/hooks.json\n*** End Patch";
    assert!(refused("apply_patch", json!({ "input": patch })));
}

#[test]
fn other_settings_are_nobodys_business() {
    for command in [
        "cat .claude/settings.json",
        "git diff .claude/settings.json",
        "rm .vscode/settings.json",
        "touch .claude/notes.md",
        "mkdir -p .claude/commands",
        "cp hooks.json config.toml settings.json backup",
        "rm *",
        "rm */*.json",
        "cd web && rm settings.json",
        "python3 -c 'print(1)'",
    ] {
        assert!(!refused("Bash", json!({ "command": command })), "{command}");
    }
    assert!(!refused("Write", json!({"file_path": "/p/.claude/agents/a.md", "content": "x"})));
    assert!(!refused("Write", json!({"file_path": "/p/settings.json", "content": "{}"})));
}

#[test]
fn a_link_to_settings_is_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".claude")).unwrap();
    std::fs::write(dir.path().join(".claude/settings.json"), "{}").unwrap();
    std::os::unix::fs::symlink(".claude/settings.json", dir.path().join("innocent")).unwrap();
    let protected = Protected::new(dir.path(), &[], Path::new("/state"), None);
    let refused = |name: &str| {
        let params = json!({ "file_path": name, "content": "x" });
        protected.refuse(&ToolCall::new("Write", &params, &Names::default())).is_some()
    };
    assert!(refused("innocent") && !refused("other"));
}

#[test]
fn paths_are_followed_as_the_kernel_follows_them() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b/c")).unwrap();
    std::fs::write(root.join("a/b/file"), "").unwrap();
    for (name, target) in [
        ("a/up", "../a/b"),
        ("over", "a/up/c/../file"),
        ("whole", root.join("a/up").to_str().unwrap()),
        ("a/b/c/out", "../../../whole/./c"),
        ("loop", "loop"),
        ("around", "a/../around/x"),
        ("gone", "a/nothing/here"),
    ] {
        symlink(target, root.join(name)).unwrap();
    }
    let protected = Protected::new(&root, &[], Path::new("/state"), None);
    for path in ["", "a", "a/up", "a/up/file", "over", "whole/c", "whole/c/out/out/out", "a/b/c/out"] {
        let path = root.join(path);
        assert_eq!(protected.real(&path), path.canonicalize().unwrap(), "{}", path.display());
    }
    for (path, leads_to) in [
        ("a/up/nothing/x", "a/b/nothing/x"),
        ("over/below", "a/b/file/below"),
        // What is made through such a link is made where it leads.
        ("gone", "a/nothing/here"),
    ] {
        assert_eq!(protected.real(&root.join(path)), root.join(leads_to), "{path}");
    }
    for endless in ["loop", "loop/x", "around", "around/y"] {
        assert!(protected.real(&root.join(endless)).starts_with(&root), "{endless}");
    }
}

#[test]
fn a_link_that_leads_nowhere_yet_does_not_lead_around_the_guard() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(".agents/hooks/lint.sh", root.join("notes.txt")).unwrap();
    let protected = Protected::new(&root, &[".agents/hooks/lint.sh".to_owned()], Path::new("/state"), None);
    let refused = |command: &str| {
        let params = json!({ "command": command });
        protected.refuse(&ToolCall::new("Bash", &params, &Names::default())).is_some()
    };
    assert!(refused("echo x > notes.txt"));
    assert!(!refused("echo x > other.txt"));
}
