//! `[variables]`: path variables that the server's own command line gives their values.
//!
//! A manifest that is shipped cannot know where a person keeps things; the arguments of the server say it. Reading the
//! words is pure; what they mean on a host, and whether a value may be granted at all, is decided at the edge.

use std::collections::BTreeMap;

use bailiwick_policy::capability::{Capability, check_env_name, is_loader_variable};
use bailiwick_policy::finding::{Code, Collector, Finding, Findings, Span};
use bailiwick_policy::path::{AbsPath, Root};

use super::{Declared, Manifest, Stance, ToolPolicy};
use crate::document::{Fields, Node, TableEntry, Value};

/// Variables that every host gives a value, so that no manifest may.
const HOSTS_OWN: [&str; 2] = ["HOME", "WORKSPACE"];

/// One path variable, and where its values stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub(crate) source: VariableSource,
    pub(crate) parent: bool,
    pub(crate) default: Option<Vec<String>>,
    pub(crate) span: Span,
}

/// Where the values of a variable stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableSource {
    /// In the arguments that are neither flags nor values of flags, from one on.
    Argument {
        /// The first of them, counted from 0.
        first: usize,
        /// Whether all that follow count too.
        onwards: bool,
    },
    /// Behind a flag, by any of its names.
    Flag(Vec<String>),
    /// In an environment variable, which the server is given with the value that was taken.
    Env(String),
}

impl Variable {
    /// Where its values stand.
    #[must_use]
    pub const fn source(&self) -> &VariableSource {
        &self.source
    }

    /// Whether the directory that a value lies in is meant.
    #[must_use]
    pub const fn is_parent(&self) -> bool {
        self.parent
    }
}

/// The values of one variable, as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundValues {
    /// The values; none if the default is none.
    pub words: Vec<String>,
    /// Whether they are the manifest's default.
    pub is_default: bool,
}

impl Manifest {
    /// The variables that the server's command line gives their values.
    #[must_use]
    pub const fn variables(&self) -> &BTreeMap<String, Variable> {
        &self.variables
    }

