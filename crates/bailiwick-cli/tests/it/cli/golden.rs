//! What each command prints, word for word.
//!
//! A case is a command line. Its golden file holds the whole transcript (`.txt`), or just stdout in the format's
//! own extension. A golden without a case fails, and so does a case without one; `UPDATE_GOLDEN=1` rewrites.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::run;

const BROKEN: &str = "crates/bailiwick-cli/tests/fixtures/broken.toml";
const UNRESOLVED: &str = "crates/bailiwick-cli/tests/fixtures/unresolved.toml";
const EXPIRED: &str = "crates/bailiwick-cli/tests/fixtures/expired.toml";
const NASTY: &str = "crates/bailiwick-cli/tests/fixtures/nasty.json";
const GITHUB: &str = "examples/github.toml";
const WIDER: &str = "examples/github-wider.toml";
const WORKSPACE: &str = "WORKSPACE=/workspace";
const HELPER: &str = "crates/bailiwick-scan/tests/corpus/python/wrapped_helper.py";
const DYNAMIC: &str = "crates/bailiwick-scan/tests/corpus/python/dynamic_code.py";
const FILES: &str = "examples/filesystem.toml";

/// File name, exit code, arguments.
const CASES: &[(&str, i32, &[&str])] = &[
    ("help.txt", 0, &["--help"]),
    ("help-check.txt", 0, &["check", "--help"]),
    ("help-diff.txt", 0, &["diff", "--help"]),
    ("help-snapshot.txt", 0, &["snapshot", "--help"]),
    ("help-init.txt", 0, &["init", "--help"]),
    ("help-allows.txt", 0, &["allows", "--help"]),
    ("help-compile.txt", 0, &["compile", "--help"]),
    ("help-coverage.txt", 0, &["coverage", "--help"]),
    ("help-log.txt", 0, &["log", "--help"]),
    ("help-log-verify.txt", 0, &["log", "verify", "--help"]),
    ("help-scan.txt", 0, &["scan", "--help"]),
    ("scan.txt", 0, &["scan", "--no-cache", "crates/bailiwick-scan/tests/corpus/kotlin/read_hosts.kt"]),
    ("scan-undeclared.txt", 1, &["scan", "--no-cache", "--manifest", GITHUB, HELPER]),
    ("scan-undeclared.json", 1, &["scan", "--no-cache", "--manifest", GITHUB, "--format", "json", HELPER]),
    ("scan-undeclared.sarif", 1, &["scan", "--no-cache", "--manifest", GITHUB, "--format", "sarif", HELPER]),
    ("scan-unknown.txt", 0, &["scan", "--no-cache", DYNAMIC]),
    ("scan-strict.txt", 1, &["scan", "--no-cache", "--strict", DYNAMIC]),
    (
        "scan-policy.txt",
        1,
        &["scan", "--no-cache", "crates/bailiwick-scan/tests/corpus/kotlin/environment.kt"],
    ),
    ("scan-draft.txt", 0, &["scan", "--no-cache", "--draft", HELPER]),
    ("scan-missing.txt", 3, &["scan", "--no-cache", "examples/missing.py"]),
    ("scan-no-language.txt", 3, &["scan", "--no-cache", GITHUB]),
    ("scan-usage.txt", 2, &["scan", "--draft", "--strict", HELPER]),
    ("help-guard.txt", 0, &["guard", "--help"]),
    ("help-hook.txt", 0, &["hook", "--help"]),
    ("help-trust.txt", 0, &["trust", "--help"]),
    ("help-install.txt", 0, &["install", "--help"]),
    ("usage-format.txt", 2, &["check", "--format", "xml", GITHUB]),
    ("usage-set.txt", 2, &["check", "--set", "DATA=relative", GITHUB]),
    ("check.txt", 0, &["check", GITHUB, "examples/capgate.json"]),
    ("check.json", 0, &["check", "--format", "json", GITHUB]),
    ("check-quiet.txt", 0, &["check", "-q", GITHUB]),
    ("check-findings.txt", 1, &["check", BROKEN]),
    ("check-findings.json", 1, &["check", "--format", "json", BROKEN]),
    ("check-findings.sarif", 1, &["check", "--format", "sarif", BROKEN]),
    ("check-unresolved.txt", 1, &["check", UNRESOLVED]),
    ("check-set.txt", 0, &["check", "--set", "DATA=/srv/data", UNRESOLVED]),
    ("check-missing.txt", 3, &["check", GITHUB, "examples/missing.toml"]),
    ("check-missing.sarif", 3, &["check", "--format", "sarif", "examples/missing.toml"]),
    ("check-nasty.txt", 1, &["check", NASTY]),
    ("diff.txt", 1, &["diff", GITHUB, WIDER]),
    ("diff.json", 1, &["diff", "--format", "json", GITHUB, WIDER]),
    ("diff.sarif", 1, &["diff", "--format", "sarif", "--accept", "examples/accept.toml", GITHUB, WIDER]),
    ("diff.md", 1, &["diff", "--format", "markdown", "--accept", "examples/accept.toml", GITHUB, WIDER]),
    ("diff-accept.txt", 1, &["diff", "--accept", "examples/accept.toml", GITHUB, WIDER]),
    ("diff-expired.txt", 1, &["diff", "--accept", EXPIRED, GITHUB, WIDER]),
    ("diff-narrower.txt", 0, &["diff", "--tighten-only", WIDER, GITHUB]),
    ("diff-narrower.md", 0, &["diff", "--format", "markdown", WIDER, GITHUB]),
    ("diff-same.txt", 0, &["diff", GITHUB, GITHUB]),
    ("diff-broken.txt", 3, &["diff", GITHUB, BROKEN]),
    ("diff-bad-accept.txt", 3, &["diff", "--accept", GITHUB, GITHUB, WIDER]),
    ("snapshot.json", 0, &["snapshot", GITHUB]),
    ("allows.txt", 0, &["allows", GITHUB, "net:https:GET@https://api.github.com/repos/**"]),
    ("allows.json", 0, &["allows", "--format", "json", GITHUB, "net:connect:api.github.com:443"]),
    ("allows-denied.txt", 1, &["allows", GITHUB, "net:connect:uploads.github.com:443"]),
    ("allows-denied.json", 1, &["allows", "--format", "json", GITHUB, "exec:spawn:git"]),
    ("allows-nothing-near.txt", 1, &["allows", GITHUB, "exec:spawn:git"]),
    ("allows-part.txt", 1, &["allows", GITHUB, "fs:read,write:/workspace/attachments/a.png"]),
    ("allows-policy.txt", 1, &["allows", FILES, "fs:write:/workspace/src/main.rs", "--tool", "write_file"]),
    ("allows-tool.txt", 0, &["allows", FILES, "fs:write:/workspace/drafts/a.md", "--tool", "write_file"]),
    ("allows-no-tool.txt", 2, &["allows", FILES, "fs:read:/x", "--tool", "nope"]),
    ("allows-malformed.txt", 2, &["allows", FILES, "fs:read"]),
    ("compile.json", 0, &["compile", GITHUB, "--target", "systemd", "--set", WORKSPACE]),
    ("compile-pretty.json", 0, &["compile", GITHUB, "--target", "systemd", "--set", WORKSPACE, "--pretty"]),
    (
        "compile-native.txt",
        0,
        &["compile", GITHUB, "--target", "systemd", "--set", WORKSPACE, "--format", "native"],
    ),
    ("compile-egress.txt", 0, &["compile", GITHUB, "--egress", "squid", "--set", WORKSPACE]),
    ("compile-explain.txt", 0, &["compile", GITHUB, "--explain", "--set", WORKSPACE]),
    (
        "compile-tool.txt",
        0,
        &["compile", GITHUB, "--tool", "upload_attachment", "--explain", "--set", WORKSPACE],
    ),
    ("compile-unset.txt", 4, &["compile", GITHUB, "--target", "systemd"]),
    ("compile-broken.txt", 4, &["compile", BROKEN, "--target", "systemd"]),
    ("compile-missing.txt", 3, &["compile", "examples/missing.toml", "--target", "systemd"]),
    ("compile-refused.txt", 4, &["compile", FILES, "--target", "kubernetes", "--set", WORKSPACE]),
    ("compile-refused-worker.txt", 4, &["compile", GITHUB, "--target", "worker", "--set", WORKSPACE]),
    ("compile-no-target.txt", 2, &["compile", GITHUB]),
    ("compile-target.txt", 2, &["compile", GITHUB, "--target", "kubernetis"]),
    ("compile-egress-format.txt", 2, &["compile", GITHUB, "--egress", "squib"]),
    ("compile-format.txt", 2, &["compile", GITHUB, "--target", "systemd", "--format", "nativ"]),
    ("compile-flag.txt", 2, &["compile", GITHUB, "--target", "systemd", "--requires", "fs=kernel"]),
    ("compile-require.txt", 2, &["compile", GITHUB, "--target", "systemd", "--require", "sf=kernel"]),
    (
        "compile-no-tool.txt",
        2,
        &["compile", GITHUB, "--target", "systemd", "--tool", "nope", "--set", WORKSPACE],
    ),
    (
        "compile-no-argv.txt",
        2,
        &["compile", GITHUB, "--target", "systemd", "--format", "argv", "--set", WORKSPACE],
    ),
    ("coverage.txt", 0, &["coverage", GITHUB, "--set", WORKSPACE]),
    ("coverage.json", 0, &["coverage", "--format", "json", GITHUB, "--set", WORKSPACE]),
    ("coverage.md", 0, &["coverage", "--format", "markdown", GITHUB, "--set", WORKSPACE]),
    ("init-list.txt", 0, &["init", "--list"]),
    ("init-unknown.txt", 2, &["init", "--template", "githb", "-"]),
    ("init-bad-name.txt", 2, &["init", "--name", "my server", "-"]),
];

#[test]
fn commands_print_what_the_golden_files_hold() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for (name, exit, args) in CASES {
        let ran = run(args);
        let printed = match name.rsplit('.').next() {
            Some("txt") => {
                format!("$ bailiwick {}\n{}{}exit {}\n", args.join(" "), ran.out, ran.err, ran.exit)
            }
            _ => ran.out,
        };
        if ran.exit != *exit {
            wrong.push(format!("{name}: exits with {}, not {exit}\n{printed}{}", ran.exit, ran.err));
        }
        let path = directory().join(name);
        if update {
            std::fs::write(&path, printed).expect("the golden file can be written");
        } else if std::fs::read_to_string(&path).unwrap_or_default() != printed {
            wrong.push(format!("{name} is out of date; it now is:\n{printed}"));
        }
    }
    assert!(wrong.is_empty(), "{}\naccept with UPDATE_GOLDEN=1 if each is meant", wrong.join("\n"));
}

#[test]
fn every_golden_file_has_its_case() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return; // they are being written
    }
    let there: BTreeSet<String> = std::fs::read_dir(directory())
        .expect("there is a directory of golden files")
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = CASES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(there, known);
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}
