//! How large a crate may grow, and that no two crates hold the same lines.
//!
//! What counts is source: `src/**/*.rs` without test modules and without documentation comments, which are a product of
//! their own. A crate that outgrows its budget does two things, and six
//! equal lines in two crates are one thing without a place of its own.

use std::collections::BTreeMap;
use std::path::Path;

use super::{assert_none, repo};

/// The most lines of a crate.
const MOST: usize = 9_000;
/// Crates that may have more: the language of policies and every command. CONTRIBUTING.md says the same.
const LARGER: [(&str, usize); 2] = [("bailiwick-policy", 12_000), ("bailiwick-cli", 12_000)];
/// How many equal lines are a repetition.
const EQUAL: usize = 6;

/// One file of a crate's source, without its tests.
struct SourceFile {
    owner: String,
    path: String,
    lines: Vec<String>,
}

#[test]
fn crates_stay_within_their_size() {
    let files = sources();
    assert!(files.len() > 50, "the walk found only {} files", files.len());
    assert_none("a crate has too many lines of source (house/lines.rs)", &too_large(&files));
}

#[test]
fn no_two_crates_hold_the_same_lines() {
    assert_none("six equal lines stand in the source of two crates", &repeated(&sources()));
}

fn sources() -> Vec<SourceFile> {
    let dirs = repo::crate_dirs();
    let files = dirs.iter().flat_map(|dir| {
        let owner = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        repo::files_below(&dir.join("src")).into_iter().map(move |path| (owner.clone(), path))
    });
    files.filter(|(_, path)| is_source(path)).map(|(owner, path)| source(owner, &path)).collect()
}

fn is_source(path: &Path) -> bool {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    is_rust && !path.iter().any(|part| part == "tests" || part == "tests.rs")
}

fn source(owner: String, path: &Path) -> SourceFile {
    let text = std::fs::read_to_string(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    SourceFile { owner, path: repo::relative(path), lines: without_tests(&text) }
}

/// The lines before a test module at the end.
fn without_tests(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |pair: &[&str]| matches!(pair, ["#[cfg(test)]", module] if module.starts_with("mod ") && module.ends_with('{'));
    let end = lines.windows(2).position(is_tests).unwrap_or(lines.len());
    lines.into_iter().take(end).map(str::to_owned).collect()
}

fn is_documentation(line: &str) -> bool {
    line.trim_start().starts_with("///") || line.trim_start().starts_with("//!")
}

fn too_large(files: &[SourceFile]) -> Vec<String> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        *sizes.entry(&file.owner).or_default() +=
            file.lines.iter().filter(|line| !is_documentation(line)).count();
    }
    let most = |name: &str| LARGER.iter().find(|(larger, _)| *larger == name).map_or(MOST, |(_, most)| *most);
    let over = sizes.into_iter().filter(|(name, lines)| *lines > most(name));
    over.map(|(name, lines)| format!("{name} has {lines} lines, {} are the most", most(name))).collect()
}

/// One line for each pair of places; a longer run is reported at its first six lines.
fn repeated(files: &[SourceFile]) -> Vec<String> {
    let mut seen: BTreeMap<Vec<&str>, (&str, String)> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files {
        let lines = telling(&file.lines);
        let mut last_end = 0;
        for (at, run) in lines.windows(EQUAL).enumerate() {
            let texts: Vec<&str> = run.iter().map(|(_, text)| *text).collect();
            let place = format!("{}:{}", file.path, run[0].0);
            match seen.get(&texts) {
                Some((owner, _)) if *owner == file.owner => {}
                Some((_, first)) if at >= last_end => {
                    found.push(format!("{first} ~ {place}"));
                    last_end = at + EQUAL;
                }
                Some(_) => {}
                None => drop(seen.insert(texts, (&file.owner, place))),
            }
        }
    }
    found
}

/// The lines that say something, with their numbers: no imports, comments, attributes, or punctuation alone.
fn telling(lines: &[String]) -> Vec<(usize, &str)> {
    let mut importing = false;
    let mut kept = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let text = line.trim();
        let imports =
            importing || ["use ", "pub use ", "pub(crate) use "].iter().any(|start| text.starts_with(start));
        importing = imports && !text.ends_with(';');
        let skipped = imports
            || text.starts_with("//")
            || text.starts_with("#[")
            || !text.contains(|c: char| c.is_alphanumeric());
        if !skipped {
            kept.push((number + 1, text));
        }
    }
    kept
}

#[test]
fn the_rule_sees_a_crate_that_is_too_large() {
    let file = |owner: &str, lines| SourceFile {
        owner: owner.to_owned(),
        path: String::new(),
        lines: vec![String::new(); lines],
    };
    let (larger, its_most) = LARGER[0];
    let files = [
        file("a", MOST - 1),
        file("a", 2),
        file("b", MOST),
        file(larger, its_most + 1),
        SourceFile {
            owner: "c".to_owned(),
            path: String::new(),
            lines: vec!["    /// What it is.".to_owned(); MOST + 1],
        },
    ];
    let larger = format!("{larger} has {} lines, {its_most} are the most", its_most + 1);
    assert_eq!(too_large(&files), ["a has 9001 lines, 9000 are the most".to_owned(), larger]);
}

#[test]
fn the_rule_sees_equal_lines_of_two_crates_only() {
    let body = |names: [&str; 6]| names.map(|name| format!("    let {name} = {name}();")).to_vec();
    let file = |owner: &str, path: &str, lines: Vec<String>| SourceFile {
        owner: owner.to_owned(),
        path: path.to_owned(),
        lines,
    };
    let equal = body(["a", "b", "c", "d", "e", "f"]);
    let spread: Vec<String> =
        equal.iter().flat_map(|line| [format!("  {line}"), "}".to_owned(), "// why".to_owned()]).collect();
    let imports = vec!["use a::{".to_owned(), "b, c,".to_owned(), "};".to_owned()];
    let files = [
        file("x", "x/a.rs", equal.clone()),
        file("x", "x/b.rs", equal.clone()),
        file("y", "y/a.rs", body(["a", "b", "c", "d", "e", "g"])),
        file("z", "z/a.rs", imports.into_iter().chain(spread).collect()),
    ];
    assert_eq!(repeated(&files), ["x/a.rs:1 ~ z/a.rs:4"]);
}

#[test]
fn test_modules_do_not_count() {
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\n    b\n}\n"), ["a"]);
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests;\nb\n").len(), 4);
    assert!(is_source(Path::new("src/a.rs")) && !is_source(Path::new("src/a/tests.rs")));
    assert!(!is_source(Path::new("src/a/tests/b.rs")) && !is_source(Path::new("src/names.txt")));
}
