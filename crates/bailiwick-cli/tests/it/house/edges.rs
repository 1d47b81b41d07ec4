//! Which workspace crate may depend on which.
//!
//! The table is the architecture: it lists every crate the design knows, present or not, and every edge it
//! allows. Build- and dev-dependencies count, because a test that reaches sideways is how layers dissolve.

use std::path::Path;

use serde_json::Value;

use super::{assert_none, repo};

/// What tests share: any crate's tests may use it, and nothing else.
const TESTKIT: &str = "bailiwick-testkit";

/// A crate and the workspace crates it may depend on.
const ALLOWED: [(&str, &[&str]); 33] = [
    ("bailiwick-policy", &[]),
    ("bailiwick-manifest", &["bailiwick-policy"]),
    ("bailiwick-compile", &["bailiwick-manifest", "bailiwick-policy"]),
    ("bailiwick-layout", &["bailiwick-policy"]),
    ("bailiwick-confine", &["bailiwick-layout", "bailiwick-policy"]),
    ("bailiwick-egress", &["bailiwick-policy"]),
    ("bailiwick-broker", &["bailiwick-egress", "bailiwick-manifest", "bailiwick-policy"]),
    ("bailiwick-door", &[]),
    ("bailiwick-page", &[]),
    (
        "bailiwick-export",
        &["bailiwick-journal", "bailiwick-manifest", "bailiwick-policy", "bailiwick-remote"],
    ),
    ("bailiwick-fleet", &["bailiwick-manifest", "bailiwick-policy"]),
    ("bailiwick-hub", &["bailiwick-door", "bailiwick-fleet"]),
    (
        "bailiwick-replica",
        &[
            "bailiwick-fleet",
            "bailiwick-guard",
            "bailiwick-journal",
            "bailiwick-manifest",
            "bailiwick-policy",
            "bailiwick-remote",
        ],
    ),
    ("bailiwick-member", &["bailiwick-fleet", "bailiwick-journal", "bailiwick-remote"]),
    ("bailiwick-pins", &[]),
    ("bailiwick-shell", &["bailiwick-policy"]),
    ("bailiwick-clients", &[]),
    ("bailiwick-journal", &["bailiwick-policy"]),
    ("bailiwick-layer", &["bailiwick-policy"]),
    ("bailiwick-learn", &["bailiwick-manifest", "bailiwick-policy"]),
    (
        "bailiwick-guardrails",
        &["bailiwick-journal", "bailiwick-manifest", "bailiwick-policy", "bailiwick-shell"],
    ),
    (
        "bailiwick-console",
        &[
            "bailiwick-door",
            "bailiwick-guardrails",
            "bailiwick-journal",
            "bailiwick-manifest",
            "bailiwick-policy",
        ],
    ),
    (
        "bailiwick-launch",
        &[
            "bailiwick-policy",
            "bailiwick-broker",
            "bailiwick-confine",
            "bailiwick-egress",
            "bailiwick-journal",
        ],
    ),
    ("bailiwick-remote", &["bailiwick-policy", "bailiwick-egress"]),
    ("bailiwick-store", &["bailiwick-journal", "bailiwick-launch", "bailiwick-manifest", "bailiwick-policy"]),
    (
        "bailiwick-guard",
        &[
            "bailiwick-manifest",
            "bailiwick-policy",
            "bailiwick-shell",
            "bailiwick-launch",
            "bailiwick-guardrails",
            "bailiwick-journal",
            "bailiwick-page",
        ],
    ),
    ("bailiwick-scan", &["bailiwick-manifest", "bailiwick-policy"]),
    (
        "bailiwick-mcp",
        &[
            "bailiwick-door",
            "bailiwick-guard",
            "bailiwick-guardrails",
            "bailiwick-journal",
            "bailiwick-manifest",
            "bailiwick-pins",
            "bailiwick-policy",
            "bailiwick-remote",
        ],
    ),
    ("bailiwick", &["bailiwick-guard", "bailiwick-journal", "bailiwick-manifest", "bailiwick-policy"]),
    (TESTKIT, &["bailiwick-fleet", "bailiwick-journal"]),
    (
        "bailiwick-command",
        &[
            "bailiwick-broker",
            "bailiwick-clients",
            "bailiwick-confine",
            "bailiwick-door",
            "bailiwick-fleet",
            "bailiwick-guardrails",
            "bailiwick-journal",
            "bailiwick-launch",
            "bailiwick-layer",
            "bailiwick-manifest",
            "bailiwick-member",
            "bailiwick-pins",
            "bailiwick-policy",
            "bailiwick-remote",
            "bailiwick-replica",
            "bailiwick-store",
        ],
    ),
    (
        "bailiwick-admin",
        &[
            "bailiwick-broker",
            "bailiwick-clients",
            "bailiwick-command",
            "bailiwick-compile",
            "bailiwick-confine",
            "bailiwick-console",
            "bailiwick-door",
            "bailiwick-egress",
            "bailiwick-export",
            "bailiwick-fleet",
            "bailiwick-guard",
            "bailiwick-guardrails",
            "bailiwick-journal",
            "bailiwick-launch",
            "bailiwick-learn",
            "bailiwick-manifest",
            "bailiwick-member",
            "bailiwick-pins",
            "bailiwick-policy",
            "bailiwick-remote",
            "bailiwick-scan",
            "bailiwick-shell",
            "bailiwick-store",
        ],
    ),
    (
        "bailiwick-cli",
        &[
            "bailiwick-admin",
            "bailiwick-broker",
            "bailiwick-clients",
            "bailiwick-command",
            "bailiwick-compile",
            "bailiwick-confine",
            "bailiwick-door",
            "bailiwick-egress",
            "bailiwick-fleet",
            "bailiwick-guard",
            "bailiwick-guardrails",
            "bailiwick-journal",
            "bailiwick-launch",
            "bailiwick-layer",
            "bailiwick-learn",
            "bailiwick-manifest",
            "bailiwick-mcp",
            "bailiwick-member",
            "bailiwick-page",
            "bailiwick-pins",
            "bailiwick-policy",
            "bailiwick-remote",
            "bailiwick-replica",
            "bailiwick-shell",
            "bailiwick-store",
        ],
    ),
];

