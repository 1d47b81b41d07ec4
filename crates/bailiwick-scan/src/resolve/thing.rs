//! What a value turns out to be.

use std::rc::Rc;

use super::ScopeId;

/// Arguments, perhaps with names.
pub(crate) type Args = Rc<Vec<(Option<String>, Thing)>>;

/// What a value stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Thing {
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
    Function(ScopeId, Option<Rc<Thing>>),
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
    List(Rc<Vec<Thing>>),
    Map(Rc<Vec<(String, Thing)>>),
    Unknown,
}

impl Thing {
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
        let of = |things: &mut dyn Iterator<Item = &Self>| 1 + things.map(Self::depth).max().unwrap_or(0);
        match self {
            Self::Object { args, .. } | Self::Method { args, .. } | Self::Instance { args, .. } => {
                of(&mut args.iter().map(|(_, thing)| thing))
            }
            Self::List(things) => of(&mut things.iter()),
            Self::Map(things) => of(&mut things.iter().map(|(_, thing)| thing)),
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
