//! What a source file says, in terms that no language owns: scopes, names, calls and tools.
//!
//! Facts only: nothing here knows an API or decides anything. Values are bounded in depth when they are made, so
//! that their readers may recurse.

use serde::{Deserialize, Serialize};

/// The languages that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// `.js`, `.mjs`, `.cjs`, `.jsx`
    JavaScript,
    /// `.kt`, `.kts`
    Kotlin,
    /// `.py`
    Python,
    /// `.rs`
    Rust,
    /// `.ts`, `.mts`, `.cts`, `.tsx`
    TypeScript,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 5] = [Self::JavaScript, Self::Kotlin, Self::Python, Self::Rust, Self::TypeScript];

    /// The name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JavaScript => "javascript",
            Self::Kotlin => "kotlin",
            Self::Python => "python",
            Self::Rust => "rust",
            Self::TypeScript => "typescript",
        }
    }

    /// Whether the two share modules and names.
    pub(crate) const fn is_ecma(self) -> bool {
        matches!(self, Self::JavaScript | Self::TypeScript)
    }
}

/// Bytes of a file, from the first up to, not including, the last.
pub(crate) type Extent = (usize, usize);

/// One file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub(crate) language: Language,
    /// The package it names itself part of, where the language has that.
    pub(crate) package: String,
    /// The first is the file itself.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) classes: Vec<Class>,
    pub(crate) imports: Vec<Import>,
    pub(crate) tools: Vec<ToolSite>,
    pub(crate) oddities: Vec<Oddity>,
}

/// What a scope is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum ScopeKind {
    File,
    Function,
    Lambda,
    /// The branch of a dispatcher that is for the tool of this name.
    Branch(String),
}

/// A function, a lambda, a branch or a whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub(crate) kind: ScopeKind,
    pub(crate) name: String,
    pub(crate) parent: usize,
    pub(crate) class: Option<usize>,
    pub(crate) params: Vec<Param>,
    /// Every value that a name is given, in the order of the text.
    pub(crate) bindings: Vec<(String, Value)>,
    /// Names with a declared type.
    pub(crate) types: Vec<(String, Value)>,
    pub(crate) calls: Vec<Call>,
    pub(crate) returns: Vec<Value>,
    pub(crate) return_type: Option<Value>,
    pub(crate) decorators: Vec<Value>,
    pub(crate) extent: Extent,
    /// Whether it is code of another language behind a declaration.
    pub(crate) foreign: bool,
}

/// A parameter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) kind: Option<Value>,
    pub(crate) default: Option<Value>,
}

/// A class, a struct with its `impl`s, or a module inside a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) scope: usize,
    /// The class or module it stands in.
    pub(crate) outer: Option<usize>,
    pub(crate) bases: Vec<Value>,
    /// What a field is given, and in which scope that is written.
    pub(crate) fields: Vec<(String, Value, usize)>,
    pub(crate) types: Vec<(String, Value)>,
    /// The scope that makes one.
    pub(crate) maker: Option<usize>,
}

/// `local` stands for `name` of `module`, or for the module itself; without `local`, everything of it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Import {
    pub(crate) scope: usize,
    pub(crate) local: Option<String>,
    pub(crate) module: String,
    pub(crate) name: Option<String>,
}

/// One call, or an access that counts as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) callee: Value,
    pub(crate) args: Vec<Arg>,
    pub(crate) extent: Extent,
}

/// An argument, perhaps by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arg {
    pub(crate) name: Option<String>,
    pub(crate) value: Value,
}

/// An expression, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Value {
    Text(String),
    Name(String),
    Member(Box<Self>, String),
    Index(Box<Self>, Box<Self>),
    Call(Box<Self>, Vec<Arg>),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    /// Parts that are written one behind the other.
    Join(Vec<Self>),
    /// One of these.
    Choice(Vec<Self>),
    /// The lambda that begins at this byte.
    Lambda(usize),
    Opaque,
}

impl Value {
    pub(crate) fn member(self, name: impl Into<String>) -> Self {
        Self::Member(Box::new(self), name.into())
    }

    pub(crate) fn name(name: impl Into<String>) -> Self {
        Self::Name(name.into())
    }

    /// `a.b.c` as a value.
    pub(crate) fn path(text: &str) -> Self {
        let mut names = text.split('.');
        let first = Self::name(names.next().unwrap_or_default());
        names.fold(first, |value, name| value.member(name))
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The last name of `a.b.c`.
    pub(crate) fn last_name(&self) -> Option<&str> {
        match self {
            Self::Name(name) | Self::Member(_, name) => Some(name),
            Self::Call(callee, _) => callee.last_name(),
            Self::Text(_)
            | Self::Index(..)
            | Self::List(_)
            | Self::Map(_)
            | Self::Join(_)
            | Self::Choice(_)
            | Self::Lambda(_)
            | Self::Opaque => None,
        }
    }
}

/// Where a tool is defined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolSite {
    pub(crate) name: Value,
    /// What the tool is called if its name cannot be told.
    pub(crate) fallback: String,
    pub(crate) handlers: Vec<Value>,
    /// Scopes that are its handlers, by their number.
    pub(crate) scopes: Vec<usize>,
    /// Whether the handler picks the tool by a name it is given.
    pub(crate) dispatches: bool,
    /// Whether it is an object with a name and a handler, which may be registered elsewhere.
    pub(crate) is_record: bool,
    /// The scope it is defined in.
    pub(crate) scope: usize,
    /// The policy beside it: its lines, or `None` where it has none.
    pub(crate) declared: Option<Vec<String>>,
    pub(crate) extent: Extent,
}

/// Something that was seen and cannot be followed, without being a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Oddity {
    pub(crate) reason: Reason,
    pub(crate) what: String,
    pub(crate) scope: usize,
    pub(crate) extent: Extent,
}

/// Why something is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Code that is made from text while it runs.
    Eval,
    /// A name that is looked up while it runs.
    Reflection,
    /// A module whose name is not in the source.
    DynamicImport,
    /// Code of another language.
    Native,
    /// A called package whose source is not part of what was read.
    Dependency,
    /// A known module's function that the data does not list.
    Unlisted,
    /// A value whose origin could not be followed.
    Alias,
    /// A file that could not be read as source.
    Unparsed,
    /// A file or a tree beyond the limits.
    TooLarge,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Eval,
        Self::Reflection,
        Self::DynamicImport,
        Self::Native,
        Self::Dependency,
        Self::Unlisted,
        Self::Alias,
        Self::Unparsed,
        Self::TooLarge,
    ];

    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eval => "eval",
            Self::Reflection => "reflection",
            Self::DynamicImport => "dynamic-import",
            Self::Native => "native",
            Self::Dependency => "dependency",
            Self::Unlisted => "unlisted",
            Self::Alias => "alias",
            Self::Unparsed => "unparsed",
            Self::TooLarge => "too-large",
        }
    }

    /// What it means, in one line.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Eval => "code that is made from text while it runs",
            Self::Reflection => "a name that is looked up while it runs",
            Self::DynamicImport => "a module whose name is not in the source",
            Self::Native => "code of another language",
            Self::Dependency => "a called package whose source was not read",
            Self::Unlisted => "a function of a known module that the data does not list",
            Self::Alias => "a value whose origin could not be followed",
            Self::Unparsed => "a file that could not be read as source",
            Self::TooLarge => "a file or a tree beyond the limits",
        }
    }
}
