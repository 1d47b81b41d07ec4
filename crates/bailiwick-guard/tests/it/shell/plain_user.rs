//! The same tests once more as a user without any privilege, when root runs them.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn everything_holds_for_a_plain_user() {
    const ONCE: &str = "BAILIWICK_TEST_PLAIN_USER";
    if !rustix::process::geteuid().is_root() || std::env::var_os(ONCE).is_some() {
        eprintln!("skipped: not root, so the other tests are it");
        return;
    }
    let copy = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copy.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let binary = copy.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&binary)
        .arg("shell::")
        .env(ONCE, "1")
        .env_remove("TMPDIR")
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok.") && !text.contains(" 0 passed"), "{text}");
}
