//! A test run once more on a host that was made poorer, and processes found by what they do.

use std::process::Command;

use crate::skip;

/// Runs the test `name` of this binary once more, inside `wrapper`, which has `PROBE` where the test goes. Gives what it
/// printed; nothing where such a host cannot be had.
#[must_use]
pub fn on_a_poorer_host(name: &str, wrapper: &str) -> Option<String> {
    let own = std::env::current_exe().unwrap();
    let line = wrapper.replace("PROBE", &format!("{} --exact {name} --nocapture", own.display()));
    let output =
        Command::new("/bin/sh").args(["-c", &line]).env_remove("BAILIWICK_REQUIRE").output().unwrap();
    if !output.status.success() {
        skip(&format!("`{wrapper}`: {}", String::from_utf8_lossy(&output.stderr)));
        return None;
    }
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// How many processes of this host sleep for that long.
#[must_use]
pub fn sleepers(seconds: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| *line == format!("sleep\0{seconds}\0").into_bytes()).count()
}