/// Outside crates that only these crates of ours may name.
const RESERVED: [(&str, &[&str]); 4] = [
    ("opentelemetry-proto", &["bailiwick-export"]),
    ("anyhow", &["bailiwick-admin", "bailiwick-cli", "bailiwick-command"]),
    ("tokio-postgres", &["bailiwick-hub"]),
    ("x509-parser", &["bailiwick-hub"]),
];

/// One `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]` line of a workspace crate.
struct Edge {
    from: String,
    to: String,
    kind: String,
}

#[test]
fn crates_depend_only_where_the_table_allows() {
    let metadata = repo::metadata();
    let members = member_names(&metadata);
    assert!(
        members.contains(&"bailiwick-policy".to_owned()),
        "cargo metadata lists no crate of ours: {members:?}"
    );
    let mut breaches = unknown_crates(&members);
    breaches.extend(edges(&metadata).iter().filter_map(|edge| breach(edge, &members)));
    assert_none("a dependency is not in the table of allowed edges (house/edges.rs)", &breaches);
}

#[test]
fn a_crate_lives_in_the_directory_of_its_name() {
    let metadata = repo::metadata();
    let breaches: Vec<String> = members(&metadata)
        .filter_map(|package| {
            misplaced(text(package, "name"), Path::new(text(package, "manifest_path")), &repo::root())
        })
        .collect();
    assert_none("crates are flat under `crates/`, in a directory of the same name", &breaches);
}

fn unknown_crates(members: &[String]) -> Vec<String> {
    let known = |name: &&String| allowed(name).is_none();
    members.iter().filter(known).map(|name| format!("{name} is not in the table")).collect()
}

fn breach(edge: &Edge, members: &[String]) -> Option<String> {
    if edge.to == TESTKIT && edge.kind == "dev" {
        return None;
    }
    let ours = members.contains(&edge.to);
    let within = allowed(&edge.from).is_some_and(|targets| targets.contains(&edge.to.as_str()));
    let reserved =
        RESERVED.iter().any(|(name, owners)| *name == edge.to && !owners.contains(&edge.from.as_str()));
    ((ours && !within) || reserved).then(|| format!("{} -> {} ({})", edge.from, edge.to, edge.kind))
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, targets)| *targets)
}

fn misplaced(name: &str, manifest: &Path, root: &Path) -> Option<String> {
    let expected = root.join("crates").join(name).join("Cargo.toml");
    (manifest != expected).then(|| format!("{name} is at {}", repo::relative(manifest)))
}

fn edges(metadata: &Value) -> Vec<Edge> {
    members(metadata).flat_map(|package| edges_of(text(package, "name"), &package["dependencies"])).collect()
}

fn edges_of(from: &str, dependencies: &Value) -> Vec<Edge> {
    let edge = |dependency: &Value| Edge {
        from: from.to_owned(),
        to: text(dependency, "name").to_owned(),
        kind: dependency["kind"].as_str().unwrap_or("normal").to_owned(),
    };
    dependencies.as_array().expect("a package has dependencies").iter().map(edge).collect()
}

fn member_names(metadata: &Value) -> Vec<String> {
    members(metadata).map(|package| text(package, "name").to_owned()).collect()
}

fn members(metadata: &Value) -> impl Iterator<Item = &Value> {
    let ids = metadata["workspace_members"].as_array().expect("a workspace has members");
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    packages.iter().filter(|package| ids.contains(&package["id"]))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("cargo metadata has no `{key}` where one is due"))
}

#[test]
fn the_rule_sees_wrong_edges_of_every_kind() {
    let metadata = serde_json::json!({
        "workspace_members": ["p", "c", "x"],
        "packages": [
            {"id": "p", "name": "bailiwick-policy", "dependencies": [
                {"name": "serde", "kind": null},
                {"name": "anyhow", "kind": "build"},
                {"name": "bailiwick-compile", "kind": "dev"},
            ]},
            {"id": "c", "name": "bailiwick-compile", "dependencies": [{"name": "bailiwick-policy", "kind": null}]},
            {"id": "x", "name": "bailiwick-extra", "dependencies": []},
            {"id": "s", "name": "serde", "dependencies": [{"name": "bailiwick-policy", "kind": null}]},
        ],
    });
    let members = member_names(&metadata);
    let found: Vec<String> = edges(&metadata).iter().filter_map(|edge| breach(edge, &members)).collect();
    assert_eq!(found, ["bailiwick-policy -> anyhow (build)", "bailiwick-policy -> bailiwick-compile (dev)"]);
    assert_eq!(unknown_crates(&members), ["bailiwick-extra is not in the table"]);
}

#[test]
fn the_rule_sees_a_crate_in_another_directory() {
    let root = Path::new("/r");
    assert_eq!(misplaced("bailiwick", Path::new("/r/crates/bailiwick/Cargo.toml"), root), None);
    for wrong in
        ["/r/crates/facade/Cargo.toml", "/r/crates/deep/bailiwick/Cargo.toml", "/r/bailiwick/Cargo.toml"]
    {
        assert!(misplaced("bailiwick", Path::new(wrong), root).is_some(), "{wrong}");
    }
}
