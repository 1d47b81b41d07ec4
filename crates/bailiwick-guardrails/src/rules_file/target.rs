//! The matching language: `capability`, `capability(regex)`, `capability(arg=regex)`, `verb(kind)` for a class of what
//! calls do; signed in `when`.

use std::fmt;

use super::{Class, RESERVED_SERVER};
use bailiwick_policy::finding::{Code, Finding, Span};

/// Which calls are meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Of which tools.
    pub subject: Subject,
    /// With which arguments.
    pub pattern: Pattern,
}

/// Of which tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// `*`: every tool.
    Any,
    /// Tools that count as this capability.
    Capability(String),
    /// Calls that do one of these, of whatever tool.
    Classes(Vec<Class>),
    /// A server's tool, or all of them.
    Tool {
        /// The server.
        server: String,
        /// The tool; all if absent.
        tool: Option<String>,
    },
}

/// What the arguments must look like.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// Anything.
    None,
    /// A pattern on the compact JSON of all arguments.
    Whole(String),
    /// A pattern on one argument.
    Argument {
        /// Its name.
        name: String,
        /// The pattern.
        regex: String,
    },
}

/// One entry of `when`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Whether a matching call must be there (`+`) or must not (`-`).
    pub present: bool,
    /// Whether only calls that succeeded count (`ok:`).
    pub succeeded: bool,
    /// Which calls.
    pub target: Target,
    /// Where it stands.
    pub span: Span,
}

impl Target {
    /// Reads a target. Spans are within `text`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Finding> {
        if let Some(classes) = classes(text) {
            return Ok(Self { subject: Subject::Classes(classes?), pattern: Pattern::None });
        }
        let (subject, pattern) = match text.split_once('(') {
            None => (text, Pattern::None),
            Some((subject, rest)) => {
                let Some(inner) = rest.strip_suffix(')') else {
                    let message = format!("`{text}` has a `(` and does not end with `)`");
                    return Err(wrong(text, message)
                        .help("write `capability(regex)`; inner parentheses need no escape"));
                };
                (subject, Pattern::parse(inner))
            }
        };
        Ok(Self { subject: Subject::parse(subject)?, pattern })
    }

    /// The pattern's text, if there is one.
    #[must_use]
    pub fn regex(&self) -> Option<&str> {
        match &self.pattern {
            Pattern::None => None,
            Pattern::Whole(regex) | Pattern::Argument { regex, .. } => Some(regex),
        }
    }
}

impl Subject {
    fn parse(text: &str) -> Result<Self, Finding> {
        let help =
            "write a capability such as `shell`, a tool such as `github:create_issue`, `github:*`, or `*`";
        match text.split_once(':') {
            _ if text == "*" => Ok(Self::Any),
            None if is_name(text) => Ok(Self::Capability(text.to_owned())),
            Some((RESERVED_SERVER, _)) => {
                let message =
                    format!("`{RESERVED_SERVER}:` says that a call succeeded, and stands in `when` only");
                Err(wrong(text, message).help("leave it out here"))
            }
            Some((server, "*")) if is_name(server) => {
                Ok(Self::Tool { server: server.to_owned(), tool: None })
            }
            Some((server, tool)) if is_name(server) && is_name(tool) => {
                Ok(Self::Tool { server: server.to_owned(), tool: Some(tool.to_owned()) })
            }
            None | Some(_) => {
                Err(wrong(text, format!("`{text}` names no capability and no tool")).help(help))
            }
        }
    }
}

impl Pattern {
    /// Argument-targeted if and only if the text before the first `=` is a plain name.
    fn parse(inner: &str) -> Self {
        match inner.split_once('=') {
            Some((name, regex)) if is_argument(name) => {
                Self::Argument { name: name.to_owned(), regex: regex.to_owned() }
            }
            Some(_) | None => Self::Whole(inner.to_owned()),
        }
    }
}

impl Condition {
    /// Reads an entry of `when`.
    pub(super) fn parse(text: &str) -> Result<Self, Finding> {
        let (present, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => {
                let message = format!("`{text}` has no sign");
                return Err(wrong(text, message).help("write `+target` for happened, `-target` for did not"));
            }
        };
        let marked = rest.strip_prefix(RESERVED_SERVER).and_then(|rest| rest.strip_prefix(':'));
        let target = Target::parse(marked.unwrap_or(rest))?;
        Ok(Self { present, succeeded: marked.is_some(), target, span: Span::new(0, text.len()) })
    }
}

/// The classes that a target names, if it starts with the verb of one: `reads(secret)`, `deletes(vital, outside)`.
fn classes(text: &str) -> Option<Result<Vec<Class>, Finding>> {
    let (verb, rest) = text.split_once('(').unwrap_or((text, ""));
    if !Class::is_verb(verb) {
        return None;
    }
    let known: Vec<String> = Class::kinds(verb).map(|kind| format!("`{verb}({kind})`")).collect();
    let help = format!("write {}, or several kinds with commas", known.join(" or "));
    let Some(kinds) = rest.strip_suffix(')') else {
        let message = format!("`{verb}` is a class of calls and needs its kind in parentheses");
        return Some(Err(wrong(text, message).help(help)));
    };
    let named = |kind: &str| {
        let kind = kind.trim();
        Class::named(verb, kind)
            .ok_or_else(|| wrong(text, format!("`{verb}` has no kind `{kind}`")).help(help.clone()))
    };
    Some(kinds.split(',').map(named).collect())
}

/// Letters, digits, `_`, `-` and `.`.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_argument(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn wrong(text: &str, message: String) -> Finding {
    Finding::new(Code::GuardrailTarget, message).at(Span::new(0, text.len()))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::None => write!(f, "{}", self.subject),
            Pattern::Whole(regex) => write!(f, "{}({regex})", self.subject),
            Pattern::Argument { name, regex } => write!(f, "{}({name}={regex})", self.subject),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Capability(name) => f.write_str(name),
            Self::Classes(classes) => {
                let verb = classes.first().map_or("", |class| class.verb());
                let kinds: Vec<&str> = classes.iter().map(|class| class.kind()).collect();
                write!(f, "{verb}({})", kinds.join(", "))
            }
            Self::Tool { server, tool } => write!(f, "{server}:{}", tool.as_deref().unwrap_or("*")),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.present { '+' } else { '-' };
        let mark = if self.succeeded { "ok:" } else { "" };
        write!(f, "{sign}{mark}{}", self.target)
    }
}
