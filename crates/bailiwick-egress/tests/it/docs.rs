//! `docs/egress.md` says what the code says: every code with its meaning, and tests that exist.

use bailiwick_egress::Code;

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    std::fs::read_to_string(root().join("docs/egress.md")).unwrap()
}

#[test]
fn every_code_is_in_the_document() {
    let rows: Vec<String> =
        Code::ALL.iter().map(|code| format!("| `{code}` | {} |", code.meaning())).collect();
    let written: Vec<String> =
        document().lines().filter(|line| line.starts_with("| `net-")).map(str::to_owned).collect();
    assert_eq!(written, rows);
}

#[test]
fn every_attack_names_a_test_that_exists() {
    let document = document();
    let names = document.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::"));
    let mut checked = 0;
    let is_test =
        |module: &str, test: &str| module.chars().all(char::is_alphabetic) && !["*", "tests"].contains(&test);
    for (module, test) in names.filter(|(module, test)| !module.is_empty() && is_test(module, test)) {
        // The parts by themselves, and all of it end to end.
        let directories = ["crates/bailiwick-egress/tests/it", "crates/bailiwick-cli/tests/it/network"];
        let files = directories.map(|directory| root().join(directory).join(format!("{module}.rs")));
        let source: String = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        assert!(source.contains(&format!("#[test]\nfn {test}()")), "{module}::{test}");
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}
