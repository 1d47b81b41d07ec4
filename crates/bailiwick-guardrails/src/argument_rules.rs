//! `[[tools.rules]]` of a manifest, judged: arguments that are refused, or that a person is asked about.
//!
//! A condition looks at every string, number and boolean at its place or below it. It holds if one of them compares; with
//! `not` if one of them does not, or there is none. Fails closed when something cannot be compared (no number, no host,
//! a path without meaning, arguments that nest too deeply): the condition holds then, with `not` or without.

use std::sync::Arc;

use bailiwick_manifest::{ArgumentRule, ArgumentTest, CheckedTool, Condition, RuleEffect};
use bailiwick_policy::denial::{Denial, DenialCode};
use serde_json::Value;

use crate::arguments::{MAX_DEPTH, host_of, local_path};
use crate::pattern::Pattern;
use crate::resolve::{absolute, real};
use crate::surroundings::Surroundings;
use crate::verdict::Verdict;

/// The rules of one tool. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallRules(Arc<[CompiledRule]>);

#[derive(Debug)]
struct CompiledRule {
    rule: ArgumentRule,
    /// The pattern of each condition that has one; one that cannot be used is missing.
    patterns: Vec<Option<Pattern>>,
}

/// What comes of comparing one value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Equal,
    Different,
    Unclear,
}

impl CallRules {
    pub(crate) fn for_tool(tool: &CheckedTool) -> Self {
        let compiled = tool.rules().iter().map(|rule| {
            let pattern = |condition: &Condition| match condition.test() {
                ArgumentTest::Matches(text) => Pattern::new(text).ok(),
                ArgumentTest::Number(_) | ArgumentTest::Host(_) | ArgumentTest::Path(_) => None,
            };
            CompiledRule { rule: rule.clone(), patterns: rule.conditions().iter().map(pattern).collect() }
        });
        Self(compiled.collect())
    }

    /// The strictest of the rules that apply.
    pub(crate) fn judge(&self, tool: &str, args: &Value, around: &Surroundings) -> Verdict {
        let applying = self.0.iter().filter(|rule| rule.applies(args, around));
        applying.fold(Verdict::Allow, |strictest, rule| strictest.max(rule.verdict(tool)))
    }
}

impl CompiledRule {
    fn applies(&self, args: &Value, around: &Surroundings) -> bool {
        let mut conditions = self.rule.conditions().iter().zip(&self.patterns);
        conditions.all(|(condition, pattern)| {
            let mut seen = Seen::default();
            if let Some(value) = args.pointer(condition.argument()) {
                seen.look(value, 0, &|leaf: &Value| {
                    compared(condition.test(), pattern.as_ref(), leaf, around)
                });
            }
            seen.is_unclear || if condition.is_negated() { seen.differs || !seen.equals } else { seen.equals }
        })
    }

    fn verdict(&self, tool: &str) -> Verdict {
        let message = self.rule.message();
        match self.rule.effect() {
            RuleEffect::Ask => Verdict::Ask(format!("may `{tool}` run with these arguments? {message}")),
            RuleEffect::Deny => {
                let message = format!("Tool '{tool}' denied by policy: {message}");
                Verdict::Deny(Denial::new(DenialCode::ArgumentRule, message))
            }
        }
    }
}

/// What was seen at one place of the arguments.
#[derive(Default)]
struct Seen {
    equals: bool,
    differs: bool,
    is_unclear: bool,
}

