//! Random plans on a small tree: what a walk from inside can list, read and write is what the plan grants.

use std::path::{Path, PathBuf};

use bailiwick_confine::{Command, Options};
use bailiwick_policy::capability::FsActions;
use bailiwick_policy::path::AbsPath;
use bailiwick_policy::plan::Plan;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{plan, said, script};

const FILES: [&str; 9] =
    ["top", "a/f", "a/g.txt", "a/b/f", "a/b/g.txt", "a/b/c/h.txt", "d/f", "d/e/f", "d/e/g.txt"];
const DIRECTORIES: [&str; 6] = ["", "a", "a/b", "a/b/c", "d", "d/e"];
const ENDS: [&str; 4] = ["", "/*", "/*.txt", "/**"];
const ACTIONS: [&str; 5] = ["read", "read,write", "write", "create", "delete"];

/// Says `l`, `r` or `w` and a path for everything below `$1` that can be listed, read or written.
const WALK: &str = r#"
walk() {
  for entry in "$1"/*; do
    [ -e "$entry" ] || continue
    echo "l $entry"
    if [ -d "$entry" ]; then
      (: > "$entry/new") 2>/dev/null && echo "w $entry/new"
      walk "$entry"
    else
      (read -r _ < "$entry") 2>/dev/null && echo "r $entry"
      (: >> "$entry") 2>/dev/null && echo "w $entry"
    fi
  done
}
walk "$1"
"#;

#[test]
fn nothing_outside_a_plan_is_there() {
    // Each case starts a sandbox: far fewer than of a property that only computes.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { 500 } else { 40 };
    let directory = (0..DIRECTORIES.len(), 0..ENDS.len())
        .prop_map(|(directory, end)| (DIRECTORIES[directory], ENDS[end]));
    let file = (0..FILES.len()).prop_map(|file| (FILES[file], ""));
    let grant = (0..ACTIONS.len(), prop_oneof![directory, file]);
    let plans = prop::collection::vec(grant, 1..4);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner.run(&plans, |grants| one(&grants)).unwrap();
}

fn one(grants: &[(usize, (&str, &str))]) -> Result<(), TestCaseError> {
    let own = tempfile::Builder::new().prefix("bailiwick-walk").tempdir_in("/var/tmp").unwrap();
    let base = own.path().join("tree");
    for file in FILES {
        let file = base.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "text\n").unwrap();
    }
    let line = |(action, (place, end)): &(usize, (&str, &str))| {
        let path = if place.is_empty() { base.clone() } else { base.join(place) };
        format!("fs:{}:{}{end}", ACTIONS[*action], path.display())
    };
    let lines: Vec<String> = grants.iter().map(line).collect();
    let capabilities: Vec<&str> = lines.iter().map(String::as_str).collect();
    let plan = plan(&capabilities);
    let mut command = script(WALK, Path::new("/"));
    command.args.extend(["sh".into(), own.path().as_os_str().to_owned()]);
    let seen = walked(&capabilities, command)?;
    for (what, path) in &seen {
        let allowed = match what.as_str() {
            "r" => granted(&plan, path, |actions| actions.contains(FsActions::READ)),
            "w" => granted(&plan, path, |actions| actions != FsActions::READ),
            _ => granted(&plan, path, |_| true) || leads_to_a_grant(&plan, path),
        };
        prop_assert!(allowed, "`{what} {}` with {lines:?}", path.display());
    }
    // A directory that may only be written cannot be walked through.
    if plan.files().iter().any(|grant| !grant.actions.contains(FsActions::READ)) {
        return Ok(());
    }
    for file in FILES.map(|file| base.join(file)) {
        let readable = granted(&plan, &file, |actions| actions.contains(FsActions::READ));
        let read = seen.contains(&("r".to_owned(), file.clone()));
        prop_assert_eq!(readable, read, "`{}` with {:?}", file.display(), &lines);
    }
    Ok(())
}

fn walked(capabilities: &[&str], command: Command) -> Result<Vec<(String, PathBuf)>, TestCaseError> {
    let said = said(capabilities, command, Options::default()).map_err(|refusal| {
        TestCaseError::reject(refusal.to_string()) // a plan that is refused shows nothing
    })?;
    let lines = said.text.lines().filter_map(|line| line.split_once(' '));
    Ok(lines.map(|(what, path)| (what.to_owned(), PathBuf::from(path))).collect())
}

fn granted(plan: &Plan, path: &Path, enough: impl Fn(FsActions) -> bool) -> bool {
    let path = AbsPath::new(path.to_str().unwrap()).unwrap();
    plan.files().iter().any(|grant| enough(grant.actions) && grant.pattern.value.covers(&path))
}

/// Whether a directory has to be there because something below it is granted.
fn leads_to_a_grant(plan: &Plan, path: &Path) -> bool {
    let below = |grant: AbsPath| Path::new(&grant.to_string()).starts_with(path);
    let around = |grant: AbsPath| path.is_dir() && path.starts_with(grant.to_string());
    plan.files().iter().any(|grant| below(grant.path()) || (!grant.is_tree() && around(grant.path())))
}
