//! Plans say what authorities say: laws on a small universe, and the merges that other compilers get wrong.

use proptest::prelude::*;

use super::*;
use crate::authority::Request;
use crate::capability::{CapabilitySet, FsActions};
use crate::facts::PathKind;
use crate::manifest::Manifest;
use crate::path::PathPattern;

fn plan(lines: &[&str]) -> Plan {
    let set = CapabilitySet::new(lines.iter().copied()).unwrap();
    Plan::for_authority("test", set.authority(), &HostFacts::unknown()).unwrap()
}

fn shown(plan: &Plan) -> Vec<String> {
    plan.explain().into_iter().map(|one| one.rule).collect()
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
fn every_rule_of_a_manifest_knows_its_line() {
    let text = r#"
name = "s"
version = "1"
env = { MODE = "x" }
server_capabilities = ["fs:read:/w", "net:connect:a.example:443"]
[[tools]]
name = "t"
capabilities = ["fs:read,write:/w/out", "exec:spawn:git", "env:inject:TOKEN", 'assert:ok.it:"holds"']
[[tools]]
name = "u"
capabilities = ["fs:read:/w/out", "ipc:connect:x11", "clock:system", "env:read:LANG"]
"#;
    let facts = HostFacts::unknown();
    let checked = Manifest::parse(text).unwrap().check(&facts).unwrap();
    let plan = Plan::server(&checked, &facts).unwrap();
    let lines: Vec<String> = plan
        .explain()
        .into_iter()
        .map(|one| {
            let from = one.origins.iter().map(|origin| {
                let written = text.get(origin.span.start + 1..origin.span.end - 1);
                assert_eq!(written, Some(&*origin.capability));
                format!("{}:{}", origin.tool.as_deref().unwrap_or("-"), origin.capability)
            });
            format!("{} < {}", one.rule, from.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "fs:read:/w < -:fs:read:/w",
            "fs:read,write:/w/out < t:fs:read,write:/w/out u:fs:read:/w/out",
            "net:connect:a.example:443 < -:net:connect:a.example:443",
            "exec:spawn:git < t:exec:spawn:git",
            "env MODE (fixed) < ",
            "env:inject:TOKEN < t:env:inject:TOKEN",
            "env:read:LANG < u:env:read:LANG",
            "ipc:connect:x11 < u:ipc:connect:x11",
            "clock:system < ",
            "assert:ok.it < t:assert:ok.it:\"holds\"",
        ]
    );
    let tool = checked.tool("u").unwrap();
    let rules = shown(&Plan::tool(&checked, tool, &facts).unwrap());
    assert!(!rules.iter().any(|rule| rule.contains("write") || rule.contains("git")), "{rules:?}");
}

#[test]
fn a_policy_narrows_the_plan_of_its_tool() {
    let text = "name = 's'\nversion = '1'\n[[tools]]\nname = 't'\n\
        capabilities = ['fs:read,write:/w', 'net:connect:a.example:443']\n\
        [tools.policy]\nrisk = 'low'\nnetwork = 'deny'\n";
    let facts = HostFacts::unknown();
    let checked = match Manifest::parse(text) {
        Ok(manifest) => manifest.check(&facts).unwrap(),
        Err(findings) => panic!("{findings:?}"),
    };
    let plan = Plan::tool(&checked, checked.tool("t").unwrap(), &facts).unwrap();
    assert_eq!(*plan.network(), Network::None);
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
