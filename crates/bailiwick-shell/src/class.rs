//! The names of what calls do: `reads(secret)`, `deletes(outside)`, …

use std::fmt;

/// Every class: the verb, the kind, and what it means.
pub const CLASSES: &[(&str, &str, &str)] = &[
    ("changes", "settings", "settings of the system or of every project are changed, or packages removed"),
    ("changes", "shared", "something that others use is published, deployed, changed or deleted"),
    (
        "deletes",
        "outside",
        "files outside of the project and of scratch directories are deleted or moved away",
    ),
    (
        "deletes",
        "unknown",
        "files are deleted whose names are only known when it runs, by a search or from a pipe",
    ),
    ("deletes", "vital", "the system, a home, the project as a whole or its `.git` is deleted"),
    ("exhausts", "machine", "the machine is filled, flooded or mined with"),
    (
        "gains",
        "privilege",
        "privileges are gained: a root shell, set-user-ID files, accounts, privileged containers",
    ),
    ("hides", "traces", "histories and logs are switched off, changed or deleted"),
    ("loses", "data", "data in a database is dropped, overwritten or changed without a condition"),
    ("loses", "history", "history that others have is rewritten or deleted: `git push --force`"),
    ("loses", "leased", "history is rewritten unless another user has pushed: `git push --force-with-lease`"),
    ("loses", "work", "work that is not committed, or commits that nothing names, are thrown away"),
    (
        "opens",
        "shell",
        "a shell or a debugger is reachable over the network, or the shell opens a connection",
    ),
    ("opens", "tunnel", "a tunnel leads into this machine or its network"),
    ("reads", "secret", "keys, passwords, tokens or other secrets are read, copied, packed or printed"),
    (
        "runs",
        "downloaded",
        "code runs that was just downloaded, or comes from an address instead of a registry",
    ),
    ("runs", "hidden", "a one-liner in another language starts programs or runs code that cannot be seen"),
    ("runs", "injected", "code is loaded into another program: preloads, plugins, wrappers, search paths"),
    ("runs", "later", "a schedule or a service runs a command later"),
    ("sends", "private", "the environment, dumps, homes or mail go to another machine"),
    ("stops", "services", "the machine, its network, services or other processes are stopped"),
    ("weakens", "protection", "firewalls, certificate checks, access control or auditing are switched off"),
    ("writes", "disk", "a disk, a file system or the kernel is written to itself"),
    ("writes", "outside", "files outside of the project and of scratch directories are written"),
    ("writes", "protected", "guardrails, their scripts, or settings that hold agents' hooks are changed"),
    (
        "writes",
        "startup",
        "files are written that programs run or obey later: shell profiles, git hooks, keys",
    ),
    ("writes", "unknown", "files are written or moved whose names a substitution makes"),
    ("writes", "system", "files of the system are written"),
];

/// One class, by its place in [`CLASSES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(usize);

impl Class {
    /// Reads `verb(kind)`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (verb, kind) = text.strip_suffix(')')?.split_once('(')?;
        Self::named(verb, kind)
    }

    /// The class of a verb and a kind.
    #[must_use]
    pub fn named(verb: &str, kind: &str) -> Option<Self> {
        CLASSES.iter().position(|(known, of, _)| *known == verb && *of == kind).map(Self)
    }

    /// Whether a word is the verb of a class.
    #[must_use]
    pub fn is_verb(word: &str) -> bool {
        CLASSES.iter().any(|(verb, ..)| *verb == word)
    }

    /// The kinds that a verb has.
    pub fn kinds(verb: &str) -> impl Iterator<Item = &'static str> {
        CLASSES.iter().filter(move |(known, ..)| *known == verb).map(|(_, kind, _)| *kind)
    }

    /// The word before the parentheses.
    #[must_use]
    pub fn verb(self) -> &'static str {
        CLASSES.get(self.0).map_or("", |(verb, ..)| verb)
    }

    /// The word in them.
    #[must_use]
    pub fn kind(self) -> &'static str {
        CLASSES.get(self.0).map_or("", |(_, kind, _)| kind)
    }

    /// What it means, in one sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        CLASSES.get(self.0).map_or("", |(.., meaning)| meaning)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.verb(), self.kind())
    }
}
