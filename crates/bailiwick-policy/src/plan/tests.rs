//! Plans say what authorities say: laws on a small universe, and the merges that other compilers get wrong.

use proptest::prelude::*;

use super::*;
use crate::authority::Request;
use crate::capability::{CapabilitySet, FsActions};
use crate::facts::PathKind;
use crate::path::PathPattern;

fn plan(lines: &[&str]) -> Plan {
    let set = CapabilitySet::new(lines.iter().copied()).unwrap();
    Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap()
}

fn mounts(lines: &[&str]) -> Vec<String> {
    let text = |mount: Mount| {
        let mode = if mount.writable { "rw" } else { "ro" };
        format!("{mode} {}{}", mount.path, if mount.exact { "" } else { " superset" })
    };
    plan(lines).mounts().into_iter().map(text).collect()
}

#[test]
fn a_write_below_a_read_tree_makes_nothing_else_writable() {
    assert_eq!(mounts(&["fs:read:/**", "fs:write:/tmp/x"]), ["ro /", "rw /tmp/x"]);
    assert_eq!(mounts(&["fs:read:/w/a", "fs:read,write:/w/z.txt"]), ["ro /w/a", "rw /w/z.txt"]);
    assert_eq!(mounts(&["fs:read,write:/w", "fs:read:/w/a"]), ["rw /w"]);
    assert_eq!(
        mounts(&["fs:read:/w", "fs:read,write:/w/a", "fs:read:/w/a/b", "fs:read:/w/c"]),
        ["ro /w", "rw /w/a"]
    );
    assert_eq!(mounts(&["fs:read:/home/alice.smith"]), ["ro /home/alice.smith"], "a dot names no file");
}

#[test]
fn what_a_mount_widens_it_says() {
    assert_eq!(mounts(&["fs:read:/w/*.txt"]), ["ro /w superset"]);
    assert_eq!(mounts(&["fs:write:/w"]), ["rw /w superset"], "a mount cannot be written and not read");
    assert_eq!(mounts(&["fs:read:/w", "fs:write:/w"]), ["rw /w"]);
    assert_eq!(mounts(&["fs:read:/w", "fs:create:/w"]), ["rw /w superset"]);
}

#[test]
fn host_facts_say_where_a_path_really_lies() {
    let path = |text: &str| AbsPath::new(text).unwrap();
    let facts = HostFacts::unknown()
        .with_place(path("/w"), path("/data/w"), PathKind::Directory)
        .with_protected(path("/home/u/.local/state/bailiwick"));
    let set = CapabilitySet::new(["fs:read:/w"]).unwrap();
    let plan = Plan::for_authority("test", set.authority(), &facts).unwrap();
    let mount = &plan.mounts()[0];
    assert_eq!((&mount.path, &mount.source), (&path("/w"), &path("/data/w")));
    assert_eq!(mount.place, Some(PathKind::Directory));
    assert_eq!(plan.protected().len(), 1);
}

#[test]
fn everything_is_said_as_everything() {
    let top = Plan::for_authority("test", &Authority::top(), &HostFacts::unknown()).unwrap();
    assert_eq!(*top.network(), Network::Any);
    assert!(top.exec().any.is_some() && top.ipc().any && top.environment().read_all);
    assert!(top.nested_sandbox() && top.from_writable());
    let none = Plan::for_authority("test", &Authority::bottom(), &HostFacts::unknown()).unwrap();
    assert!(none.explain().is_empty());
    assert_eq!(none.floor().demand(Aspect::Network).map(|demand| demand.level), Some(Level::Kernel));
}

const PATTERNS: [&str; 10] =
    ["/", "/**", "/a", "/a/b", "/a/b/c", "/a.b", "/a/*", "/a/*/c", "/a/**/c", "/*/b"];
const PATHS: [&str; 9] = ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a.b", "/a.b/b", "/a/x", "/b/b"];
const ACTIONS: [FsActions; 4] = [FsActions::READ, FsActions::WRITE, FsActions::CREATE, FsActions::DELETE];

fn request(action: FsActions, path: AbsPath) -> Request {
    match action {
        FsActions::READ => Request::Read(path),
        FsActions::WRITE => Request::Write(path),
        FsActions::CREATE => Request::Create(path),
        _ => Request::Delete(path),
    }
}

proptest! {
    /// The merged grants allow a request just if the authority does, and mounts allow at least that, and just
    /// that where they say so.
    #[test]
    fn merged_grants_are_the_authority(
        lines in prop::collection::vec((0..ACTIONS.len(), 0..PATTERNS.len()), 1..7),
    ) {
        let lines: Vec<String> =
            lines.into_iter().map(|(action, at)| format!("fs:{}:{}", ACTIONS[action], PATTERNS[at])).collect();
        let set = CapabilitySet::new(lines.iter().map(String::as_str)).unwrap();
        let plan = Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap();
        let mounts = plan.mounts();
        for text in PATHS {
            let path = AbsPath::new(text).unwrap();
            let mount = mounts.iter().rfind(|mount| PathPattern::below(&mount.path).covers(&path));
            for action in ACTIONS {
                let allowed = set.authority().allows(&request(action, path.clone()));
                let mut grants = plan.files().iter().filter(|grant| grant.pattern.value.covers(&path));
                prop_assert_eq!(allowed, grants.any(|grant| grant.actions.contains(action)), "{} {}", action, text);
                let mounted = mount.is_some_and(|mount| mount.writable || action == FsActions::READ);
                prop_assert!(mounted || !allowed, "{} {} is granted and not mounted", action, text);
                if mount.is_some_and(|mount| mount.exact) {
                    prop_assert_eq!(allowed, mounted, "{} {} where the mount says exact", action, text);
                }
            }
        }
    }
}
