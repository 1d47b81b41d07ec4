//! `[[tools.rules]]`: arguments that a tool may not be called with, or only with a person's consent.
//!
//! A rule says where to look (a JSON pointer into the arguments), what to look for (a regular expression, a range of
//! numbers, hosts or paths) and what follows (`deny` or `ask`). Rules only refuse or ask; nothing here grants.
//! Reading them is pure: what a path leads to is found out where a call is judged.

use std::collections::BTreeMap;
use std::fmt;

use bailiwick_policy::capability::Capability;
use bailiwick_policy::finding::{Code, Collector, Finding};
use bailiwick_policy::net::{HostPattern, parse_host_pattern};
use bailiwick_policy::path::{AbsPath, PathPattern};

use super::read::plain_text;
use super::variables::expanded;
use super::{Declared, policy};
use crate::document::{Fields, Node, Value};

/// The most rules of one tool.
const MAX_RULES: usize = 100;

/// The most conditions of one rule.
const MAX_CONDITIONS: usize = 16;

/// The longest regular expression and the longest pointer, in bytes.
const MAX_TEXT: usize = 1_000;

/// One rule: if every condition holds, the call is refused or a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentRule {
    pub(crate) when: Vec<Condition>,
    pub(crate) then: RuleEffect,
    pub(crate) message: String,
}

/// What follows from a rule that applies. Ordered: refusing is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleEffect {
    /// A person is asked.
    Ask,
    /// The call is refused.
    Deny,
}

/// Something about one argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub(crate) argument: String,
    pub(crate) test: ArgumentTest,
    pub(crate) negated: bool,
}

/// What an argument is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentTest {
    /// A regular expression that matches somewhere in it.
    Matches(String),
    /// Numbers.
    Number(NumberRange),
    /// Hosts, of a URL or by themselves: any of these.
    Host(Vec<HostPattern>),
    /// Paths: any of these.
    Path(Vec<Declared<Capability>>),
}

/// Numbers from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRange {
    min: Option<f64>,
    max: Option<f64>,
}

impl ArgumentRule {
    /// All of these must hold for the rule to apply.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.when
    }

    /// What follows then.
    #[must_use]
    pub const fn effect(&self) -> RuleEffect {
        self.then
    }

    /// Why, in its author's words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether this rule applies to every call that `other` applies to, and is at least as strict.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.then >= other.then
            && self.when.iter().all(|condition| other.when.iter().any(|one| one.is_like(condition)))
    }

    /// The lines of its paths.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Declared<Capability>> {
        self.when.iter().flat_map(|condition| match &condition.test {
            ArgumentTest::Path(lines) => lines.as_slice(),
            ArgumentTest::Matches(_) | ArgumentTest::Number(_) | ArgumentTest::Host(_) => &[],
        })
    }

    /// The same rule with its paths changed.
    pub(crate) fn with_lines<E>(
        &self,
        change: impl Fn(&[Declared<Capability>]) -> Result<Vec<Declared<Capability>>, E>,
    ) -> Result<Self, E> {
        let mut changed = self.clone();
        for condition in &mut changed.when {
            if let ArgumentTest::Path(lines) = &mut condition.test {
                *lines = change(lines)?;
            }
        }
        Ok(changed)
    }

    /// The same rule, where path variables have these values.
    pub(super) fn with_values(&self, values: &BTreeMap<String, Vec<AbsPath>>) -> Self {
        let expand =
            |lines: &[Declared<Capability>]| Ok::<_, std::convert::Infallible>(expanded(lines, values));
        self.with_lines(expand).unwrap_or_else(|never| match never {})
    }
}

impl RuleEffect {
    const ALL: [(&'static str, Self); 2] = [("ask", Self::Ask), ("deny", Self::Deny)];

    /// The word that a manifest has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Condition {
    /// Where the argument stands: a JSON pointer.
    #[must_use]
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// What it is compared with.
    #[must_use]
    pub const fn test(&self) -> &ArgumentTest {
        &self.test
    }

    /// Whether the condition holds where the comparison does not.
    #[must_use]
    pub const fn is_negated(&self) -> bool {
        self.negated
    }

    /// The names of the fields on the way to the argument.
    pub fn fields(&self) -> impl Iterator<Item = String> {
        self.argument.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"))
    }

    /// Whether it says the same, wherever it stands in the text.
    fn is_like(&self, other: &Self) -> bool {
        self.argument == other.argument
            && self.negated == other.negated
            && self.test.canonical() == other.test.canonical()
    }
}

impl ArgumentTest {
    /// The key that a manifest has for it.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Matches(_) => "matches",
            Self::Number(_) => "number",
            Self::Host(_) => "host",
            Self::Path(_) => "path",
        }
    }

