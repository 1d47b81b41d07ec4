//! What a command answers: text for people or programs, and an exit code.

use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Nothing to report.
    Fine,
    /// Findings, a denial, a widening or a failed comparison.
    Found,
    /// The command line is wrong.
    Usage,
    /// A file is unreadable or invalid.
    Invalid,
    /// We or the system failed.
    Fault,
}

impl Exit {
    const fn number(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Found => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Fault => 5,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.number().into()
    }
}

/// An answer, not yet printed. Text carries colours; where it is shown decides whether they stay.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) exit: Exit,
    /// For stdout: the result.
    pub(crate) out: Out,
    /// For stderr: why there is none.
    pub(crate) complaint: String,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) enum Out {
    /// For people; what came from files is escaped already.
    Text(String),
    /// JSON whose bytes matter; escaped only when a terminal would show it.
    Bytes(String),
}

impl Answer {
    /// A result for stdout.
    pub(crate) const fn result(exit: Exit, text: String) -> Self {
        Self { exit, out: Out::Text(text), complaint: String::new() }
    }

    /// JSON whose exact bytes matter to whoever reads it.
    pub(crate) const fn bytes(text: String) -> Self {
        Self { exit: Exit::Fine, out: Out::Bytes(text), complaint: String::new() }
    }

    /// No result, and why.
    pub(crate) const fn refusal(exit: Exit, complaint: String) -> Self {
        Self { exit, out: Out::Text(String::new()), complaint }
    }
}
