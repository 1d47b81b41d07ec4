//! What a scan says: the tools, what each uses, and what could not be known.

use std::path::PathBuf;

use bailiwick_policy::authority::Axis;

use crate::model::{Language, Reason};
use crate::target::Target;

/// A capability that code uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UseKind {
    /// Reads a file or a directory.
    Read,
    /// Changes a file.
    Write,
    /// Makes a file or a directory.
    Create,
    /// Removes a file or a directory.
    Delete,
    /// Reaches a host.
    Net,
    /// Starts a program.
    Exec,
    /// Reads a variable.
    Env,
    /// Reads the time-zone database.
    Tzdata,
}

impl UseKind {
    /// Every kind.
    pub const ALL: [Self; 8] =
        [Self::Read, Self::Write, Self::Create, Self::Delete, Self::Net, Self::Exec, Self::Env, Self::Tzdata];

    /// How a capability of this kind begins.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "fs:read",
            Self::Write => "fs:write",
            Self::Create => "fs:create",
            Self::Delete => "fs:delete",
            Self::Net => "net:connect",
            Self::Exec => "exec:spawn",
            Self::Env => "env:read",
            Self::Tzdata => "clock:tzdata",
        }
    }

    /// The axis that decides about it.
    #[must_use]
    pub const fn axis(self) -> Axis {
        match self {
            Self::Read => Axis::FsRead,
            Self::Write | Self::Create | Self::Delete => Axis::FsWrite,
            Self::Net => Axis::Net,
            Self::Exec => Axis::Exec,
            Self::Env => Axis::Env,
            Self::Tzdata => Axis::Clock,
        }
    }

    /// What it does, in words that a target may follow.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Create => "creates",
            Self::Delete => "deletes",
            Self::Net => "connects to",
            Self::Exec => "starts",
            Self::Env => "reads the variable",
            Self::Tzdata => "reads time zones",
        }
    }

    /// What a target of this kind is called.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Read | Self::Write | Self::Create | Self::Delete => "path",
            Self::Net => "host",
            Self::Exec => "program",
            Self::Env => "variable",
            Self::Tzdata => "zone",
        }
    }
}

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeSpan {
    /// The file, by its number in the report.
    pub file: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Line, from 1.
    pub line: usize,
}

/// One use of a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub(crate) kind: UseKind,
    pub(crate) target: Option<Target>,
    pub(crate) call: String,
    pub(crate) place: CodeSpan,
}

impl Use {
    /// Which capability.
    #[must_use]
    pub const fn kind(&self) -> UseKind {
        self.kind
    }

    /// The capability as a manifest says it; `None` where the source does not say the target.
    #[must_use]
    pub fn capability(&self) -> Option<String> {
        match (self.kind, &self.target) {
            (UseKind::Tzdata, _) => Some("clock:tzdata".to_owned()),
            (kind, Some(target)) => Some(format!("{}:{target}", kind.as_str())),
            (_, None) => None,
        }
    }

    /// What is called, by its full path.
    #[must_use]
    pub fn call(&self) -> &str {
        &self.call
    }

    /// Where.
    #[must_use]
    pub const fn place(&self) -> &CodeSpan {
        &self.place
    }

    pub(crate) const fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }
}

/// Something that could not be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub(crate) reason: Reason,
    pub(crate) what: String,
    pub(crate) place: CodeSpan,
}

impl Unknown {
    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// What it is about.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where.
    #[must_use]
    pub const fn place(&self) -> &CodeSpan {
        &self.place
    }
}

/// What is done by one tool, or by the server as a whole.
#[derive(Debug, Clone, Default)]
pub struct Deeds {
    pub(crate) uses: Vec<Use>,
    pub(crate) unknowns: Vec<Unknown>,
}

impl Deeds {
    /// What it uses, in the order of the text.
    #[must_use]
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// What is not known about it.
    #[must_use]
    pub fn unknowns(&self) -> &[Unknown] {
        &self.unknowns
    }
}

/// A tool that was found.
#[derive(Debug, Clone)]
pub struct Tool {
    pub(crate) name: String,
    pub(crate) language: Language,
    pub(crate) place: CodeSpan,
    pub(crate) declared: Option<Vec<String>>,
    pub(crate) deeds: Deeds,
}

impl Tool {
    /// The name it is called by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is written in.
    #[must_use]
    pub const fn language(&self) -> Language {
        self.language
    }

    /// Where it is defined.
    #[must_use]
    pub const fn place(&self) -> &CodeSpan {
        &self.place
    }

    /// The lines of the policy beside it in the source, if there is one.
    #[must_use]
    pub fn declared(&self) -> Option<&[String]> {
        self.declared.as_deref()
    }

    /// What it does.
    #[must_use]
    pub const fn deeds(&self) -> &Deeds {
        &self.deeds
    }
}

/// A whole scan.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) lines: usize,
    pub(crate) tools: Vec<Tool>,
    pub(crate) server: Deeds,
    pub(crate) reused: usize,
    pub(crate) unfound: Vec<String>,
    pub(crate) unlisted: Vec<String>,
    pub(crate) speaks: Option<usize>,
    pub(crate) picks: bool,
}

impl Report {
    /// The files that were read, in order.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// How many lines they have.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.lines
    }

    /// How many files were known from the cache.
    #[must_use]
    pub const fn reused(&self) -> usize {
        self.reused
    }

    /// The tools, by file and line.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Tools that the server lists while it runs and that were not found in the source.
    #[must_use]
    pub fn unfound(&self) -> &[String] {
        &self.unfound
    }

    /// Tools that were found in the source and that the server does not list while it runs.
    #[must_use]
    pub fn unlisted(&self) -> &[String] {
        &self.unlisted
    }

    /// The file that says that this is an MCP server, by its number.
    #[must_use]
    pub const fn speaks(&self) -> Option<usize> {
        self.speaks
    }

    /// Whether a handler of calls picks tools by names that are not in the source.
    #[must_use]
    pub const fn picks_unnamed_tools(&self) -> bool {
        self.picks
    }

    /// What is done by no tool: at start-up, or in code that no tool was seen to reach.
    #[must_use]
    pub const fn server(&self) -> &Deeds {
        &self.server
    }
}
