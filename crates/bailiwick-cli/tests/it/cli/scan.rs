//! `bailiwick scan` as a person or a script runs it.

use super::{command, done, run, run_json};

const CORPUS: &str = "crates/bailiwick-scan/tests/corpus";

#[test]
fn a_draft_is_accepted_by_check_and_by_the_scan_itself() {
    let dir = tempfile::tempdir().unwrap();
    let draft = dir.path().join("draft.toml");
    let source = format!("{CORPUS}/python/wrapped_helper.py");
    std::fs::write(&draft, run(&["scan", "--no-cache", "--draft", &source]).out).unwrap();
    let draft = draft.to_str().unwrap();
    assert_eq!(run(&["check", draft]).exit, 0);
    let scanned = run(&["scan", "--no-cache", "--manifest", draft, &source]);
    assert_eq!(scanned.exit, 0, "{}{}", scanned.out, scanned.err);
}

#[test]
fn tools_are_taken_from_a_list_or_a_manifest_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let source =
        "import { Server } from '@modelcontextprotocol/sdk/server/index.js';\nserver.tool('a', f);\n";
    std::fs::write(at("server.ts"), source).unwrap();
    let answer = r#"{"result": {"tools": [{"name": "a"}, {"name": "b"}]}}"#;
    std::fs::write(at("answer.json"), answer).unwrap();
    std::fs::write(at("m.toml"), "name = 'm'\nversion = '1'\n[[tools]]\nname = 'a'\ncapabilities = []\n")
        .unwrap();
    std::fs::write(at("other.json"), "[]").unwrap();
    let scan = |list: &str| run(&["scan", "--no-cache", "--tools", &at(list), &at("server.ts")]);
    let listed = scan("answer.json");
    assert!(listed.exit == 1 && listed.out.contains("scan-tool-unfound"), "{}{}", listed.out, listed.err);
    assert_eq!(scan("m.toml").exit, 0);
    let other = scan("other.json");
    assert!(other.exit == 3 && other.err.contains("it lists no tools"), "{}{}", other.out, other.err);
}

#[test]
fn every_use_has_its_place() {
    let report = run_json(&["scan", "--no-cache", "--format", "json", CORPUS]);
    let tools = report["tools"].as_array().unwrap();
    assert!(tools.len() > 60, "{} tools", tools.len());
    for one in tools.iter().flat_map(|tool| tool["uses"].as_array().unwrap()) {
        assert!(one["place"]["line"].as_u64().unwrap() > 0);
        assert_eq!(one["capability"].is_null(), one["dynamic"].as_bool().unwrap());
        let file = one["place"]["file"].as_str().unwrap();
        assert!(super::root().join(file).is_file(), "{file}");
    }
}

#[test]
fn facts_are_kept_in_the_cache_directory_unless_that_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let source = format!("{CORPUS}/python/read_hosts.py");
    let scan = |args: &[&str]| done(command(args).env("XDG_CACHE_HOME", cache.path()).output().unwrap());
    let first = scan(&["scan", "--no-cache", &source]);
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    let second = scan(&["scan", &source]);
    assert!(cache.path().join("bailiwick/scan").is_dir());
    assert_eq!((&first.out, first.exit), (&second.out, second.exit));
    assert_eq!(scan(&["scan", &source]).out, first.out, "from the cache");
}

#[test]
fn a_broken_manifest_is_invalid_input() {
    let broken = "crates/bailiwick-cli/tests/fixtures/broken.toml";
    let ran = run(&["scan", "--no-cache", "--manifest", broken, &format!("{CORPUS}/python/read_hosts.py")]);
    assert_eq!(ran.exit, 3);
    assert!(ran.out.is_empty() && !ran.err.is_empty());
}

#[test]
fn names_from_the_source_cannot_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.py");
    let text = "from mcp import mcp\n@mcp.tool(name='x\u{1b}[31m\u{202e}y')\ndef f(): open('/a\u{1b}[2J')\n";
    std::fs::write(&file, text).unwrap();
    for format in ["text", "json", "sarif"] {
        let ran = run(&["scan", "--no-cache", "--format", format, file.to_str().unwrap()]);
        assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{format}: {:?}", ran.out);
    }
    let draft = run(&["scan", "--no-cache", "--draft", file.to_str().unwrap()]).out;
    assert!(!draft.contains(['\u{1b}', '\u{202e}']), "{draft:?}");
}

/// What a terminal shows of a scan of so many files of so many functions, and how long it took.
fn on_a_terminal(files: usize, functions: usize) -> (String, std::time::Duration) {
    let dir = tempfile::tempdir().unwrap();
    let text: String =
        (0..functions).map(|number| format!("def f{number}(path):\n    return open(path)\n")).collect();
    for number in 0..files {
        std::fs::write(dir.path().join(format!("m{number}.py")), &text).unwrap();
    }
    let scan = format!("{} scan --no-cache {}", env!("CARGO_BIN_EXE_bailiwick"), dir.path().display());
    let since = std::time::Instant::now();
    let output = std::process::Command::new("/usr/bin/script")
        .args(["-qec", &scan, "/dev/null"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), since.elapsed())
}

#[test]
fn a_scan_that_takes_long_says_how_far_it_is_and_a_short_one_does_not() {
    if !std::path::Path::new("/usr/bin/script").exists() {
        return bailiwick_testkit::skip("no `script` here to make a terminal");
    }
    let second = std::time::Duration::from_secs(1);
    let (screen, took) = on_a_terminal(128, 1);
    assert!(took >= second || !screen.contains("of 128 files"), "{took:?}: {screen:?}");
    let long = (0..12).map(|power| on_a_terminal(3, 500 << power)).find(|(_, took)| *took > 4 * second);
    let (screen, _) = long.expect("a scan that takes long");
    let (before, after) = screen.rsplit_once("\r\u{1b}[K").unwrap_or_else(|| panic!("{screen:?}"));
    assert!(before.contains("of 3 files"), "{screen:?}");
    assert!(!after.contains("of 3 files"), "the line is taken away: {screen:?}");
}