    /// Its paths, once every variable has its value.
    pub fn paths(&self) -> impl Iterator<Item = &PathPattern> {
        let lines = if let Self::Path(lines) = self { lines.as_slice() } else { &[] };
        lines
            .iter()
            .filter_map(|line| if let Capability::Fs { path, .. } = &line.value { Some(path) } else { None })
    }
}

impl NumberRange {
    /// Whether a number is in it.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        self.min.is_none_or(|min| number >= min) && self.max.is_none_or(|max| number <= max)
    }

    fn parse(text: &str) -> Option<Self> {
        let read = |side: &str| side.parse::<f64>().ok().filter(|number| number.is_finite());
        let bound = |side: &str| if side.is_empty() { Some(None) } else { read(side).map(Some) };
        let (min, max) = match text.split_once("..") {
            Some((low, high)) => (bound(low)?, bound(high)?),
            None => (Some(read(text)?), Some(read(text)?)),
        };
        let is_range = match (min, max) {
            (None, None) => false,
            (Some(min), Some(max)) => min <= max,
            (Some(_), None) | (None, Some(_)) => true,
        };
        is_range.then_some(Self { min, max })
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |bound: Option<f64>| bound.map(|number| number.to_string()).unwrap_or_default();
        write!(f, "{}..{}", side(self.min), side(self.max))
    }
}

pub(super) fn read_rules(node: &Node<'_>, found: &mut Collector) -> Vec<ArgumentRule> {
    let items = found.keep(node.list(Code::ManifestRule)).unwrap_or_default();
    if items.len() > MAX_RULES {
        let message = format!("more than {MAX_RULES} rules for one tool");
        found.push(
            Finding::new(Code::ManifestTooMany, message).at(node.span).help("write fewer, wider rules"),
        );
    }
    items.iter().take(MAX_RULES).filter_map(|item| read_rule(item, found)).collect()
}

fn read_rule(node: &Node<'_>, found: &mut Collector) -> Option<ArgumentRule> {
    let mut fields = found.keep(Fields::from_node(node, "a rule", Code::ManifestRule))?;
    let when = found.keep(fields.required("when", Code::ManifestRule));
    let when = when.and_then(|node| read_conditions(node, found));
    let then = found.keep(fields.required("then", Code::ManifestRule));
    let then = then.and_then(|node| found.keep(read_effect(node)));
    let message = found.keep(fields.required("message", Code::ManifestRule));
    let message = message.and_then(|node| found.keep(plain_text(node, "`message`"))).map(str::to_owned);
    fields.finish(Code::ManifestUnknownField, found);
    Some(ArgumentRule { when: when?, then: then?, message: message? })
}

fn read_effect(node: &Node<'_>) -> Result<RuleEffect, Finding> {
    let text = node.text(Code::ManifestRule)?;
    RuleEffect::ALL.iter().find(|(name, _)| *name == text).map(|(_, effect)| *effect).ok_or_else(|| {
        Finding::new(Code::ManifestRule, format!("`{}` is not what a rule can do", text.escape_debug()))
            .at(node.span)
            .help("write `deny` or `ask`: a rule grants nothing")
    })
}

/// One condition, or a list of them.
fn read_conditions(node: &Node<'_>, found: &mut Collector) -> Option<Vec<Condition>> {
    let items = one_or_more(node);
    if items.is_empty() || items.len() > MAX_CONDITIONS {
        let message = format!("a rule has 1 to {MAX_CONDITIONS} conditions");
        let help = "write `when = { argument = \"/name\", matches = \"…\" }`, or a list of such tables";
        found.push(Finding::new(Code::ManifestRule, message).at(node.span).help(help));
        return None;
    }
    let read: Vec<_> = items.iter().map(|item| read_condition(item, found)).collect();
    read.into_iter().collect()
}

