//! Broken, hostile and huge sources: never a panic, always an end, and never a silent pass.

use bailiwick_scan::{Reason, Report};

use super::scan_text;

const NAMES: [&str; 6] = ["a.js", "a.kt", "a.py", "a.rs", "a.ts", "a.tsx"];

fn reasons(report: &Report) -> Vec<Reason> {
    let tools = report.tools().iter().flat_map(|tool| tool.deeds().unknowns());
    tools.chain(report.server().unknowns()).map(bailiwick_scan::Unknown::reason).collect()
}

#[test]
fn a_minified_line_of_a_megabyte_is_read() {
    let mut line = String::from("const fs=require('fs');");
    while line.len() < 1_000_000 {
        line += "function a(b){return b?c(b.d,[1,2,{e:f}]):g`x${h}`};";
    }
    line += "fs.writeFileSync('/srv/last','x');";
    let report = scan_text("min.js", line);
    let uses: Vec<_> = report.server().uses().iter().filter_map(bailiwick_scan::Use::capability).collect();
    assert_eq!(uses, ["fs:write:/srv/last"]);
}

#[test]
fn what_is_not_utf_8_does_not_hide_the_rest() {
    let report = scan_text("a.py", b"x = '\xff\xfe'\nopen('/etc/hosts')\n");
    let uses = report.server().uses();
    assert_eq!(uses.len(), 1);
    assert_eq!((uses[0].capability().as_deref(), uses[0].place().line), (Some("fs:read:/etc/hosts"), 2));
}

#[test]
fn lines_are_counted_as_editors_count_them() {
    for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)] {
        assert_eq!(scan_text("a.py", text).lines(), lines, "{text:?}");
    }
}

#[test]
fn deep_nesting_ends() {
    for name in NAMES {
        scan_text(name, format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000)));
        for (open, close) in
            [("[", "]"), ("{", "}"), ("f(", ")"), ("a(|x| ", ")"), ("lambda: (", ")"), ("()=>(", ")")]
        {
            scan_text(name, format!("x = {}1{}", open.repeat(10_000), close.repeat(10_000)));
        }
        scan_text(name, "if a { ".repeat(5_000));
    }
}

#[test]
fn a_long_chain_and_a_long_sum_end() {
    for name in NAMES {
        scan_text(name, format!("x = y{}", ".z()".repeat(20_000)));
        scan_text(name, format!("x = 'a'{}", " + 'b'".repeat(20_000)));
    }
}

#[test]
fn names_that_stand_for_each_other_end() {
    let mut text = String::from("import os\n");
    for index in 0..400 {
        text += &format!(
            "a{index} = a{} or b{}\nb{index} = a{} or b{}\n",
            index + 1,
            index + 1,
            index + 1,
            index
        );
    }
    text += "a0.b0(a0)\nopen(a0)\n";
    let report = scan_text("a.py", text);
    assert_eq!(report.server().uses().len(), 1);
    scan_text("b.py", "def f(g, h):\n    f(lambda: f(g, h), f)\n    g(f)(h(f))\n    return f\nf(f, f)\n");
}

#[test]
fn garbage_is_unknown_and_not_empty() {
    let garbage = "%%% ]]] ((( \u{0} <<< >>> ".repeat(200);
    for name in NAMES {
        let report = scan_text(name, &garbage);
        assert!(reasons(&report).contains(&Reason::Unparsed), "{name}: {:?}", reasons(&report));
    }
}

#[test]
fn a_file_beyond_the_limit_is_unknown() {
    let report = scan_text("a.py", "x = 1\n".repeat(2_000_000));
    assert_eq!(reasons(&report), [Reason::TooLarge]);
}

#[test]
fn native_code_in_the_directory_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("fast.so"), b"\x7fELF").unwrap();
    std::fs::write(dir.path().join("a.py"), "import fast\n").unwrap();
    assert_eq!(reasons(&super::scan(dir.path())), [Reason::Native]);
}

#[test]
fn directories_of_dependencies_are_left_out_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("node_modules/x");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("x.js"), "require('fs').rmSync('/a')").unwrap();
    std::fs::write(dir.path().join("a.js"), "").unwrap();
    assert_eq!(super::scan(dir.path()).files().len(), 1);
    assert_eq!(super::scan(&inner).files().len(), 1, "the directory itself was asked for");
    let options = bailiwick_scan::Options { include_dependencies: true, ..super::options() };
    let report = bailiwick_scan::scan(&[dir.path().to_owned()], &options, &|_| {}).unwrap();
    assert_eq!(report.files().len(), 2);
}

#[test]
fn dependencies_are_found_where_npm_puts_them() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join("node_modules").join(name);
    let text = |name: &str, file: &str, text: &str| {
        std::fs::create_dir_all(place(name)).unwrap();
        std::fs::write(place(name).join(file), text).unwrap();
    };
    text(
        "@scope/server",
        "package.json",
        r#"{"dependencies": {"engine": "1", "../../..": "1", "gone": "1"}}"#,
    );
    text("@scope/server", "cli.js", "require('engine')");
    text("engine", "index.js", "");
    text("unrelated", "index.js", "");
    let count = |include_dependencies| {
        let options = bailiwick_scan::Options { include_dependencies, ..super::options() };
        let report = bailiwick_scan::scan(&[place("@scope/server")], &options, &|_| {}).unwrap();
        report.files().len()
    };
    assert_eq!((count(false), count(true)), (1, 2));
}

#[test]
fn a_link_that_leads_around_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.py"), "").unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("again")).unwrap();
    assert_eq!(super::scan(dir.path()).files().len(), 1);
}

#[test]
fn what_cannot_be_read_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let scan = |path: &std::path::Path| bailiwick_scan::scan(&[path.to_owned()], &super::options(), &|_| {});
    assert!(scan(&dir.path().join("gone.py")).is_err());
    assert!(scan(dir.path()).is_err(), "a directory without source");
    std::fs::write(dir.path().join("a.txt"), "").unwrap();
    assert!(scan(&dir.path().join("a.txt")).is_err());
}
