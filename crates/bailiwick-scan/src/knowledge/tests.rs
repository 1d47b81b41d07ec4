//! Every line of the data is a test: a small program is made that calls it, and the use has to be found.

use super::*;
use crate::parse::Grammar;
use crate::report::{Deeds, Report};
use crate::resolve::Package;

const PATH: &str = "/srv/target";
const HOST: &str = "host.example.com";
const URL: &str = "https://host.example.com/x";
const PROGRAM: &str = "target-program";
const VARIABLE: &str = "TARGET";

/// How a language writes what a test needs.
struct Spelling {
    language: Language,
    grammar: Grammar,
    separator: &'static str,
}

const SPELLINGS: [Spelling; 4] = [
    Spelling { language: Language::Python, grammar: Grammar::Python, separator: "." },
    Spelling { language: Language::TypeScript, grammar: Grammar::TypeScript, separator: "." },
    Spelling { language: Language::Rust, grammar: Grammar::Rust, separator: "::" },
    Spelling { language: Language::Kotlin, grammar: Grammar::Kotlin, separator: "." },
];

#[test]
fn the_files_read() {
    for (name, text) in ["python", "ecma", "rust", "kotlin"].iter().zip(FILES) {
        let known = Knowledge::read(text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(known.rules.len() > 40, "{name}");
    }
}

#[test]
fn every_line_is_found_in_a_program_made_of_it() {
    let (mut tried, mut missed) = (0, Vec::new());
    for spelling in &SPELLINGS {
        let known = for_language(spelling.language);
        for rule in known.rules.values().chain(known.families.values()).flatten() {
            let wanted: Vec<(UseKind, &str)> = rule.effects().collect();
            for (kind, place) in wanted {
                tried += 1;
                let programs = spelling.programs(rule, place, Some(kind));
                if !programs.iter().any(|text| finds(&spelling.scanned(text), kind, rule, place)) {
                    missed.push(format!("{} {kind:?} {place}\n{}", rule.path, programs.join("\n---\n")));
                }
            }
            if let Some(reason) = rule.unknown {
                tried += 1;
                let programs = spelling.programs(rule, "*", None);
                let seen = |text: &String| {
                    spelling.scanned(text).unknowns().iter().any(|unknown| unknown.reason() == reason)
                };
                if !programs.iter().any(seen) {
                    missed.push(format!("{} {reason:?}\n{}", rule.path, programs.join("\n---\n")));
                }
            }
        }
    }
    assert!(tried > 500, "only {tried} lines");
    assert!(missed.is_empty(), "{} of {tried} are not found:\n{}", missed.len(), missed.join("\n\n"));
}

#[test]
fn a_literal_module_is_no_unknown() {
    let python = &SPELLINGS[0];
    assert!(python.scanned("import importlib\nimportlib.import_module('json')").unknowns().is_empty());
    assert!(!python.scanned("import importlib\nimportlib.import_module(x)").unknowns().is_empty());
}

#[test]
fn names_without_a_rule_stand_where_the_data_says() {
    let known = for_language(Language::Python);
    for (path, standing) in [
        ("os.path.join", Standing::Pure),
        ("os.nothing", Standing::Known),
        ("json.loads", Standing::Pure),
        ("jsonx.loads", Standing::Foreign),
    ] {
        assert_eq!(known.standing(path), standing, "{path}");
    }
    assert_eq!(for_language(Language::Rust).standing("std.fs.new_function"), Standing::Known);
    assert_eq!(
        for_language(Language::JavaScript).standing("@modelcontextprotocol/sdk/x.js.Y"),
        Standing::Pure
    );
}

fn finds(deeds: &Deeds, kind: UseKind, rule: &Rule, place: &str) -> bool {
    let named = !place.contains('*') && !rule.latent && !rule.chain;
    let target = match kind {
        UseKind::Read | UseKind::Write | UseKind::Create | UseKind::Delete => PATH,
        UseKind::Net => HOST,
        UseKind::Exec if rule.shell.as_deref() == Some("always") => "sh",
        UseKind::Exec => place.strip_prefix('=').unwrap_or(PROGRAM),
        UseKind::Env => VARIABLE,
        UseKind::Tzdata => "clock",
    };
    let kinds =
        if rule.chain || rule.mode.is_some() { &[UseKind::Read, UseKind::Write][..] } else { &[kind][..] };
    deeds.uses().iter().any(|one| {
        kinds.contains(&one.kind()) && (!named || one.capability().is_some_and(|line| line.contains(target)))
    })
}

impl Spelling {
    fn scanned(&self, text: &str) -> Deeds {
        let units = [crate::syntax::read(self.grammar, text)];
        let paths = [std::path::PathBuf::from("a")];
        let found = crate::attribute::attribute(&Package::new(&units, &paths), None, &|_, _| {});
        let report = Report { server: found.server, ..Report::default() };
        report.server().clone()
    }

    /// Programs any of which should show the use: the path may be a function, a method or a method of a result.
    fn programs(&self, rule: &Rule, place: &str, kind: Option<UseKind>) -> Vec<String> {
        let name = rule.name.replace("::", ".").replace('*', "anything");
        let literal = match kind {
            Some(UseKind::Net) if rule.port.is_some() || rule.scheme.is_some() => HOST,
            Some(UseKind::Net) => URL,
            Some(UseKind::Exec) => PROGRAM,
            Some(UseKind::Env) => VARIABLE,
            _ => PATH,
        };
        let first = place.split_whitespace().next().unwrap_or_default();
        let made_of = match first.strip_prefix("receiver") {
            Some(inner) => self.args(inner.strip_prefix('.').unwrap_or("0"), literal),
            None => String::new(),
        };
        let args = if first.starts_with("receiver") { String::new() } else { self.args(first, literal) };
        let root = self.root(&rule.module);
        if name == "()" {
            return vec![self.program(&rule.module, &format!("{root}({args})"))];
        }
        let full = |name: &str| {
            if root.is_empty() {
                name.replace('.', self.separator)
            } else {
                format!("{root}{}{}", self.separator, name.replace('.', self.separator))
            }
        };
        if let Some(object) = name.strip_suffix(".[anything]") {
            let whole = if self.language == Language::TypeScript { "process.env" } else { &*full(object) };
            return vec![self.program(&rule.module, &format!("print({whole})"))];
        }
        if let Some(object) = name.strip_suffix(".[]") {
            let key = if place == "0" { format!("\"{literal}\"") } else { String::new() };
            return vec![self.program(&rule.module, &format!("{}[{key}]", full(object)))];
        }
        let mut calls = vec![format!("{}({args})", full(&name)), format!("{}({made_of}{args})", full(&name))];
        if let Some((owner, method)) = name.rsplit_once('.') {
            let new = if self.language == Language::Rust { "::new" } else { "" };
            calls.push(format!("{}{new}({made_of}).{method}({args})", full(owner)));
        }
        calls.iter().map(|call| self.program(&rule.module, call)).collect()
    }

    fn root(&self, module: &str) -> String {
        match (self.language, module) {
            (_, "builtins" | "globalThis") => String::new(),
            (Language::TypeScript, _) => "m".to_owned(),
            _ => module.replace('.', self.separator),
        }
    }

    fn program(&self, module: &str, call: &str) -> String {
        match self.language {
            Language::Rust => format!("fn f(given: u8) {{ {call}; }}"),
            Language::Kotlin => format!("fun f(given: Int) {{ {call} }}"),
            _ if matches!(module, "builtins" | "globalThis") => call.to_owned(),
            Language::Python => format!("import {module}\n{call}"),
            Language::JavaScript | Language::TypeScript => {
                format!("import * as m from \"{module}\";\n{call};")
            }
        }
    }

    /// Arguments with the literal at a place.
    fn args(&self, place: &str, literal: &str) -> String {
        let (at, key) = place.split_once('.').map_or((place, None), |(at, key)| (at, Some(key)));
        let value = match key {
            Some(key) => format!("{{ {key}: \"{literal}\" }}"),
            None => format!("\"{literal}\""),
        };
        match at.parse::<usize>() {
            Ok(index) => {
                let mut args = vec!["\"/filler\"".to_owned(); index];
                args.push(value);
                args.join(", ")
            }
            Err(_) if at.starts_with(|c: char| c.is_alphabetic()) && self.language != Language::Rust => {
                let sign = if self.language == Language::Kotlin { " = " } else { "=" };
                format!("{at}{sign}{value}")
            }
            Err(_) => "given".to_owned(),
        }
    }
}
