//! `bailiwick import` as a person runs it: what is drafted is a manifest, and what cannot be read says why.

use super::{run, run_with};

#[test]
fn a_draft_goes_to_stdout_or_a_file_and_check_takes_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("m.toml");
    let out = out.to_str().unwrap();
    let profile = r#"{"read": ["/srv/data"], "write": ["/"]}"#;
    let drafted = run_with(&["import", "--from", "toolhive", "-"], profile);
    assert_eq!(drafted.exit, 0, "{}", drafted.err);
    assert!(drafted.out.contains("\"fs:read:/srv/data\"") && drafted.err.contains("1 line, 1 question"));
    let written = run_with(&["import", "--from", "toolhive", "--out", out, "-"], profile);
    assert_eq!((written.exit, written.out.as_str()), (0, ""), "{}", written.err);
    assert_eq!(std::fs::read_to_string(out).unwrap(), drafted.out);
    assert_eq!(run(&["check", out]).exit, 0);
}

#[test]
fn what_is_of_another_form_is_refused_with_what_to_do() {
    let several = r#"{"servers": {"one": {}, "two": {}}}"#;
    let refused = run_with(&["import", "--from", "vscode", "-"], several);
    assert!(refused.exit == 3 && refused.err.contains("--server one | --server two"), "{}", refused.err);
    let refused = run_with(&["import", "--from", "mcpb", "-"], "PK\u{3}\u{4}");
    assert_eq!(refused.exit, 3, "{}", refused.err);
    assert_eq!(run(&["import", "--from", "other", "x"]).exit, 2);
}
