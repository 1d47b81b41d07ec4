//! The switches of `scripts/mutate-wrap`, `scripts/mutate-secrets` and `scripts/mutate-fleet` still fit the sources.

use std::collections::BTreeSet;

use super::{assert_none, repo};

#[test]
fn every_protection_that_can_be_switched_off_stands_where_the_list_says() {
    fits("wrap", 70);
    fits("secrets", 30);
    fits("fleet", 70);
}

fn fits(name: &str, least: usize) {
    let root = repo::root();
    let text = std::fs::read_to_string(root.join(format!("tests/mutations/{name}.toml"))).unwrap();
    let list: toml::Table = text.parse().unwrap();
    let all = list["protection"].as_array().unwrap();
    assert!(all.len() >= least, "{}", all.len());
    let (mut names, mut wrong) = (BTreeSet::new(), Vec::new());
    for one in all {
        let field = |key: &str| one[key].as_str().unwrap();
        let (name, file) = (field("name"), field("file"));
        let source = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let count = source.matches(field("old")).count();
        if count != 1 || !field("new").contains("weak!()") || !names.insert(name) {
            wrong.push(format!("`{name}`: `old` stands {count} times in {file}"));
        }
    }
    assert_none(&format!("tests/mutations/{name}.toml does not fit the sources"), &wrong);
}