    /// The values that a server's own arguments and the caller's environment give the variables.
    ///
    /// # Errors
    /// A finding for each variable that has no value and no default.
    ///
    /// # Examples
    /// ```
    /// use bailiwick_manifest::Manifest;
    ///
    /// let text = "name = 'f'\nversion = '1'\nserver_capabilities = ['fs:read:$ROOTS']\n\
    ///             [variables]\nROOTS = { argument = '0..' }\n";
    /// let manifest = Manifest::parse(text)?;
    /// let bound = manifest.bound_values(&["a".to_owned(), "/b".to_owned()], |_| None)?;
    /// assert_eq!(bound["ROOTS"].words, ["a", "/b"]);
    /// assert!(manifest.bound_values(&[], |_| None).is_err());
    /// # Ok::<(), bailiwick_policy::finding::Findings>(())
    /// ```
    pub fn bound_values(
        &self,
        arguments: &[String],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<BTreeMap<String, BoundValues>, Findings> {
        let flags = self.variables.values().filter_map(|variable| match &variable.source {
            VariableSource::Flag(names) => Some(names.as_slice()),
            VariableSource::Argument { .. } | VariableSource::Env(_) => None,
        });
        let words = ServerWords::read(arguments, &flags.flatten().map(String::as_str).collect::<Vec<_>>());
        let mut found = Collector::default();
        let mut bound = BTreeMap::new();
        for (name, variable) in &self.variables {
            let given = match &variable.source {
                VariableSource::Argument { first, onwards } => words.positional(*first, *onwards),
                VariableSource::Flag(names) => words.behind(names),
                VariableSource::Env(env) => {
                    environment(env).into_iter().filter(|value| !value.is_empty()).collect()
                }
            };
            let is_default = given.is_empty();
            match (is_default, &variable.default) {
                (false, _) => drop(bound.insert(name.clone(), BoundValues { words: given, is_default })),
                (true, Some(default)) => {
                    drop(bound.insert(name.clone(), BoundValues { words: default.clone(), is_default }));
                }
                (true, None) => found.push(unbound(name, variable)),
            }
        }
        found.finish(bound)
    }

    /// The same manifest, where these variables have these values: a line that names one is there once for each value.
    #[must_use]
    pub fn with_values(mut self, values: &BTreeMap<String, Vec<AbsPath>>) -> Self {
        self.server = expanded(&self.server, values);
        for tool in &mut self.tools {
            tool.capabilities = tool.capabilities.as_ref().map(|lines| expanded(lines, values));
            if let Some(policy) = &mut tool.policy {
                expand_policy(policy, values);
            }
            tool.rules = tool.rules.iter().map(|rule| rule.with_values(values)).collect();
        }
        self.variables.retain(|name, _| !values.contains_key(name));
        self
    }

    /// The same manifest without those of its variables that `drops` names.
    #[must_use]
    pub fn without_variables(mut self, drops: impl Fn(&str) -> bool) -> Self {
        self.variables.retain(|name, _| !drops(name));
        self
    }

    /// The same manifest, where the server is given this environment variable.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same manifest with this line of the server's and no other, of it or of any tool.
    #[must_use]
    pub fn with_only(mut self, line: Capability) -> Self {
        self.server = vec![Declared { value: line, span: Span::new(0, 0) }];
        self.tools.clear();
        self
    }

    /// The same manifest without any line that hands a variable of the caller to the server.
    #[must_use]
    pub fn without_injection(mut self) -> Self {
        let keeps =
            |line: &Declared<Capability>| line.value.injected().is_none() && line.value.brokered().is_none();
        self.server.retain(keeps);
        for lines in self.tools.iter_mut().filter_map(|tool| tool.capabilities.as_mut()) {
            lines.retain(keeps);
        }
        self
    }
}

fn unbound(name: &str, variable: &Variable) -> Finding {
    let (message, help) = match &variable.source {
        VariableSource::Argument { first, .. } => (
            format!("`${name}` is argument {first} of the server, which is not there"),
            "add it to the server's command".to_owned(),
        ),
        VariableSource::Flag(names) => {
            let flag = names.first().map_or("", String::as_str);
            (format!("`${name}` stands behind `{flag}`, which is not there"), format!("add `{flag} PATH`"))
        }
        VariableSource::Env(env) => (
            format!("`${name}` is the value of the environment variable `{env}`, which is not set"),
            format!("set `{env}`"),
        ),
    };
    Finding::new(Code::PathVariableUnresolved, message)
        .at(variable.span)
        .help(format!("{help}, or give it with `--set {name}=/absolute/path`"))
}

/// The words behind a server's program.
struct ServerWords {
    positional: Vec<String>,
    flags: Vec<(String, String)>,
}

impl ServerWords {
    fn read(arguments: &[String], flags: &[&str]) -> Self {
        let mut words = Self { positional: Vec::new(), flags: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                words.positional.extend(rest.by_ref().cloned());
            } else if flags.contains(&word.as_str()) {
                words.flags.extend(rest.next().map(|value| (word.clone(), value.clone())));
            } else if let Some((flag, value)) = word.split_once('=').filter(|(flag, _)| flags.contains(flag))
            {
                words.flags.push((flag.to_owned(), value.to_owned()));
            } else if !word.starts_with('-') {
                words.positional.push(word.clone());
            }
        }
        words
    }

    fn positional(&self, first: usize, onwards: bool) -> Vec<String> {
        let most = if onwards { usize::MAX } else { 1 };
        self.positional.iter().skip(first).take(most).cloned().collect()
    }

    fn behind(&self, names: &[String]) -> Vec<String> {
        let named = self.flags.iter().filter(|(flag, _)| names.contains(flag));
        named.map(|(_, value)| value.clone()).collect()
    }
}

/// The path variable that a line starts with.
fn variable_of(line: &Capability) -> Option<&str> {
    let Capability::Fs { path, .. } = line else { return None };
    if let Root::Variable(name) = path.root() { Some(name) } else { None }
}

pub(super) fn expanded(
    lines: &[Declared<Capability>],
    values: &BTreeMap<String, Vec<AbsPath>>,
) -> Vec<Declared<Capability>> {
    let each =
        lines.iter().flat_map(|line| match variable_of(&line.value).and_then(|name| values.get(name)) {
            None => vec![line.clone()],
            Some(values) => {
                // A line that has its value resolves; there is no other finding.
                let resolved =
                    values.iter().filter_map(|value| line.value.resolve(|_| Some(value.clone())).ok());
                resolved.map(|value| Declared { value, span: line.span }).collect()
            }
        });
    each.collect()
}

