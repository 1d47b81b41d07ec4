//! Words that must not be in the tree: unfinished work, silenced tests, `unsafe` outside its one directory, and
//! paths that exist on one machine only.
//!
//! The words are put together from halves here, or this file would breach its own rule.

use std::path::Path;

use super::{assert_none, repo};
use bailiwick_testkit::skip;

const UNFINISHED: [&str; 4] =
    [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("FIX", "ME"), concat!("#[ig", "nore")];

/// The only directory whose files may hold `unsafe` code.
const UNSAFE_HOME: &str = "crates/bailiwick-confine/src/sys/";

/// Names that examples and fixtures may use for a person's home.
const MADE_UP_PEOPLE: [&str; 9] = ["agent", "alice", "alice.smith", "app", "bob", "dev", "me", "user", "you"];

/// Parts of a path that only a developer's own machine has.
const TOOLCHAIN_DIRECTORIES: [&str; 2] =
    [concat!("/.cargo", "/registry/"), concat!("/.rustup", "/toolchains/")];

#[test]
fn no_file_holds_a_forbidden_word() {
    let files = match repo::tracked() {
        Ok(files) => files,
        Err(why) => return skip(&why),
    };
    assert!(files.len() > 10, "git lists only {} files", files.len());
    let root = repo::root();
    let breaches: Vec<String> = files.iter().flat_map(|path| breaches_in(path, &root)).collect();
    assert_none("a word or path that must not be committed", &breaches);
}

fn breaches_in(path: &Path, root: &Path) -> Vec<String> {
    let name = repo::relative(path);
    let bytes = std::fs::read(path).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    breaches(&name, &String::from_utf8_lossy(&bytes), root)
}

fn breaches(name: &str, text: &str, root: &Path) -> Vec<String> {
    let numbered = text.lines().enumerate();
    numbered
        .filter_map(|(at, line)| Some(format!("{name}:{}: {}", at + 1, breach(name, line, root)?)))
        .collect()
}

fn breach(name: &str, line: &str, root: &Path) -> Option<String> {
    if let Some(word) = UNFINISHED.iter().find(|word| line.contains(**word)) {
        return Some(format!("`{word}`"));
    }
    if name.ends_with(".rs") && !name.starts_with(UNSAFE_HOME) && has_unsafe_code(line) {
        return Some(format!("unsafe code outside {UNSAFE_HOME}"));
    }
    foreign_path(line, root).map(|path| format!("`{path}` exists on one machine only"))
}

/// `unsafe` as a keyword, or a lint exemption for it; in a comment or as part of a longer word it is prose.
fn has_unsafe_code(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let exempted =
        ["allow(", "expect(", "warn("].iter().any(|lint| code.contains(&format!("{lint}unsafe_code")));
    exempted || code.match_indices("unsafe").any(|(at, word)| is_keyword(code, at, at + word.len()))
}

fn is_keyword(code: &str, start: usize, end: usize) -> bool {
    let before = code.get(..start).unwrap_or_default().chars().next_back();
    let rest = code.get(end..).unwrap_or_default();
    let whole = !before.is_some_and(is_word_char) && !rest.chars().next().is_some_and(is_word_char);
    let next = rest.trim_start();
    let opens = ["{", "(", "fn ", "impl", "trait ", "extern "];
    whole && (next.is_empty() || opens.iter().any(|start| next.starts_with(start)))
}

fn is_word_char(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn foreign_path(line: &str, root: &Path) -> Option<String> {
    absolute_paths(line).find(|path| is_foreign(path, root)).map(str::to_owned)
}

fn is_foreign(path: &str, root: &Path) -> bool {
    // A checkout right below `/` may share its name with a path in a fixture.
    let below_checkout = root.components().count() > 2 && Path::new(path).starts_with(root);
    let someones_home = ["/home/", "/Users/"].iter().any(|homes| is_home_of_someone(path, homes));
    // With nothing before it, the directory followed a `~` or a variable, and that is a fair way to write it.
    let toolchain =
        TOOLCHAIN_DIRECTORIES.iter().any(|directory| path.find(directory).is_some_and(|at| at > 0));
    below_checkout || someones_home || toolchain
}

fn is_home_of_someone(path: &str, homes: &str) -> bool {
    let Some((owner, _)) = path.strip_prefix(homes).and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    owner.len() > 1 && !MADE_UP_PEOPLE.contains(&owner)
}

/// The runs of path characters in a line that begin with a slash.
fn absolute_paths(line: &str) -> impl Iterator<Item = &str> {
    let in_path = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    line.split(move |letter| !in_path(letter)).filter(|run| run.starts_with('/'))
}

#[test]
fn the_rule_sees_unfinished_work() {
    for word in UNFINISHED {
        assert_eq!(breaches("a.md", &format!("fine\n{word}"), Path::new("/")), [format!("a.md:2: `{word}`")]);
    }
}

#[test]
fn the_rule_sees_unsafe_code_and_not_prose() {
    let keyword = concat!("un", "safe");
    let code = ["{} { f() }", "{} fn f();", "#[{}(no_mangle)]", "{} impl Send for X {}", "let x = {}"];
    for line in code.map(|line| line.replace("{}", keyword)) {
        assert!(breach("crates/a/src/lib.rs", &line, Path::new("/")).is_some(), "{line}");
        assert_eq!(breach("crates/bailiwick-confine/src/sys/a.rs", &line, Path::new("/")), None);
        assert_eq!(breach("notes.md", &line, Path::new("/")), None);
    }
    assert!(has_unsafe_code(&format!("#![allow({keyword}_code)]")));
    for prose in
        [format!("// {keyword} {{"), format!("#![forbid({keyword}_code)]"), format!("an {keyword} thing")]
    {
        assert!(!has_unsafe_code(&prose), "{prose}");
    }
}

#[test]
fn the_rule_sees_paths_of_one_machine() {
    let root = Path::new("/build/checkout");
    let homes = concat!("/ho", "me");
    for line in [format!("see {homes}/jdoe/notes"), "open(\"/build/checkout/Cargo.toml\")".to_owned()] {
        assert!(foreign_path(&line, root).is_some(), "{line}");
    }
    let registry = format!("/opt/x{}index", TOOLCHAIN_DIRECTORIES[0]);
    assert!(foreign_path(&registry, root).is_some());
    let fine = [
        "/build/checkouts",
        "~/.cargo/registry/**",
        "${HOME}/.cargo/registry/x",
        "fs:read:/workspace/**",
        "https://x.test/home/a/b",
    ];
    for line in fine.into_iter().chain([concat!("/ho", "me/alice/notes"), concat!("/ho", "me/**")]) {
        assert_eq!(foreign_path(line, root), None, "{line}");
    }
}