impl Seen {
    fn look(&mut self, value: &Value, depth: usize, compare: &impl Fn(&Value) -> Compared) {
        if depth > MAX_DEPTH {
            self.is_unclear = true;
            return;
        }
        match value {
            Value::Null => {}
            Value::Array(items) => items.iter().for_each(|item| self.look(item, depth + 1, compare)),
            Value::Object(fields) => fields.values().for_each(|item| self.look(item, depth + 1, compare)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => match compare(value) {
                Compared::Equal => self.equals = true,
                Compared::Different => self.differs = true,
                Compared::Unclear => self.is_unclear = true,
            },
        }
    }
}

fn compared(test: &ArgumentTest, pattern: Option<&Pattern>, leaf: &Value, around: &Surroundings) -> Compared {
    let text = leaf.as_str();
    let found = match test {
        ArgumentTest::Matches(_) => {
            let written = text.map_or_else(|| leaf.to_string(), str::to_owned);
            pattern.and_then(|pattern| pattern.is_match(&written).ok())
        }
        ArgumentTest::Number(range) => {
            // Many servers take a number that is written as text.
            let number = leaf.as_f64().or_else(|| text.and_then(|text| text.trim().parse().ok()));
            number.filter(|number: &f64| number.is_finite()).map(|number| range.contains(number))
        }
        ArgumentTest::Host(hosts) => {
            let named = text.and_then(|text| host_of(text).ok());
            named.map(|named| hosts.iter().any(|pattern| pattern.matches(&named.host)))
        }
        ArgumentTest::Path(_) => {
            let path = text.and_then(|text| local_path(text).ok());
            let leads_to =
                path.and_then(|path| absolute(&path, around).ok()).and_then(|path| real(&path).ok());
            leads_to.map(|path| test.paths().any(|pattern| pattern.covers(&path)))
        }
    };
    match found {
        None => Compared::Unclear,
        Some(true) => Compared::Equal,
        Some(false) => Compared::Different,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bailiwick_manifest::Manifest;
    use bailiwick_policy::facts::HostFacts;
    use serde_json::json;

    fn judged(rules: &str, args: &Value) -> Verdict {
        let text = format!("name = 'n'\nversion = '1'\n[[tools]]\nname = 't'\n{rules}");
        let facts = HostFacts::unknown().with_variable("WORKSPACE", "/project").unwrap();
        let checked = Manifest::parse(&text).unwrap().check(&facts).unwrap();
        CallRules::for_tool(checked.tool("t").unwrap()).judge("t", args, &Surroundings::new("/project"))
    }

    fn rule(when: &str) -> String {
        format!("[[tools.rules]]\nwhen = {when}\nthen = 'deny'\nmessage = 'not so'\n")
    }

    fn applies(when: &str, args: &Value) -> bool {
        matches!(judged(&rule(when), args), Verdict::Deny(denial) if denial.code() == DenialCode::ArgumentRule)
    }

    #[test]
    fn every_kind_of_condition_is_judged_and_fails_closed() {
        let holds = [
            ("{ argument = '/branch', matches = '^release/' }", json!({ "branch": "release/1" })),
            ("{ argument = '/branch', matches = '^release/' }", json!({ "branch": ["main", "release/1"] })),
            ("{ argument = '/n', matches = '^7$' }", json!({ "n": 7 })),
            ("{ argument = '/branch', matches = '^x/', not = true }", json!({ "branch": "main" })),
            ("{ argument = '/branch', matches = '^x/', not = true }", json!({})),
            ("{ argument = '/n', number = '101..' }", json!({ "n": 101 })),
            ("{ argument = '/n', number = '101..' }", json!({ "n": " 1e3 " })),
            ("{ argument = '/n', number = '101..' }", json!({ "n": "0x3e8" })),
            ("{ argument = '/n', number = '1..10', not = true }", json!({ "n": 11 })),
            ("{ argument = '/u', host = '*.corp.test' }", json!({ "u": "https://a.corp.test/x" })),
            ("{ argument = '/u', host = ['10.0.0.0/8'] }", json!({ "u": "10.1.2.3:22" })),
            ("{ argument = '/u', host = '*.corp.test' }", json!({ "u": "https://a\\b" })),
            ("{ argument = '/p', path = '$WORKSPACE/secret/**' }", json!({ "p": "a/../secret/x" })),
            ("{ argument = '/p', path = '/etc/**' }", json!({ "p": "file:///etc/shadow" })),
            ("{ argument = '/p', path = '/etc/**' }", json!({ "p": "~other/x" })),
            ("{ argument = '', matches = 'drop' }", json!({ "a": { "b": ["drop"] } })),
            ("{ argument = '/a~1b', matches = '1' }", json!({ "a/b": "1" })),
        ];
        for (when, args) in holds {
            assert!(applies(when, &args), "{when} {args}");
        }
        let fails = [
            ("{ argument = '/branch', matches = '^release/' }", json!({ "branch": "main" })),
            ("{ argument = '/branch', matches = '^release/' }", json!({ "other": "release/1" })),
            ("{ argument = '/branch', matches = '^x/', not = true }", json!({ "branch": "x/1" })),
            ("{ argument = '/n', number = '101..' }", json!({ "n": 100.5 })),
            ("{ argument = '/n', number = '1..10', not = true }", json!({ "n": 10 })),
            ("{ argument = '/u', host = '*.corp.test' }", json!({ "u": "https://public.test/corp.test" })),
            ("{ argument = '/p', path = '$WORKSPACE/secret/**' }", json!({ "p": "/project/open" })),
            ("{ argument = '/p', path = '/etc/**' }", json!({ "p": null })),
        ];
        for (when, args) in fails {
            assert_eq!(judged(&rule(when), &args), Verdict::Allow, "{when} {args}");
        }
    }

    #[test]
    fn all_conditions_must_hold_and_the_strictest_rule_counts() {
        let both = "[{ argument = '/a', matches = 'x' }, { argument = '/b', number = '1..' }]";
        assert!(applies(both, &json!({ "a": "x", "b": 1 })));
        assert!(!applies(both, &json!({ "a": "x", "b": 0 })));
        let ask =
            "[[tools.rules]]\nwhen = { argument = '/a', matches = 'x' }\nthen = 'ask'\nmessage = 'really?'\n";
        assert!(matches!(judged(ask, &json!({ "a": "x" })), Verdict::Ask(text) if text.ends_with("really?")));
        let two = format!("{ask}{}", rule("{ argument = '/a', matches = 'xx' }"));
        assert!(matches!(judged(&two, &json!({ "a": "xx" })), Verdict::Deny(_)));
        let mut deep = json!("x");
        for _ in 0..70 {
            deep = json!([deep]);
        }
        assert!(applies("{ argument = '/a', matches = 'y' }", &json!({ "a": deep })));
    }
}
