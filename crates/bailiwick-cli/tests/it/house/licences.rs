//! Every crate in the graph, on all platforms and for tests too, can be used under a licence we accept.
//!
//! The accepted ones are read from `deny.toml`, so there is one list. An expression is accepted when it can be
//! met from that list alone: `MIT OR LGPL-2.1-or-later` is, `LGPL-2.1-or-later` is not. A crate that names no
//! licence, or one in words that this reader does not understand, is refused.

use serde_json::Value;

use super::{assert_none, repo};

#[test]
fn every_dependency_has_an_accepted_licence() {
    let accepted = accepted();
    let metadata = repo::metadata();
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    assert!(packages.len() > 1, "cargo metadata lists no dependency at all");
    let breaches: Vec<String> = packages.iter().filter_map(|package| breach(package, &accepted)).collect();
    assert_none("a dependency's licence cannot be met from the list in deny.toml", &breaches);
}

fn accepted() -> Vec<String> {
    let text = std::fs::read_to_string(repo::root().join("deny.toml")).expect("deny.toml is at the root");
    let file: toml::Table = text.parse().expect("deny.toml is TOML");
    let allow = file["licenses"]["allow"].as_array().expect("deny.toml has `licenses.allow`");
    allow.iter().map(|name| name.as_str().expect("a licence is a string").to_owned()).collect()
}

fn breach(package: &Value, accepted: &[String]) -> Option<String> {
    let expression = package["license"].as_str().unwrap_or_default();
    let said = if expression.is_empty() { "no licence" } else { expression };
    (!can_be_met(expression, accepted)).then(|| format!("{} {}: {said}", package["name"], package["version"]))
}

/// Whether an SPDX expression is satisfied by the accepted licences; what is not understood is not satisfied.
fn can_be_met(expression: &str, accepted: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut reader = Reader { tokens: spaced.split_whitespace().collect(), accepted };
    reader.tokens.reverse();
    let met = reader.any_of();
    met == Some(true) && reader.tokens.is_empty()
}

/// Recursive descent over the tokens, which lie in reverse so that the next one is popped.
struct Reader<'a> {
    tokens: Vec<&'a str>,
    accepted: &'a [String],
}

impl Reader<'_> {
    fn any_of(&mut self) -> Option<bool> {
        let mut met = self.all_of()?;
        while self.take("OR") {
            met |= self.all_of()?;
        }
        Some(met)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut met = self.term()?;
        while self.take("AND") {
            met &= self.term()?;
        }
        Some(met)
    }

    fn term(&mut self) -> Option<bool> {
        if self.take("(") {
            let met = self.any_of()?;
            return self.take(")").then_some(met);
        }
        let mut name = self.tokens.pop()?.to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.tokens.pop()?);
        }
        Some(self.accepted.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        let next = self.tokens.last() == Some(&word);
        if next {
            self.tokens.pop();
        }
        next
    }
}

#[test]
fn expressions_are_met_or_not() {
    let accepted = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned);
    for met in ["MIT", "MIT/Apache-2.0", "MIT OR LGPL-2.1-or-later", "(MIT OR GPL-3.0-only) AND Unicode-3.0"]
    {
        assert!(can_be_met(met, &accepted), "{met}");
    }
    let unmet = [
        "",
        "GPL-3.0-only",
        "AGPL-3.0",
        "LGPL-2.1-or-later",
        "MIT AND GPL-2.0-only",
        "custom",
        "(MIT",
        "MIT MIT",
    ];
    for unmet in unmet.into_iter().chain(["MIT OR", "Apache-2.0 WITH LLVM-exception", "NOASSERTION"]) {
        assert!(!can_be_met(unmet, &accepted), "{unmet}");
    }
}

#[test]
fn a_package_without_licence_is_a_breach() {
    let package = serde_json::json!({"name": "x", "version": "1.0.0", "license": null});
    assert_eq!(breach(&package, &["MIT".to_owned()]), Some(r#""x" "1.0.0": no licence"#.to_owned()));
}

#[test]
fn no_copyleft_is_on_the_list() {
    let copyleft: Vec<String> = accepted().into_iter().filter(|name| name.contains("GPL")).collect();
    assert_none("deny.toml accepts a GPL, LGPL or AGPL licence", &copyleft);
}
