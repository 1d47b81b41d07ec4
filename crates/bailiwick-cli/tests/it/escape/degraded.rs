//! A host that gives less: no user namespaces and no capability. Nothing is started by halves there.

use std::process::{Command, Output};

use bailiwick_testkit::skip;

/// Takes user namespaces and every capability away, then runs its arguments.
const DEGRADED: &str =
    "echo 0 >/proc/sys/user/max_user_namespaces && exec capsh --drop=all -- -c 'exec \"$0\" \"$@\"' \"$@\"";

/// What the command does on such a host; `None` where there is none to be had.
fn degraded(args: &[&str]) -> Option<Output> {
    let on = |script: &str, args: &[&str]| {
        Command::new("unshare").args(["-Ur", "sh", "-c", script, "sh"]).args(args).output().ok()
    };
    let there = on(DEGRADED, &["unshare", "-U", "true"]);
    let worked = on("exec \"$@\"", &["capsh", "--print"]).is_some_and(|output| output.status.success());
    if !worked || there.is_none_or(|output| output.status.success()) {
        skip("no host without user namespaces can be had here: it needs unshare and capsh");
        return None;
    }
    on(DEGRADED, &[&[env!("CARGO_BIN_EXE_bailiwick"), "run", "--no-journal"], args].concat())
}

#[test]
fn without_user_namespaces_nothing_starts_and_it_says_what_to_enable() {
    let Some(output) = degraded(&["--cap", "fs:read:/usr", "--", "/usr/bin/id"]) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing ran");
    assert!(said.contains("could not create the namespaces"), "what is missing: {said}");
    assert!(said.contains("max_user_namespaces"), "how to enable it: {said}");
    assert!(said.contains("`--backend landlock` needs no user namespaces"), "what else there is: {said}");
    assert!(said.contains("  fs: kernel, wider than asked (landlock"), "what it holds of files: {said}");
    assert!(said.contains("not held"), "and what not: {said}");
}

#[test]
fn without_user_namespaces_the_other_backend_is_not_offered_where_it_would_refuse_too() {
    let hosts = ["--cap", "net:connect:good.test:443", "--", "/usr/bin/id"];
    let Some(output) = degraded(&hosts) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("it refuses this run too, unless less is demanded: "), "{said}");
}

#[test]
fn without_user_namespaces_landlock_holds_what_it_says_or_refuses_by_floor() {
    let program = ["--", "/bin/cat", "/etc/hostname"];
    let lax = ["--require", "net=unsupported", "--require", "fs=kernel"];
    let lax = [&["--backend", "landlock"], &lax[..]].concat();
    let Some(output) = degraded(&[&lax[..], &["--", "/usr/bin/id"]].concat()) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(125) {
        assert!(said.contains("cannot"), "it says what is missing: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "the program itself runs: {said}");
    let Some(output) = degraded(&[&lax[..], &program].concat()) else { return };
    assert_eq!(output.status.code(), Some(1), "a file that is not granted is not read");
    let strict = ["--backend", "landlock", "--require", "fs=kernel:exact"];
    let Some(output) = degraded(&[&strict[..], &program].concat()) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("this host cannot hold what is demanded"), "{said}");
}
