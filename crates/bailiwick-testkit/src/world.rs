//! A test in a network of its own: it runs itself again under `unshare`.

use std::process::Command;

use crate::skip;

/// Set in a world, to what [`World::mark`] says.
const MARK: &str = "BAILIWICK_TEST_WORLD";

/// The name of the function it stands in, as the test runner knows it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let name = std::any::type_name_of_val(&here).strip_suffix("::here").unwrap();
        name.split_once("::").unwrap().1
    }};
}

/// How a world is made.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// The flags of `unshare`.
    pub flags: &'static str,
    /// What the test finds out by [`world_mark`].
    pub mark: &'static str,
}

/// What the world around this test was marked with; `None` outside of one.
pub fn world_mark() -> Option<String> {
    std::env::var_os(MARK).and_then(|mark| mark.into_string().ok())
}

/// Whether the test is in a world of its own; if not, runs it in one and waits.
///
/// # Panics
/// If the test fails there, or is not run.
pub fn is_in_world(test: &str, world: World) -> bool {
    if world_mark().is_some() {
        return true;
    }
    let able = Command::new("unshare").args([world.flags, "ip", "link", "set", "lo", "up"]).status();
    if !able.is_ok_and(|status| status.success()) {
        skip("no network namespaces or no iproute2 here");
        return false;
    }
    let done = Command::new("unshare")
        .arg(world.flags)
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, world.mark)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && told.contains("1 passed"), "{told}");
    for skipped in told.lines().filter(|line| line.starts_with("skipped: ")) {
        eprintln!("{skipped}");
    }
    false
}
