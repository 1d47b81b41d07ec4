//! What git runs or reads as configuration because a repository's configuration names it stays closed inside a writable work
//! tree, as the names that are always known do. As root and as a plain user, with the same acts where nothing names them.

use std::path::Path;

use super::leash::{World, by_everyone};

const CONFIG: &str = "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../team.gitconfig\n\
                      [filter \"f\"]\n\tclean = sh ./tools/clean.sh %f\n[core]\n\tfsmonitor = absent/watch\n";

/// Ways to put something else in the place of each name, and the one that does not exist yet.
const WAYS: &str = "
    echo evil >tools/hooks/pre-commit; echo evil >>tools/hooks/post-commit; echo evil >team.gitconfig; echo evil >tools/clean.sh
    echo evil >new; mv new tools/hooks/moved; cp team.gitconfig new; ln -f new team.gitconfig; mv new tools/clean.sh
    rm -rf tools/hooks; mv tools/hooks hooks-away; mv tools tools-away; mkdir tools; mkdir tools/hooks; echo evil >tools/hooks/late
    rm team.gitconfig; ln -s /etc/hostname team.gitconfig; chmod 777 tools/hooks/post-commit; truncate -s 0 tools/clean.sh
    mkdir absent; echo evil >absent/watch; mkdir -p aside; echo evil >aside/watch; mv aside absent; exit 0";

fn repository(world: &World, config: &str) {
    let write = |name: &str, text: &str| {
        let path = world.at("w").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".git/HEAD", "ref: refs/heads/main\n");
    write(".git/objects/x", "");
    write(".git/refs/x", "");
    write(".git/config", config);
    for name in ["tools/hooks/post-commit", "team.gitconfig", "tools/clean.sh"] {
        write(name, "# mine\n");
    }
    world.give("w");
}

/// Names that are not as they were, or that came into being.
fn changed(world: &World) -> Vec<&'static str> {
    let text = |name: &str| std::fs::read_to_string(world.at("w").join(name)).ok();
    let kept = ["tools/hooks/post-commit", "team.gitconfig", "tools/clean.sh"];
    let absent = ["tools/hooks/pre-commit", "tools/hooks/moved", "tools/hooks/late", "absent/watch"];
    let is_changed = |name: &&str| text(name).as_deref() != Some("# mine\n");
    kept.into_iter()
        .filter(is_changed)
        .chain(absent.into_iter().filter(|name| text(name).is_some()))
        .collect()
}

#[test]
fn what_gits_configuration_names_stays_closed() {
    by_everyone(|world| {
        repository(world, CONFIG);
        let output = world.sh(&["--cap", "fs:read,write:{}/w/**"], WAYS);
        assert_eq!(changed(world), Vec::<&str>::new(), "{:?}: {}", world.user, super::err(&output));
        let free = world.sh(&["--cap", "fs:read,write:{}/w/**"], "echo free >tools/free; cat tools/free");
        assert_eq!(super::out(&free), "free\n", "the directory around them stays writable");
    });
}

#[test]
fn without_a_configuration_that_names_them_they_are_free() {
    by_everyone(|world| {
        repository(world, "[core]\n\tbare = false\n");
        world.sh(&["--cap", "fs:read,write:{}/w/**"], WAYS);
        assert!(changed(world).len() > 4, "{:?}", changed(world));
    });
}

#[test]
fn a_grant_by_name_opens_what_the_configuration_names() {
    by_everyone(|world| {
        repository(world, CONFIG);
        let options = ["--cap", "fs:read,write:{}/w/**", "--cap", "fs:write:{}/w/tools/hooks"];
        let output = world.sh(&options, WAYS);
        let now = changed(world);
        assert!(now.iter().any(|name| name.starts_with("tools/hooks")), "{now:?}: {}", super::err(&output));
        assert!(!now.contains(&"team.gitconfig") && !now.contains(&"tools/clean.sh"), "{now:?}");
    });
}

#[test]
fn a_link_in_the_place_of_the_hooks_cannot_be_exchanged() {
    by_everyone(|world| {
        repository(world, "[core]\n\thooksPath = hooks\n");
        std::os::unix::fs::symlink("tools/hooks", world.at("w/hooks")).unwrap();
        world.give("w");
        let script = "echo evil >hooks/pre-commit; echo evil >tools/hooks/pre-commit; rm hooks; mv hooks h; mkdir aside; \
                      mv -T aside hooks; ln -sfn aside hooks; exit 0";
        world.sh(&["--cap", "fs:read,write:{}/w/**"], script);
        assert_eq!(std::fs::read_link(world.at("w/hooks")).ok().as_deref(), Some(Path::new("tools/hooks")));
        assert_eq!(changed(world), Vec::<&str>::new());
    });
}
