//! The programs beside the command: they serve one version only.

use std::path::Path;
use std::process::Command;

use super::done;

const COMPANIONS: [&str; 3] = [
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
        let another = said(&["--for", env!("CARGO_PKG_VERSION"), "schema"]);
        assert!(another.exit == 5 && another.err.contains("alone"), "{name}: {}", another.err);
    }
}
