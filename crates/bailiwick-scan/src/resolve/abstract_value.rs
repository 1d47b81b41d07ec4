//! What a value turns out to be.

use std::rc::Rc;

use super::ScopeId;

/// Arguments, perhaps with names.
pub(crate) type Args = Rc<Vec<(Option<String>, AbstractValue)>>;

/// What a value stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AbstractValue {
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
    Function(ScopeId, Option<Rc<AbstractValue>>),
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
    List(Rc<Vec<AbstractValue>>),
    Map(Rc<Vec<(String, AbstractValue)>>),
    Unknown,
}

impl AbstractValue {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), whole: true }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }

    pub(crate) fn object(path: impl Into<String>, args: Args) -> Self {
        Self::Object { path: path.into(), args }
    }

    /// How deep it is, for whoever keeps it.
    pub(crate) fn depth(&self) -> usize {
        let of = |abstract_values: &mut dyn Iterator<Item = &Self>| {
            1 + abstract_values.map(Self::depth).max().unwrap_or(0)
        };
        match self {
            Self::Object { args, .. } | Self::Method { args, .. } | Self::Instance { args, .. } => {
                of(&mut args.iter().map(|(_, abstract_value)| abstract_value))
            }
            Self::List(abstract_values) => of(&mut abstract_values.iter()),
            Self::Map(abstract_values) => {
                of(&mut abstract_values.iter().map(|(_, abstract_value)| abstract_value))
            }
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
