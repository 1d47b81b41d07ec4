//! Large and strange input: bounded, and a clear answer. No test here measures time.

use serde_json::Value;

use super::{run, run_with};

fn codes(text: impl Into<Vec<u8>>) -> (i32, Vec<String>) {
    let ran = run_with(&["check", "--format", "json", "-"], text);
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    let findings = report["files"][0]["findings"].as_array().expect("findings").clone();
    let mut codes: Vec<String> =
        findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect();
    codes.dedup();
    (ran.exit, codes)
}

fn manifest(capabilities: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = capabilities.map(|line| format!("\"{line}\"")).collect();
    format!("{{\"name\":\"big\",\"version\":\"1\",\"serverCapabilities\":[{}]}}", lines.join(","))
}

#[test]
fn ten_megabytes_are_read() {
    let text = format!("name = \"big\"\nversion = \"1\"\ndescription = \"{}\"\n", "x".repeat(10 << 20));
    assert_eq!(codes(text), (0, vec![]));
}

#[test]
fn ten_megabytes_of_mistakes_on_one_line_are_answered() {
    let lines = (0..400_000).map(|number| format!("fs:raed:/data/archive/{number}"));
    let text = manifest(lines);
    assert!(text.len() > 8 << 20);
    let ran = run_with(&["check", "-"], text);
    assert_eq!(ran.exit, 1);
    assert!(ran.out.len() < 1 << 20, "{} bytes", ran.out.len());
    assert!(ran.out.contains("more findings are not shown"));
}

#[test]
fn a_hundred_thousand_capabilities_are_checked() {
    let text = manifest((0..100_000).map(|number| format!("fs:read:/data/{}/{number}", number % 100)));
    assert_eq!(codes(text), (0, vec![]));
}

#[test]
fn past_the_limits_there_is_a_finding() {
    let too_large = vec![b' '; (16 << 20) + 1];
    assert_eq!(codes(too_large), (1, vec!["source-too-large".to_owned()]));
    assert_eq!(codes(*b"name = \"\xff\""), (1, vec!["source-encoding".to_owned()]));
    let deep = format!("{{\"name\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(codes(deep), (1, vec!["source-nesting".to_owned()]));
    let deep = format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(codes(deep), (1, vec!["source-nesting".to_owned()]));
    let long = manifest(std::iter::once(format!("fs:read:{}", "/a".repeat(10_000))));
    assert_eq!(codes(long), (1, vec!["cap-too-long".to_owned()]));
    let globs = manifest(std::iter::once(format!("fs:read:{}", "/*".repeat(100))));
    assert_eq!(codes(globs), (1, vec!["path-too-many-globs".to_owned()]));
}

#[test]
fn an_empty_or_foreign_file_is_a_finding() {
    for (text, code) in [
        ("", "manifest-shape"),
        ("{", "source-syntax"),
        ("[1, 2]", "source-syntax"),
        ("name = ", "source-syntax"),
        ("{\"format\": 1}", "snapshot-version"),
        ("{\"format\": \"bailiwick.snapshot/1\"}", "snapshot-hash"),
    ] {
        let (exit, codes) = codes(text);
        assert_eq!((exit, codes.first().map(String::as_str)), (1, Some(code)), "{text}");
    }
}

#[test]
fn a_byte_order_mark_does_no_harm() {
    assert_eq!(codes("\u{feff}name = \"a\"\nversion = \"1\"\n"), (0, vec![]));
    assert_eq!(codes("\u{feff}{\"name\":\"a\",\"version\":\"1\"}"), (0, vec![]));
}

#[test]
fn many_server_lines_for_many_tools_are_refused() {
    let lines: Vec<String> = (0..20_000).map(|number| format!("\"fs:read:/data/{number}\"")).collect();
    let tools: Vec<String> = (0..2_000).map(|number| format!("{{\"name\":\"t{number}\"}}")).collect();
    let text = format!(
        "{{\"name\":\"big\",\"version\":\"1\",\"serverCapabilities\":[{}],\"tools\":[{}]}}",
        lines.join(","),
        tools.join(",")
    );
    assert_eq!(codes(text), (1, vec!["manifest-too-many".to_owned()]));
}

#[test]
fn thousands_of_tools_that_all_change_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let side = |letter: char| {
        let tool = |number| {
            format!("{{\"name\":\"{letter}{number}\",\"capabilities\":[\"fs:read:/{letter}/{number}\"]}}")
        };
        let tools: Vec<String> = (0..8_000).map(tool).collect();
        let path = dir.path().join(letter.to_string());
        let text = format!("{{\"name\":\"big\",\"version\":\"1\",\"tools\":[{}]}}", tools.join(","));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ran = run(&["diff", &side('a'), &side('b')]);
    assert_eq!(ran.exit, 1, "{}", ran.err);
    assert!(ran.out.ends_with("8000 differences need review (0 high, 8000 medium)\n"));
}
