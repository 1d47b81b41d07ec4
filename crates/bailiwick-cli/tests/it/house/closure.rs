//! What the trusted crates drag in, as a reviewed file beside each.
//!
//! A line is a crate name and the part of its version that semver treats as breaking (`serde 1`, `sha2 0.11`),
//! so that an ordinary `cargo update` changes nothing here and a new dependency, or a second copy of one, does.
//! The list covers all platforms and includes procedural macros, which run with the builder's rights.
//! `cargo tree -p` resolves features for that crate alone: another crate's choices do not leak in.

use super::repo;

/// The crates whose closure is a promise. One that does not exist yet is checked from the day it does.
const TRUSTED: [&str; 3] = ["bailiwick-policy", "bailiwick-layout", "bailiwick-confine"];

#[test]
fn trusted_crates_bring_in_only_what_was_reviewed() {
    for name in TRUSTED {
        let dir = repo::root().join("crates").join(name);
        if dir.is_dir() {
            check(name, &dir.join("closure.txt"));
        }
    }
}

fn check(name: &str, golden: &std::path::Path) {
    let now = closure(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &now).expect("the golden file can be written");
        return;
    }
    let reviewed = std::fs::read_to_string(golden).unwrap_or_default();
    let changes = changes(&reviewed, &now);
    assert!(
        changes.is_empty() && reviewed == now,
        "the dependencies of {name} are not those in {}:\n  {}\nif each is wanted, accept with\n  \
         UPDATE_GOLDEN=1 cargo test -p bailiwick-cli --test it closure\nand say why in the commit\n",
        repo::relative(golden),
        changes.join("\n  "),
    );
}

fn closure(name: &str) -> String {
    let tree = repo::cargo(&[
        "tree",
        "--package",
        name,
        "--edges",
        "normal",
        "--target",
        "all",
        "--prefix",
        "none",
        "--no-dedupe",
        "--locked",
        "--format",
        "{p}",
    ]);
    canonical(&tree, name)
}

/// `cargo tree` lines to a sorted list without repetition, and without the crate itself.
fn canonical(tree: &str, itself: &str) -> String {
    let mut lines: Vec<String> = tree.lines().filter_map(line).filter(|line| line != itself).collect();
    lines.sort();
    lines.dedup();
    lines.into_iter().map(|line| line + "\n").collect()
}

/// `toml v1.1.8+spec-1.1.0` to `toml 1`; a crate of ours, which has a path, to its bare name.
fn line(printed: &str) -> Option<String> {
    let mut words = printed.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    let local = words.next().is_some_and(|word| word.starts_with("(/"));
    Some(if local { name.to_owned() } else { format!("{name} {}", breaking_part(version)) })
}

fn breaking_part(version: &str) -> String {
    let parts: Vec<&str> = version.split(['.', '-', '+']).take(3).collect();
    let leading_zeros = parts.iter().take(2).take_while(|part| **part == "0").count();
    parts.into_iter().take(leading_zeros + 1).collect::<Vec<_>>().join(".")
}

fn changes(reviewed: &str, now: &str) -> Vec<String> {
    let gone = reviewed.lines().filter(|line| !now.lines().any(|other| other == *line));
    let new = now.lines().filter(|line| !reviewed.lines().any(|other| other == *line));
    new.map(|line| format!("+ {line}")).chain(gone.map(|line| format!("- {line}"))).collect()
}

#[test]
fn a_patch_release_changes_nothing_and_a_new_crate_does() {
    let before = canonical("me v0.1.0 (/r/me)\nb v0.11.1\na v1.0.229\na v1.0.229\nz v0.0.3\n", "me");
    assert_eq!(before, "a 1\nb 0.11\nz 0.0.3\n");
    assert_eq!(canonical("a v1.2.0 (proc-macro)\nb v0.11.9+x\nz v0.0.3-rc1\n", "me"), before);
    let after = canonical("a v1.2.0\na v2.0.0\nb v0.11.9\nours v0.1.0 (/r/ours)\n", "me");
    assert_eq!(changes(&before, &after), ["+ a 2", "+ ours", "- z 0.0.3"]);
}