fn expand_policy(policy: &mut ToolPolicy, values: &BTreeMap<String, Vec<AbsPath>>) {
    for stance in [&mut policy.read, &mut policy.write] {
        if let Stance::Only(lines) = stance {
            let lines = expanded(lines, values);
            *stance = if lines.is_empty() { Stance::None } else { Stance::Only(lines) };
        }
    }
}

pub(super) fn read_variables(node: &Node<'_>, found: &mut Collector) -> BTreeMap<String, Variable> {
    let entries = found.keep(node.table(Code::ManifestVariable)).unwrap_or_default();
    let read = entries.iter().filter_map(|entry| {
        let name = check_env_name(&entry.key).and_then(|()| own_name(&entry.key));
        found.keep(name.map_err(|finding| finding.at(entry.key_span)))?;
        Some((entry.key.to_string(), read_variable(entry, found)?))
    });
    read.collect()
}

fn own_name(name: &str) -> Result<(), Finding> {
    if HOSTS_OWN.contains(&name) {
        return Err(Finding::new(Code::ManifestVariable, format!("`${name}` has its value from the host"))
            .help("call the variable something else"));
    }
    Ok(())
}

fn read_variable(entry: &TableEntry<'_>, found: &mut Collector) -> Option<Variable> {
    let mut fields = found.keep(Fields::from_node(&entry.node, "a variable", Code::ManifestVariable))?;
    let (argument, flag, env) =
        (fields.optional("argument"), fields.optional("flag"), fields.optional("env"));
    let parent = fields.optional("parent").and_then(|node| found.keep(node.flag(Code::ManifestVariable)));
    let default = fields.optional("default").map(|node| words(node, found));
    fields.finish(Code::ManifestUnknownField, found);
    let source = match (argument, flag, env) {
        (Some(node), None, None) => read_argument(node),
        (None, Some(node), None) => read_flags(node, found),
        (None, None, Some(node)) => read_env_source(node),
        _ => Err(Finding::new(Code::ManifestVariable, "a variable has one source")
            .at(entry.node.span)
            .help("write one of `argument = \"0..\"`, `flag = \"--name\"` and `env = \"NAME\"`")),
    };
    let source = found.keep(source)?;
    Some(Variable { source, parent: parent.unwrap_or(false), default, span: entry.key_span })
}

fn read_argument(node: &Node<'_>) -> Result<VariableSource, Finding> {
    let text = node.text(Code::ManifestVariable)?;
    let (number, onwards) = text.strip_suffix("..").map_or((text, false), |number| (number, true));
    let is_number = (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let first = number.parse().ok().filter(|_| is_number);
    first.map(|first| VariableSource::Argument { first, onwards }).ok_or_else(|| {
        Finding::new(Code::ManifestVariable, format!("`{}` is not an argument", text.escape_debug()))
            .at(node.span)
            .help("write `\"0\"` for the first one, or `\"0..\"` for all from there on")
    })
}

fn read_flags(node: &Node<'_>, found: &mut Collector) -> Result<VariableSource, Finding> {
    let names = words(node, found);
    let plain =
        |name: &String| name.len() > 1 && name.starts_with('-') && name != "--" && !name.contains('=');
    if !names.is_empty() && names.iter().all(plain) {
        return Ok(VariableSource::Flag(names));
    }
    Err(Finding::new(Code::ManifestVariable, "this is not a flag")
        .at(node.span)
        .help("write it as the server takes it: `\"--repository\"`, or a list of its names"))
}

fn read_env_source(node: &Node<'_>) -> Result<VariableSource, Finding> {
    let name = node.text(Code::ManifestVariable)?;
    check_env_name(name).map_err(|finding| finding.at(node.span))?;
    if is_loader_variable(name) {
        return Err(Finding::new(Code::EnvLoader, format!("`{name}` makes programs load or choose code"))
            .at(node.span)
            .help("no path can be taken from it"));
    }
    Ok(VariableSource::Env(name.to_owned()))
}

/// A string, or a list of strings, without NUL.
fn words(node: &Node<'_>, found: &mut Collector) -> Vec<String> {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        Value::Text { .. } => std::slice::from_ref(node),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Table(_) => {
            found.push(node.expected(Code::ManifestVariable, "a string or a list of strings"));
            return Vec::new();
        }
    };
    let texts = items.iter().filter_map(|item| found.keep(super::read::plain_text(item, "a word")));
    texts.map(str::to_owned).collect()
}
