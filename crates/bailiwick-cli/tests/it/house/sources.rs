//! Where dependencies come from, and which may not come at all.
//!
//! The same rules as `[sources]` and `[bans]` of `deny.toml`, read from there, for machines without cargo-deny.

use serde_json::Value;

use super::{assert_none, repo};

#[test]
fn dependencies_come_from_the_registry_and_none_is_banned() {
    let text = std::fs::read_to_string(repo::root().join("deny.toml")).expect("deny.toml is at the root");
    let rules: toml::Table = text.parse().expect("deny.toml is TOML");
    let metadata = repo::metadata();
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    let breaches: Vec<String> = packages.iter().filter_map(|package| breach(package, &rules)).collect();
    assert_none("a dependency is banned, or from a source that deny.toml does not name", &breaches);
}

fn breach(package: &Value, rules: &toml::Table) -> Option<String> {
    let name = package["name"].as_str().expect("a package has a name");
    let banned = rules["bans"]["deny"].as_array().expect("deny.toml has `bans.deny`");
    if banned.iter().any(|entry| entry["crate"].as_str() == Some(name)) {
        return Some(format!("{name} is banned"));
    }
    // A crate of the workspace has no source.
    let source = package["source"].as_str()?;
    let registries = rules["sources"]["allow-registry"].as_array().expect("deny.toml has `allow-registry`");
    let known =
        registries.iter().filter_map(toml::Value::as_str).any(|url| source == format!("registry+{url}"));
    (!known).then(|| format!("{name} comes from {source}"))
}

#[test]
fn the_rule_sees_banned_crates_and_other_sources() {
    let rules = r#"
        bans.deny = [{ crate = "bad" }]
        sources.allow-registry = ["https://registry.test/index"]
    "#;
    let rules: toml::Table = rules.parse().unwrap();
    let seen = |name: &str, source: Option<&str>| {
        breach(&serde_json::json!({"name": name, "source": source}), &rules)
    };
    assert_eq!(seen("good", Some("registry+https://registry.test/index")), None);
    assert_eq!(seen("ours", None), None);
    assert_eq!(seen("bad", None).as_deref(), Some("bad is banned"));
    for other in ["git+https://registry.test/index", "registry+https://registry.test/index2"] {
        assert!(seen("good", Some(other)).is_some(), "{other}");
    }
}
