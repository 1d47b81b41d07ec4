//! Ctrl-Z, `fg` and `bg` of a command under `run`, in a real shell on a real terminal.

use std::path::Path;
use std::process::Command;

use bailiwick_testkit::skip;

use super::directory;

#[test]
fn a_command_is_a_job_of_the_shell_that_started_it() {
    let python =
        ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|path| Path::new(path).exists());
    let Some(python) = python else { return skip("no python3 here to make a terminal") };
    let dir = directory();
    let shell = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/run/jobs.py");
    let told = Command::new(python)
        .arg(shell)
        .args([env!("CARGO_BIN_EXE_bailiwick"), "exec:spawn:sleep"])
        .arg(format!("fs:read:{}", dir.path().display()))
        .env("WHERE", dir.path())
        .output()
        .expect("it starts");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}
