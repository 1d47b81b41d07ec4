//! A grant of one file: the sandbox starts, and the file can be changed, whether or not the host was asked what it is.

use std::path::Path;

use bailiwick_compile::Target;
use bailiwick_policy::plan::Plan;

use super::sandbox::{has, probe, program, run, starters};
use super::world::{World, open_to_everyone};

const LINES: [&str; 2] = ["fs:read:@/bin", "fs:read,write:@/data/db.sqlite"];

fn world() -> World {
    let world = World::new();
    std::fs::create_dir(world.path("data")).unwrap();
    std::fs::write(world.path("data/other"), "text").unwrap();
    world
}

#[test]
fn one_writable_file_is_that_file_and_nothing_beside_it() {
    for target in [Target::Bwrap, Target::Oci, Target::Firejail].into_iter().filter(|own| has(program(*own)))
    {
        for starter in starters() {
            let world = world();
            std::fs::write(world.path("data/db.sqlite"), "text").unwrap();
            open_to_everyone(Path::new(&world.path("data")));
            let plans: [(&str, Plan); 2] = [
                ("not asked", world.plan(&LINES)),
                ("asked", world.plan_asking(&LINES, &["data/db.sqlite"])),
            ];
            for (facts, plan) in plans {
                let asked = [("write", world.path("data/db.sqlite")), ("read", world.path("data/other"))];
                let seen = probe(target, &plan, starter, &world, &asked);
                let expected = [
                    format!("write {} yes", world.path("data/db.sqlite")),
                    format!("read {} no", world.path("data/other")),
                ];
                assert_eq!(seen.checks, expected, "{target} {starter:?}, the host was {facts}");
            }
        }
    }
}

#[test]
fn a_directory_with_the_name_of_a_file_is_never_open_to_code_that_runs_later() {
    for target in [Target::Bwrap, Target::Firejail].into_iter().filter(|own| has(program(*own))) {
        for starter in starters() {
            let world = world();
            std::fs::create_dir_all(world.path("data/db.sqlite/.git/hooks")).unwrap();
            open_to_everyone(Path::new(&world.path("data")));
            let hooks = world.path("data/db.sqlite/.git/hooks");
            let names = ["data/db.sqlite", "data/db.sqlite/.git", "data/db.sqlite/.git/hooks"];
            let asked = world.plan_asking(&LINES, &names);
            let words = [world.path("bin/probe"), "write".to_owned(), hooks.clone()];
            let output = run(target, &asked, starter, &world, &words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains(&format!("write {hooks} no")), "{target} {starter:?}: {output:?}");
            // not asked: it does not start, or keeps them closed
            let output = run(target, &world.plan(&LINES), starter, &world, &words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!text.contains("yes"), "{target} {starter:?}: {output:?}");
            assert_eq!(
                output.status.success(),
                target == Target::Firejail,
                "{target} {starter:?}: {output:?}"
            );
        }
    }
}
