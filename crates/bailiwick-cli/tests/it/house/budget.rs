//! How long a Rust file may be, and that it says at its top what it is.
//!
//! Exceptions stand in `budget.toml` with a reason; one that is no longer needed fails too, so the list only
//! shrinks. The length of functions is left to clippy (`too_many_lines`).

use std::collections::BTreeMap;
use std::path::Path;

use super::{assert_none, repo};

const MAX_LINES: usize = 600;
const DIRECTORIES: [&str; 4] = ["src", "tests", "benches", "examples"];

#[test]
fn files_are_short_enough_to_read() {
    let files = rust_files();
    assert!(files.len() > 5, "the walk found only {} files", files.len());
    let lengths: Vec<(String, usize)> =
        files.iter().map(|(path, text)| (path.clone(), text.lines().count())).collect();
    assert_none(
        &format!("a file has at most {MAX_LINES} lines; see budget.toml"),
        &over(&lengths, &exceptions()),
    );
}

#[test]
fn files_say_what_they_are() {
    let silent: Vec<String> =
        rust_files().into_iter().filter(|(_, text)| !opens_with_docs(text)).map(|(path, _)| path).collect();
    assert_none("every Rust file opens with `//!`", &silent);
}

fn rust_files() -> Vec<(String, String)> {
    let dirs = repo::crate_dirs();
    let directories = dirs.iter().flat_map(|dir| DIRECTORIES.map(|directory| dir.join(directory)));
    let files = directories.flat_map(|directory| repo::files_below(&directory));
    files.filter(|path| is_rust(path)).map(|path| (repo::relative(&path), read(&path))).collect()
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

fn exceptions() -> BTreeMap<String, String> {
    let file: toml::Table = read(&repo::root().join("budget.toml")).parse().expect("budget.toml is TOML");
    let listed = file["exceptions"].as_table().expect("budget.toml has `[exceptions]`");
    let reason = |value: &toml::Value| value.as_str().expect("a reason is a string").trim().to_owned();
    listed.iter().map(|(path, value)| (path.clone(), reason(value))).collect()
}

fn over(lengths: &[(String, usize)], exceptions: &BTreeMap<String, String>) -> Vec<String> {
    let long = |path: &str| lengths.iter().any(|(name, lines)| name == path && *lines > MAX_LINES);
    let too_long =
        lengths.iter().filter(|(path, lines)| *lines > MAX_LINES && !exceptions.contains_key(path));
    let mut breaches: Vec<String> =
        too_long.map(|(path, lines)| format!("{path} has {lines} lines")).collect();
    for (path, reason) in exceptions {
        if !long(path) {
            breaches.push(format!("{path} no longer needs its exception"));
        } else if reason.is_empty() {
            breaches.push(format!("{path} has an exception without a reason"));
        }
    }
    breaches
}

fn opens_with_docs(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty())
}

#[test]
fn the_rule_sees_long_files_and_stale_exceptions() {
    let lengths = [("a.rs", MAX_LINES), ("b.rs", MAX_LINES + 1), ("c.rs", 900), ("d.rs", 900)];
    let lengths = lengths.map(|(path, lines)| (path.to_owned(), lines));
    let exceptions = [("a.rs", "a table"), ("c.rs", "a table"), ("d.rs", ""), ("gone.rs", "a table")];
    let exceptions = exceptions.map(|(path, reason)| (path.to_owned(), reason.to_owned())).into();
    let expected = [
        "b.rs has 601 lines",
        "a.rs no longer needs its exception",
        "d.rs has an exception without a reason",
        "gone.rs no longer needs its exception",
    ];
    assert_eq!(over(&lengths, &exceptions), expected);
}

#[test]
fn the_rule_sees_a_file_without_its_opening() {
    assert!(opens_with_docs("//! What it is.\nfn main() {}\n"));
    for silent in ["", "fn main() {}\n", "// A remark.\n", "//!\n", "\n//! Late.\n"] {
        assert!(!opens_with_docs(silent), "{silent:?}");
    }
}