fn read_condition(node: &Node<'_>, found: &mut Collector) -> Option<Condition> {
    let mut fields = found.keep(Fields::from_node(node, "a condition", Code::ManifestRule))?;
    let argument = found.keep(fields.required("argument", Code::ManifestRule));
    let argument = argument.and_then(|node| found.keep(read_pointer(node)));
    let tests: [Option<&Node<'_>>; 4] = ["matches", "number", "host", "path"].map(|key| fields.optional(key));
    let negated = fields.optional("not").map(|node| found.keep(node.flag(Code::ManifestRule)));
    fields.finish(Code::ManifestUnknownField, found);
    let test = match tests {
        [Some(node), None, None, None] => read_regex(node),
        [None, Some(node), None, None] => read_range(node),
        [None, None, Some(node), None] => read_host(node),
        [None, None, None, Some(node)] => read_path(node),
        _ => Err(Finding::new(Code::ManifestRule, "a condition compares an argument with one thing")
            .at(node.span)
            .help("write one of `matches`, `number`, `host` and `path`")),
    };
    let test = found.keep(test);
    // A flag that cannot be read is a finding; whatever it would have been.
    Some(Condition { argument: argument?, test: test?, negated: negated.flatten().unwrap_or(false) })
}

fn read_pointer(node: &Node<'_>) -> Result<String, Finding> {
    let text = plain_text(node, "`argument`")?;
    let mut escapes = text.split('~').skip(1);
    let is_pointer = (text.is_empty() || text.starts_with('/'))
        && text.len() <= MAX_TEXT
        && escapes.all(|rest| rest.starts_with(['0', '1']));
    if is_pointer {
        return Ok(text.to_owned());
    }
    let message = format!("`{}` does not say where an argument stands", text.escape_debug());
    let help = if text.starts_with('/') {
        "write `~` in a name as `~0` and `/` as `~1`".to_owned()
    } else {
        format!("write `/{text}`: a JSON pointer into the arguments, such as `/branch` or `/options/depth`")
    };
    Err(Finding::new(Code::ManifestRule, message).at(node.span).help(help))
}

fn read_regex(node: &Node<'_>) -> Result<ArgumentTest, Finding> {
    let text = plain_text(node, "`matches`")?;
    let wrong =
        |message: String, help: &str| Finding::new(Code::ManifestRule, message).at(node.span).help(help);
    if text.len() > MAX_TEXT {
        return Err(wrong(format!("a pattern of more than {MAX_TEXT} bytes"), "write several rules"));
    }
    match regex_syntax::parse(text) {
        Ok(_) => Ok(ArgumentTest::Matches(text.to_owned())),
        Err(error) => {
            let reason = match &error {
                regex_syntax::Error::Parse(error) => error.kind().to_string(),
                regex_syntax::Error::Translate(error) => error.kind().to_string(),
                _ => "it cannot be read".to_owned(),
            };
            Err(wrong(
                format!("`{}` is not a regular expression: {reason}", text.escape_debug()),
                "write it as the `regex` crate reads it; single quotes keep backslashes in TOML",
            ))
        }
    }
}

fn read_range(node: &Node<'_>) -> Result<ArgumentTest, Finding> {
    let text = node.text(Code::ManifestRule)?;
    NumberRange::parse(text).map(ArgumentTest::Number).ok_or_else(|| {
        Finding::new(Code::ManifestRule, format!("`{}` is not a range of numbers", text.escape_debug()))
            .at(node.span)
            .help("write `\"1..100\"`, `\"101..\"`, `\"..0\"` or one number; both ends are in it")
    })
}

fn read_host(node: &Node<'_>) -> Result<ArgumentTest, Finding> {
    let each =
        one_or_more(node).iter().map(|item| item.place(parse_host_pattern(item.text(Code::ManifestRule)?)));
    each.collect::<Result<_, _>>().map(ArgumentTest::Host)
}

fn read_path(node: &Node<'_>) -> Result<ArgumentTest, Finding> {
    let each = one_or_more(node).iter().map(|item| {
        let value = item.place(policy::read_path(plain_text(item, "`path`")?))?;
        Ok(Declared { value, span: item.span })
    });
    each.collect::<Result<_, _>>().map(ArgumentTest::Path)
}

/// The entries of a list, or the one value that stands where a list may.
fn one_or_more<'n, 't>(node: &'n Node<'t>) -> &'n [Node<'t>] {
    match &node.value {
        Value::List(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text { .. } | Value::Table(_) => {
            std::slice::from_ref(node)
        }
    }
}
