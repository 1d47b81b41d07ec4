//! The tests of this binary once more, as a user without any privilege.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the second run.
const ONCE: &str = "BAILIWICK_TEST_PLAIN_USER";

/// Runs the tests whose names hold `filter` (all if empty) again as uid 65534, when root runs them.
///
/// The test binary and `programs` are copied where that user can reach them: a build directory below root's home is closed
/// to others. Tests find a copied program with [`reachable_program`].
///
/// # Panics
/// If one of them fails, or none was run.
pub fn run_again_as_plain_user(filter: &str, programs: &[&str]) {
    run_again_as_plain_user_with(filter, programs, &[]);
}

/// The same with more variables in the environment.
///
/// # Panics
/// If one of them fails, or none was run.
pub fn run_again_as_plain_user_with(filter: &str, programs: &[&str], environment: &[(&str, &OsStr)]) {
    if std::env::var_os(ONCE).is_some() {
        return;
    }
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        eprintln!("skipped: not root, so the other tests are it");
        return;
    }
    let copy = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copy.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = copy.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    for program in programs {
        let to = copy.path().join(Path::new(program).file_name().unwrap());
        copy_program(Path::new(program), &to);
    }
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&binary)
        .args((!filter.is_empty()).then_some(filter))
        .env(ONCE, "1")
        .envs(environment.iter().copied())
        .env_remove("TMPDIR")
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok.") && !text.contains(" 0 passed"), "{text}");
}

/// Copies a program, and those that it becomes for some commands, if it has them.
///
/// # Panics
/// If one of them cannot be copied.
pub fn copy_program(program: &Path, to: &Path) {
    for companion in ["", "-admin", "-serve"] {
        let named = |program: &Path| {
            program.with_file_name(format!("{}{companion}", program.file_name().unwrap().display()))
        };
        if companion.is_empty() || named(program).is_file() {
            std::fs::copy(named(program), named(to)).unwrap();
        }
    }
}

/// Where a built program is for this user: itself, or its copy in a run by [`run_again_as_plain_user`].
///
/// # Panics
/// If `program` has no file name.
#[must_use]
pub fn reachable_program(program: &str) -> PathBuf {
    let program = Path::new(program);
    if std::env::var_os(ONCE).is_none() {
        return program.to_owned();
    }
    std::env::current_exe().unwrap().with_file_name(program.file_name().unwrap())
}
