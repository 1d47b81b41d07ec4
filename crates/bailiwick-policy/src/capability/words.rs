//! The small vocabularies of capabilities.

use std::fmt;

use super::parse_program;
use crate::finding::Finding;
use crate::path::AbsPath;

/// A set of actions that prints as their names, joined by commas.
macro_rules! actions {
    ($(#[$about:meta])+ $set:ident { $($(#[$doc:meta])+ $name:ident = $text:literal, $bits:expr;)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $set(u8);

        impl $set {
            $($(#[$doc])+ pub const $name: Self = Self($bits);)+

            /// Every action by its name.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($text, Self::$name)),+];

            /// The actions of either.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all of `other` is here.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl fmt::Display for $set {
            /// An action that another one here covers is not named.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let held = || Self::NAMES.iter().filter(|(_, action)| self.contains(*action));
                let covered = |action: Self| held().any(|(_, other)| *other != action && other.contains(action));
                let names = held().filter(|(_, action)| !covered(*action)).map(|(name, _)| *name);
                f.write_str(&names.collect::<Vec<_>>().join(","))
            }
        }
    };
}

actions! {
    /// File actions. `write` covers `create` and `delete`.
    FsActions {
        /// See names and contents.
        READ = "read", 1;
        /// Change, create and delete.
        WRITE = "write", 2 | 4 | 8;
        /// Only create.
        CREATE = "create", 4;
        /// Only delete.
        DELETE = "delete", 8;
    }
}

impl FsActions {
    /// Read, and map as code: `?code=true`. It is no action that can be named.
    pub const CODE: Self = Self(1 | 16);

    /// The same without leave to map code.
    #[must_use]
    pub const fn without_code(self) -> Self {
        Self(self.0 & !16)
    }
}

actions! {
    /// Environment actions.
    EnvActions {
        /// The caller's own variable is visible.
        READ = "read", 1;
        /// The host puts a value there, a secret for instance.
        INJECT = "inject", 2;
    }
}

actions! {
    /// Clock actions.
    ClockActions {
        /// The time of day.
        SYSTEM = "system", 1;
        /// Time zone data.
        TZDATA = "tzdata", 2;
    }
}

/// A program, by name or by file. The two are not comparable until a host resolves the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// Whatever this name is on the trusted search path.
    Name(Box<str>),
    /// Exactly this file.
    Path(AbsPath),
}

impl Program {
    /// Reads a bare program name or an absolute path.
    ///
    /// # Errors
    /// A finding for any other text.
    pub fn new(text: &str) -> Result<Self, Finding> {
        parse_program(text)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{path}"),
        }
    }
}

/// A local service that a tool may talk to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// The X11 display.
    X11,
    /// The Wayland display.
    Wayland,
    /// The system message bus.
    DbusSystem,
    /// The session message bus.
    DbusSession,
    /// One Unix socket.
    Unix(AbsPath),
    /// Unix sockets that the program itself makes, in the sandbox's private directories.
    Private,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X11 => f.write_str("x11"),
            Self::Wayland => f.write_str("wayland"),
            Self::DbusSystem => f.write_str("dbus:system"),
            Self::DbusSession => f.write_str("dbus:session"),
            Self::Unix(path) => write!(f, "unix:{path}"),
            Self::Private => f.write_str("private"),
        }
    }
}

/// The candidate that `text` was probably meant to be, if one is close.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (text.chars().count() / 3).clamp(1, 3);
    let measured = candidates.into_iter().map(|candidate| (distance(text, candidate), candidate));
    measured.filter(|(far, _)| *far <= limit).min_by_key(|(far, _)| *far).map(|(_, candidate)| candidate)
}

/// Edit distance, two letters in the wrong order being one slip, ignoring case; texts too long to be a slip of the pen are far apart.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 40 || b.len() > 40 {
        return usize::MAX;
    }
    let other: Vec<char> = b.to_lowercase().chars().collect();
    let (mut above, mut row): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=other.len()).collect());
    let mut before = None;
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
    for (index, letter) in a.to_lowercase().chars().enumerate() {
        let mut next = vec![index + 1];
        let mut left = None;
        for (column, own) in other.iter().enumerate() {
            let change = at(&row, column) + usize::from(letter != *own);
            let mut least = change.min(at(&row, column + 1) + 1).min(at(&next, column) + 1);
            if before == Some(*own) && left == Some(letter) {
                least = least.min(at(&above, column.saturating_sub(1)) + 1);
            }
            next.push(least);
            left = Some(*own);
        }
        (above, row) = (row, next);
        before = Some(letter);
    }
    row.last().copied().unwrap_or(usize::MAX)
}
