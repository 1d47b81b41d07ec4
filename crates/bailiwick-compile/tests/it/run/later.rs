//! Names that run code later, with all the others beside them: none opens what another closes.

use std::collections::BTreeSet;
use std::path::Path;

use bailiwick_compile::Target;
use bailiwick_policy::run_later::fixed_names;

use super::sandbox::{has, probe, program, starters};
use super::world::{World, open_to_everyone};

/// Makes every name in the world's writable directory: a directory where another name lies below it, else a file.
fn made(world: &World) -> Vec<String> {
    let root = world.path("rw");
    let names: BTreeSet<String> = fixed_names([&root, &root]).map(str::to_owned).collect();
    for name in &names {
        let path = format!("{root}/{name}");
        let is_directory = names.iter().any(|other| other.starts_with(&format!("{name}/")));
        let directory = if is_directory { Path::new(&path) } else { Path::new(&path).parent().unwrap() };
        std::fs::create_dir_all(directory).unwrap();
        if !is_directory && !Path::new(&path).exists() {
            std::fs::write(&path, "text").unwrap();
        }
    }
    open_to_everyone(Path::new(&root));
    names.into_iter().map(|name| format!("{root}/{name}")).collect()
}

#[test]
fn no_name_opens_what_another_closes() {
    for target in [Target::Bwrap, Target::Oci, Target::Firejail].into_iter().filter(|own| has(program(*own)))
    {
        for starter in starters() {
            let world = World::new();
            let paths = made(&world);
            assert!(paths.iter().any(|path| Path::new(path).is_dir()), "one name lies in another");
            let open = world.path("rw/file");
            let plan = world.plan(&["fs:read,write:@/rw", "fs:read:@/bin"]);
            let asked: Vec<(&str, String)> = paths.into_iter().map(|path| ("write", path)).collect();
            // firejail takes no more than 128 arguments
            for some in asked.chunks(40) {
                let some: Vec<(&str, String)> =
                    some.iter().cloned().chain([("write", open.clone())]).collect();
                let seen = probe(target, &plan, starter, &world, &some);
                let written: Vec<&String> =
                    seen.checks.iter().filter(|line| line.ends_with(" yes")).collect();
                assert_eq!(written, [&format!("write {open} yes")], "{target} {starter:?}");
            }
        }
    }
}
