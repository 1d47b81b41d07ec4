//! What a value turns out to be.

use std::rc::Rc;

use super::ScopeId;

/// Arguments, perhaps with names.
pub(crate) type Args = Rc<Vec<(Option<String>, Resolved)>>;

/// What a value stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Resolved {
    /// A text, or how one begins.
    Text {
        text: String,
        whole: bool,
    },
    /// A name that is defined elsewhere: a module, a function, a class.
    Outside(String),
    /// What calling such a name gives, or something of that class.
    Object {
        path: String,
        args: Args,
    },
    /// A method of such an object.
    Method {
        path: String,
        args: Args,
    },
    /// A function of the package, and what it is called on.
    Function(ScopeId, Option<Rc<Resolved>>),
    /// A class of the package.
    Class(usize, usize),
    /// One of its instances.
    Instance {
        unit: usize,
        class: usize,
        args: Args,
    },
    /// A file of the package.
    Module(usize),
    List(Rc<Vec<Resolved>>),
    Map(Rc<Vec<(String, Resolved)>>),
    Unknown,
}

impl Resolved {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), whole: true }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    pub(crate) fn object(path: impl Into<String>, args: Args) -> Self {
        Self::Object { path: path.into(), args }
    }

    /// How deep it is, so that it can be kept only up to a bound.
    pub(crate) fn depth(&self) -> usize {
        let of = |resolved_values: &mut dyn Iterator<Item = &Self>| {
            1 + resolved_values.map(Self::depth).max().unwrap_or(0)
        };
        match self {
            Self::Object { args, .. } | Self::Method { args, .. } | Self::Instance { args, .. } => {
                of(&mut args.iter().map(|(_, resolved)| resolved))
            }
            Self::List(resolved_values) => of(&mut resolved_values.iter()),
            Self::Map(resolved_values) => of(&mut resolved_values.iter().map(|(_, resolved)| resolved)),
            Self::Function(_, Some(this)) => 1 + this.depth(),
            Self::Text { .. }
            | Self::Outside(_)
            | Self::Function(_, None)
            | Self::Class(..)
            | Self::Module(_)
            | Self::Unknown => 1,
        }
    }
}
