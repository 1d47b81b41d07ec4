//! The list, judged on a small made-up host.

use super::*;

/// `/w` is a writable tree, `/home/u` a home; these directories exist on top of that.
struct Around {
    work_trees: &'static [&'static str],
    repositories: &'static [&'static str],
}

impl Ground for Around {
    fn is_home(&self, directory: &[u8]) -> bool {
        directory == b"/w" || directory == b"/home/u"
    }

    fn holds_git(&self, directory: &[u8]) -> bool {
        self.work_trees.iter().any(|tree| tree.as_bytes() == directory)
    }

    fn is_git_directory(&self, directory: &[u8]) -> bool {
        self.repositories.iter().any(|own| own.as_bytes() == directory)
    }
}

const AROUND: Around = Around {
    work_trees: &["/w", "/w/sub"],
    repositories: &["/w/bare.git", "/w/.git/modules/sub", "/w/.git/worktrees/one"],
};

fn role_of(path: &str) -> Role {
    role(path.as_bytes(), &AROUND)
}

#[test]
fn every_line_is_read() {
    let lines = include_str!("names.txt").lines().map(str::trim);
    let wanted = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    assert_eq!(NAMES.len(), wanted);
    for name in NAMES.iter() {
        assert!(!name.patterns().is_empty(), "{name:?} is no pattern");
        let last = name.parts.last().copied().unwrap_or_default();
        assert!(name.parts.iter().skip(1).all(|part| !part.is_empty()) && !last.is_empty(), "{name:?}");
    }
}

#[test]
fn a_submodule_is_judged_before_it_is_a_repository() {
    for name in [
        "config",
        "commondir",
        "hooks",
        "hooks/pre-commit",
        "config.worktree",
        "info/attributes",
        "remotes/x",
    ] {
        for own in ["/w/.git/modules/new", "/w/.GIT/Modules/new", "/w/.git/modules/sub/modules/inner"] {
            assert_eq!(role_of(&format!("{own}/{name}")), Role::Protected, "{own}/{name}");
            assert!(is_module(own.as_bytes(), &AROUND), "{own}");
        }
        assert_eq!(role_of(&format!("/w/modules/new/{name}")), Role::Free, "{name}");
    }
    for way in ["/w/.git/modules", "/w/.git/modules/new", "/w/.git/modules/new/objects/info"] {
        assert_eq!(role_of(way), Role::OnTheWay, "{way}");
    }
    for free in
        ["/w/.git/modules/new/HEAD", "/w/.git/modules/new/refs/remotes/origin", "/w/.git/modules/new/index"]
    {
        assert_eq!(role_of(free), Role::Free, "{free}");
    }
    for other in ["/w/.git/modules", "/w/modules/new", "/w/.git/modules/a/b", "/w/.git/other/new", "/w", "/"]
    {
        assert!(!is_module(other.as_bytes(), &AROUND), "{other}");
    }
}

#[test]
fn what_git_runs_is_found_in_every_repository() {
    for name in ["config", "commondir", "hooks", "hooks/pre-commit", "hooks/a/b", "info/attributes"] {
        for own in
            ["/w/.git", "/w/deep/down/.git", "/w/bare.git", "/w/.git/modules/sub", "/w/.git/worktrees/one"]
        {
            assert_eq!(role_of(&format!("{own}/{name}")), Role::Protected, "{own}/{name}");
        }
        assert_eq!(role_of(&format!("/w/src/{name}")), Role::Free, "{name}");
    }
    for path in
        ["/w/.git/index", "/w/.git/HEAD", "/w/.git/objects/ab/cd", "/w/.git/config.lock", "/w/.git/configs"]
    {
        assert_eq!(role_of(path), Role::Free, "{path}");
    }
    for path in ["/w/.git/info", "/w/.git/objects", "/w/.git/objects/info"] {
        assert_eq!(role_of(path), Role::OnTheWay, "{path}");
    }
    assert_eq!(role_of("/w/a/b/.git"), Role::Protected);
}

#[test]
fn project_names_count_where_programs_look_for_them() {
    for name in [".mcp.json", ".claude", ".claude/settings.json", ".vscode/tasks.json", ".husky/pre-commit"] {
        for top in ["/w", "/w/sub", "/home/u"] {
            assert_eq!(role_of(&format!("{top}/{name}")), Role::Protected, "{top}/{name}");
        }
        assert_eq!(role_of(&format!("/w/node_modules/x/{name}")), Role::Free, "{name}");
    }
    assert_eq!(role_of("/w/.vscode"), Role::OnTheWay);
    assert_eq!(role_of("/w/.vscode/extensions.json"), Role::Free);
    assert_eq!(role_of("/home/u/.config/fish/config.fish"), Role::Protected);
    assert_eq!(role_of("/home/u/.config"), Role::OnTheWay);
    assert_eq!(role_of("/w/sub/.bashrc"), Role::Free);
    assert_eq!(role_of("/w/Makefile"), Role::Free);
}

#[test]
fn every_setting_of_hooks_is_a_file_in_a_directory() {
    let lines = NAMES.iter().filter(|name| name.place == Place::Hooks).count();
    assert!(lines > 3);
    assert_eq!(hook_settings().count(), lines);
}

#[test]
fn other_spellings_of_a_name_are_that_name() {
    for name in [".GIT", ".Git", ".git.", ".git ", ".git. .", "GIT~1", ".g\u{200c}it"] {
        assert_eq!(role_of(&format!("/w/{name}")), Role::Protected, "{name:?}");
        assert_eq!(role_of(&format!("/w/x/{name}")), Role::Protected, "{name:?}");
    }
    assert_eq!(role_of("/w/.v\u{17f}code/tas\u{212a}s.json"), Role::Protected);
    for name in [".gi", ".gitt", "git", ".git~1", "...", ".gitignore"] {
        assert_eq!(role_of(&format!("/w/{name}")), Role::Free, "{name:?}");
    }
}

#[test]
fn targets_that_mount_get_names_relative_to_a_tree() {
    let of = |tree: [&'static str; 2]| fixed_names(tree).collect::<Vec<_>>();
    let all = of(["/w", "/w"]);
    for name in [".git/config", ".git/hooks", ".git/info/attributes", ".mcp.json", ".bashrc"] {
        assert!(all.contains(&name), "{name}");
    }
    assert!(!all.contains(&"Makefile") && !all.contains(&".git"));
    assert!(of(["/w/.git", "/elsewhere"]).contains(&"config"));
    assert!(of(["/link", "/w/.vscode"]).contains(&"tasks.json"));
    assert!(!of(["/w/x.git", "/w/.github"]).contains(&"config"));
}
