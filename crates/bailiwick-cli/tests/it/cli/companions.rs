//! The programs beside the command: they serve one version only.

use std::path::Path;
use std::process::Command;

use super::{done, run};

const COMPANIONS: [&str; 5] = [
    env!("CARGO_BIN_EXE_bailiwick-serve"),
    env!("CARGO_BIN_EXE_bailiwick-admin"),
    env!("CARGO_BIN_EXE_bailiwick-scan"),
    env!("CARGO_BIN_EXE_bailiwick-export"),
    env!("CARGO_BIN_EXE_bailiwick-fixture"),
];

#[test]
fn a_companion_serves_only_its_own_version() {
    for program in COMPANIONS {
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        let said = |words: &[&str]| done(Command::new(program).args(words).output().unwrap());
        let other = said(&["--for", "0.0.1", "schema"]);
        assert!(other.exit == 2 && other.err.contains("install all of them anew"), "{name}: {}", other.err);
        let by_hand = said(&["schema"]);
        assert!(by_hand.exit == 2 && by_hand.err.contains("is started by `bailiwick`"), "{name}");
        let is_of_bailiwick = ["bailiwick-admin", "bailiwick-serve"].contains(&name);
        let other_command = if is_of_bailiwick { "refresh-fleet" } else { "schema" };
        let another = said(&["--for", env!("CARGO_PKG_VERSION"), other_command]);
        assert!(
            another.exit == 5 && (another.err.contains("alone") || another.err.contains("itself")),
            "{name}: {}",
            another.err
        );
    }
}

#[test]
fn without_its_companion_the_command_says_so_and_a_hook_still_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let alone = directory.path().join("bailiwick");
    std::fs::copy(env!("CARGO_BIN_EXE_bailiwick"), &alone).unwrap();
    let said = |words: &[&str]| done(Command::new(&alone).args(words).output().unwrap());
    for words in [&["schema"][..], &["--help"]] {
        let missing = said(words);
        assert!(
            missing.exit == 5 && missing.err.contains("bailiwick-admin is not beside"),
            "{}",
            missing.err
        );
    }
    let missing = said(&["serve"]);
    assert!(missing.exit == 5 && missing.err.contains("bailiwick-serve is not beside"), "{}", missing.err);
    assert_eq!(said(&["--version"]).exit, 0);
    for wrong in [&["hook", "nonsense"][..], &["hook"], &["run", "--nonsense"]] {
        let refused = said(wrong);
        assert!(refused.exit == 2 && refused.err.contains("error:"), "{wrong:?}: {}", refused.err);
    }
}

#[test]
fn colours_are_chosen_before_or_behind_the_command() {
    let refused = ["run", "--cap", "nonsense", "--", "/bin/true"];
    for words in [&["check", "examples/github.toml"][..], &refused] {
        let before = run(&[&["--color", "always"], words].concat());
        let equals = run(&[&["--color=always"], words].concat());
        let behind = run(&[&words[..1], &["--color", "always"], &words[1..]].concat());
        for other in [&equals, &behind] {
            assert_eq!((before.exit, &before.out, &before.err), (other.exit, &other.out, &other.err));
        }
        assert!((before.out + &before.err).contains('\u{1b}'), "{words:?}");
    }
    assert!(run(&["--color"]).exit == 2 && run(&["--color", "pink", "run", "--", "x"]).exit == 2);
}
