//! Nothing outlives the sandbox's own process.

use std::time::{Duration, Instant};

use bailiwick_compile::Target;

use super::sandbox::{Starter, artifact, has, is_root, started, starters, written};
use super::world::World;

#[test]
fn a_killed_bubblewrap_leaves_no_process_behind() {
    if !has("bwrap") {
        return;
    }
    for starter in starters() {
        let world = World::new();
        let plan = world.plan(&["fs:read,write:@/rw"]);
        let made = artifact(Target::Bwrap, &plan);
        let bundle = written(&made, &world);
        // sleeps whose length tells them from all others, one of them in a session of its own
        let length = format!("{}.{}", 3600, std::process::id());
        let inside = format!("setsid sleep {length} & sleep {length} & sleep {length}");
        let argv: Vec<String> =
            made.argv().iter().cloned().chain(["sh".to_owned(), "-c".to_owned(), inside]).collect();
        let mut child = started(Target::Bwrap, starter, &argv, &bundle).spawn().unwrap();
        wait_for(|| sleeping(&length) == 3, "three sleeps start");
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for(|| sleeping(&length) == 0, "all sleeps end");
    }
    assert!(starters().contains(&Starter::Root) == is_root());
}

fn wait_for(done: impl Fn() -> bool, what: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many processes sleep for just this long.
fn sleeping(length: &str) -> usize {
    let wanted = format!("sleep\0{length}\0").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|own| own == wanted))
        .count()
}
